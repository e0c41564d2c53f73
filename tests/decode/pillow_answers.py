# SPDX-License-Identifier: MIT
"""What the parity tests share: Pillow's answer, random boxes, and comparing with both."""

import io
import random
import struct
import warnings

import numpy as np
from native_decoder import DecodeError
from PIL import Image

REFUSALS = (OSError, SyntaxError, ValueError, EOFError, MemoryError, IndexError)
REFUSALS += (Image.DecompressionBombError, struct.error)  # struct's: Pillow 12, of short chunks


def pillow(data: bytes) -> np.ndarray | None:
    """Pillow's RGB pixels, None if it refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        except REFUSALS:
            return None


def random_box(rng: random.Random, width: int, height: int) -> tuple[int, int, int, int]:
    """Sizes from one pixel to the whole, small ones often."""
    w = min(width, max(1, round(width ** rng.random())))
    h = min(height, max(1, round(height ** rng.random())))
    return rng.randint(0, width - w), rng.randint(0, height - h), w, h


def check_boxes(decoder, data: bytes, want: np.ndarray, rng: random.Random, count: int) -> None:
    height, width = want.shape[:2]
    for _ in range(count):
        x, y, w, h = random_box(rng, width, height)
        got = decoder.decode(data, (x, y, w, h), rows=rng.choice([1, 2, 3, 7, h]))
        assert np.array_equal(got, want[y : y + h, x : x + w]), (x, y, w, h)


def check_whole(decoder, data: bytes) -> np.ndarray | None:
    """The whole picture is Pillow's, or both refuse. What is left to Pillow agrees with it."""
    want = pillow(data)
    refusal = got = None
    try:
        got = decoder.decode(data)
    except DecodeError as error:
        refusal = error
    if refusal is not None:
        assert want is None or refusal.kind == "needs python", f"{refusal}: {data.hex()}"
        return None
    assert want is not None, data.hex()
    assert np.array_equal(got, want), data.hex()
    return want


def check(decoder, data: bytes, rng: random.Random, boxes: int = 6) -> None:
    """A sound picture: the whole and boxes of it are Pillow's."""
    want = pillow(data)
    assert want is not None
    assert np.array_equal(decoder.decode(data), want), data.hex()[:2000]
    check_boxes(decoder, data, want, rng, boxes)
