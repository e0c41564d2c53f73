# SPDX-License-Identifier: MIT
"""Lives of loaders: close, collection, errors, time limits, threads, copies, the Pillow step."""

import copy
import gc
import os
import pickle
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import feedline as fl
from feedline import pillow_step, pinned
from feedline import transforms as T
from leftovers import thread_ids
from picture_files import COUNT, pixels

SMALL = [T.Resize((8, 9))]


def loader_of(folder: Path, **options: Any) -> fl.Loader:
    settings = {"batch_size": 4, "transform": SMALL, "output": "numpy"}
    return fl.Loader(fl.ImageFolder(folder), **settings | options)


class Gate:
    """Stands in for the Pillow step: each decode waits until the gate is open."""

    def __init__(self) -> None:
        self.is_open = threading.Event()
        self.entered = threading.Event()

    def __call__(self, data: memoryview) -> tuple[int, int, bytes]:
        self.entered.set()
        self.is_open.wait(60)
        return pillow_step.decode(data)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """The Pillow step of loaders made in the test."""
    made = Gate()
    monkeypatch.setattr("feedline.loader.decode_fallback", lambda: made)
    yield made
    made.is_open.set()


@pytest.fixture
def bmps(tmp_path: Path) -> fl.Files:
    """Eight files that only the Pillow step reads."""
    paths = [tmp_path / f"{number}.bmp" for number in range(8)]
    for number, path in enumerate(paths):
        Image.fromarray(pixels(number, 20, 16)).save(path)
    return fl.Files(paths, range(8))


# Threads


def test_no_thread_before_the_first_next(folder: Path) -> None:
    before = thread_ids()
    with loader_of(folder) as loader:
        len(loader)
        iterator = iter(loader)
        loader.state_dict()
        loader.stats()
        assert not thread_ids() - before
        next(iterator)
        assert thread_ids() - before
    wait_for(lambda: not thread_ids() - before)


def test_threads_share_an_iterator(folder: Path) -> None:
    with loader_of(folder, batch_size=1, shuffle=True) as loader:
        iterator = iter(loader)
        got: list[list[int]] = [[] for _ in range(4)]

        def consume(mine: list[int]) -> None:
            for batch in iterator:
                mine += batch.index.tolist()

        threads = [threading.Thread(target=consume, args=(mine,)) for mine in got]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        state = loader.state_dict()
    assert sorted(index for mine in got for index in mine) == list(range(COUNT))
    assert (state["epoch"], state["position"]) == (1, 0)


def test_each_thread_has_its_own_iterator(folder: Path) -> None:
    with loader_of(folder, shuffle=True) as loader:
        epochs: list[list[int]] = []

        def consume() -> None:
            epochs.append([int(index) for batch in loader for index in batch.index])

        threads = [threading.Thread(target=consume) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(sorted(epoch) == list(range(COUNT)) for epoch in epochs)


def test_loaders_side_by_side(folder: Path) -> None:
    with loader_of(folder) as one, loader_of(folder) as two:
        for first, second in zip(one, two, strict=True):
            assert (first.image == second.image).all()


# The end


def test_close(folder: Path) -> None:
    before = thread_ids()
    loader = loader_of(folder)
    iterator = iter(loader)
    batch = next(iterator)
    loader.close()
    loader.close()
    wait_for(lambda: not thread_ids() - before)
    assert batch.image.any()  # stays valid
    for ask in (lambda: next(iterator), lambda: iter(loader), lambda: list(loader)):
        with pytest.raises(fl.ClosedError, match="closed"):
            ask()
    assert len(loader) == 6
    assert loader.state_dict()["position"] == 4
    assert loader.stats().delivered == 1
    assert loader.stats().batches_delivered == 1


def test_close_before_anything(folder: Path) -> None:
    loader = loader_of(folder)
    loader.close()
    with pytest.raises(fl.ClosedError):
        iter(loader)


def test_close_wakes_a_waiting_thread(gate: Gate, bmps: fl.Files) -> None:
    loader = fl.Loader(bmps, batch_size=8, output="numpy", num_threads=1)
    errors: list[BaseException] = []

    def consume() -> None:
        try:
            next(iter(loader))
        except fl.ClosedError as error:
            errors.append(error)

    thread = threading.Thread(target=consume)
    thread.start()
    assert gate.entered.wait(60)
    closer = threading.Thread(target=loader.close)
    closer.start()
    thread.join(60)
    gate.is_open.set()
    closer.join(60)
    assert len(errors) == 1


class StuckEngine:
    """An engine with threads that do not come back."""

    def close(self) -> int:
        return 2

    def stats(self) -> dict[str, Any]:
        return {}


def test_close_tells_of_threads_left_behind(folder: Path) -> None:
    loader = loader_of(folder)
    loader._engine = StuckEngine()  # type: ignore[assignment]
    with pytest.warns(
        RuntimeWarning, match=r"^2 thread\(s\) of Loader\(ImageFolder.*did not stop"
    ):
        loader.close()


def test_close_in_a_signal_handler(folder: Path) -> None:
    loader = loader_of(folder)
    next(iter(loader))
    old = signal.signal(signal.SIGUSR1, lambda *_: loader.close())
    try:
        with loader._lock:
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, old)
    with pytest.raises(fl.ClosedError):
        iter(loader)


