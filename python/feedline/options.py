# SPDX-License-Identifier: MIT
"""Checks of a Loader's options. Each says what was given and what is possible."""

from __future__ import annotations

import importlib.util
import math
import numbers
import operator
import secrets
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from . import _core
from .datasets import Dataset
from .state import MAX_UINT64, brief
from .transforms import Spec, Transform

OUTPUTS: Final = ("dlpack", "numpy", "torch")
LAYOUTS: Final = ("NCHW", "NHWC", "channels_last")
UNEVEN: Final = ("pad", "drop", "mask")
MAX_INT32: Final = (1 << 31) - 1
MAX_INT64: Final = (1 << 63) - 1
MAX_THREADS: Final = 4096  # they start one by one, when there is work
MAX_FIELDS: Final = 14  # the core's 16, less the hidden index and valid
# A drawn seed is short enough to be typed in again.
DRAWN_SEED_BITS: Final = 48

CoreField = tuple[str, str, str, list[Spec], str]
Chains = dict[str, tuple[Transform, ...]]


def whole(name: str, value: Any, least: int, most: int) -> int:
    """An integer between two bounds. TypeError for other types, bool among them; ValueError."""
    if isinstance(value, bool):
        raise TypeError(f"{name} is an integer, got {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is an integer, got {value!r}") from None
    if not least <= number <= most:
        raise ValueError(f"{name} is at least {least} and at most {most}, got {brief(number)}")
    return number


def whole_or_none(name: str, value: Any, least: int, most: int) -> int | None:
    """Likewise; None stays."""
    return None if value is None else whole(name, value, least, most)


def truth(name: str, value: Any) -> bool:
    """True or False and nothing else: bool("no") would be True."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} is True or False, got {value!r}")
    return value


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """One of some words."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} is one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def seconds(name: str, value: Any) -> float:
    """A length of time, finite, not negative."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} is a number of seconds, got {value!r}")
    try:
        length = float(value)
    except OverflowError:
        length = math.inf
    if not math.isfinite(length) or length < 0:
        raise ValueError(
            f"{name} is a number of seconds, not negative (0: none), got {brief(value)}"
        )
    return length


def output(value: Any) -> str:
    """What batches are made of. ImportError: torch's tensors without torch."""
    chosen = one_of("output", value, OUTPUTS)
    if chosen == "torch" and not is_installed("torch"):
        raise ImportError(
            "output='torch' needs torch, which is not installed: pip install torch, or take "
            "output='numpy' or 'dlpack'"
        )
    return chosen


def is_installed(module: str) -> bool:
    """Can a module be imported? It is not."""
    return module in sys.modules or importlib.util.find_spec(module) is not None


def seed(value: Any) -> tuple[int, bool]:
    """(seed, was it drawn)."""
    if value is None:
        return secrets.randbits(DRAWN_SEED_BITS), True
    return whole("seed", value, 0, MAX_UINT64), False


def dataset(value: Any) -> Dataset:
    """One of feedline's data sets."""
    if not isinstance(value, Dataset):
        raise TypeError(
            "dataset is a feedline data set (feedline.ImageFolder, feedline.Files), "
            f"got {type(value).__module__}.{type(value).__qualname__}"
        )
    if len(value.fields) > MAX_FIELDS:
        raise ValueError(f"a loader has at most {MAX_FIELDS} fields, got {len(value.fields)}")
    return value


def chains(transform: Any, data: Dataset) -> Chains:
    """The transforms of every image field, from a list (for `image`) or a dict by field."""
    images = [name for name, field in data.fields.items() if field.decode == "image"]
    by_field: dict[str, Any] = {}
    if isinstance(transform, Mapping):
        by_field = dict(transform)
    elif isinstance(transform, Sequence) and not isinstance(transform, str | bytes):
        by_field = {"image": transform} if transform else {}
    elif transform is not None:
        raise TypeError(
            f"transform is a list of feedline.transforms, or a dict of lists by field, "
            f"got {name_of(transform)}"
        )
    for name in by_field:
        if name not in data.fields:
            raise ValueError(
                f"transform: there is no field {name!r}; fields are: {', '.join(data.fields)}"
            )
        if name not in images:
            raise ValueError(
                f"transform: field {name!r} is decoded as {data.fields[name].decode!r}, "
                "and only pictures can be transformed"
            )
    return {name: chain(name, by_field.get(name, ())) for name in images}


def chain(name: str, steps: Any) -> tuple[Transform, ...]:
    """One field's transforms."""
    if isinstance(steps, str | bytes) or not isinstance(steps, Sequence):
        raise TypeError(
            f"transform of field {name!r} is a list of feedline.transforms, got {name_of(steps)}"
        )
    for step in steps:
        if not isinstance(step, Transform):
            raise TypeError(
                f"transform of field {name!r}: {name_of(step)} is not one of feedline.transforms"
            )
    return tuple(steps)


def name_of(thing: Any) -> str:
    """The type and text of an object, for an error."""
    kind = type(thing)
    return f"{thing!r} ({kind.__module__}.{kind.__qualname__})"


def core_fields(
    data: Dataset, transforms: Chains, layout: str, output_kind: str
) -> list[CoreField]:
    """The fields as the core wants them. ValueError if a chain cannot work."""
    fields: list[CoreField] = []
    for name, field in data.fields.items():
        ops = [step._spec() for step in transforms.get(name, ())]
        if field.decode == "image":
            try:
                dtype, _ = _core.check_ops(ops, layout)
            except ValueError as error:
                raise ValueError(f"transform of field {name!r}: {error}") from None
            if dtype == "bfloat16" and output_kind == "numpy" and not is_installed("ml_dtypes"):
                raise ValueError(
                    f"transform of field {name!r}: it ends in bfloat16, and with output='numpy' "
                    "that needs ml_dtypes: pip install ml_dtypes, or take output='torch' or "
                    "'dlpack'"
                )
        fields.append((name, field.source, field.decode, ops, layout))
    return fields
