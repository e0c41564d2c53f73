# SPDX-License-Identifier: MIT
"""feedline.Loader: options, order, and what a batch is."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feedline as fl
from feedline import _core
from feedline import transforms as T
from picture_files import COUNT

pytestmark = pytest.mark.parallel

SMALL = [T.Resize((8, 9))]


def loader_of(folder: Path, **options: Any) -> fl.Loader:
    options.setdefault("transform", SMALL)
    options.setdefault("output", "numpy")
    return fl.Loader(fl.ImageFolder(folder), **options)


def cursor_rows(epoch: int = 0, start: int = 0, **options: Any) -> list[np.ndarray]:
    """int64 (rows, 4) of each batch by the order's own arithmetic: position, key, index, valid."""
    settings = {
        "count": COUNT,
        "shuffle": False,
        "seed": 0,
        "batch_size": 4,
        "rank": 0,
        "world_size": 1,
        "uneven": "pad",
        "drop_last": False,
    }
    cursor = _core.Cursor(epoch=epoch, start=start, **settings | options)
    return [cursor.batch(number) for number in range(cursor.batches)]


# Options

OPTIONS = {
    "batch_size": 5,
    "shuffle": True,
    "drop_last": True,
    "seed": 2**64 - 1,
    "rank": 1,
    "world_size": 2,
    "uneven": "drop",
    "transform": SMALL,
    "output": "numpy",
    "as_dict": True,
    "layout": "NHWC",
    "pin_memory": False,
    "num_threads": 3,
    "io_threads": 2,
    "prefetch_batches": 7,
    "memory_limit": 10**9,
    "timeout": 1.5,
    "in_order": False,
}


def test_every_option_is_an_attribute(folder: Path) -> None:
    dataset = fl.ImageFolder(folder)
    loader = fl.Loader(dataset, **OPTIONS)
    assert {name: getattr(loader, name) for name in OPTIONS} == OPTIONS
    assert loader.dataset is dataset
    for name in OPTIONS:
        with pytest.raises(AttributeError, match=f"{name} cannot be changed"):
            setattr(loader, name, OPTIONS[name])


