# SPDX-License-Identifier: MIT
"""What happens to a picture between file and batch, with torchvision's names and parameters.

Objects of this module only describe; the C core does the work. Random ones draw from
(seed, epoch, position), never from a generator. Pictures that go through neither Normalize nor
ToDtype stay uint8, 0 to 255.

The resizing ones give Pillow's pixels, bit for bit. Pillow rounds to 8 bits between its two
passes, and Pillow 13 changed which comes first, so `passes` says whose pixels: "pillow13" (the
default: vertical first where that is cheaper) or "horizontal_first" (Pillow up to 12).
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

import numpy as np

from feedline import interpolation as filters
from feedline import padding as paddings
from feedline.interpolation import check_interpolation
from feedline.state import brief

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "CenterCrop",
    "Normalize",
    "Pad",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
    "Resize",
    "ToDtype",
    "Transform",
]

IMAGENET_MEAN: Final = (0.485, 0.456, 0.406)
IMAGENET_STD: Final = (0.229, 0.224, 0.225)

Spec = tuple[str, tuple[float, ...]]
Size = int | Sequence[int]

# The core's numbers; its 1, int64, is not for pictures.
DTYPES: Final = {"uint8": 0, "float16": 2, "bfloat16": 3, "float32": 4}
# The core's ways to scale; its 1, a quotient, is Normalize's own on uint8.
SCALE_NOT: Final = 0.0
SCALE_BY_PRODUCT: Final = 2.0
PASSES: Final = {"pillow13": 0, "horizontal_first": 1}
MAX_EDGE: Final = (1 << 24) - 1  # the core's
FLOAT32_MAX: Final = float(np.finfo(np.float32).max)


class Transform(ABC):
    """One step of a `transform` list."""

    @abstractmethod
    def _spec(self) -> Spec:
        """The core's name for it, and its numbers."""

    @abstractmethod
    def __repr__(self) -> str: ...

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._spec() == other._spec()

    def __hash__(self) -> int:
        return hash(self._spec())


class RandomResizedCrop(Transform):
    """Crops a random part of the picture and resizes it to `size`.

    Args:
        size: height and width of the result, or one number for both; at least 1.
        scale: least and largest share of the picture's area, 0 <= least <= largest, 0 < largest.
        ratio: least and largest width/height, 0 < least <= largest.
        interpolation: "bilinear", "nearest", "box", "hamming", "bicubic" or "lanczos".
        antialias: True (None means the same), as Pillow does.
        passes: "pillow13" or "horizontal_first".
    """

    def __init__(
        self,
        size: Size,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Any = "bilinear",
        antialias: bool | None = True,
        *,
        passes: str = "pillow13",
    ) -> None:
        self.size: Final = check_pair("RandomResizedCrop", size)
        self.scale: Final = check_range("RandomResizedCrop", "scale", scale, True)
        self.ratio: Final = check_range("RandomResizedCrop", "ratio", ratio)
        self.interpolation: Final = check_interpolation("RandomResizedCrop", interpolation)
        self.antialias: Final = check_antialias("RandomResizedCrop", antialias)
        self.passes: Final = check_passes("RandomResizedCrop", passes)

    def _spec(self) -> Spec:
        how = filters.NUMBERS[self.interpolation], PASSES[self.passes]
        numbers = (*self.size, *self.scale, *self.ratio, *how)
        return "random_resized_crop", tuple(float(number) for number in numbers)

    def __repr__(self) -> str:
        return (
            f"RandomResizedCrop(size={self.size}, scale={self.scale}, ratio={self.ratio}, "
            f"interpolation={self.interpolation!r}, antialias={self.antialias}, "
            f"passes={self.passes!r})"
        )


