# SPDX-License-Identifier: MIT
"""feedline.transforms: torchvision's parameters, errors, and what the core is told."""

import enum
import pickle
from typing import Any

import numpy as np
import pytest
from PIL import Image

from feedline import _core
from feedline import transforms as T

pytestmark = pytest.mark.parallel


class InterpolationMode(enum.Enum):
    """As torchvision's."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


class TorchDtype:
    """Prints itself as torch's do; NumPy does not know it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


@pytest.mark.parametrize(
    ("transform", "spec"),
    [
        (
            T.RandomResizedCrop(224),
            ("random_resized_crop", (224, 224, 0.08, 1.0, 3 / 4, 4 / 3, 2, 0)),
        ),
        (
            T.RandomResizedCrop((20, 30), scale=(0.5, 0.6), passes="horizontal_first"),
            ("random_resized_crop", (20, 30, 0.5, 0.6, 3 / 4, 4 / 3, 2, 1)),
        ),
        (T.RandomResizedCrop([7]), ("random_resized_crop", (7, 7, 0.08, 1.0, 3 / 4, 4 / 3, 2, 0))),
        (T.Resize(256), ("resize", (256, -1, -1, 2, 0))),
        (T.Resize([256]), ("resize", (256, -1, -1, 2, 0))),
        (T.Resize((20, 30), passes="horizontal_first"), ("resize", (20, 30, -1, 2, 1))),
        (T.Resize(20, max_size=30), ("resize", (20, -1, 30, 2, 0))),
        (T.CenterCrop(5), ("center_crop", (5, 5))),
        (T.CenterCrop((5, 6)), ("center_crop", (5, 6))),
        (T.Resize(256, "lanczos"), ("resize", (256, -1, -1, 1, 0))),
        (T.RandomHorizontalFlip(), ("random_horizontal_flip", (0.5,))),
        (T.RandomVerticalFlip(0.25), ("random_vertical_flip", (0.25,))),
        (T.Pad(3), ("pad", (3, 3, 3, 3, 0, 0, 0, 0))),
        (T.Pad([3]), ("pad", (3, 3, 3, 3, 0, 0, 0, 0))),
        (T.Pad((1, -2), padding_mode="edge"), ("pad", (1, -2, 1, -2, 1, 0, 0, 0))),
        (T.Pad((1, 2, 3, 4), 7, "reflect"), ("pad", (1, 2, 3, 4, 2, 7, 7, 7))),
        (T.Pad(0, (1, 2.9, 300), "symmetric"), ("pad", (0, 0, 0, 0, 3, 1, 2, 255))),
        (T.Pad(0, [-5]), ("pad", (0, 0, 0, 0, 0, 0, 0, 0))),
        (T.RandomCrop(9), ("random_crop", (9, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0))),
        (
            T.RandomCrop((9, 8), (1, 2), True, (5, 6, 7), "reflect"),
            ("random_crop", (9, 8, 1, 1, 2, 1, 2, 2, 5, 6, 7)),
        ),
        (T.RandomCrop(9, fill=None), ("random_crop", (9, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0))),
        (T.Normalize((1, 2, 3), (4, 5, 6)), ("normalize", (1, 2, 3, 4, 5, 6))),
        (T.Normalize([0.5], [0.25]), ("normalize", (0.5, 0.5, 0.5, 0.25, 0.25, 0.25))),
        (T.ToDtype("float32", scale=True), ("to_dtype", (4, 2))),
        (T.ToDtype("uint8"), ("to_dtype", (0, 0))),
    ],
)
def test_the_core_is_told(transform: T.Transform, spec: tuple[str, tuple[float, ...]]) -> None:
    assert transform._spec() == spec
    assert pickle.loads(pickle.dumps(transform)) == transform
    # It prints as the call that makes it.
    assert eval(repr(transform), vars(T)) == transform


@pytest.mark.parametrize(
    "dtype",
    ["float16", np.float16, np.dtype("float16"), TorchDtype("float16")],
)
def test_dtypes_go_by_object_or_name(dtype: Any) -> None:
    assert T.ToDtype(dtype).dtype == "float16"


def test_bfloat16_has_a_name_only() -> None:
    assert T.ToDtype("bfloat16").dtype == T.ToDtype(TorchDtype("bfloat16")).dtype == "bfloat16"


@pytest.mark.parametrize("name", ["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"])
def test_interpolations_have_several_names(name: str) -> None:
    number = Image.Resampling[name.upper()]
    for same in (name, InterpolationMode(name), number, int(number), np.int64(number)):
        assert T.Resize(5, same).interpolation == name
        assert T.Resize(5, same)._spec() == ("resize", (5, -1, -1, int(number), 0))
        crop = T.RandomResizedCrop(5, interpolation=same)
        assert crop.interpolation == name
        assert crop._spec()[1][-2] == int(number)