@pytest.fixture
def at_thread_start(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Callable[[], None]]]:
    """What is in the list happens once a Python thread was started, inside Thread.start()."""
    start, happenings = threading.Thread.start, []

    def start_and_more(thread: threading.Thread) -> None:
        start(thread)
        if thread.name.startswith("feedline-python") and happenings:
            happenings.pop()()

    monkeypatch.setattr(threading.Thread, "start", start_and_more)
    yield happenings
    assert not happenings


def test_close_in_a_signal_handler_while_a_thread_starts(
    bmps: fl.Files, at_thread_start: list[Callable[[], None]]
) -> None:
    loader = fl.Loader(bmps, batch_size=8, output="numpy")
    at_thread_start.append(lambda: signal.raise_signal(signal.SIGUSR1))
    old = signal.signal(signal.SIGUSR1, lambda *_: loader.close())
    try:
        with pytest.raises(fl.ClosedError):
            next(iter(loader))
    finally:
        signal.signal(signal.SIGUSR1, old)


def test_a_signal_handler_raises_while_a_thread_starts(
    bmps: fl.Files, at_thread_start: list[Callable[[], None]]
) -> None:
    """Whether it was started or not, the engine counts its threads right."""

    def interrupt(*_: object) -> None:
        raise OddError(1, "interrupted")

    with fl.Loader(bmps, batch_size=8, output="numpy", num_threads=1) as loader:
        at_thread_start.append(lambda: signal.raise_signal(signal.SIGUSR1))
        old = signal.signal(signal.SIGUSR1, interrupt)
        try:
            with pytest.raises(OddError):
                next(iterator := iter(loader))
        finally:
            signal.signal(signal.SIGUSR1, old)
        assert len(next(iterator).index) == 8
    assert loader.stats().stages["python"]["threads"] == 0


def test_a_thread_that_cannot_be_started_is_tried_again(
    bmps: fl.Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with fl.Loader(bmps, batch_size=8, output="numpy") as loader:
        iterator = iter(loader)
        with monkeypatch.context() as without_threads:
            without_threads.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError, match="can't start new thread"):
                next(iterator)
        assert len(next(iterator).index) == 8
    assert loader.stats().stages["python"]["threads"] == 0


def test_close_all(folder: Path) -> None:
    loaders = [loader_of(folder) for _ in range(3)]
    for loader in loaders:
        next(iter(loader))
    fl.close_all()
    for loader in loaders:
        with pytest.raises(fl.ClosedError):
            iter(loader)


def divide_in_the_loop(loader: fl.Loader) -> None:
    with loader:
        for _ in loader:
            _ = 1 / 0


