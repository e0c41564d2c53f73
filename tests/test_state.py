# SPDX-License-Identifier: MIT
"""Epochs, state and resume: a continued sequence equals the uninterrupted one."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feedline as fl
from feedline import _core
from feedline import transforms as T
from picture_files import COUNT

RANDOM = [T.RandomResizedCrop(8), T.RandomHorizontalFlip()]


def loader_of(folder: Path, **options: Any) -> fl.Loader:
    settings = {"batch_size": 4, "shuffle": True, "transform": RANDOM, "output": "numpy"}
    return fl.Loader(fl.ImageFolder(folder), **settings | options)


@pytest.fixture
def loader(folder: Path) -> Iterator[fl.Loader]:
    with loader_of(folder) as made:
        yield made


def rows(batches: Any) -> list[tuple[int, bytes]]:
    """(index, pixels) of every row: order and augmentation."""
    found = []
    for batch in batches:
        pairs = zip(batch.index.tolist(), batch.image, strict=True)
        found += [(index, pixels.tobytes()) for index, pixels in pairs]
    return found


def take(iterator: Any, count: int) -> list[Any]:
    return [next(iterator) for _ in range(count)]


def place_of(loader: fl.Loader) -> tuple[int, int]:
    state = loader.state_dict()
    return state["epoch"], state["position"]


# The epoch's number


def test_epochs_follow_each_other(loader: fl.Loader) -> None:
    seen = []
    for epoch in range(3):
        seen.append(rows(loader))
        assert loader.epoch == epoch
        assert place_of(loader) == (epoch + 1, 0)
    assert len({tuple(epoch) for epoch in seen}) == 3


def test_iter_alone_changes_nothing(loader: fl.Loader) -> None:
    iter(loader)
    iter(loader)
    assert (loader.epoch, place_of(loader)) == (0, (0, 0))
    first = rows(loader)
    loader.set_epoch(0)
    iter(loader)
    assert rows(loader) == first


def test_a_break_moves_on(loader: fl.Loader) -> None:
    for _ in loader:
        break
    assert place_of(loader) == (0, 4)
    iterator = iter(loader)
    assert (loader.epoch, place_of(loader)) == (1, (1, 0))
    next(iterator)
    assert place_of(loader) == (1, 4)


def test_position_counts_what_was_received(loader: fl.Loader) -> None:
    iterator = iter(loader)
    for received in range(1, 6):
        next(iterator)
        assert place_of(loader) == (0, 4 * received)
    next(iterator)
    assert place_of(loader) == (1, 0)
    assert next(iterator, None) is None
    assert place_of(loader) == (1, 0)


def test_iterators_are_independent(folder: Path, loader: fl.Loader) -> None:
    with loader_of(folder) as other:
        first, second = rows(other), rows(other)
    one = iter(loader)
    got_one = rows(take(one, 2))
    two = iter(loader)
    got_two = rows(take(two, 1))
    assert place_of(loader) == (1, 4)  # of the one made last
    got_one += rows(one)
    got_two += rows(two)
    assert (got_one, got_two) == (first, second)


def test_set_epoch(folder: Path, loader: fl.Loader) -> None:
    with loader_of(folder) as other:
        epochs = [rows(other) for _ in range(4)]
    loader.set_epoch(3)
    assert (loader.epoch, place_of(loader)) == (3, (3, 0))
    assert rows(loader) == epochs[3]
    loader.set_epoch(1)
    iterator = iter(loader)
    take(iterator, 2)
    loader.set_epoch(2)
    assert place_of(loader) == (2, 0)
    assert rows(loader) == epochs[2]
    assert rows(loader) == epochs[3]
    assert len(list(iterator)) == 4  # untouched by what came after it
    for wrong in (-1, 2**64):
        with pytest.raises(ValueError, match="epoch is at least 0"):
            loader.set_epoch(wrong)
    with pytest.raises(TypeError, match="epoch is an integer"):
        loader.set_epoch(1.0)  # type: ignore[arg-type]


def test_the_last_epoch_there_is(loader: fl.Loader) -> None:
    loader.set_epoch(2**64 - 1)
    assert len(list(loader)) == 6


def test_set_epoch_and_a_loaded_position(loader: fl.Loader) -> None:
    iterator = iter(loader)
    take(iterator, 2)
    state = loader.state_dict()
    loader.load_state_dict(state)
    loader.set_epoch(0)  # frameworks call both
    iter(loader)  # and iter() once to see whether it works
    loader.set_epoch(0)
    assert place_of(loader) == (0, 8)
    assert len(list(loader)) == 4
    loader.set_epoch(0)  # used up: a whole epoch
    assert len(list(loader)) == 6
    loader.load_state_dict(state)
    with pytest.warns(UserWarning, match="drops the loaded position 8 of epoch 0"):
        loader.set_epoch(5)
    assert place_of(loader) == (5, 0)


# Resume


@pytest.mark.parametrize("stop", range(7))
def test_resume_at_every_position(folder: Path, stop: int) -> None:
    with loader_of(folder) as loader:
        whole = rows(loader) + rows(loader)
    with loader_of(folder) as loader:
        iterator = iter(loader)
        start = rows(take(iterator, stop))
        state = json.loads(json.dumps(loader.state_dict()))
    for options in ({}, {"num_threads": 5, "prefetch_batches": 9}, {"batch_size": 7}):
        with loader_of(folder, **options) as loader:
            loader.load_state_dict(state)
            assert loader.state_dict() == state
            rest = rows(loader) + (rows(loader) if stop < 6 else [])
        assert start + rest == whole


@pytest.mark.parametrize("stop", range(5))
def test_resume_with_another_world(folder: Path, stop: int) -> None:
    """2 ranks of 2 stop; 3 ranks of 3 go on: together every sample once, in the same order."""
    with loader_of(folder, batch_size=1) as loader:
        whole = rows(loader)
    before: list[list[tuple[int, bytes]]] = []
    states = []
    for rank in range(2):
        with loader_of(folder, batch_size=2, rank=rank, world_size=2) as loader:
            before.append(rows(take(iter(loader), stop)))
            states.append(loader.state_dict())
    assert states[0] == states[1]
    after: list[list[tuple[int, bytes]]] = []
    for rank in range(3):
        options = {"batch_size": 3, "rank": rank, "world_size": 3, "uneven": "drop"}
        with loader_of(folder, **options) as loader:
            loader.load_state_dict(states[0])
            after.append(rows(loader))
    merged = [row for pair in zip(*before, strict=True) for row in pair]
    merged += [row for triple in zip(*after, strict=True) for row in triple]
    assert merged == whole[: len(merged)]
    assert len(whole) - len(merged) < 3


def test_resume_in_a_new_process(folder: Path, loader: fl.Loader) -> None:
    iterator = iter(loader)
    take(iterator, 2)
    state = json.dumps(loader.state_dict())
    script = (
        "import json, sys, hashlib, feedline as fl\n"
        "from feedline import transforms as T\n"
        "loader = fl.Loader(fl.ImageFolder(sys.argv[1]), batch_size=4, shuffle=True,\n"
        "    transform=[T.RandomResizedCrop(8), T.RandomHorizontalFlip()], output='numpy')\n"
        "loader.load_state_dict(json.loads(sys.argv[2]))\n"
        "print([(b.index.tolist(), hashlib.md5(b.image.tobytes()).hexdigest()) for b in loader])\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", script, str(folder), state],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    import hashlib

    expected = [(b.index.tolist(), hashlib.md5(b.image.tobytes()).hexdigest()) for b in iterator]
    assert output.strip() == str(expected)


def test_state_applies_once(loader: fl.Loader) -> None:
    take(iter(loader), 3)
    loader.load_state_dict(loader.state_dict())
    assert len(list(loader)) == 3
    assert len(list(loader)) == 6


def test_state_after_a_batch(loader: fl.Loader) -> None:
    iterator = iter(loader)
    first, second = take(iterator, 2)
    assert loader.state_dict(after=first) | {"position": 8} == loader.state_dict(after=second)
    assert loader.state_dict(after=first)["position"] == 4
    *_, last = iterator
    list(loader)  # a later epoch does not change what the batch stands for
    state = loader.state_dict(after=last)
    assert (state["epoch"], state["position"]) == (1, 0)
    with pytest.raises(ValueError, match="rebuilt"):
        loader.state_dict(after=type(first)(*first))
    with pytest.raises(TypeError, match="got dict"):
        loader.state_dict(after={"image": 1})  # type: ignore[arg-type]


def test_state_after_a_batch_of_another_loader(folder: Path, loader: fl.Loader) -> None:
    """A position in another order would resume in the wrong place, silently."""
    others = [
        (loader_of(folder, seed=7), "its seed was 7, this loader's is 0"),
        (loader_of(folder, shuffle=False), "its order is sequential, this loader's is shuffled"),
        (fl.Loader(fl.Files([loader.dataset.samples[0][0]]), shuffle=True), "has 1 samples"),
    ]
    for other, words in others:
        with other, pytest.raises(ValueError, match=f"a batch from another loader: .*{words}"):
            loader.state_dict(after=next(iter(other)))
    with loader_of(folder, batch_size=3) as twin:
        batch = pickle.loads(pickle.dumps(next(iter(twin))))
    assert loader.state_dict(after=batch)["position"] == 3


def test_empty_state_resets(loader: fl.Loader) -> None:
    first = rows(loader)
    take(iter(loader), 2)
    loader.load_state_dict({})
    assert (loader.epoch, place_of(loader)) == (0, (0, 0))
    assert rows(loader) == first


def test_state_survives_close(loader: fl.Loader) -> None:
    take(iter(loader), 2)
    loader.close()
    assert place_of(loader) == (0, 8)


def test_state_is_small_and_plain(loader: fl.Loader) -> None:
    fingerprint = loader.dataset.fingerprint
    assert loader.state_dict() == {
        "version": 1,
        "order_version": 1,
        "seed": 0,
        "epoch": 0,
        "position": 0,
        "order_fingerprint": f"shuffled-{COUNT}-{fingerprint:016x}",
    }


def test_end_of_the_order_is_the_next_epoch(loader: fl.Loader) -> None:
    loader.load_state_dict(loader.state_dict() | {"epoch": 4, "position": COUNT})
    assert place_of(loader) == (5, 0)


def test_a_rest_without_batches_ends_and_moves_on(folder: Path) -> None:
    with loader_of(folder, drop_last=True) as loader:
        loader.load_state_dict(loader.state_dict() | {"position": COUNT - 1})
        assert list(loader) == []
        assert len(list(loader)) == 5
        assert loader.epoch == 1


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"version": 2}, ValueError, "has version 2, this feedline reads 1"),
        ({"order_version": 0}, ValueError, "has order_version 0, this feedline reads 1"),
        ({"seed": 7}, ValueError, "its seed is 7, this loader's 0; make the loader with seed=7"),
        ({"seed": "0"}, TypeError, "state's seed is an integer"),
        ({"epoch": -1}, ValueError, "state's epoch is from 0"),
        ({"epoch": True}, TypeError, "state's epoch is an integer"),
        ({"position": COUNT + 1}, ValueError, f"position {COUNT + 1} is beyond {COUNT} samples"),
        ({"position": 1.0}, TypeError, "state's position is an integer"),
        ({"extra": 1}, ValueError, "extra unknown"),
        ({"order_fingerprint": 5}, TypeError, "order_fingerprint is a string"),
        ({"order_fingerprint": "x"}, ValueError, "is not one of feedline's"),
        ({"order_fingerprint": "a-b-c"}, ValueError, "'a-b-c' is not one of feedline's"),
        ({"order_fingerprint": "shuffled-x-0"}, ValueError, "is not one of feedline's"),
        ({"epoch": 10**5000}, ValueError, "state's epoch is from 0 to .* thousands of digits"),
    ],
)
def test_states_that_are_refused(
    loader: fl.Loader, change: dict[str, Any], error: type[Exception], words: str
) -> None:
    state = loader.state_dict()
    with pytest.raises(error, match=words):
        loader.load_state_dict(state | change)
    assert loader.state_dict() == state


def test_missing_keys_are_named(loader: fl.Loader) -> None:
    state = loader.state_dict()
    del state["epoch"], state["seed"]
    with pytest.raises(ValueError, match="seed, epoch missing"):
        loader.load_state_dict(state)
    with pytest.raises(TypeError, match="got list"):
        loader.load_state_dict([])  # type: ignore[arg-type]


def test_differences_are_named(folder: Path, tmp_path: Path, loader: fl.Loader) -> None:
    state = loader.state_dict()
    with pytest.raises(ValueError, match="its order is shuffled, this loader's is sequential"):
        loader_of(folder, shuffle=False).load_state_dict(state)
    paths = [path for path, _ in loader.dataset.samples]
    fewer = fl.Loader(fl.Files(paths[1:]), shuffle=True)
    with pytest.raises(ValueError, match=f"has {COUNT} samples, this loader's has {COUNT - 1}"):
        fewer.load_state_dict(state)
    unlabelled = fl.Loader(fl.Files(paths), shuffle=True)
    with pytest.raises(ValueError, match="as many samples, but other names, labels or classes"):
        unlabelled.load_state_dict(state)


def test_another_root_with_the_same_names_fits(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    with loader_of(folder) as one, loader_of(tmp_path / "link") as two:
        take(iter(one), 2)
        two.load_state_dict(one.state_dict())
        assert len(list(two)) == 4


# Ranks


@pytest.mark.parametrize("world_size", [1, 2, 3, 5])
def test_mask_has_every_sample_once(folder: Path, world_size: int) -> None:
    seen: list[int] = []
    lengths = set()
    for rank in range(world_size):
        options = {"rank": rank, "world_size": world_size, "uneven": "mask"}
        with loader_of(folder, **options) as loader:
            batches = list(loader)
        assert all(len(batch.index) == 4 for batch in batches)
        lengths.add(len(batches))
        seen += [int(i) for batch in batches for i in batch.index[batch.valid]]
    assert sorted(seen) == list(range(COUNT))
    assert lengths == {-(-COUNT // (4 * world_size))}


@pytest.mark.parametrize("uneven", ["pad", "drop"])
def test_ranks_split_as_distributed_sampler(folder: Path, uneven: str) -> None:
    order = _core.permutation(COUNT, 0, 0, 0, COUNT)
    per_rank = -(-COUNT // 3) if uneven == "pad" else COUNT // 3
    dealt = np.resize(order, per_rank * 3) if uneven == "pad" else order[: per_rank * 3]
    for rank in range(3):
        with loader_of(folder, rank=rank, world_size=3, uneven=uneven) as loader:
            batches = list(loader)
            assert len(loader) == len(batches)
        assert np.concatenate([b.index for b in batches]).tolist() == dealt[rank::3].tolist()
        valid = np.concatenate([b.valid for b in batches])
        assert valid.tolist() == (np.arange(per_rank * 3) < COUNT)[rank::3].tolist()


class FakeDistributed:
    """torch.distributed as far as it is asked."""

    def __init__(self, rank: int, world_size: int, ready: bool = True) -> None:
        self.rank, self.world_size, self.ready = rank, world_size, ready

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return self.ready

    def get_rank(self) -> int:
        return self.rank

    def get_world_size(self) -> int:
        return self.world_size


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No trace of other ranks."""
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)
    return monkeypatch


