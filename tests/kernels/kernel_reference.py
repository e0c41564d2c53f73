# SPDX-License-Identifier: MIT
"""What the transforms mean, in NumPy and plain Python, written from the definitions."""

import math

import numpy as np

MASK32, MASK64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def weights(size_in, size_out):
    """Pillow's bilinear filter of one axis: (size_out, size_in) integers of 22 bits."""
    matrix = np.zeros((size_out, size_in), np.int64)
    scale = size_in / size_out
    support = max(scale, 1.0)
    for i in range(size_out):
        center = (i + 0.5) * scale
        first = max(0, int(center - support + 0.5))
        end = min(size_in, int(center + support + 0.5))
        taps = [
            max(0.0, 1.0 - abs((x - center + 0.5) * (1.0 / support))) for x in range(first, end)
        ]
        total = 0.0
        for tap in taps:  # sum() compensates since Python 3.12
            total += tap
        for x, tap in zip(range(first, end), taps, strict=True):
            matrix[i, x] = int(0.5 + tap / total * (1 << 22))
    return matrix


def one_pass(image, size_out, axis):
    if image.shape[axis] == size_out:
        return image
    matrix = weights(image.shape[axis], size_out)
    moved = np.moveaxis(image, axis, 0).astype(np.int64)
    sums = np.tensordot(matrix, moved, 1) + (1 << 21)
    return np.moveaxis(np.clip(sums >> 22, 0, 255).astype(np.uint8), 0, axis)


def is_vertical_first(width, height, out_width, out_height):
    """Pillow 13's choice."""
    return height > out_height and height - out_height > 2 * (width - out_width)


def resize(image, out_width, out_height, passes):
    height, width = image.shape[:2]
    if passes == 0 and is_vertical_first(width, height, out_width, out_height):
        return one_pass(one_pass(image, out_height, 0), out_width, 1)
    return one_pass(one_pass(image, out_width, 1), out_height, 0)


class Random:
    """A stream of Philox4x32-10 for (key, position, op), as docs/order.md describes it."""

    def __init__(self, key, position, op):
        self.key = (key & MASK32, key >> 32)
        self.counter = [position & MASK32, position >> 32, op, 0]
        self.words = []

    def u64(self):
        low = self._u32()
        return self._u32() << 32 | low

    def unit(self):
        return (self.u64() >> 11) * 2.0**-53

    def uniform(self, low, high):
        return low + (high - low) * self.unit()

    def below(self, bound):
        while True:
            product = self.u64() * bound
            if (product & MASK64) >= (1 << 64) % bound:
                return product >> 64

    def _u32(self):
        if not self.words:
            self.words = philox(self.counter, self.key)
            self.counter[3] += 1
        return self.words.pop(0)


def philox(counter, key):
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK32, (p0 >> 32) ^ c3 ^ k1, p0 & MASK32
        k0, k1 = (k0 + 0x9E3779B9) & MASK32, (k1 + 0xBB67AE85) & MASK32
    return [c0, c1, c2, c3]


def draw_crop(random, width, height, scale, ratio):
    """RandomResizedCrop's box (x, y, width, height): torchvision's rule, drawn from `random`."""
    for _ in range(10):
        area = width * height * random.uniform(*scale)
        aspect = math.exp(random.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w = round(math.sqrt(area * aspect))
        h = round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            y = random.below(height - h + 1)
            x = random.below(width - w + 1)
            return x, y, w, h
    whole = width / height
    w, h = width, height
    if whole < ratio[0]:
        h = round(w / ratio[0])
    elif whole > ratio[1]:
        w = round(h * ratio[1])
    w, h = max(w, 1), max(h, 1)
    return (width - w) // 2, (height - h) // 2, w, h


def resized_size(width, height, size, max_size=None):
    """torchvision's size for Resize(int)."""
    short, long = min(width, height), max(width, height)
    new_short, new_long = size, int(size * long / short)
    if max_size is not None and new_long > max_size:
        new_short, new_long = int(max_size * new_short / new_long), max_size
    return (new_short, new_long) if width <= height else (new_long, new_short)


def center_crop(image, width, height):
    """torchvision's CenterCrop."""
    h, w = image.shape[:2]
    left, top = max(0, (width - w) // 2), max(0, (height - h) // 2)
    right, bottom = max(0, (width - w + 1) // 2), max(0, (height - h + 1) // 2)
    image = np.pad(image, ((top, bottom), (left, right), (0, 0)))
    h, w = image.shape[:2]
    y, x = round((h - height) / 2.0), round((w - width) / 2.0)
    return image[y : y + height, x : x + width]


def bfloat16_bits(values):
    """float32 to the bits of bfloat16, round to nearest even (no NaN)."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
