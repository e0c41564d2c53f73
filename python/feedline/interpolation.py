# SPDX-License-Identifier: MIT
"""Names of the filters that resize, as users know them."""

from __future__ import annotations

import numbers
from typing import Any, Final

# Pillow's numbers, which are the core's.
NUMBERS: Final = {
    "nearest": 0,
    "lanczos": 1,
    "bilinear": 2,
    "bicubic": 3,
    "box": 4,
    "hamming": 5,
}
# torchvision has this name for tensors; on Pillow's pictures it means Pillow's.
SAME: Final = {"nearest-exact": "nearest"}
NAMES: Final = {number: name for name, number in NUMBERS.items()}


def check_interpolation(op: str, interpolation: Any) -> str:
    """A name, torchvision's InterpolationMode or Pillow's number."""
    value = getattr(interpolation, "value", interpolation)
    if isinstance(value, str):
        value = SAME.get(value, value)
        if value in NUMBERS:
            return str(value)
    elif isinstance(value, numbers.Integral) and not isinstance(value, bool) and value in NAMES:
        return NAMES[int(value)]
    raise ValueError(
        f"{op}: interpolation is one of {', '.join(map(repr, NUMBERS))} (or torchvision's "
        f"InterpolationMode, or Pillow's number), got {interpolation!r}"
    )