def test_ranks_from_torchrun(folder: Path, alone: pytest.MonkeyPatch) -> None:
    alone.setenv("RANK", "1")
    alone.setenv("WORLD_SIZE", "3")
    loader = loader_of(folder, batch_size=1)
    assert (loader.rank, loader.world_size) == (None, None)
    assert len(loader) == 8
    assert (loader.rank, loader.world_size) == (1, 3)
    assert len(loader_of(folder, batch_size=1, world_size=1)) == COUNT
    assert len(loader_of(folder, batch_size=1, rank=1)) == 8
    assert len(loader_of(folder, batch_size=1, rank=4, world_size=5)) == 5


def test_ranks_from_torch(folder: Path, alone: pytest.MonkeyPatch) -> None:
    alone.setitem(sys.modules, "torch.distributed", FakeDistributed(0, 2, ready=False))
    assert len(loader_of(folder, batch_size=1)) == COUNT
    alone.setitem(sys.modules, "torch.distributed", FakeDistributed(1, 2))
    loader = loader_of(folder, batch_size=1)
    assert len(loader) == 12
    assert (loader.rank, loader.world_size) == (1, 2)


@pytest.mark.parametrize(
    ("environment", "torch", "options", "words"),
    [
        ({"RANK": "1", "WORLD_SIZE": "2"}, (0, 2), {}, "torch.distributed says rank 0 of 2, but"),
        ({"RANK": "1", "WORLD_SIZE": "2"}, None, {"rank": 0}, "rank=0 was given without world"),
        ({"RANK": "1", "WORLD_SIZE": "2"}, None, {"world_size": 4}, "world_size=4 was given"),
        ({}, (0, 2), {"world_size": 4}, "but torch.distributed says 2; give rank"),
        ({}, None, {"world_size": 4}, "but a process alone says 1; give rank"),
        ({"RANK": "1"}, None, {}, "only one is set"),
        ({"WORLD_SIZE": "2"}, None, {}, "only one is set"),
        ({"RANK": "x", "WORLD_SIZE": "2"}, None, {}, "RANK is 'x', not a number"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, None, {}, r"not in the interval \[0, 1\]"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, None, {"seed": None}, "every rank would draw"),
    ],
)
def test_contradictory_ranks(
    folder: Path,
    alone: pytest.MonkeyPatch,
    environment: dict[str, str],
    torch: tuple[int, int] | None,
    options: dict[str, Any],
    words: str,
) -> None:
    for name, value in environment.items():
        alone.setenv(name, value)
    if torch is not None:
        alone.setitem(sys.modules, "torch.distributed", FakeDistributed(*torch))
    loader = loader_of(folder, **options)
    for ask in (len, iter):
        with pytest.raises(ValueError, match=words):
            ask(loader)


def test_ranks_that_change_after_len(folder: Path, alone: pytest.MonkeyPatch) -> None:
    loader = loader_of(folder)
    len(loader)
    alone.setitem(sys.modules, "torch.distributed", FakeDistributed(1, 2))
    with pytest.raises(ValueError, match=r"was rank 0 of 1 .* now is rank 1 of 2"):
        iter(loader)


def test_one_world_of_one_is_alone(folder: Path, alone: pytest.MonkeyPatch) -> None:
    alone.setenv("WORLD_SIZE", "1")
    assert len(loader_of(folder)) == 6
