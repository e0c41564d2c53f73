# SPDX-License-Identifier: MIT
"""Decodes what the core cannot, with Pillow if it is installed, on a Python-made thread."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable

Decoded = tuple[int, int, bytes]


def decode_fallback() -> Callable[[memoryview], Decoded] | None:
    """The Pillow step; None if Pillow is not installed."""
    return decode if importlib.util.find_spec("PIL") is not None else None


def decode(data: memoryview) -> Decoded:
    """(width, height, RGBX bytes, 4 a pixel) of a file's bytes.

    The pixels are those of `Image.open(file).convert("RGB")`: the first frame of an animation,
    palettes looked up, transparency dropped. Pillow's own exceptions and limits apply.
    """
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        pixels = image.convert("RGB")
    return pixels.width, pixels.height, pixels.convert("RGBX").tobytes()
