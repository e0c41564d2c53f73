# SPDX-License-Identifier: MIT
"""What the transforms mean, in NumPy and plain Python, written from the definitions."""

import math

import numpy as np

MASK32, MASK64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


NEAREST, LANCZOS, BILINEAR, BICUBIC, BOX, HAMMING = range(6)  # Pillow's numbers
FILTERS = {
    "nearest": NEAREST,
    "lanczos": LANCZOS,
    "bilinear": BILINEAR,
    "bicubic": BICUBIC,
    "box": BOX,
    "hamming": HAMMING,
}
SUPPORT = {LANCZOS: 3.0, BILINEAR: 1.0, BICUBIC: 2.0, BOX: 0.5, HAMMING: 1.0}


def sinc(x):
    return 1.0 if x == 0 else math.sin(x * math.pi) / (x * math.pi)


def weigh(kind, x):
    """The filter's value at x, as Pillow computes it."""
    if kind == BOX:
        return 1.0 if -0.5 < x <= 0.5 else 0.0
    if kind == LANCZOS:
        return sinc(x) * sinc(x / 3) if -3.0 <= x < 3.0 else 0.0
    x = abs(x)
    if kind == BILINEAR:
        return max(0.0, 1.0 - x)
    if kind == HAMMING:
        a, b = float(np.float32(0.54)), float(np.float32(0.46))
        return sinc(x) * (a + b * math.cos(x * math.pi)) if 0 < x < 1 else float(x == 0)
    if x < 1:
        return ((-0.5 + 2.0) * x - (-0.5 + 3.0)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * -0.5 if x < 2 else 0.0


def weights(size_in, size_out, kind=BILINEAR):
    """Pillow's filter of one axis: (size_out, size_in) integers of 22 bits."""
    matrix = np.zeros((size_out, size_in), np.int64)
    scale = size_in / size_out
    stretch = max(scale, 1.0)
    support = SUPPORT[kind] * stretch
    for i in range(size_out):
        center = (i + 0.5) * scale
        first = max(0, int(center - support + 0.5))
        end = min(size_in, int(center + support + 0.5))
        taps = [weigh(kind, (x - center + 0.5) * (1.0 / stretch)) for x in range(first, end)]
        total = 0.0
        for tap in taps:  # sum() compensates since Python 3.12
            total += tap
        for x, tap in zip(range(first, end), taps, strict=True):
            share = tap / total if total else tap
            matrix[i, x] = int(math.copysign(0.5, share) + share * (1 << 22))
    return matrix


def one_pass(image, size_out, axis, kind):
    if image.shape[axis] == size_out:
        return image
    matrix = weights(image.shape[axis], size_out, kind)
    moved = np.moveaxis(image, axis, 0).astype(np.int64)
    sums = np.tensordot(matrix, moved, 1) + (1 << 21)
    return np.moveaxis(np.clip(sums >> 22, 0, 255).astype(np.uint8), 0, axis)


def nearest(size_in, size_out):
    """The input pixel of each output pixel: Pillow adds up the steps."""
    step = size_in / size_out
    at = step * 0.5
    positions = []
    for _ in range(size_out):
        positions.append(int(at))
        at += step
    return np.array(positions)


def is_vertical_first(width, height, out_width, out_height):
    """Pillow 13's choice."""
    return height > out_height and height - out_height > 2 * (width - out_width)


def resize(image, out_width, out_height, passes, kind=BILINEAR):
    height, width = image.shape[:2]
    if kind == NEAREST:
        return image[nearest(height, out_height)][:, nearest(width, out_width)]
    if passes == 0 and is_vertical_first(width, height, out_width, out_height):
        return one_pass(one_pass(image, out_height, 0, kind), out_width, 1, kind)
    return one_pass(one_pass(image, out_width, 1, kind), out_height, 0, kind)


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


MODES = ["constant", "edge", "reflect", "symmetric"]


def pad(image, padding, mode, fill=(0, 0, 0)):
    """torchvision's Pad of a PIL picture; None if nothing is left, which is an error there."""
    left, top, right, bottom = padding
    height, width = image.shape[:2]
    if mode == "constant":
        # A window of an endless plane of the fill colour with the picture on it.
        if width + left + right < 1 or height + top + bottom < 1:
            return None
        far = max(map(abs, padding))
        plane = np.full((height + 2 * far, width + 2 * far, 3), fill, np.uint8)
        plane[far : far + height, far : far + width] = image
        return plane[far - top : far + height + bottom, far - left : far + width + right]
    end_y, end_x = max(height - max(-bottom, 0), 0), max(width - max(-right, 0), 0)
    image = image[max(-top, 0) : end_y, max(-left, 0) : end_x]
    if 0 in image.shape:
        return None
    rows, columns = (max(top, 0), max(bottom, 0)), (max(left, 0), max(right, 0))
    return np.pad(image, (rows, columns, (0, 0)), mode)


def random_crop(random, image, size, padding, pad_if_needed, mode, fill=(0, 0, 0)):
    """torchvision's RandomCrop of a PIL picture, drawn from `random`; None is an error."""
    height, width = size
    image = pad(image, padding, mode, fill)
    if image is None:
        return None
    lacks_width, lacks_height = width - image.shape[1], height - image.shape[0]
    if pad_if_needed and lacks_width > 0:
        image = pad(image, (lacks_width, 0, lacks_width, 0), mode, fill)
    if pad_if_needed and lacks_height > 0:
        image = pad(image, (0, lacks_height, 0, lacks_height), mode, fill)
    spare_height, spare_width = image.shape[0] - height, image.shape[1] - width
    if spare_height < 0 or spare_width < 0:
        return None
    y = x = 0
    if spare_height or spare_width:
        y = random.below(spare_height + 1)
        x = random.below(spare_width + 1)
    return image[y : y + height, x : x + width]


def bfloat16_bits(values):
    """float32 to the bits of bfloat16, round to nearest even (no NaN)."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
