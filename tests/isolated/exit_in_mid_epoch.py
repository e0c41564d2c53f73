# SPDX-License-Identifier: MIT
"""The interpreter ends while an iterator lives, batches are held and threads are busy."""

import sys

import feedline as fl
from feedline import transforms as T

dataset = fl.ImageFolder(sys.argv[1])
loader = fl.Loader(dataset, batch_size=2, transform=[T.RandomResizedCrop(64)], output="numpy")
iterator = iter(loader)
kept = [next(iterator), next(iterator)]
other = iter(fl.Loader(dataset, output="dlpack"))
kept.append(next(other))
