# SPDX-License-Identifier: MIT
"""docs/order.md in NumPy: the specification that the C core is tested against."""

import itertools
import math

import numpy as np

MASK = (1 << 64) - 1
PHILOX = {  # multipliers and Weyl constants of the paper, by the width of a word
    32: (0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85),
    64: (0xD2E7470EE14C6C93, 0xCA5A826395121157, 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B),
}


def philox(counter, key, bits=32):
    """Philox4x<bits>-10."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    m0, m1, w0, w1 = PHILOX[bits]
    mask = (1 << bits) - 1
    for _ in range(10):
        p0, p1 = m0 * c0, m1 * c2
        c0, c1, c2, c3 = (p1 >> bits) ^ c1 ^ k0, p1 & mask, (p0 >> bits) ^ c3 ^ k1, p0 & mask
        k0, k1 = (k0 + w0) & mask, (k1 + w1) & mask
    return c0, c1, c2, c3


def halves(number):
    return number & 0xFFFFFFFF, number >> 32


def derive(seed, epoch, stage, block):
    low, high, _, _ = philox((*halves(epoch), stage, block), halves(seed))
    return high << 32 | low


def stream(key, position, op):
    """The u64() draws of a stream."""
    for block in itertools.count():
        words = philox((*halves(position), op, block), halves(key))
        yield words[1] << 32 | words[0]
        yield words[3] << 32 | words[2]


def below(draws, bound):
    while ((product := next(draws) * bound) & MASK) < (1 << 64) % bound:
        pass
    return product >> 64


def table(count, seed, epoch):
    order, draws = list(range(count)), stream(derive(seed, epoch, 1, 0), 0, 0)
    for i in range(count, 1, -1):
        j = below(draws, i)
        order[i - 1], order[j] = order[j], order[i - 1]
    return np.array(order, np.uint64)


def round_function(half, key, bound):
    z = half + np.uint64(key)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    # bound < 2^32, so the upper half of z * bound needs no wider type.
    low = (z & np.uint64(0xFFFFFFFF)) * bound >> np.uint64(32)
    return ((z >> np.uint64(32)) * bound + low) >> np.uint64(32)


def network(count, seed, epoch, positions):
    root = math.isqrt(count - 1) + 1
    a, b = np.uint64(root), np.uint64(-(-count // root))
    keys = [derive(seed, epoch, 1, i) for i in range(12)]
    value = np.array(positions, np.uint64)
    outside = np.ones(len(value), bool)
    while outside.any():
        left, right = value[outside] % a, value[outside] // a
        for i in range(0, 12, 2):
            left = (left + round_function(right, keys[i], a)) % a
            right = (right + round_function(left, keys[i + 1], b)) % b
        value[outside] = right * a + left
        outside = value >= np.uint64(count)
    return value


def order(count, seed, epoch, positions):
    """The samples at `positions` of a shuffled epoch."""
    if count <= 1 << 16:
        return table(count, seed, epoch)[positions].astype(np.int64)
    return network(count, seed, epoch, positions).astype(np.int64)


def split(count, start, batch_size, rank, world, uneven, drop_last):
    """A rank's positions, batch by batch."""
    unit = batch_size * world if uneven == "mask" else world
    whole = (count - start) // unit if uneven == "drop" else -(-(count - start) // unit)
    mine = np.arange(start + rank, start + whole * unit, world)
    batches = [mine[i : i + batch_size] for i in range(0, len(mine), batch_size)]
    return [batch for batch in batches if len(batch) == batch_size or not drop_last]
