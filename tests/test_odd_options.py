# SPDX-License-Identifier: MIT
"""Every option of a Loader against values of every kind: it works, or is refused by its name."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import feedline as fl
from feedline import transforms as T

HUGE = 10**400
ODD = [
    True, False, None, -1, 0, 1, 2, 1.5, 2.0, float("nan"), float("inf"), 2**29, 2**31 - 1, 2**31,
    2**63 - 1, 2**64, HUGE, 1e300, "", "pad", "numpy", "NHWC", b"numpy", "\udc80", [], (), {}, 1j,
    np.int64(2), np.float64(2), np.bool_(True), np.array(2), np.array([2]), object(),
    Fraction(1, 2), Decimal(1),
]  # fmt: skip
WHOLE = [1, 2, 2**29, 2**31 - 1, np.int64(2)]
BOOLS = [True, False]
TIMES = [0, 1.5, 2.0, 2**31, 2**63 - 1, 2**64, 1e300, *WHOLE, np.float64(2), Fraction(1, 2)]
# The values of ODD that each option accepts; 0-d arrays are integers to Python.
ACCEPTED: dict[str, Any] = {
    "batch_size": WHOLE,
    "shuffle": BOOLS,
    "drop_last": BOOLS,
    "seed": [None, 0, 2**31, 2**63 - 1, *WHOLE],
    "rank": [None, 0, *WHOLE],  # the world is asked for later
    "world_size": [None, *WHOLE],
    "uneven": ["pad"],
    "transform": [None, [], (), {}],
    "output": ["numpy"],
    "as_dict": BOOLS,
    "layout": ["NHWC"],
    "pin_memory": BOOLS,
    "num_threads": [None, 1, 2, np.int64(2)],
    "io_threads": [None, 1, 2, np.int64(2)],
    "prefetch_batches": [None, *WHOLE],
    "memory_limit": [None, 2**31, 2**63 - 1, *WHOLE],
    "timeout": TIMES,
    "in_order": BOOLS,
}
INTEGERS = ("batch_size", "seed", "rank", "world_size", "num_threads", "io_threads")
INTEGERS += ("prefetch_batches", "memory_limit")


def is_accepted(name: str, value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and name in INTEGERS
    return any(type(value) is type(good) and value == good for good in ACCEPTED[name])


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> fl.Files:
    path = tmp_path_factory.mktemp("picture") / "picture.jpg"
    Image.new("RGB", (20, 20), "red").save(path)
    return fl.Files([path] * 3, [1, 2, 3])


def test_the_table_has_every_option() -> None:
    assert set(ACCEPTED) == set(fl.Loader.__init__.__kwdefaults__)


@pytest.mark.parametrize("name", ACCEPTED)
def test_odd_values(dataset: fl.Files, name: str) -> None:
    for value in ODD:
        options = {"output": "numpy", "transform": [T.Resize((4, 4))], name: value}
        if is_accepted(name, value):
            loader = fl.Loader(dataset, **options)
            assert hasattr(loader, name)
        else:
            with pytest.raises((TypeError, ValueError), match=name):
                fl.Loader(dataset, **options)


# What is large and accepted is not taken at its word before there is work for it.
LARGE = [
    ("num_threads", 4096),
    ("io_threads", 4096),
    ("prefetch_batches", 2**31 - 1),
    ("memory_limit", 1),
    ("memory_limit", 2**63 - 1),
    ("timeout", 1e300),
    ("seed", 2**64 - 1),
    ("batch_size", 10_000),
]


@pytest.mark.parametrize(("name", "value"), LARGE)
def test_large_values_work(dataset: fl.Files, name: str, value: Any) -> None:
    options = {"output": "numpy", "transform": [T.Resize((4, 4))], name: value}
    with fl.Loader(dataset, **options) as loader:
        labels = [label for batch in loader for label in batch.label.tolist()]
    assert labels == [1, 2, 3]


def test_threads_have_a_limit(dataset: fl.Files) -> None:
    for name in ("num_threads", "io_threads"):
        with pytest.raises(ValueError, match=f"{name} is at least 1 and at most 4096"):
            fl.Loader(dataset, **{name: 4097})


def test_a_batch_that_does_not_fit_is_a_memory_error(dataset: fl.Files) -> None:
    """Not a crash, and the loader can be closed and asked again. "mask" fills every batch; else
    one has no more rows than there are samples."""
    chain = [T.Resize((10_000, 10_000)), T.ToDtype("float32")]
    with fl.Loader(dataset, batch_size=2**31 - 1, uneven="mask", transform=chain) as loader:
        iterator = iter(loader)
        with pytest.raises(MemoryError, match="make batch_size or the pictures smaller"):
            next(iterator)


@pytest.mark.parametrize("missing", ["torch", "ml_dtypes"])
def test_outputs_that_cannot_be_are_refused_at_once(
    dataset: fl.Files, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("feedline.options.is_installed", lambda module: module != missing)
    chain = [T.ToDtype("bfloat16")]
    if missing == "torch":
        with pytest.raises(ImportError, match="pip install torch"):
            fl.Loader(dataset, output="torch")
    else:
        with pytest.raises(ValueError, match=r"field 'image': .*bfloat16.*pip install ml_dtypes"):
            fl.Loader(dataset, output="numpy", transform=chain)
    assert fl.Loader(dataset, output="dlpack", transform=chain).output == "dlpack"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"root": 3}, "root is the path of a folder, got 3"),
        ({"root": ""}, "root is the path of a folder, got ''"),
        ({"root": "a\0b"}, "root is the path of a folder"),
        ({"extensions": 3}, "extensions are strings such as '.jpg', got 3"),
        ({"extensions": b".jpg"}, "extensions are strings such as '.jpg'"),
        ({"extensions": [".jpg", "é"]}, "in ASCII, got 'é'"),
        ({"extensions": "\0"}, "in ASCII"),
        ({"allow_empty": "no"}, "allow_empty is True or False, got 'no'"),
        ({"allow_empty": 1}, "allow_empty is True or False, got 1"),
        ({"fields": 3}, "fields is a dict from names to sources, got int"),
        ({"fields": {"ﬁ": "file"}}, "cannot be the name of a field"),  # a ligature
        ({"fields": {"a b": "file"}}, "cannot be the name of a field"),
        ({"fields": {"count": "file"}}, "cannot be the name of a field"),
        ({"fields": {"image": "picture"}}, "no source 'picture'; it has: file, label"),
    ],
)
def test_folders_that_cannot_be(folder: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        fl.ImageFolder(**{"root": folder} | options)


def test_names_of_any_script_and_length_work(dataset: fl.Files) -> None:
    names = ["größe", "写真", "x" * 300]
    paths = [path for path, _ in dataset.samples]
    fields: dict[str, str | fl.Field] = {name: fl.Field("file", "bytes") for name in names}
    with fl.Loader(fl.Files(paths, fields=fields), output="numpy") as loader:
        batch = next(iter(loader))
    assert list(batch._fields) == names
    for name in names:
        assert getattr(batch, name) is batch[name]