class Resize(Transform):
    """Resizes the picture.

    Args:
        size: (height, width), or one number: the shorter edge gets that length and the longer one
            int(size * longer / shorter).
        interpolation: "bilinear", "nearest", "box", "hamming", "bicubic" or "lanczos".
        max_size: only with one number, and above it: the longer edge gets no longer than this.
        antialias: True (None means the same), as Pillow does.
        passes: "pillow13" or "horizontal_first".
    """

    def __init__(
        self,
        size: Size,
        interpolation: Any = "bilinear",
        max_size: int | None = None,
        antialias: bool | None = True,
        *,
        passes: str = "pillow13",
    ) -> None:
        edges = check_size("Resize", size)
        if max_size is not None:
            if len(edges) == 2:
                raise ValueError(
                    "Resize: max_size goes with one number as size (the shorter edge), "
                    f"but size is {edges}"
                )
            max_size = check_edge("Resize", "max_size", max_size)
            if max_size <= edges[0]:
                raise ValueError(
                    f"Resize: max_size={max_size} must be above the shorter edge, {edges[0]}"
                )
        self.size: Final = edges if len(edges) == 2 else edges[0]
        self.interpolation: Final = check_interpolation("Resize", interpolation)
        self.max_size: Final = max_size
        self.antialias: Final = check_antialias("Resize", antialias)
        self.passes: Final = check_passes("Resize", passes)

    def _spec(self) -> Spec:
        height, width = (self.size, -1) if isinstance(self.size, int) else self.size
        max_size = -1 if self.max_size is None else self.max_size
        how = filters.NUMBERS[self.interpolation], PASSES[self.passes]
        return "resize", tuple(float(number) for number in (height, width, max_size, *how))

    def __repr__(self) -> str:
        return (
            f"Resize(size={self.size}, interpolation={self.interpolation!r}, "
            f"max_size={self.max_size}, antialias={self.antialias}, passes={self.passes!r})"
        )


class CenterCrop(Transform):
    """Cuts `size` out of the middle; smaller pictures get black edges.

    Args:
        size: height and width, or one number for both; at least 1.
    """

    def __init__(self, size: Size) -> None:
        self.size: Final = check_pair("CenterCrop", size)

    def _spec(self) -> Spec:
        return "center_crop", (float(self.size[0]), float(self.size[1]))

    def __repr__(self) -> str:
        return f"CenterCrop(size={self.size})"


class RandomCrop(Transform):
    """Cuts `size` out at a random place.

    A picture that is smaller, with its padding, is an error.

    Args:
        size: height and width, or one number for both; at least 1.
        padding: added first, as by Pad; None is none.
        pad_if_needed: whether a side that is still shorter than the crop gets what it lacks, on
            both of its ends.
        fill: as Pad's; None is 0.
        padding_mode: as Pad's.
    """

    def __init__(
        self,
        size: Size,
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: float | Sequence[float] | None = 0,
        padding_mode: str = "constant",
    ) -> None:
        self.size: Final = check_pair("RandomCrop", size)
        self.padding: Final = (
            None if padding is None else paddings.check_padding("RandomCrop", padding)
        )
        if not isinstance(pad_if_needed, bool | np.bool_):
            raise TypeError(f"RandomCrop: pad_if_needed is True or False, got {pad_if_needed!r}")
        self.pad_if_needed: Final = bool(pad_if_needed)
        self.fill: Final = paddings.check_fill("RandomCrop", 0 if fill is None else fill)
        self.padding_mode: Final = paddings.check_mode("RandomCrop", padding_mode)

    def _spec(self) -> Spec:
        padded = paddings.spec_numbers(self.padding or (0, 0, 0, 0), self.padding_mode, self.fill)
        height, width = self.size
        return "random_crop", (float(height), float(width), float(self.pad_if_needed), *padded)

    def __repr__(self) -> str:
        return (
            f"RandomCrop(size={self.size}, padding={self.padding}, "
            f"pad_if_needed={self.pad_if_needed}, fill={self.fill}, "
            f"padding_mode={self.padding_mode!r})"
        )


class Pad(Transform):
    """Adds pixels at the edges; negative numbers cut pixels off.

    Args:
        padding: one number for all edges, (left and right, top and bottom) or (left, top, right,
            bottom).
        fill: for "constant": one number from 0 to 255, or (red, green, blue).
        padding_mode: "constant", "edge" (the last pixel again), "reflect" (the picture mirrored,
            without its last pixel) or "symmetric" (with it).
    """

    def __init__(
        self,
        padding: int | Sequence[int],
        fill: float | Sequence[float] = 0,
        padding_mode: str = "constant",
    ) -> None:
        self.padding: Final = paddings.check_padding("Pad", padding)
        self.fill: Final = paddings.check_fill("Pad", fill)
        self.padding_mode: Final = paddings.check_mode("Pad", padding_mode)

    def _spec(self) -> Spec:
        return "pad", paddings.spec_numbers(self.padding, self.padding_mode, self.fill)

    def __repr__(self) -> str:
        return f"Pad(padding={self.padding}, fill={self.fill}, padding_mode={self.padding_mode!r})"


