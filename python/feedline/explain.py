# SPDX-License-Identifier: MIT
"""What a loader chose, and why."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import _core
from .defaults import MAX_PIXELS, Choice
from .pinned import allocator
from .transforms import RandomResizedCrop, Resize, Transform

if TYPE_CHECKING:
    from .loader import Loader

PASSES_TEXT = {
    "pillow13": "vertical first where Pillow 13 does, else horizontal first",
    "horizontal_first": "horizontal first, as Pillow up to 12",
}


@dataclass(frozen=True)
class Line:
    """One thing that was chosen."""

    what: str
    value: str
    why: str


class Explanation:
    """Lines of (what, value, why); shows itself as a table."""

    def __init__(self, lines: list[Line]) -> None:
        self.lines = tuple(lines)

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def __str__(self) -> str:
        names = max(len(line.what) for line in self.lines)
        values = max(len(line.value) for line in self.lines)
        return "\n".join(
            f"{line.what:<{names}}  {line.value:<{values}}  {line.why}".rstrip()
            for line in self.lines
        )

    __repr__ = __str__


def explain(loader: Loader, choices: dict[str, Choice]) -> Explanation:
    """The choices of `loader`; `choices` are its numbers with their reasons."""
    lines = [Line("dataset", repr(loader.dataset), "")]
    lines += [field_line(loader, name) for name in loader.dataset.fields]
    for name, chain in loader._chains.items():
        lines += [passes_line(name, step) for step in chain if has_passes(step)]
    lines.append(order_line(loader))
    lines += [Line(name, f"{choice.value}", choice.reason) for name, choice in choices.items()]
    lines.append(memory_line(loader))
    lines.append(pillow_line())
    lines.append(kernels_line())
    return Explanation(lines)


def field_line(loader: Loader, name: str) -> Line:
    """What one field gives."""
    field = loader.dataset.fields[name]
    if field.decode != "image":
        kind = (
            "int64, one number a sample" if field.decode == "int64" else "uint8, a list of files"
        )
        return Line(f"field {name}", kind, f"from {field.source!r}, decoded as {field.decode!r}")
    chain = loader._chains[name]
    dtype, shape = _core.check_ops([step._spec() for step in chain], loader.layout)
    steps = ", ".join(type(step).__name__ for step in chain) or "no transform"
    if shape is None:
        return Line(
            f"field {name}",
            f"{dtype}, a list of pictures of their own sizes",
            f"{steps}: nothing fixes the size",
        )
    return Line(f"field {name}", f"{dtype}, batches of {shape} ({loader.layout})", steps)


def has_passes(step: Transform) -> bool:
    """Does it resize?"""
    return isinstance(step, RandomResizedCrop | Resize)


def passes_line(name: str, step: Transform) -> Line:
    """Whose order of the resizing passes."""
    passes: str = step.passes  # type: ignore[attr-defined]
    return Line(f"passes of {name}'s {type(step).__name__}", passes, PASSES_TEXT[passes])


def order_line(loader: Loader) -> Line:
    """The order of samples, and how exactly a state resumes it."""
    order = "shuffled" if loader.shuffle else "sequential"
    drawn = "drawn, because seed=None" if loader._is_seed_drawn else "given or default"
    exact = "" if loader.in_order else "; in_order=False: a state in mid-epoch is approximate"
    return Line("order", f"{order}, seed {loader.seed}", f"{drawn}{exact}")


def memory_line(loader: Loader) -> Line:
    """Where batches lie."""
    if not loader.pin_memory:
        return Line("memory of batches", "pageable", "pin_memory=False")
    allocate, reason = allocator()
    return Line("memory of batches", "pinned" if allocate else "pageable", reason)


def pillow_line() -> Line:
    """What happens to files that the core cannot decode."""
    limit = f"pictures above {MAX_PIXELS:,} pixels are refused"
    if importlib.util.find_spec("PIL") is None:
        return Line("other formats than JPEG", "errors", f"Pillow is not installed; {limit}")
    return Line("other formats than JPEG", "Pillow", f"on Python-made threads; {limit}")


def kernels_line() -> Line:
    """Which variants of the kernels run."""
    features = ", ".join(_core.environment()["cpu_features"])
    return Line(
        "kernels", features or "portable C", "the CPU's features; all give the same pixels"
    )
