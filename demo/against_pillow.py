# SPDX-License-Identifier: MIT
"""The same pictures by Pillow alone, value by value."""

from collections.abc import Callable
from typing import Any

import numpy as np
import PIL
from PIL import Image

from feedline import transforms as T

# Pillow 13 changed which of the two passes of a resize comes first.
PASSES = "pillow13" if int(PIL.__version__.split(".")[0]) >= 13 else "horizontal_first"


def whole(picture: Image.Image) -> Image.Image:
    return picture.convert("RGB")


def resized(picture: Image.Image) -> Image.Image:
    """Resize(256), CenterCrop(224) as torchvision does them to a PIL image."""
    picture = picture.convert("RGB")
    short, long = sorted(picture.size)
    longer = int(256 * long / short)
    size = (256, longer) if picture.width <= picture.height else (longer, 256)
    picture = picture.resize(size, Image.Resampling.BILINEAR)
    left, top = round((picture.width - 224) / 2), round((picture.height - 224) / 2)
    return picture.crop((left, top, left + 224, top + 224))


# Title, feedline's chain, the same by Pillow.
CASES: list[tuple[str, list[Any], Callable[[Image.Image], Image.Image]]] = [
    ("decoded whole", [], whole),
    ("Resize(256), CenterCrop(224)", [T.Resize(256, passes=PASSES), T.CenterCrop(224)], resized),
]


def compare(loader: Any, reference: Callable[[Image.Image], Image.Image]) -> tuple[int, int]:
    """How many pictures there are, and how many of them have a value that is not Pillow's."""
    count = differ = 0
    for batch in loader:
        for pixels, index in zip(batch.image, batch.index, strict=True):
            path = loader.dataset.samples[int(index)][0]
            with Image.open(path) as picture:
                want = np.asarray(reference(picture))
            count += 1
            differ += not np.array_equal(np.asarray(pixels), want)
    return count, differ
