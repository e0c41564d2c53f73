# SPDX-License-Identifier: MIT
"""What the padding transforms take: torchvision's numbers, names and first words of errors."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any, Final

MODES: Final = {"constant": 0, "edge": 1, "reflect": 2, "symmetric": 3}
MAX_PADDING: Final = (1 << 24) - 1  # the core's

Padding = tuple[int, int, int, int]
Fill = tuple[int, int, int]


def check_padding(op: str, padding: Any) -> Padding:
    """Left, top, right, bottom; one number is for all, two are left and right, top and bottom."""
    is_number = isinstance(padding, numbers.Number)
    if not is_number and not isinstance(padding, tuple | list):
        raise TypeError(f"Got inappropriate padding arg: {op} takes integers, got {padding!r}")
    given = [padding] if is_number else padding
    if len(given) not in (1, 2, 4):
        raise ValueError(
            f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(given)} element "
            f"tuple: {op} got {padding!r}"
        )
    for side in given:
        if isinstance(side, bool) or not isinstance(side, numbers.Integral):
            raise TypeError(f"Got inappropriate padding arg: {op} takes integers, got {padding!r}")
        if abs(int(side)) > MAX_PADDING:
            raise ValueError(f"{op}: padding is at most {MAX_PADDING}, got {padding!r}")
    sides = [int(side) for side in given]
    left, top, right, bottom = sides * (4 // len(sides))
    return left, top, right, bottom


def check_fill(op: str, fill: Any) -> Fill:
    """Red, green, blue; one number is for all. Cut to whole numbers from 0 to 255, as there."""
    is_number = isinstance(fill, numbers.Real)
    if not is_number and not isinstance(fill, tuple | list):
        raise TypeError(f"Got inappropriate fill arg: {op} takes numbers, got {fill!r}")
    given = [fill] if is_number else fill
    if len(given) not in (1, 3):
        raise ValueError(
            "The number of elements in 'fill' does not match the number of channels of the image "
            f"({len(given)} != 3): {op} got {fill!r}"
        )
    for value in given:
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise TypeError(f"Got inappropriate fill arg: {op} takes numbers, got {fill!r}")
        if not math.isfinite(value):
            raise ValueError(f"{op}: fill is made of finite numbers, got {fill!r}")
    red, green, blue = [min(max(int(value), 0), 255) for value in given] * (3 // len(given))
    return red, green, blue


def check_mode(op: str, mode: Any) -> str:
    """What the pixels beside the picture are."""
    if not isinstance(mode, str):
        raise TypeError(f"Got inappropriate padding_mode arg: {op} takes a name, got {mode!r}")
    if mode not in MODES:
        raise ValueError(
            "Padding mode should be either constant, edge, reflect or symmetric: "
            f"{op} got {mode!r}"
        )
    return mode


def spec_numbers(padding: Padding, mode: str, fill: Sequence[int]) -> tuple[float, ...]:
    """The numbers in the core's order."""
    return tuple(float(number) for number in (*padding, MODES[mode], *fill))
