# SPDX-License-Identifier: MIT
"""A loader that is made while the interpreter ends works, and one of before says it is closed."""

import atexit
import sys

import feedline as fl

before = fl.Loader(fl.ImageFolder(sys.argv[1]), batch_size=4, output="numpy")
next(iter(before))


def load() -> None:
    after = fl.Loader(fl.ImageFolder(sys.argv[1]), batch_size=4, output="numpy")
    if len(list(after)) != 6:
        print("batches are missing")
    try:
        next(iter(before))
    except fl.ClosedError:
        return
    print("a closed loader gave a batch")


atexit.register(load)