def test_nearest_exact_is_nearest() -> None:
    """As in torchvision for Pillow's pictures."""
    assert T.Resize(5, "nearest-exact") == T.Resize(5, "nearest")
    assert T.Resize(5, InterpolationMode.NEAREST_EXACT) == T.Resize(5, "nearest")


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: T.Resize("5"), TypeError, "size is an integer or a sequence"),
        (lambda: T.Resize(5.0), TypeError, "size is an integer or a sequence"),
        (lambda: T.Resize(True), TypeError, "integers, got True"),
        (lambda: T.Resize((1, 2, 3)), ValueError, "one or two"),
        (lambda: T.Resize(()), ValueError, "one or two"),
        (lambda: T.Resize(0), ValueError, "at least 1, got 0"),
        (lambda: T.Resize((5, -5)), ValueError, "at least 1, got -5"),
        (lambda: T.Resize((5, 5.5)), TypeError, "integers, got 5.5"),
        (lambda: T.Resize(1 << 24), ValueError, "size is at most 16777215"),
        (lambda: T.Resize(5, max_size=1 << 40), ValueError, "max_size is at most 16777215"),
        (lambda: T.Resize(5, max_size=6.0), TypeError, "max_size is made of integers"),
        (lambda: T.Resize((5, 6), max_size=7), ValueError, "max_size goes with one number"),
        (lambda: T.Resize(5, max_size=5), ValueError, "above the shorter edge, 5"),
        (lambda: T.Resize(5, "cubic"), ValueError, "one of 'nearest', 'lanczos', .*got 'cubic'"),
        (lambda: T.Resize(5, None), ValueError, "interpolation is one of .*got None"),
        (lambda: T.Resize(5, True), ValueError, "interpolation is one of .*got True"),
        (lambda: T.Resize(5, 6), ValueError, "interpolation is one of .*got 6"),
        (lambda: T.Resize(5, [2]), ValueError, r"interpolation is one of .*got \[2\]"),
        (lambda: T.Resize(5, 2.0), ValueError, r"interpolation is one of .*got 2\.0"),
        (lambda: T.Resize(5, np.array([2, 2])), ValueError, "interpolation is one of"),
        (lambda: T.Resize(5, antialias=False), ValueError, "always smooths"),
        (lambda: T.Resize(5, passes="both"), ValueError, "'pillow13', 'horizontal_first'"),
        (lambda: T.CenterCrop(None), TypeError, "size is an integer or a sequence"),
        (lambda: T.RandomResizedCrop(5, scale=1.0), TypeError, "scale is a sequence"),
        (lambda: T.RandomResizedCrop(5, ratio=2), TypeError, "ratio is a sequence"),
        (lambda: T.RandomResizedCrop(5, scale=(1.0, 0.5)), ValueError, "least <= largest"),
        (lambda: T.RandomResizedCrop(5, scale=(0.0, 0.0)), ValueError, "0 < largest"),
        (lambda: T.RandomResizedCrop(5, scale=(-0.1, 0.5)), ValueError, "0 <= least"),
        (lambda: T.RandomResizedCrop(5, scale=(0.1, 10**400)), ValueError, "fits a float"),
        (lambda: T.RandomResizedCrop(5, ratio=(0, 1)), ValueError, "0 < least"),
        (lambda: T.RandomResizedCrop(5, ratio=(True, 1)), TypeError, "ratio is a number"),
        (lambda: T.RandomResizedCrop(5, ratio=(1, float("inf"))), ValueError, "finite"),
        (lambda: T.RandomHorizontalFlip(1.5), ValueError, "from 0 to 1, got 1.5"),
        (lambda: T.RandomHorizontalFlip("1"), TypeError, "p is a number"),
        (lambda: T.RandomHorizontalFlip(float("nan")), ValueError, "finite"),
        (lambda: T.RandomHorizontalFlip(10**400), ValueError, "fits a float"),
        (lambda: T.RandomVerticalFlip(-0.5), ValueError, "RandomVerticalFlip: p is from 0 to 1"),
        (lambda: T.RandomVerticalFlip(None), TypeError, "RandomVerticalFlip: p is a number"),
        (lambda: T.Pad("3"), TypeError, "^Got inappropriate padding arg: Pad"),
        (lambda: T.Pad(None), TypeError, "^Got inappropriate padding arg"),
        (lambda: T.Pad(2.0), TypeError, "^Got inappropriate padding arg"),
        (lambda: T.Pad((1, True)), TypeError, "^Got inappropriate padding arg"),
        (lambda: T.Pad((1, 2, 3)), ValueError, "^Padding must be an int or a 1, 2, or 4 element"),
        (lambda: T.Pad(()), ValueError, "not a 0 element tuple"),
        (lambda: T.Pad(1 << 24), ValueError, "at most 16777215"),
        (lambda: T.Pad(3, "red"), TypeError, "^Got inappropriate fill arg"),
        (lambda: T.Pad(3, None), TypeError, "^Got inappropriate fill arg"),
        (lambda: T.Pad(3, (1, 2, None)), TypeError, "^Got inappropriate fill arg"),
        (lambda: T.Pad(3, (1, 2)), ValueError, r"^The number of elements in 'fill' .*\(2 != 3\)"),
        (lambda: T.Pad(3, float("nan")), ValueError, "fill is made of finite numbers"),
        (lambda: T.Pad(3, padding_mode="wrap"), ValueError, "^Padding mode should be either"),
        (lambda: T.Pad(3, padding_mode=0), TypeError, "^Got inappropriate padding_mode arg"),
        (lambda: T.RandomCrop("5"), TypeError, "RandomCrop: size is an integer or a sequence"),
        (lambda: T.RandomCrop((1, 2, 3)), ValueError, "one or two"),
        (lambda: T.RandomCrop(5, "3"), TypeError, "^Got inappropriate padding arg: RandomCrop"),
        (lambda: T.RandomCrop(5, 1, 1), TypeError, "pad_if_needed is True or False, got 1"),
        (lambda: T.RandomCrop(5, 1, True, "0"), TypeError, "^Got inappropriate fill arg"),
        (lambda: T.RandomCrop(5, padding_mode="x"), ValueError, "^Padding mode should be"),
        (lambda: T.Normalize(0.5, 0.5), TypeError, "mean is a sequence"),
        (lambda: T.Normalize((0, 0, "0"), (1, 1, 1)), TypeError, "mean is a sequence"),
        (lambda: T.Normalize((0, 0), (1, 1, 1)), ValueError, "mean has 3 numbers"),
        (lambda: T.Normalize({0.1, 0.2, 0.3}, (1, 1, 1)), TypeError, "mean is a sequence"),
        (lambda: T.Normalize("123", (1, 1, 1)), TypeError, "mean is a sequence"),
        (lambda: T.Normalize((0, 0, float("nan")), (1, 1, 1)), ValueError, "finite"),
        (lambda: T.Normalize((1e39, 0, 0), (1, 1, 1)), ValueError, "mean does not fit float32"),
        (lambda: T.Normalize((0, 0, 0), (1, 1, -1e300)), ValueError, "std does not fit float32"),
        (lambda: T.Normalize((0, 0, 0), (1, 0, 1)), ValueError, "std must not be zero"),
        (lambda: T.Normalize((0, 0, 0), (1, 1e-60, 1)), ValueError, "std must not be zero"),
        (lambda: T.ToDtype("float64"), ValueError, "can be: uint8, float16"),
        (lambda: T.ToDtype(object()), ValueError, "can be: uint8, float16"),
        (lambda: T.ToDtype(np.float32(1)), ValueError, "can be: uint8, float16"),
        (lambda: T.ToDtype(">f4"), ValueError, "cannot be '>f4'"),
        (lambda: T.ToDtype(None), ValueError, "can be: uint8, float16"),
        (lambda: T.ToDtype({"image": "float32"}), ValueError, "can be: uint8, float16"),
        (lambda: T.ToDtype("uint8", scale=1), TypeError, "scale is True or False"),
    ],
)
def test_wrong_parameters(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_scale_may_start_at_0_as_torchvisions() -> None:
    assert T.RandomResizedCrop(5, scale=(0, 1)).scale == (0.0, 1.0)


class Tensor:
    """Iterates as torch's do: over tensors, which are no numbers."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __iter__(self) -> Any:
        return map(Tensor, self.values)

    def tolist(self) -> Any:
        return self.values


@pytest.mark.parametrize("kind", [np.array, Tensor, tuple, list])
def test_normalize_takes_arrays_and_tensors(kind: Any) -> None:
    assert T.Normalize(kind([0.5, 0.25, 0.125]), kind([1.0, 2.0, 4.0])) == T.Normalize(
        (0.5, 0.25, 0.125), (1, 2, 4)
    )


def test_antialias_none_is_true() -> None:
    assert T.Resize(5, antialias=None).antialias is True


def test_equal_means_same_kind_and_numbers() -> None:
    assert T.Resize(5) != T.Resize(6)
    assert T.Resize(5) != T.CenterCrop(5)
    assert T.Resize(5) != 5
    assert len({T.Resize(5), T.Resize(5), T.Resize(6)}) == 2


def test_every_transform_is_known_to_the_core() -> None:
    chain = [T.RandomResizedCrop(9), T.RandomHorizontalFlip(), T.CenterCrop(8), T.Resize((6, 7))]
    chain += [T.Pad(5), T.RandomVerticalFlip(), T.RandomCrop((6, 7), 2, True)]
    chain.append(T.Normalize(T.IMAGENET_MEAN, T.IMAGENET_STD))
    assert _core.check_ops([step._spec() for step in chain], "NCHW") == ("float32", (3, 6, 7))
    for dtype in T.DTYPES:
        assert _core.check_ops([T.Resize((6, 7))._spec(), T.ToDtype(dtype)._spec()], "NHWC") == (
            dtype,
            (6, 7, 3),
        )
