# SPDX-License-Identifier: MIT
"""Every type, layout and output, of one size and of their own sizes, against plain arrays."""

import itertools
from typing import Any

import numpy as np
import pytest
from PIL import Image

import feedline as fl
from feedline import transforms as T

LAYOUTS = ("NCHW", "NHWC", "channels_last")
DTYPES = ("uint8", "float16", "float32")
HEIGHT, WIDTH = 7, 5
CHANNELS_LAST_STRIDES = (HEIGHT * WIDTH * 3, 1, WIDTH * 3, 3)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> tuple[fl.Files, np.ndarray]:
    """Three files without loss, labelled, and their pixels (3, 7, 5, 3)."""
    folder = tmp_path_factory.mktemp("pictures")
    pixels = np.random.default_rng(0).integers(0, 256, (3, HEIGHT, WIDTH, 3), dtype=np.uint8)
    paths = [folder / f"{number}.png" for number in range(len(pixels))]
    for path, picture in zip(paths, pixels, strict=True):
        Image.fromarray(picture).save(path)
    return fl.Files(paths, [1, 2, 3]), pixels


def load(dataset: fl.Files, is_fixed: bool, dtype: str, layout: str, output: str) -> Any:
    crop: list[T.Transform] = [T.CenterCrop((HEIGHT, WIDTH))] if is_fixed else []
    options = {"transform": [*crop, T.ToDtype(dtype)], "layout": layout, "output": output}
    with fl.Loader(dataset, batch_size=3, **options) as loader:
        (batch,) = loader
    assert isinstance(batch.image, list) is not is_fixed
    return batch


def expected_of(pixels: np.ndarray, dtype: str, layout: str) -> np.ndarray:
    values = pixels.astype(dtype)
    return values if layout == "NHWC" else values.transpose(0, 3, 1, 2)


@pytest.mark.parametrize("is_fixed", [True, False], ids=["one size", "own sizes"])
@pytest.mark.parametrize("output", ["numpy", "dlpack"])
def test_arrays(pictures: tuple[fl.Files, np.ndarray], output: str, is_fixed: bool) -> None:
    dataset, pixels = pictures
    for dtype, layout in itertools.product(DTYPES, LAYOUTS):
        batch = load(dataset, is_fixed, dtype, layout, output)
        expected = expected_of(pixels, dtype, layout)
        images = batch.image if is_fixed else list(batch.image)
        arrays = [images] if is_fixed else images
        arrays = [array.numpy() if output == "dlpack" else array for array in arrays]
        values = arrays[0] if is_fixed else np.stack(arrays)
        assert values.dtype == expected.dtype
        assert np.array_equal(values, expected), (dtype, layout)
        assert np.asarray(batch.label).tolist() == [1, 2, 3]
        if is_fixed:
            elements = tuple(stride // values.itemsize for stride in values.strides)
            assert (elements == CHANNELS_LAST_STRIDES) is (layout == "channels_last")
            assert values.flags.c_contiguous is (layout != "channels_last")


@pytest.mark.parametrize("is_fixed", [True, False], ids=["one size", "own sizes"])
@pytest.mark.parametrize("output", ["torch", "dlpack"])
def test_tensors(pictures: tuple[fl.Files, np.ndarray], output: str, is_fixed: bool) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    dataset, pixels = pictures
    for dtype, layout in itertools.product((*DTYPES, "bfloat16"), LAYOUTS):
        batch = load(dataset, is_fixed, dtype, layout, output)
        expected = torch.from_numpy(expected_of(pixels, "uint8", layout)).to(getattr(torch, dtype))
        tensors = [batch.image] if is_fixed else batch.image
        if output == "dlpack":
            assert torch.equal(
                torch.from_dlpack(tensors[0]), expected if is_fixed else expected[0]
            )
            tensors = [tensor.torch() for tensor in tensors]
        values = tensors[0] if is_fixed else torch.stack(tensors)
        assert values.dtype == expected.dtype
        assert torch.equal(values, expected), (dtype, layout)
        if is_fixed:
            is_last = values.is_contiguous(memory_format=torch.channels_last)
            assert is_last is (layout == "channels_last")
            assert values.is_contiguous() is (layout != "channels_last")
