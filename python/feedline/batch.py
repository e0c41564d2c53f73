# SPDX-License-Identifier: MIT
"""What the loop receives: a named tuple of the fields, which also knows its samples."""

from __future__ import annotations

import keyword
import unicodedata
from collections import namedtuple
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, overload

import numpy as np
import numpy.typing as npt

from .state import OrderFacts, Place

if TYPE_CHECKING:
    from .datasets import Dataset

# Attributes of every batch; a field of that name would hide them.
RESERVED = ("count", "index", "sample_keys", "valid")


def check_field_names(names: tuple[str, ...]) -> None:
    """Names must be attributes of a batch. TypeError, ValueError if one cannot be."""
    if not names:
        raise ValueError("fields: at least one field is needed")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"field names are strings, got {name!r}")
        is_attribute = name.isidentifier() and not keyword.iskeyword(name)
        # Python reads attributes in normal form: another one could not be written down.
        if not is_attribute or name.startswith("_") or unicodedata.normalize("NFKC", name) != name:
            raise ValueError(
                f"{name!r} cannot be the name of a field: it becomes an attribute of the batch, "
                "so it must be an identifier without a leading underscore"
            )
        if name in RESERVED:
            raise ValueError(
                f"{name!r} cannot be the name of a field: every batch has an attribute of that "
                f"name ({', '.join(RESERVED)} are taken)"
            )


class Rows(Protocol):
    """Which samples are in the rows of a batch."""

    @property
    def index(self) -> npt.NDArray[np.int64]: ...
    @property
    def valid(self) -> npt.NDArray[np.bool_]: ...


class CopiedRows:
    """Rows of a batch that came out of a pickle."""

    __slots__ = ("index", "valid")

    def __init__(self, index: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_]) -> None:
        self.index = index
        self.valid = valid


class Origin:
    """Where a batch comes from: its samples, and the state once it has been received.

    `order`: of what data set and with which seed, without which a place means nothing.
    """

    __slots__ = ("keys", "order", "place_after", "rows")

    def __init__(
        self,
        rows: Rows,
        keys: Dataset | list[str],
        order: tuple[OrderFacts, int],
        place_after: Place,
    ) -> None:
        self.rows = rows
        self.keys = keys
        self.order = order
        self.place_after = place_after


class SampleKeys(Sequence[str]):
    """Names of a batch's samples, made when asked for: paths, from an ImageFolder's root on."""

    __slots__ = ("_dataset", "_index")

    def __init__(self, dataset: Dataset, index: npt.NDArray[np.int64]) -> None:
        self._dataset = dataset
        self._index = index

    def __len__(self) -> int:
        return len(self._index)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return [self._dataset.key(int(index)) for index in self._index[row]]
        return self._dataset.key(int(self._index[row]))

    def __repr__(self) -> str:
        return repr(list(self))


class Batch(tuple[Any, ...]):
    """A named tuple with one value a field; each Loader has its own subclass.

    `images, labels = batch`, `batch[0]`, `batch.image` and `batch["image"]` all work, and
    `type(batch)(*values)` makes a batch of other values (moved to a device, say), which has no
    origin any more: index, valid and sample_keys are missing from it.
    """

    _fields: ClassVar[tuple[str, ...]]
    _origin: Origin | None = None

    def __getitem__(self, key: Any) -> Any:
        """The value of a field, by number or name. KeyError: no field has that name."""
        if isinstance(key, str):
            if key not in self._fields:
                raise KeyError(
                    f"the batch has no field {key!r}; it has: {', '.join(self._fields)}"
                )
            return getattr(self, key)
        return tuple.__getitem__(self, key)

    def _known_origin(self, attribute: str) -> Origin:
        if self._origin is None:
            raise AttributeError(
                f"this batch was rebuilt from other values and has no {attribute}; "
                "ask the batch that came from the loader"
            )
        return self._origin

    @property
    def index(self) -> npt.NDArray[np.int64]:  # type: ignore[override]
        """Number in the data set of each row's sample, int64."""
        return self._known_origin("index").rows.index

    @property
    def valid(self) -> npt.NDArray[np.bool_]:
        """bool, False in rows that only pad the batch: repeated samples."""
        return self._known_origin("valid").rows.valid

    @property
    def sample_keys(self) -> Sequence[str]:
        """Name of each row's sample, made when asked for."""
        origin = self._known_origin("sample_keys")
        if isinstance(origin.keys, list):
            return origin.keys
        return SampleKeys(origin.keys, origin.rows.index)

    def __reduce__(self) -> tuple[Any, ...]:
        origin = self._origin
        if origin is None:
            return rebuild_batch, (self._fields, tuple(self), None)
        rows, keys = origin.rows, list(self.sample_keys)
        facts = (
            np.array(rows.index),
            np.array(rows.valid),
            keys,
            origin.order,
            origin.place_after,
        )
        return rebuild_batch, (self._fields, tuple(self), facts)


def make_batch(kind: type[Batch], values: tuple[Any, ...], origin: Origin | None) -> Batch:
    """A batch of `kind` with as many values as it has fields."""
    batch: Batch = tuple.__new__(kind, values)
    batch._origin = origin
    return batch


@lru_cache(maxsize=256)
def batch_type(names: tuple[str, ...]) -> type[Batch]:
    """The named tuple of these fields; loaders with the same fields share it."""
    base = namedtuple("Batch", names)  # type: ignore[misc]
    return type("Batch", (Batch, base), {"__module__": __name__, "__doc__": Batch.__doc__})


def rebuild_batch(
    names: tuple[str, ...], values: tuple[Any, ...], facts: tuple[Any, ...] | None
) -> Batch:
    """Unpickles."""
    origin = None
    if facts is not None:
        index, valid, keys, order, place_after = facts
        origin = Origin(CopiedRows(index, valid), keys, order, place_after)
    return make_batch(batch_type(names), values, origin)