class RandomHorizontalFlip(Transform):
    """Mirrors the picture, left and right, with probability `p` (0 to 1)."""

    def __init__(self, p: float = 0.5) -> None:
        self.p: Final = check_probability("RandomHorizontalFlip", p)

    def _spec(self) -> Spec:
        return "random_horizontal_flip", (self.p,)

    def __repr__(self) -> str:
        return f"RandomHorizontalFlip(p={self.p})"


class RandomVerticalFlip(Transform):
    """Turns the picture upside down, without turning left and right, with probability `p`.

    Put it behind what resizes: in front, the part of the picture that is resized has to be kept in
    memory as a whole.
    """

    def __init__(self, p: float = 0.5) -> None:
        self.p: Final = check_probability("RandomVerticalFlip", p)

    def _spec(self) -> Spec:
        return "random_vertical_flip", (self.p,)

    def __repr__(self) -> str:
        return f"RandomVerticalFlip(p={self.p})"


class Normalize(Transform):
    """(value - mean) / std for each channel, in float32; the field becomes float32.

    On uint8 the value is pixel / 255, and the result that of torchvision's ToTensor + Normalize,
    bit for bit. Behind ToDtype("float32", scale=True) the value is what ToDtype made of the pixel,
    and the result that of torchvision's v2.ToDtype(torch.float32, scale=True) + v2.Normalize. The
    two differ in the last bits of some values. Behind ToDtype without scale it is the pixel.

    Args:
        mean: red, green, blue, or one number for all; on the scale of the values.
        std: likewise; not 0.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        self.mean: Final = check_channels("mean", mean)
        self.std: Final = check_channels("std", std)
        # The core divides in float32, where a tiny number may be zero.
        if 0.0 in np.array(self.std, np.float32):
            raise ValueError(f"Normalize: std must not be zero, got {self.std}")

    def _spec(self) -> Spec:
        return "normalize", (*self.mean, *self.std)

    def __repr__(self) -> str:
        return f"Normalize(mean={self.mean}, std={self.std})"


class ToDtype(Transform):
    """Changes the type of the values.

    Args:
        dtype: a NumPy or torch dtype or its name: uint8, float16, bfloat16, float32.
        scale: True: pictures of 0 to 255 become floats of 0 to 1, by multiplying with
            float32(1 / 255) in float32, as torchvision's v2.ToDtype does, bit for bit. (ToTensor
            divides by 255, and so does Normalize on uint8.) False: the values stay.
    """

    def __init__(self, dtype: Any, scale: bool = False) -> None:
        self.dtype: Final = dtype_name(dtype)
        if not isinstance(scale, bool | np.bool_):
            raise TypeError(f"ToDtype: scale is True or False, got {scale!r}")
        self.scale: Final = bool(scale)

    def _spec(self) -> Spec:
        scale = SCALE_BY_PRODUCT if self.scale else SCALE_NOT
        return "to_dtype", (float(DTYPES[self.dtype]), scale)

    def __repr__(self) -> str:
        return f"ToDtype(dtype={self.dtype!r}, scale={self.scale})"


def dtype_name(dtype: Any) -> str:
    """The name of a NumPy dtype, a torch dtype (known by its text) or a name."""
    text = dtype if isinstance(dtype, str) else str(dtype)
    name = text.removeprefix("torch.")
    if name not in DTYPES and isinstance(dtype, str | type | np.dtype):
        try:
            known = np.dtype(dtype)
            name = known.name if known.isnative else text
        except TypeError:
            name = text
    if name not in DTYPES:
        raise ValueError(f"ToDtype: pictures cannot be {text!r}; they can be: {', '.join(DTYPES)}")
    return name


def check_number(op: str, name: str, value: Any) -> float:
    """A finite real number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{op}: {name} is a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{op}: {name} is a number that fits a float, got a larger one") from None
    if not math.isfinite(number):
        raise ValueError(f"{op}: {name} is a finite number, got {value!r}")
    return number