def test_an_exception_in_the_loop_leaves_nothing(folder: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        divide_in_the_loop(loader_of(folder))


def test_a_dropped_loader_is_collected_without_the_collector(folder: Path) -> None:
    gc.disable()
    try:
        loader = loader_of(folder)
        for _ in loader:
            break
        gone = weakref.ref(loader)
        del loader
        assert gone() is None
    finally:
        gc.enable()


def test_an_iterator_keeps_its_loader(folder: Path) -> None:
    iterator = iter(loader_of(folder))
    gc.collect()
    assert len(list(iterator)) == 6


def test_a_batch_outlives_its_loader(folder: Path) -> None:
    loader = loader_of(folder)
    batch = next(iter(loader))
    stored = batch.image.copy()
    gone = weakref.ref(loader)
    del loader
    gc.collect()
    assert gone() is None
    assert (batch.image == stored).all()
    assert batch.sample_keys[0] == "ant/00.jpg"


def test_kept_batches_are_never_overwritten(folder: Path) -> None:
    with loader_of(folder, batch_size=2, prefetch_batches=1) as loader:
        kept = [(batch, batch.image.copy()) for _ in range(5) for batch in loader]
    for batch, stored in kept:
        assert (batch.image == stored).all()


# Errors


def told(error: BaseException) -> str:
    """What a traceback shows of an error."""
    return "\n".join([str(error), *getattr(error, "__notes__", [])])


def test_errors_name_the_file_and_iteration_goes_on(folder: Path, tmp_path: Path) -> None:
    good = [path for path, _ in fl.ImageFolder(folder).samples]
    cut, empty, text = (tmp_path / name for name in ("cut.jpg", "empty.jpg", "text.jpg"))
    cut.write_bytes(Path(good[0]).read_bytes()[:-200])
    empty.write_bytes(b"")
    text.write_text("no picture")
    missing = tmp_path / "missing.jpg"
    bad = [cut, empty, text, missing]
    paths = [path for pair in zip(good, map(str, bad), strict=False) for path in pair]
    with fl.Loader(fl.Files(paths), transform=SMALL, output="numpy", num_threads=2) as loader:
        iterator = iter(loader)
        for file in bad:
            assert next(iterator).image.shape == (1, 3, 8, 9)
            with pytest.raises(OSError) as caught:  # noqa: PT011
                next(iterator)
            assert str(file) in told(caught.value)
            expected = FileNotFoundError if file is missing else OSError
            assert isinstance(caught.value, expected)
        assert next(iterator, None) is None
        state = loader.state_dict()
        assert (state["epoch"], state["position"]) == (1, 0)


def test_an_error_counts_as_received(folder: Path, tmp_path: Path) -> None:
    paths = [path for path, _ in fl.ImageFolder(folder).samples[:4]]
    paths[1] = str(tmp_path / "missing.jpg")
    with fl.Loader(fl.Files(paths), transform=SMALL, output="numpy") as loader:
        iterator = iter(loader)
        next(iterator)
        with pytest.raises(FileNotFoundError, match="missing"):
            next(iterator)
        assert loader.state_dict()["position"] == 2
        assert len(iterator) == 2
        assert [batch.index.tolist() for batch in iterator] == [[2], [3]]


class OddError(Exception):
    pass


def fail_oddly(data: memoryview) -> tuple[int, int, bytes]:
    raise OddError("not today", bytes(data[:2]))


def test_exceptions_of_the_pillow_step_arrive(
    bmps: fl.Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("feedline.loader.decode_fallback", lambda: fail_oddly)
    with fl.Loader(bmps, transform=SMALL, output="numpy") as loader:
        iterator = iter(loader)
        for number in range(2):
            with pytest.raises(OddError) as caught:
                next(iterator)
            assert caught.value.args == ("not today", b"BM")
            assert caught.traceback[-1].name == "fail_oddly"
            assert f"{number}.bmp" in told(caught.value)


def test_without_pillow_other_formats_are_errors(
    bmps: fl.Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("feedline.loader.decode_fallback", lambda: None)
    with (
        fl.Loader(bmps, transform=SMALL, output="numpy") as loader,
        pytest.raises(fl.DecodeError, match=r"0\.bmp"),
    ):
        next(iter(loader))


def test_pillow_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pillow_step.decode_fallback() is pillow_step.decode
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert pillow_step.decode_fallback() is None


# Time


def test_timeout_does_not_lose_the_batch(gate: Gate, bmps: fl.Files) -> None:
    with fl.Loader(
        bmps, batch_size=4, transform=SMALL, output="numpy", timeout=0.05, num_threads=1
    ) as loader:
        iterator = iter(loader)
        for _ in range(2):
            with pytest.raises(TimeoutError, match=r"timeout=0\.05"):
                next(iterator)
        assert loader.state_dict()["position"] == 0
        gate.is_open.set()
        labels: list[int] = []
        while len(labels) < 8:
            try:
                labels += next(iterator).label.tolist()
            except TimeoutError:
                continue  # a slow machine
        assert labels == list(range(8))
        assert next(iterator, None) is None


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(),
    reason="signals need the main thread",
)
def test_interrupt_does_not_lose_the_batch(gate: Gate, bmps: fl.Files) -> None:
    with fl.Loader(bmps, batch_size=8, transform=SMALL, output="numpy", num_threads=1) as loader:
        iterator = iter(loader)

        def interrupt() -> None:
            assert gate.entered.wait(60)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            next(iterator)
        thread.join()
        gate.is_open.set()
        assert next(iterator).label.tolist() == list(range(8))


# The next epoch's run


def fetched(loader: fl.Loader) -> int:
    return int(loader.stats().stages["fetch"]["items"])


def wait_for(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(2000):
        if condition():
            return
        pause.wait(0.005)
    pytest.fail("did not happen")


def test_the_next_epoch_is_fed_before_it_is_asked_for(folder: Path) -> None:
    with loader_of(folder, batch_size=COUNT, prefetch_batches=2) as loader:
        iterator = iter(loader)
        next(iterator)
        assert next(iterator, None) is None
        wait_for(lambda: fetched(loader) == 2 * COUNT)
        next(iter(loader))
        assert loader.epoch == 1


def test_a_run_that_was_fed_in_vain_is_dropped(folder: Path) -> None:
    with loader_of(folder, shuffle=True) as loader:
        epochs = [[batch.index.tolist() for batch in loader] for _ in range(6)]
    with loader_of(folder, shuffle=True) as loader:
        list(loader)
        loader.set_epoch(5)
        assert [batch.index.tolist() for batch in loader] == epochs[5]
        loader.load_state_dict(loader.state_dict() | {"epoch": 2})
        assert [batch.index.tolist() for batch in loader] == epochs[2]
        loader.set_epoch(3)  # the one that is being fed
        assert [batch.index.tolist() for batch in loader] == epochs[3]


# Copies


@pytest.mark.parametrize(
    "twin_of", [copy.deepcopy, copy.copy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_are_made_from_the_description(folder: Path, twin_of: Any) -> None:
    with loader_of(folder, shuffle=True, seed=3, num_threads=2) as loader:
        first = [batch.index.tolist() for batch in loader]
        with twin_of(loader) as twin:
            assert (twin.seed, twin.num_threads, twin.epoch) == (3, 2, 0)
            assert [batch.index.tolist() for batch in twin] == first
        assert len(list(loader)) == 6  # its engine is its own


def test_iterators_cannot_be_pickled(folder: Path) -> None:
    with loader_of(folder) as loader:
        iterator = iter(loader)
        for copier in (pickle.dumps, copy.copy):
            with pytest.raises(TypeError, match="pickle the Loader"):
                copier(iterator)


# Pinned memory


def test_pin_memory_without_a_device_warns_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinned, "allocator", lambda: (None, "torch finds no accelerator"))
    with loader_of(folder, pin_memory=True) as loader:
        with pytest.warns(UserWarning, match="no accelerator: .* pageable memory") as caught:
            iterator = iter(loader)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert len(list(iterator)) == 6
        assert len(list(loader)) == 6


class Block:
    """A block of memory as torch would give it."""

    def __init__(self, size: int) -> None:
        self.memory = np.zeros(size + 4096, np.uint8)
        self.offset = -self.memory.ctypes.data % 4096
        self.nbytes = size

    def data_ptr(self) -> int:
        return int(self.memory.ctypes.data) + self.offset


def test_pinned_blocks_come_from_the_allocator(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[weakref.ref[Block]] = []

    def allocate(size: int) -> Block:
        block = Block(size)
        made.append(weakref.ref(block))
        return block

    monkeypatch.setattr(pinned, "allocator", lambda: (allocate, "blocks of the test"))
    with loader_of(folder) as loader:
        expected = [batch.image for batch in loader]
    with loader_of(folder, pin_memory=True) as loader:
        for batch, image in zip(loader, expected, strict=True):
            assert (batch.image == image).all()
    assert len(made) >= 6
    del batch
    with loader_of(folder) as loader:
        next(iter(loader))  # objects are dropped by the next call that can
    assert not [block for block in made if block() is not None]
