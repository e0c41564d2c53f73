# SPDX-License-Identifier: MIT
"""Filters, Pad, RandomCrop and flips against torchvision's transforms of Pillow's pictures."""

import itertools
from typing import Any

import numpy as np
import PIL
import pytest

# Before torchvision: it skips these tests where there is none.
import torchvision_support  # isort: skip
from PIL import Image
from torchvision import transforms as V
from torchvision.transforms import functional as F

from feedline import _core
from feedline import transforms as T

assert torchvision_support.torch
PASSES = "pillow13" if int(PIL.__version__.split(".")[0]) >= 13 else "horizontal_first"
MODES = ["constant", "edge", "reflect", "symmetric"]


def picture(width: int, height: int) -> Image.Image:
    pixels = np.random.default_rng(width).integers(0, 256, (height, width, 3), np.uint8)
    return Image.fromarray(pixels)


def mine(step: T.Transform, image: Image.Image, position: int = 0) -> np.ndarray:
    rgbx = image.convert("RGBX").tobytes()
    row, _ = _core.apply_ops([step._spec()], "NHWC", *image.size, rgbx, 1, 0, position)
    return row


def outcome(make: Any) -> Any:
    """None: refused; or, as only torchvision has them, a picture without pixels."""
    try:
        pixels = np.asarray(make())
    except (TypeError, ValueError):
        return None
    return pixels if pixels.size else None


def equal(one: Any, other: Any) -> bool:
    return (one is None) == (other is None) and (one is None or np.array_equal(one, other))


@pytest.mark.parametrize("mode", V.InterpolationMode)
def test_resize(mode: Any) -> None:
    for width, height, size in itertools.product((1, 40, 97), (1, 30, 64), (7, 33, (50, 20))):
        image = picture(width, height)
        theirs = outcome(lambda: V.Resize(size, mode)(image))  # noqa: B023
        ours = outcome(lambda: mine(T.Resize(size, mode, passes=PASSES), image))  # noqa: B023
        assert equal(ours, theirs), (width, height, size)


PADDINGS: list[Any] = [
    0, 3, [2], (1, 4), (4, 0, 1, 2), -2, (-3, 2), (5, -4, -1, 9), (-2, 0, 12, 0), (0, -9, 0, 30),
    (25, 0, -3, 40), (-8, 0, 0, 0), (0, 0, -7, 0), (0, 6, 0, -6), (1, 2, 3), (), None, "1",
    (1, "1"),
]  # fmt: skip
FILLS: list[Any] = [0, 9, 300, -4, 7.9, (1, 2, 3), [4, 5, 6], (8,), (1, 2), "red", (1, 2, None)]


@pytest.mark.parametrize("mode", [*MODES, "wrap", None])
def test_pad(mode: Any) -> None:
    for (width, height), padding in itertools.product([(7, 6), (1, 1), (2, 9)], PADDINGS):
        image = picture(width, height)
        theirs = outcome(lambda: V.Pad(padding, 5, mode)(image))  # noqa: B023
        ours = outcome(lambda: mine(T.Pad(padding, 5, mode), image))  # noqa: B023
        assert equal(ours, theirs), (width, height, padding)


@pytest.mark.parametrize("fill", FILLS)
def test_fill(fill: Any) -> None:
    image = picture(5, 4)
    theirs = outcome(lambda: V.Pad((1, 2), fill)(image))
    assert equal(outcome(lambda: mine(T.Pad((1, 2), fill), image)), theirs)


def padded(step: V.RandomCrop, image: Image.Image) -> np.ndarray:
    """What torchvision crops from."""
    seen: list[Image.Image] = []
    step.get_params = lambda img, size: (seen.append(img), (0, 0, *size))[1]
    step(image)
    return np.asarray(seen[0])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("if_needed", [False, True])
@pytest.mark.parametrize("padding", [None, 2, (3, 1), (0, 2, 4, 1), (-2, 3), (1, -1, -3, 2)])
def test_random_crop(mode: str, if_needed: bool, padding: Any) -> None:
    """A crop is one of those that torchvision may take, and different ones come."""
    numbers = padding, if_needed, (1, 2, 3), mode
    for (width, height), size in itertools.product([(9, 7), (6, 12)], [5, (8, 4), (14, 20)]):
        image = picture(width, height)
        theirs = padded(V.RandomCrop(size, *numbers), image)
        step = T.RandomCrop(size, *numbers)
        if theirs.shape[0] < step.size[0] or theirs.shape[1] < step.size[1]:
            with pytest.raises(ValueError, match=r"Required crop size"):
                V.RandomCrop(size, *numbers)(image)
            with pytest.raises(ValueError, match=r"Required crop size"):
                mine(step, image)
            continue
        windows = np.lib.stride_tricks.sliding_window_view(theirs, (*step.size, 3))[
            ..., 0, :, :, :
        ]
        possible = {window.tobytes() for row in windows for window in row}
        drawn = {mine(step, image, position).tobytes() for position in range(12)}
        assert drawn <= possible
        assert len(drawn) > 1 or len(possible) == 1


def test_flips() -> None:
    image = picture(9, 7)
    assert np.array_equal(mine(T.RandomVerticalFlip(1), image), np.asarray(F.vflip(image)))
    assert np.array_equal(mine(T.RandomHorizontalFlip(1), image), np.asarray(F.hflip(image)))