def check_probability(op: str, p: Any) -> float:
    """A number from 0 to 1."""
    probability = check_number(op, "p", p)
    if not 0.0 <= probability <= 1.0:
        raise ValueError(f"{op}: p is from 0 to 1, got {p!r}")
    return probability


def check_edge(op: str, name: str, value: Any) -> int:
    """A length in pixels, at least 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{op}: {name} is made of integers, got {value!r}")
    edge = int(value)
    if edge < 1:
        raise ValueError(f"{op}: {name} is at least 1, got {brief(value)}")
    if edge > MAX_EDGE:
        raise ValueError(f"{op}: {name} is at most {MAX_EDGE}, got {brief(value)}")
    return edge


def check_size(op: str, size: Any) -> tuple[int] | tuple[int, int]:
    """One length, or height and width."""
    if isinstance(size, numbers.Integral):
        return (check_edge(op, "size", size),)
    if isinstance(size, str | bytes) or not isinstance(size, Sequence):
        raise TypeError(f"{op}: size is an integer or a sequence of one or two, got {size!r}")
    if len(size) == 1:
        return (check_edge(op, "size", size[0]),)
    if len(size) == 2:
        return (check_edge(op, "size", size[0]), check_edge(op, "size", size[1]))
    raise ValueError(f"{op}: size is an integer or a sequence of one or two, got {size!r}")


def check_pair(op: str, size: Any) -> tuple[int, int]:
    """Height and width; one number means both."""
    edges = check_size(op, size)
    return (edges[0], edges[-1])


def check_range(
    op: str, name: str, bounds: Any, may_start_at_0: bool = False
) -> tuple[float, float]:
    """Least and largest value, 0 < least <= largest; or 0 <= least with 0 < largest."""
    if isinstance(bounds, str | bytes) or not isinstance(bounds, Sequence):
        raise TypeError(f"{op}: {name} is a sequence (least, largest), got {bounds!r}")
    if len(bounds) != 2:
        raise ValueError(f"{op}: {name} is a sequence (least, largest), got {bounds!r}")
    low, high = (check_number(op, name, bound) for bound in bounds)
    is_above = low >= 0 and high > 0 if may_start_at_0 else low > 0
    if not is_above or low > high:
        bound = "0 <= least <= largest, 0 < largest" if may_start_at_0 else "0 < least <= largest"
        raise ValueError(f"{op}: {name} is (least, largest) with {bound}, got {bounds!r}")
    return low, high


def check_channels(name: str, values: Any) -> tuple[float, float, float]:
    """Three numbers; one stands for all."""
    # A tensor's elements are tensors, its list has numbers.
    values = values.tolist() if hasattr(values, "tolist") else values
    if isinstance(values, numbers.Real | str | bytes | Set | Mapping):
        raise TypeError(f"Normalize: {name} is a sequence of numbers, got {values!r}")
    try:
        listed = [check_number("Normalize", name, value) for value in values]
    except TypeError:
        raise TypeError(f"Normalize: {name} is a sequence of numbers, got {values!r}") from None
    if len(listed) == 1:
        listed *= 3
    if len(listed) != 3:
        raise ValueError(f"Normalize: {name} has 3 numbers (or 1 for all), got {len(listed)}")
    if max(map(abs, listed)) > FLOAT32_MAX:
        raise ValueError(f"Normalize: {name} does not fit float32: {values!r}")
    return listed[0], listed[1], listed[2]


def check_antialias(op: str, antialias: Any) -> bool:
    """True: Pillow cannot resize without."""
    if antialias is None or (isinstance(antialias, bool | np.bool_) and antialias):
        return True
    raise ValueError(
        f"{op}: antialias is True, got {antialias!r}: pictures are resized as Pillow does, "
        "which always smooths"
    )


def check_passes(op: str, passes: Any) -> str:
    """Whose order of the two resizing passes."""
    if not isinstance(passes, str) or passes not in PASSES:
        raise ValueError(f"{op}: passes is one of {', '.join(map(repr, PASSES))}, got {passes!r}")
    return passes
