# SPDX-License-Identifier: MIT
"""The counters of a loader, at one moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class Stats(Mapping[str, Any]):
    """Counters by name, as items and as attributes; `str()` is a table.

    epoch, batches, delivered: of the iterator made last; `batches` are all of its run.
    The rest is the engine's, over all its iterators: `stages` has, by stage, items, bytes, errors,
    times in nanoseconds, what is queued, and threads. An engine that was never started has none.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"there is no {name!r}; there are: {', '.join(self)}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        return f"Stats({self._values!r})"

    def __str__(self) -> str:
        stages = self._values.get("stages", {})
        groups = {
            name: value
            for name, value in self._values.items()
            if name != "stages" and isinstance(value, Mapping)
        }
        plain = {
            name: value for name, value in self._values.items() if not isinstance(value, Mapping)
        }
        for name, group in groups.items():
            plain |= {f"{name}.{key}": value for key, value in group.items()}
        width = max(map(len, plain), default=0)
        lines = [f"{name:<{width}}  {shown(name, value)}" for name, value in plain.items()]
        return "\n".join([*lines, *stage_table(stages)])


def stage_table(stages: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One line a stage, one column a counter."""
    if not stages:
        return []
    columns = list(next(iter(stages.values())))
    titles = ["stage", *(name.removesuffix("_ns") for name in columns)]
    rows = [titles]
    for stage, counters in stages.items():
        rows.append([stage, *(shown(name, counters.get(name, "")) for name in columns)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(titles))]
    return [
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def shown(name: str, value: Any) -> str:
    """A counter as text; times in seconds."""
    if name.endswith("_ns") and isinstance(value, int):
        return f"{value / 1e9:.3f}s"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
