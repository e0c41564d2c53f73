# SPDX-License-Identifier: MIT
"""What to load: a folder of classes or a list of files, and the fields that a sample has.

A data set knows the places of its samples, in a compact native table, and reads nothing.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, overload

import numpy as np
import numpy.typing as npt

from . import _core
from .batch import check_field_names
from .defaults import listing_threads

IMAGE_EXTENSIONS: Final = (
    ".jpg",
    ".jpeg",
    ".png",
    ".ppm",
    ".bmp",
    ".pgm",
    ".tif",
    ".tiff",
    ".webp",
)
# What a source can be decoded to; the first one is the default.
DECODES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"file": ("image", "bytes"), "label": ("int64",)}
)

# PATH_MAX without the terminator.
MAX_PATH: Final = 4095

StrPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Field:
    """Where a field of the batch comes from and what it becomes.

    Args:
        source: "file" (the sample's file) or "label" (its label).
        decode: "image": RGB pixels, through the field's transform (default of "file");
            "bytes": the file as it is, uint8, a list with one array a sample;
            "int64": a number (default of "label").

    Raises:
        TypeError: source or decode is not a string.
        ValueError: the source is unknown, or cannot be decoded so.
    """

    source: str
    decode: str = ""

    def __post_init__(self) -> None:
        for name in ("source", "decode"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"Field: {name} is a string, got {getattr(self, name)!r}")
        known = DECODES.get(self.source)
        if known is None:
            raise ValueError(
                f"Field: there is no source {self.source!r}; sources are: {', '.join(DECODES)}"
            )
        if not self.decode:
            object.__setattr__(self, "decode", known[0])
        if self.decode not in known:
            raise ValueError(
                f"Field: source {self.source!r} cannot be decoded as {self.decode!r}; "
                f"it can be: {', '.join(known)}"
            )


FieldsArgument = Mapping[str, str | Field] | None


class Dataset(ABC):
    """Places of samples and the fields that each of them has; immutable.

    Copies share the table; pickling is by description.
    """

    _catalog: _core.Catalog
    _fields: dict[str, Field]

    def __len__(self) -> int:
        """Number of samples."""
        return len(self._catalog)

    @property
    def fields(self) -> Mapping[str, Field]:
        """The fields by name, in the order in which a batch has them."""
        return MappingProxyType(self._fields)

    @property
    def sources(self) -> tuple[str, ...]:
        """What a field can come from."""
        return ("file", "label") if self._catalog.has_labels else ("file",)

    @property
    def fingerprint(self) -> int:
        """A 64-bit hash over names (relative to the root), labels and classes, in order."""
        return self._catalog.fingerprint

    @abstractmethod
    def key(self, index: int) -> str:
        """The name of sample `index` (0 <= index < len)."""

    def _choose_fields(self, fields: FieldsArgument) -> dict[str, Field]:
        if fields is None:
            chosen = {"image": Field("file")}
            if self._catalog.has_labels:
                chosen["label"] = Field("label")
            return chosen
        if not isinstance(fields, Mapping):
            raise TypeError(f"fields is a dict from names to sources, got {type(fields).__name__}")
        check_field_names(tuple(fields))
        return {name: self._choose_field(name, field) for name, field in fields.items()}

    def _choose_field(self, name: str, field: str | Field) -> Field:
        if not isinstance(field, str | Field):
            raise TypeError(f"field {name!r} is a source or a feedline.Field, got {field!r}")
        source = field if isinstance(field, str) else field.source
        if source not in self.sources:
            raise ValueError(
                f"field {name!r}: {type(self).__name__} has no source {source!r}; "
                f"it has: {', '.join(self.sources)}"
            )
        return Field(source) if isinstance(field, str) else field

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self


class ImageFolder(Dataset):
    """Pictures in one folder a class, as torchvision's ImageFolder: `root/<class>/**/<file>`.

    Args:
        root: the folder that holds the classes' folders; `~` is expanded.
        fields: field names and their sources ("file", "label") or Fields; default
            {"image": Field("file", decode="image"), "label": Field("label", decode="int64")}.
        extensions: endings of files that count, compared without case; default torchvision's.
        allow_empty: classes without a file are an error unless this is True.

    A pickle holds the description and the fingerprint of the listing, not the paths: loading it
    lists the folder again, and raises ValueError if the folder is not the same any more.

    Raises:
        FileNotFoundError: root, or a file for a class, is not there.
        TypeError, ValueError: fields or extensions are wrong.
    """

    def __init__(
        self,
        root: StrPath,
        *,
        fields: FieldsArgument = None,
        extensions: str | Sequence[str] = IMAGE_EXTENSIONS,
        allow_empty: bool = False,
    ) -> None:
        self.root: Final = os.path.expanduser(check_root(root))
        self.extensions: Final = check_extensions(extensions)
        if not isinstance(allow_empty, bool):
            raise TypeError(f"ImageFolder: allow_empty is True or False, got {allow_empty!r}")
        self.allow_empty: Final = allow_empty
        self._catalog = scan_folder(self.root, self.extensions, allow_empty)
        self._fields = self._choose_fields(fields)
        self.classes: Final = [os.fsdecode(name) for name in self._catalog.class_names]
        self.class_to_idx: Final = {name: number for number, name in enumerate(self.classes)}

    @property
    def samples(self) -> Samples:
        """A lazy sequence of (path, class number)."""
        return Samples(self._catalog)

    @property
    def imgs(self) -> Samples:
        """torchvision's other name for `samples`."""
        return self.samples

    @property
    def targets(self) -> npt.NDArray[np.int64]:
        """Class numbers, int64, one a sample, read-only."""
        return read_only(self._catalog.labels())

    def key(self, index: int) -> str:
        """The path relative to the root."""
        path = os.fsdecode(self._catalog.path(index))
        return path.removeprefix(self.root).lstrip("/")

    def __repr__(self) -> str:
        return f"ImageFolder({self.root!r}): {len(self)} samples in {len(self.classes)} classes"

    def __reduce__(self) -> tuple[Any, ...]:
        options = {
            "fields": dict(self._fields),
            "extensions": self.extensions,
            "allow_empty": self.allow_empty,
        }
        facts = (len(self), self.fingerprint)
        return rebuild_image_folder, (type(self), self.root, options, facts)


class Files(Dataset):
    """Files by their paths, with a label each or without labels.

    Args:
        paths: paths of files, at least one.
        labels: integers, as many as paths; None: the samples have no label.
        fields: field names and their sources ("file", and "label" where there are labels) or
            Fields; default {"image": Field("file")} and, with labels, {"label": Field("label")}.

    Raises:
        TypeError: a path is no path, a label no integer.
        ValueError: no paths; paths and labels differ in number; fields are wrong.
    """

    def __init__(
        self,
        paths: Iterable[StrPath | bytes],
        labels: Sequence[int] | npt.NDArray[Any] | None = None,
        *,
        fields: FieldsArgument = None,
    ) -> None:
        if isinstance(paths, str | bytes | os.PathLike):
            raise TypeError(f"Files: paths is a list of paths, got the one path {paths!r}")
        if not isinstance(paths, Iterable):
            raise TypeError(f"Files: paths is a list of paths, got {paths!r}")
        encoded = [check_path(number, path) for number, path in enumerate(paths)]
        if not encoded:
            raise ValueError("Files: there are no paths")
        numbers = None if labels is None else check_labels(labels, len(encoded))
        self._catalog = _core.Catalog.from_paths(encoded, numbers)
        self._fields = self._choose_fields(fields)

    @property
    def samples(self) -> Samples:
        """A lazy sequence of (path, label); the label is -1 where there are none."""
        return Samples(self._catalog)

    @property
    def targets(self) -> npt.NDArray[np.int64]:
        """Labels, int64, one a sample, read-only. AttributeError without labels."""
        if not self._catalog.has_labels:
            raise AttributeError("Files was made without labels")
        return read_only(self._catalog.labels())

    def key(self, index: int) -> str:
        """The path as it was given."""
        return os.fsdecode(self._catalog.path(index))

    def __repr__(self) -> str:
        labels = "with" if self._catalog.has_labels else "without"
        return f"Files: {len(self)} samples {labels} labels"

    def __reduce__(self) -> tuple[Any, ...]:
        # One string of bytes; NUL cannot be part of a path.
        joined = b"\0".join(self._catalog.path(index) for index in range(len(self)))
        labels = self._catalog.labels() if self._catalog.has_labels else None
        return rebuild_files, (type(self), joined, labels, dict(self._fields))


class Samples(Sequence[tuple[str, int]]):
    """(path, label) of every sample, made when asked for."""

    __slots__ = ("_catalog",)

    def __init__(self, catalog: _core.Catalog) -> None:
        self._catalog = catalog

    def __len__(self) -> int:
        return len(self._catalog)

    @overload
    def __getitem__(self, index: int) -> tuple[str, int]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[str, int]]: ...
    def __getitem__(self, index: int | slice) -> tuple[str, int] | list[tuple[str, int]]:
        places = range(len(self))[index]
        if isinstance(places, range):
            return [self._item(place) for place in places]
        return self._item(places)

    def _item(self, index: int) -> tuple[str, int]:
        return os.fsdecode(self._catalog.path(index)), self._catalog.label(index)

    def __eq__(self, other: object) -> bool:
        """Equal to any sequence with the same items, as torchvision's list would be."""
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(
            mine == theirs for mine, theirs in zip(self, other, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(repr(sample) for sample in self[:3])
        return f"<{len(self)} samples: {shown}{', ...' if len(self) > 3 else ''}>"


def check_extensions(extensions: str | Sequence[str]) -> tuple[str, ...]:
    """The endings in lower case."""
    if isinstance(extensions, bytes) or not isinstance(extensions, Iterable):
        raise TypeError(f"extensions are strings such as '.jpg', got {extensions!r}")
    given = (extensions,) if isinstance(extensions, str) else tuple(extensions)
    for extension in given:
        if not isinstance(extension, str):
            raise TypeError(f"extensions are strings such as '.jpg', got {extension!r}")
        # The core compares bytes: it knows small and capital letters of ASCII only.
        if not extension.isascii() or "\0" in extension or "/" in extension:
            raise ValueError(
                f"extensions are the last letters of a file's name, in ASCII, got {extension!r}"
            )
    if not given or "" in given:
        raise ValueError("extensions: give at least one ending such as '.jpg', none of them empty")
    return tuple(extension.lower() for extension in given)


def check_root(root: Any) -> str:
    """The path as text."""
    if not isinstance(root, str | bytes | os.PathLike):
        raise TypeError(f"ImageFolder: root is the path of a folder, got {root!r}")
    path = os.fsdecode(root)
    if not path or "\0" in path:
        raise ValueError(f"ImageFolder: root is the path of a folder, got {root!r}")
    return path


def scan_folder(root: str, extensions: tuple[str, ...], allow_empty: bool) -> _core.Catalog:
    """The core's listing; torchvision's two errors also say where, and what to do."""
    encoded = [os.fsencode(extension) for extension in extensions]
    try:
        return _core.Catalog.scan_folder(
            os.fsencode(root), encoded, allow_empty, listing_threads()
        )
    except FileNotFoundError as error:
        if error.filename is not None:
            raise
        advice = (
            "add pictures, remove the folders, or allow them with allow_empty=True"
            if str(error.strerror).startswith("Found no valid file")
            else "pictures belong into one folder a class, root/class/picture"
        )
        raise FileNotFoundError(error.errno, f"{error.strerror}; {advice}", root) from None


def check_path(number: int, path: Any) -> bytes:
    """The path as bytes: one that a file could have."""
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(f"Files: paths[{number}] is a path, got {path!r}")
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        raise ValueError(
            f"Files: no file can have the name of paths[{number}], {path!r}"
        ) from None
    if not encoded or b"\0" in encoded:
        raise ValueError(f"Files: no file can have the name of paths[{number}], {path!r}")
    if len(encoded) > MAX_PATH:
        raise ValueError(
            f"Files: paths[{number}] has {len(encoded)} bytes, more than the {MAX_PATH} that the "
            f"system allows: {path!r}"
        )
    return encoded


def check_labels(labels: Sequence[int] | npt.NDArray[Any], count: int) -> npt.NDArray[np.int64]:
    """Labels as int64, one a path."""
    try:
        numbers = np.asarray(labels)
    except ValueError:  # lists of several lengths
        raise TypeError("Files: labels are a flat sequence of integers") from None
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise TypeError(
            "Files: labels are a flat sequence of integers, "
            f"got {numbers.ndim} dimensions of {numbers.dtype}"
        )
    if len(numbers) != count:
        raise ValueError(f"Files: {count} paths, but {len(numbers)} labels")
    if numbers.dtype.kind == "u" and numbers.max() > np.iinfo(np.int64).max:
        raise ValueError("Files: a label does not fit int64")
    return np.ascontiguousarray(numbers, dtype=np.int64)


def read_only(array: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The array, which nobody else holds, closed against writing."""
    array.flags.writeable = False
    return array


def rebuild_image_folder(
    kind: type[ImageFolder], root: str, options: dict[str, Any], facts: tuple[int, int]
) -> ImageFolder:
    """Unpickles: lists the folder again and compares."""
    folder = kind(root, **options)
    if (len(folder), folder.fingerprint) != facts:
        raise ValueError(
            f"the folder {root!r} has changed since this ImageFolder was pickled: "
            f"it had {facts[0]} samples, it has {len(folder)}"
            f"{', with other names' if len(folder) == facts[0] else ''}; make it anew"
        )
    return folder


def rebuild_files(
    kind: type[Files],
    joined: bytes,
    labels: npt.NDArray[np.int64] | None,
    fields: dict[str, Field],
) -> Files:
    """Unpickles."""
    return kind(joined.split(b"\0"), labels, fields=fields)
