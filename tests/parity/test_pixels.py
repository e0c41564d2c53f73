# SPDX-License-Identifier: MIT
"""Whole files through a Loader against Pillow, on real and on awkward pictures, bit for bit."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import pytest
from PIL import Image

import feedline as fl
from feedline import transforms as T
from order_model import below, derive, stream

PASSES = "pillow13" if int(PIL.__version__.split(".")[0]) >= 13 else "horizontal_first"
BILINEAR = Image.Resampling.BILINEAR
SEED, CROPS, SIZE = 20, 10, 224
STAGE_SAMPLE = 2


def opened(path: Path) -> Image.Image:
    """As torchvision's ImageFolder opens it."""
    with Image.open(path) as image:
        return image.convert("RGB")


def pillows_verdict(path: Path) -> np.ndarray | None:
    """The pixels; None: refused."""
    try:
        return np.asarray(opened(path))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def rows(paths: list[Path], **options: Any) -> Iterator[np.ndarray | Exception]:
    """What becomes of each file, in order: its pixels, or its error."""
    dataset = fl.Files(paths)
    with fl.Loader(dataset, output="numpy", layout="NHWC", seed=SEED, **options) as loader:
        iterator = iter(loader)
        for _ in paths:
            try:
                yield next(iterator).image[0]
            except (OSError, ValueError) as error:
                yield error


# Pillow warns of some faults, also on the loader's threads: there an error would be a verdict.
@pytest.mark.filterwarnings("ignore")
def test_awkward_files_have_pillows_verdict_and_pixels(awkward_pictures: list[Path]) -> None:
    refused = 0
    for path, row in zip(awkward_pictures, rows(awkward_pictures), strict=True):
        expected = pillows_verdict(path)
        if expected is not None:
            assert not isinstance(row, Exception), (path, row)
            assert np.array_equal(row, expected), path
            continue
        assert isinstance(row, fl.DecodeError | fl.LimitError), path
        assert row.filename == str(path)
        assert str(path) in str(row)
        refused += 1
    assert 0 < refused < len(awkward_pictures)


def test_photographs_are_pillows(photographs: list[Path]) -> None:
    for path, row in zip(photographs, rows(photographs), strict=True):
        assert np.array_equal(row, np.asarray(opened(path))), path


def unit(draws: Iterator[int]) -> float:
    return (next(draws) >> 11) * 2.0**-53


def uniform(draws: Iterator[int], low: float, high: float) -> float:
    return low + (high - low) * unit(draws)


def crop_box(
    image: Image.Image,
    epoch: int,
    position: int,
    scale: tuple[float, float] = (0.08, 1.0),
    ratio: tuple[float, float] = (3 / 4, 4 / 3),
) -> tuple[int, int, int, int]:
    """(x, y, width, height) by the rule in docs/order.md, for operation 0 of a chain."""
    draws = stream(derive(SEED, epoch, STAGE_SAMPLE, 0), position, 0)
    width, height = image.size
    for _ in range(10):
        area = width * height * uniform(draws, *scale)
        quotient = math.exp(uniform(draws, math.log(ratio[0]), math.log(ratio[1])))
        w, h = round(math.sqrt(area * quotient)), round(math.sqrt(area / quotient))
        if 0 < w <= width and 0 < h <= height:
            y = below(draws, height - h + 1)
            return below(draws, width - w + 1), y, w, h
    w, h = width, height
    if width / height < ratio[0]:
        h = max(1, round(width / ratio[0]))
    elif width / height > ratio[1]:
        w = max(1, round(height * ratio[1]))
    return (width - w) // 2, (height - h) // 2, w, h


def cropped(image: Image.Image, box: tuple[int, int, int, int], size: int) -> np.ndarray:
    """torchvision's resized_crop."""
    x, y, w, h = box
    return np.asarray(image.crop((x, y, x + w, y + h)).resize((size, size), BILINEAR))


def test_ten_random_crops_of_each_photograph(photographs: list[Path]) -> None:
    dataset = fl.Files(photographs)
    chain = [T.RandomResizedCrop(SIZE, passes=PASSES)]
    options = {"output": "numpy", "layout": "NHWC", "seed": SEED, "transform": chain}
    boxes = set()
    loaders = [fl.Loader(dataset, num_threads=1, **options) for _ in range(CROPS)]
    for epoch, loader in enumerate(loaders):
        loader.set_epoch(epoch)
    crops = [iter(loader) for loader in loaders]
    for position, path in enumerate(photographs):
        image = opened(path)
        for epoch, crop in enumerate(crops):
            box = crop_box(image, epoch, position)
            boxes.add(box)
            row = next(crop).image[0]
            assert np.array_equal(row, cropped(image, box, SIZE)), (path, epoch, box)
    for loader in loaders:
        loader.close()
    assert len(boxes) > 0.99 * CROPS * len(photographs)


