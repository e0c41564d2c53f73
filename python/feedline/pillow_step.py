# SPDX-License-Identifier: MIT
"""Decodes what the core cannot, with Pillow if it is installed, on a Python-made thread."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable

from ._core import DecodeError, LimitError

Decoded = tuple[int, int, bytes]


def decode_fallback() -> Callable[[memoryview], Decoded] | None:
    """The Pillow step; None if Pillow is not installed."""
    return decode if importlib.util.find_spec("PIL") is not None else None


def decode(data: memoryview) -> Decoded:
    """(width, height, RGBX bytes, 4 a pixel) of a file's bytes.

    The pixels are those of `Image.open(file).convert("RGB")`: the first frame of an animation,
    palettes looked up, transparency dropped. Pillow's own limits apply.

    Raises:
        DecodeError, LimitError: Pillow refused it; its own exception is the cause. The core adds
            the file's name.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as image:
            pixels = image.convert("RGB")
    except (MemoryError, Warning):  # warnings that the user made errors say what they are
        raise
    except UnidentifiedImageError as error:  # its text names the BytesIO
        raise DecodeError(
            "neither feedline nor Pillow knows this format; convert it or take it out of the "
            "data set"
        ) from error
    except Image.DecompressionBombError as error:
        raise LimitError(
            f"Pillow says: {error}; make it smaller or take it out of the data set"
        ) from error
    except Exception as error:  # Pillow's plugins raise many kinds, struct.error among them
        raise DecodeError(
            f"Pillow says: {describe(error)}; write the file again or take it out of the data set"
        ) from error
    return pixels.width, pixels.height, pixels.convert("RGBX").tobytes()


def describe(error: Exception) -> str:
    """The text, with the type where it says little without."""
    text = str(error)
    return text if isinstance(error, OSError) and text else f"{type(error).__name__}: {text}"
