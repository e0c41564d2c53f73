# SPDX-License-Identifier: MIT
"""What one picture costs to decode, of a format, alone on one thread: feedline and Pillow."""

import io
import math
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from questions_feedline import files_of

Box = tuple[int, int, int, int]  # x, y, width, height

FORMATS: dict[str, dict[str, Any]] = {
    "JPEG": {"format": "JPEG", "quality": 90},
    "PNG": {"format": "PNG"},
    "WebP, lossy": {"format": "WEBP", "quality": 80},
    "WebP, lossless": {"format": "WEBP", "lossless": True},
}


def encode(paths: list[str], kind: str) -> list[tuple[bytes, Box]]:
    """The pictures in that format, each with a crop of 8 to 100 % of it."""
    rng = random.Random(0)
    made = []
    for path in paths:
        image = Image.open(path).convert("RGB")
        image.thumbnail((500, 500))
        file = io.BytesIO()
        image.save(file, **FORMATS[kind])
        share = math.sqrt(rng.uniform(0.08, 1))
        width, height = (max(1, round(side * share)) for side in image.size)
        x, y = rng.randint(0, image.width - width), rng.randint(0, image.height - height)
        made.append((file.getvalue(), (x, y, width, height)))
    return made


def feedline_decode(data: bytes, box: Box | None) -> Any:
    from feedline import _core

    return _core.decode(data, box)


def pillow_decode(data: bytes, box: Box | None) -> Any:
    image = Image.open(io.BytesIO(data)).convert("RGB")
    if box is not None:
        x, y, width, height = box
        image = image.crop((x, y, x + width, y + height))
    return np.asarray(image)


DECODERS: dict[str, Callable[[bytes, Box | None], Any]] = {
    "feedline": feedline_decode,
    "Pillow": pillow_decode,
}


def decode_format(peer: str, data: str, kind: str, count: int) -> dict[str, Any]:
    """CPU seconds a picture, whole and cropped; the pixels are compared beside the clock."""
    pictures = encode(files_of(data)[:count], kind)
    decode = DECODERS[peer]
    result = {}
    for name in ("whole", "crop"):
        for bytes_, box in pictures[:5]:
            place = box if name == "crop" else None
            if not np.array_equal(decode(bytes_, place), pillow_decode(bytes_, place)):
                raise AssertionError(f"{peer} does not decode {kind} as Pillow does")
        start = time.process_time()
        for bytes_, box in pictures:
            decode(bytes_, box if name == "crop" else None)
        result[name] = (time.process_time() - start) / len(pictures)
    return result


QUESTIONS: dict[str, Callable[..., dict[str, Any]]] = {"decode_format": decode_format}