@pytest.mark.parametrize(
    ("scale", "ratio"),
    [((0.0, 1.0), (3 / 4, 4 / 3)), ((1.0, 1.0), (2.0, 3.0)), ((4.0, 9.0), (0.1, 0.2))],
    ids=["any share", "wide bounds", "always too large"],
)
def test_boxes_at_the_edges_of_the_rule(
    photographs: list[Path], scale: tuple[float, float], ratio: tuple[float, float]
) -> None:
    """Crops of a few pixels, and the fallback to the largest central crop."""
    paths = photographs[::10]
    chain = [T.RandomResizedCrop(40, scale, ratio, passes=PASSES)]
    for position, (path, row) in enumerate(zip(paths, rows(paths, transform=chain), strict=True)):
        image = opened(path)
        box = crop_box(image, 0, position, scale, ratio)
        assert np.array_equal(row, cropped(image, box, 40)), (path, box)


def test_resize_and_center_crop_of_each_photograph(photographs: list[Path]) -> None:
    chain = [T.Resize(256, passes=PASSES), T.CenterCrop(SIZE)]
    for path, row in zip(photographs, rows(photographs, transform=chain), strict=True):
        image = opened(path)
        width, height = image.size
        if width <= height:
            image = image.resize((256, int(256 * height / width)), BILINEAR)
        else:
            image = image.resize((int(256 * width / height), 256), BILINEAR)
        left, top = round((image.width - SIZE) / 2), round((image.height - SIZE) / 2)
        image = image.crop((left, top, left + SIZE, top + SIZE))
        assert np.array_equal(row, np.asarray(image)), path


# Scaling and normalising: all 256 values of each channel, in every type.

VALUES = np.arange(256, dtype=np.float32)[:, None].repeat(3, axis=1)
MEAN, STD = np.float32(T.IMAGENET_MEAN), np.float32(T.IMAGENET_STD)
BY_QUOTIENT, BY_PRODUCT = VALUES / np.float32(255), VALUES * np.float32(1 / 255)
NORMALIZE = T.Normalize(T.IMAGENET_MEAN, T.IMAGENET_STD)


def normalized(values: np.ndarray) -> np.ndarray:
    return (values - MEAN) / STD


@pytest.fixture(scope="module")
def ramp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every grey value once, 16 x 16, without loss."""
    path = tmp_path_factory.mktemp("ramp") / "ramp.png"
    Image.fromarray(np.arange(256, dtype=np.uint8).reshape(16, 16)).convert("RGB").save(path)
    return path


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        ([NORMALIZE], normalized(BY_QUOTIENT)),
        ([T.ToDtype("float32", scale=True)], BY_PRODUCT),
        ([T.ToDtype("float32", scale=True), NORMALIZE], normalized(BY_PRODUCT)),
        ([T.ToDtype("float32"), NORMALIZE], normalized(VALUES)),
        ([T.ToDtype("float16", scale=True)], BY_PRODUCT.astype(np.float16)),
        ([NORMALIZE, T.ToDtype("float16")], normalized(BY_QUOTIENT).astype(np.float16)),
        ([T.ToDtype("float16")], VALUES.astype(np.float16)),
    ],
    ids=lambda value: ", ".join(map(repr, value)) if isinstance(value, list) else "",
)
def test_values(ramp: Path, chain: list[T.Transform], expected: np.ndarray) -> None:
    (row,) = rows([ramp], transform=chain)
    assert row.dtype == expected.dtype
    assert np.array_equal(row.reshape(256, 3), expected)


def test_the_two_ways_to_scale_differ() -> None:
    """Or the test above could not tell them apart."""
    assert (BY_QUOTIENT != BY_PRODUCT).any()
    assert (normalized(BY_QUOTIENT) != normalized(BY_PRODUCT)).any()


def test_flips_between_crop_and_store(photographs: list[Path]) -> None:
    """A flip before, between and behind the resizes is the flip of that place."""
    flip = T.RandomHorizontalFlip(1.0)
    resize = T.Resize((60, 50), passes=PASSES)
    for chain in itertools.permutations([resize, T.CenterCrop((101, 87)), flip]):
        paths = photographs[::60]
        for path, row in zip(paths, rows(paths, transform=chain), strict=True):
            image = opened(path)
            for step in chain:
                image = applied(step, image)
            assert np.array_equal(row, np.asarray(image)), (path, chain)


def applied(step: T.Transform, image: Image.Image) -> Image.Image:
    """torchvision's result for pictures of Pillow."""
    if isinstance(step, T.RandomHorizontalFlip):
        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    height, width = step.size
    if isinstance(step, T.Resize):
        return image.resize((width, height), BILINEAR)
    pad_x, pad_y = max(0, width - image.width), max(0, height - image.height)
    if pad_x or pad_y:
        padded = Image.new("RGB", (image.width + pad_x, image.height + pad_y))
        padded.paste(image, (pad_x // 2, pad_y // 2))
        image = padded
    left, top = round((image.width - width) / 2), round((image.height - height) / 2)
    return image.crop((left, top, left + width, top + height))
