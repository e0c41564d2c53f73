# SPDX-License-Identifier: MIT
"""The frozen vectors of order version 1 in tests/core/order_golden.h, read by C and Python.

Run it to print them as the NumPy model computes them. They never change for a version.
"""

import re
from pathlib import Path

import numpy as np

import order_model

HEADER = Path(__file__).parent / "core" / "order_golden.h"
KEYS = [(0, 0), (1, 2), (0x0123456789ABCDEF, 0xFEDCBA9876543210)]
COUNTS = [1, 2, 3, 5, 7, 16, 255, 256, 257, 65535, 65536, 65537, 262145, 1000003, 2**32 + 1]
HASHED = 1 << 20  # the largest epoch that is hashed as a whole
FIRST, LAST = 8, 4


def hash_order(order):
    """The sum over all positions of splitmix64's finaliser of (position << 32 ^ sample)."""
    z = np.arange(len(order), dtype=np.uint64) << np.uint64(32) ^ order.astype(np.uint64)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return int(np.sum(z ^ z >> np.uint64(31), dtype=np.uint64))


def vector(permutation, count, seed, epoch):
    """(first values, last values, hash or 0) of permutation(count, seed, epoch, start, stop)."""
    first = permutation(count, seed, epoch, 0, min(FIRST, count))
    last = permutation(count, seed, epoch, max(count - LAST, 0), count)
    whole = count <= HASHED
    total = hash_order(permutation(count, seed, epoch, 0, count)) if whole else 0
    return first.tolist(), last.tolist(), total


def read():
    """{(count, seed, epoch): (first values, last values, hash or 0)} as frozen."""
    rows = re.findall(r"^    \{(.*)\},$", HEADER.read_text(), re.MULTILINE)
    frozen = {}
    for row in rows:
        count, seed, epoch, first, last, total = re.fullmatch(
            r"(\w+), (\w+), (\w+), \{(.*)\}, \{(.*)\}, (\w+)", row
        ).groups()
        values = [[int(value) for value in text.split(", ")] for text in (first, last)]
        values = [[value for value in part if value >= 0] for part in values]
        frozen[int(count), int(seed, 16), int(epoch, 16)] = (*values, int(total, 16))
    return frozen


def model(count, seed, epoch, start, stop):
    return order_model.order(count, seed, epoch, np.arange(start, stop))


def print_header():
    for count in COUNTS:
        for seed, epoch in KEYS:
            first, last, total = vector(model, count, seed, epoch)
            first += [-1] * (FIRST - len(first))
            last += [-1] * (LAST - len(last))
            lists = ", ".join("{" + ", ".join(map(str, part)) + "}" for part in (first, last))
            print(f"    {{{count}, {seed:#x}, {epoch:#x}, {lists}, {total:#018x}}},")


if __name__ == "__main__":
    print_header()
