# SPDX-License-Identifier: MIT
"""300 epochs: memory, descriptors and threads stay where they were after 50."""

import gc
import os
import sys

import feedline as fl
from feedline import transforms as T

LEEWAY_BYTES = 3 << 20


def memory() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def counts() -> tuple[int, int, int]:
    gc.collect()
    threads, descriptors = os.listdir("/proc/self/task"), os.listdir("/proc/self/fd")
    return memory(), len(threads), len(descriptors)


loader = fl.Loader(
    fl.ImageFolder(sys.argv[1]),
    batch_size=4,
    shuffle=True,
    transform=[T.RandomResizedCrop(32), T.Normalize(T.IMAGENET_MEAN, T.IMAGENET_STD)],
    output="numpy",
    num_threads=2,
)
after_50 = (0, 0, 0)
for epoch in range(300):
    for number, _ in enumerate(loader):
        if number == epoch % 7:
            break
    if epoch == 50:
        after_50 = counts()
at_the_end = counts()
if at_the_end[0] > after_50[0] + LEEWAY_BYTES or at_the_end[1:] > after_50[1:]:
    sys.exit(f"(bytes, threads, descriptors) grew from {after_50} to {at_the_end}")