def test_defaults(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    loader = fl.Loader(fl.ImageFolder(folder))
    cpus = _core.cpu_count()
    assert (loader.batch_size, loader.shuffle, loader.seed) == (1, False, 0)
    assert loader.num_threads == cpus
    assert loader.io_threads == min(16, max(4, 2 * cpus))
    assert loader.prefetch_batches == max(2, 4 * cpus)
    assert 0 < loader.memory_limit <= 2 << 30
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1000")
    assert fl.Loader(fl.ImageFolder(folder)).num_threads == 1
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "many")
    with pytest.raises(ValueError, match="LOCAL_WORLD_SIZE is 'many'"):
        fl.Loader(fl.ImageFolder(folder))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"batch_size": 0}, ValueError, "batch_size is at least 1"),
        ({"batch_size": True}, TypeError, "batch_size is an integer, got True"),
        ({"batch_size": 2.0}, TypeError, "batch_size is an integer, got 2.0"),
        ({"shuffle": 1}, TypeError, "shuffle is True or False, got 1"),
        ({"seed": -1}, ValueError, "seed is at least 0"),
        ({"seed": 2**64}, ValueError, "seed is at least 0 and at most"),
        ({"rank": 2, "world_size": 2}, ValueError, r"rank 2 is not in the interval \[0, 1\]"),
        ({"world_size": 0}, ValueError, "world_size is at least 1"),
        ({"uneven": "wrap"}, ValueError, "'pad', 'drop', 'mask', got 'wrap'"),
        ({"uneven": "mask", "drop_last": True}, ValueError, "drop_last=True does not go with"),
        ({"transform": T.Resize(5)}, TypeError, "transform is a list of feedline.transforms"),
        ({"transform": [abs]}, TypeError, "abs.* is not one of feedline.transforms"),
        ({"transform": {"image": abs}}, TypeError, "of field 'image' is a list"),
        ({"transform": {"picture": []}}, ValueError, "no field 'picture'; fields are: image, la"),
        ({"transform": {"label": []}}, ValueError, "only pictures can be transformed"),
        (
            {"transform": [T.Normalize(T.IMAGENET_MEAN, T.IMAGENET_STD), T.Resize(5)]},
            ValueError,
            "transform of field 'image': ",
        ),
        ({"output": "jax"}, ValueError, "'dlpack', 'numpy', 'torch', got 'jax'"),
        ({"layout": "CHW"}, ValueError, "'NCHW', 'NHWC', 'channels_last', got 'CHW'"),
        ({"num_threads": 0}, ValueError, "num_threads is at least 1"),
        ({"io_threads": -1}, ValueError, "io_threads is at least 1"),
        ({"prefetch_batches": 0}, ValueError, "prefetch_batches is at least 1"),
        ({"memory_limit": 0}, ValueError, "memory_limit is at least 1"),
        ({"timeout": -0.1}, ValueError, "timeout is a number of seconds"),
        ({"timeout": float("nan")}, ValueError, "timeout is a number of seconds"),
        ({"timeout": "1"}, TypeError, "timeout is a number of seconds"),
        ({"seed": 10**5000}, ValueError, "seed is at least 0 and at most .* thousands of digits"),
        ({"timeout": 10**5000}, ValueError, "timeout is a number of seconds"),
        ({"sampler": None}, TypeError, "sampler"),
        ({"on_error": "skip"}, TypeError, "on_error"),
    ],
)
def test_wrong_options(folder: Path, options: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        fl.Loader(fl.ImageFolder(folder), **options)


def test_a_foreign_dataset() -> None:
    with pytest.raises(TypeError, match=r"ImageFolder, feedline.Files\), got builtins.list"):
        fl.Loader([1, 2])  # type: ignore[arg-type]


def test_a_drawn_seed_is_shown_and_stored(folder: Path) -> None:
    one, two = (loader_of(folder, seed=None, shuffle=True) for _ in range(2))
    assert one.seed != two.seed
    assert one.state_dict()["seed"] == one.seed
    twin = pickle.loads(pickle.dumps(one))
    assert twin.seed == one.seed
    two.load_state_dict(one.state_dict())
    assert two.seed == one.seed
    assert [b.index.tolist() for b in one] == [b.index.tolist() for b in two]
    with pytest.raises(ValueError, match="every rank would draw its own"):
        loader_of(folder, seed=None, rank=0, world_size=2)
    with pytest.raises(ValueError, match="every rank would draw its own"):
        loader_of(folder, seed=None, world_size=2)


# Order


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_order_does_not_depend_on_threads(folder: Path, threads: int) -> None:
    with loader_of(folder, batch_size=4, shuffle=True, seed=5, num_threads=threads) as loader:
        for epoch in range(2):
            expected = cursor_rows(epoch=epoch, shuffle=True, seed=5)
            batches = list(loader)
            assert [b.index.tolist() for b in batches] == [r[:, 2].tolist() for r in expected]
            labels = loader.dataset.targets
            assert [b.label.tolist() for b in batches] == [
                labels[rows[:, 2]].tolist() for rows in expected
            ]


def test_unshuffled_order_is_that_of_the_dataset(folder: Path) -> None:
    with loader_of(folder, batch_size=5) as loader:
        batches = list(loader)
    assert [len(b.label) for b in batches] == [5, 5, 5, 5, 3]
    assert np.concatenate([b.index for b in batches]).tolist() == list(range(COUNT))
    keys = [key for b in batches for key in b.sample_keys]
    assert keys == [loader.dataset.key(index) for index in range(COUNT)]
    assert all(b.valid.all() for b in batches)


@pytest.mark.parametrize("in_order", [True, False])
def test_shuffled_epochs_have_every_sample_once(folder: Path, in_order: bool) -> None:
    with loader_of(folder, batch_size=4, shuffle=True, in_order=in_order) as loader:
        epochs = [np.concatenate([b.index for b in loader]).tolist() for _ in range(3)]
    assert all(sorted(epoch) == list(range(COUNT)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3


@pytest.mark.parametrize("batch_size", [1, 4, COUNT, COUNT + 1])
@pytest.mark.parametrize("drop_last", [False, True])
def test_lengths(folder: Path, batch_size: int, drop_last: bool) -> None:
    with loader_of(folder, batch_size=batch_size, drop_last=drop_last) as loader:
        expected = COUNT // batch_size if drop_last else -(-COUNT // batch_size)
        assert len(loader) == expected
        iterator = iter(loader)
        left = [len(iterator)]
        for _ in iterator:
            left.append(len(iterator))
        assert left == list(range(expected, -1, -1))
        assert next(iterator, None) is None


# Batches


def test_a_batch_size_beyond_the_data_set(folder: Path) -> None:
    """Takes memory for the samples that there are, not for 2**31 - 1 of 600 kB."""
    most = 2**31 - 1
    large = [T.Resize((224, 224)), T.Normalize(T.IMAGENET_MEAN, T.IMAGENET_STD)]
    with loader_of(folder, batch_size=most, transform=large) as loader:
        assert len(loader) == 1
        for _ in range(2):
            (batch,) = loader
            assert batch.image.shape == (COUNT, 3, 224, 224)
            assert sorted(batch.index.tolist()) == list(range(COUNT))
    with loader_of(folder, batch_size=most, rank=1, world_size=3) as loader:
        assert [len(batch.index) for batch in loader] == [8]
    with loader_of(folder, batch_size=most, drop_last=True) as loader:
        assert list(loader) == []
    with loader_of(folder, batch_size=2 * COUNT, uneven="mask") as loader:
        (batch,) = loader
        assert batch.valid.tolist() == [True] * COUNT + [False] * COUNT
        assert batch.index.tolist() == 2 * list(range(COUNT))


def test_a_batch_is_a_named_tuple(folder: Path) -> None:
    with loader_of(folder, batch_size=4) as loader:
        batch = next(iter(loader))
    image, label = batch
    assert isinstance(batch, tuple)
    assert isinstance(batch, fl.Batch)
    assert batch._fields == ("image", "label")
    for same in (batch[0], batch.image, batch["image"], batch[-2], batch[:1][0]):
        assert same is image
    assert batch["label"] is label
    assert image.shape == (4, 3, 8, 9)
    assert image.dtype == np.uint8
    with pytest.raises(KeyError, match="no field 'images'; it has: image, label"):
        batch["images"]
    with pytest.raises(IndexError):
        batch[2]


def test_a_rebuilt_batch_has_no_origin(folder: Path) -> None:
    with loader_of(folder, batch_size=4) as loader:
        batch = next(iter(loader))
    moved = type(batch)(*[value + 1 for value in batch])
    assert (moved.image == batch.image + 1).all()
    for name in ("index", "valid", "sample_keys"):
        with pytest.raises(AttributeError, match=f"rebuilt from other values and has no {name}"):
            getattr(moved, name)
    assert batch._replace(label=7).label == 7
    assert moved == type(batch)._make(moved)


def test_batches_pickle(folder: Path) -> None:
    with loader_of(folder, batch_size=4, shuffle=True) as loader:
        batch = next(iter(loader))
        state = loader.state_dict()
        for twin in (pickle.loads(pickle.dumps(batch)), copy.deepcopy(batch)):
            assert type(twin) is type(batch)
            assert (twin.image == batch.image).all()
            assert twin.index.tolist() == batch.index.tolist()
            assert twin.valid.tolist() == batch.valid.tolist()
            assert list(twin.sample_keys) == list(batch.sample_keys)
            assert loader.state_dict(after=twin) == state
    moved = pickle.loads(pickle.dumps(type(batch)(1, 2)))
    assert moved == (1, 2)


def test_as_dict(folder: Path) -> None:
    with loader_of(folder, batch_size=4, as_dict=True) as loader:
        batch = next(iter(loader))
    assert type(batch) is dict
    assert list(batch) == ["image", "label"]
    assert batch["label"].tolist() == [0, 0, 0, 0]


def test_one_field_is_a_tuple_of_one(folder: Path) -> None:
    dataset = fl.ImageFolder(folder, fields={"y": "label"})
    with fl.Loader(dataset, batch_size=COUNT, output="numpy") as loader:
        (labels,) = next(iter(loader))
    assert labels.tolist() == dataset.targets.tolist()


def test_files_as_bytes_and_two_views_of_a_picture(folder: Path) -> None:
    fields = {"raw": fl.Field("file", "bytes"), "small": "file", "large": "file", "y": "label"}
    dataset = fl.ImageFolder(folder, fields=fields)
    transform = {"small": [T.Resize((4, 4))], "large": [T.Resize((16, 16))]}
    with fl.Loader(dataset, batch_size=3, transform=transform, output="numpy") as loader:
        batch = next(iter(loader))
    assert isinstance(batch.raw, list)
    for row, (path, label) in enumerate(dataset.samples[:3]):
        assert batch.raw[row].tobytes() == Path(path).read_bytes()
        assert batch.y[row] == label
    assert batch.small.shape == (3, 3, 4, 4)
    assert batch.large.shape == (3, 3, 16, 16)


def test_outputs_hold_the_same_values(folder: Path) -> None:
    with loader_of(folder, batch_size=4) as loader:
        arrays = next(iter(loader))
    with loader_of(folder, batch_size=4, output="dlpack") as loader:
        tensors = next(iter(loader))
    assert isinstance(tensors.image, fl.Tensor)
    for array, tensor in zip(arrays, tensors, strict=True):
        assert (np.from_dlpack(tensor) == array).all()
        assert (tensor.numpy() == array).all()


def test_torch_output(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    with loader_of(folder, batch_size=4) as loader:
        arrays = next(iter(loader))
    with loader_of(folder, batch_size=4, output="torch") as loader:
        image, label = next(iter(loader))
    assert (image.dtype, label.dtype) == (torch.uint8, torch.int64)
    assert (image.numpy() == arrays.image).all()
    assert label.tolist() == arrays.label.tolist()


def test_layouts(folder: Path) -> None:
    with loader_of(folder, batch_size=4) as loader:
        nchw = next(iter(loader)).image
    with loader_of(folder, batch_size=4, layout="NHWC") as loader:
        nhwc = next(iter(loader)).image
    with loader_of(folder, batch_size=4, layout="channels_last") as loader:
        channels_last = next(iter(loader)).image
    assert nhwc.shape == (4, 8, 9, 3)
    assert (nhwc.transpose(0, 3, 1, 2) == nchw).all()
    assert channels_last.shape == nchw.shape
    assert channels_last.strides == nhwc.transpose(0, 3, 1, 2).strides
    assert (channels_last == nchw).all()


# Reports


def test_explain(folder: Path) -> None:
    loader = loader_of(folder, num_threads=3, in_order=False)
    lines = {line.what: line for line in loader.explain()}
    assert lines["field image"].value == "uint8, batches of (3, 8, 9) (NCHW)"
    assert lines["num_threads"].value == "3"
    assert lines["num_threads"].why == "given"
    assert lines["passes of image's Resize"].value == "pillow13"
    assert "approximate" in lines["order"].why
    text = str(loader.explain())
    assert text == repr(loader.explain())
    assert all(line.what in text for line in loader.explain())
    own_sizes = {line.what: line for line in loader_of(folder, transform=None).explain()}
    assert own_sizes["field image"].value == "uint8, a list of pictures of their own sizes"


def test_stats(folder: Path) -> None:
    with loader_of(folder, batch_size=4) as loader:
        before = loader.stats()
        assert (before.epoch, before.batches, before.delivered) == (0, 0, 0)
        iterator = iter(loader)
        next(iterator)
        stats = loader.stats()
        assert (stats.epoch, stats.batches, stats.delivered) == (0, 6, 1)
        assert stats["batches_delivered"] == stats.batches_delivered == 1
        assert stats.stages["compute"]["items"] >= 4
        assert dict(stats)["delivered"] == 1
        assert "compute" in str(stats)
        assert "batches_delivered" in str(stats)
        with pytest.raises(AttributeError, match="there is no 'speed'; there are: epoch"):
            _ = stats.speed
        list(iterator)
        list(loader)
        assert loader.stats().epoch == 1
        assert loader.stats().delivered == 6


def test_repr(folder: Path) -> None:
    loader = loader_of(folder, batch_size=4)
    assert repr(loader) == (
        f"Loader({loader.dataset!r}, batch_size=4, shuffle=False, seed=0, output='numpy')"
    )
