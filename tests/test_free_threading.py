# SPDX-License-Identifier: MIT
"""Objects that many threads use at once. With a GIL the threads take turns in between calls;
without one they really meet."""

import gc
import itertools
import pickle
import random
import sys
import sysconfig
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import feedline as fl
from engine_support import Threads, batches_out, make_engine, noise, resize, start_run
from feedline import _core
from feedline import transforms as T
from picture_files import COUNT, pixels

THREADS = 4
SMALL = [T.Resize((8, 9))]


def together(*works: Callable[[], object], threads: int = THREADS) -> None:
    """Each of `works` on `threads` threads, which begin at the same moment. Raises what the first
    one raised; none may hang."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(works) * threads)

    def run(work: Callable[[], object]) -> None:
        try:
            barrier.wait(60)
            work()
        except BaseException as error:
            errors.append(error)

    made = [threading.Thread(target=run, args=(work,)) for work in works for _ in range(threads)]
    for thread in made:
        thread.start()
    for thread in made:
        thread.join(120)
    assert not [thread for thread in made if thread.is_alive()]
    if errors:
        raise errors[0]


def loader_of(folder: Path, **options: Any) -> fl.Loader:
    settings = {"batch_size": 2, "transform": SMALL, "output": "numpy", "num_threads": 2}
    return fl.Loader(fl.ImageFolder(folder), **settings | options)


@pytest.fixture(scope="module")
def images(folder: Path) -> dict[int, np.ndarray]:
    """What one thread gets for each sample."""
    with loader_of(folder, batch_size=1) as loader:
        return {int(batch.index[0]): batch.image[0].copy() for batch in loader}


@pytest.fixture(scope="module")
def pngs(tmp_path_factory: pytest.TempPathFactory) -> fl.Files:
    """Files that need the Python step, and so Python threads beside the ones of the test."""
    folder = tmp_path_factory.mktemp("pngs")
    paths = [folder / f"{number}.png" for number in range(24)]
    for number, path in enumerate(paths):
        Image.fromarray(pixels(number, 20, 16)).save(path)
    return fl.Files(paths, range(len(paths)))


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this interpreter has a GIL"
)
def test_importing_feedline_leaves_the_gil_off() -> None:
    assert not sys._is_gil_enabled()


# One iterator


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("shuffle", [True, False])
def test_each_batch_goes_to_one_thread(
    folder: Path, images: dict[int, np.ndarray], in_order: bool, shuffle: bool
) -> None:
    with loader_of(folder, shuffle=shuffle, in_order=in_order) as loader:
        for epoch in range(5):
            iterator, got = iter(loader), []

            def consume(iterator: Any = iterator, got: list[int] = got) -> None:
                for batch in iterator:
                    for index, image in zip(batch.index, batch.image, strict=True):
                        assert (image == images[int(index)]).all()
                        got.append(int(index))

            together(consume)
            assert sorted(got) == list(range(COUNT))
            state = loader.state_dict()
            assert (state["epoch"], state["position"]) == (epoch + 1, 0)
            assert len(iterator) == 0


def test_threads_share_an_iterator_over_python_steps(pngs: fl.Files) -> None:
    with fl.Loader(pngs, batch_size=3, output="numpy", num_threads=3) as loader:
        for _ in range(3):
            iterator, got = iter(loader), []

            def consume(iterator: Any = iterator, got: list[int] = got) -> None:
                for batch in iterator:
                    for number, image in zip(batch.label, batch.image, strict=True):
                        expected = pixels(int(number), 20, 16).transpose(2, 0, 1)
                        assert (image == expected).all()
                        got.append(int(number))

            together(consume)
            assert sorted(got) == list(range(len(pngs)))


def test_the_count_for_a_forked_child_is_the_latest(folder: Path) -> None:
    with loader_of(folder, batch_size=1) as loader:
        for _ in range(10):
            iterator = iter(loader)
            together(lambda iterator=iterator: [None for _ in iterator])
            assert iterator._record.received == COUNT


class Block:
    """A block of memory as an allocator in Python would give it."""

    def __init__(self, size: int) -> None:
        self.memory = np.zeros(size + 4096, np.uint8)
        self.offset = -self.memory.ctypes.data % 4096
        self.nbytes = size

    def data_ptr(self) -> int:
        return int(self.memory.ctypes.data) + self.offset


def test_blocks_that_python_made_are_dropped_once(folder: Path) -> None:
    made: list[weakref.ref[Block]] = []

    def allocate(size: int) -> Block:
        block = Block(size)
        made.append(weakref.ref(block))
        return block

    paths = [Path(path) for path, _ in fl.ImageFolder(folder).samples]
    engine = make_engine(paths, allocate=allocate, batch_size=1)
    run = start_run(engine)

    def consume(run: _core.Run = run) -> None:
        kept = []
        while True:
            try:
                kept.append(run.next(0.0).values[0])
            except StopIteration:
                return
            if len(kept) == 3:
                random.shuffle(kept)
                kept.clear()

    together(consume)
    del run, consume
    engine.close()
    assert len(made) >= COUNT
    assert not [block for block in made if block() is not None]


# One loader


def test_each_thread_iterates_while_others_ask_and_set(folder: Path) -> None:
    epochs = 12
    with loader_of(folder, shuffle=True) as loader:
        known = {
            tuple(int(index) for batch in loader for index in batch.index): epoch
            for epoch in range(3 * epochs)
        }
        assert len(known) == 3 * epochs
    is_over = threading.Event()
    seen: list[int] = []
    states: list[dict[str, Any]] = []

    def consume() -> None:
        for _ in range(epochs // THREADS):
            order = tuple(int(index) for batch in loader for index in batch.index)
            seen.append(known[order])  # a whole epoch, of whatever number

    def ask() -> None:
        while not is_over.is_set():
            states.append(loader.state_dict())
            stats = loader.stats()
            assert stats.batches in (0, len(loader))  # 0: before the first iter()
            assert 0 <= stats.delivered <= stats.batches
            assert loader.epoch < 3 * epochs
            str(loader.explain())
            repr(loader)
            pickle.dumps(loader)

    def set_epochs() -> None:
        for epoch in itertools.count():
            if is_over.is_set():
                return
            loader.set_epoch(epoch % epochs)
            loader.load_state_dict(loader.state_dict() | {"epoch": epoch % epochs, "position": 0})

    def consume_all() -> None:
        try:
            together(consume)
        finally:
            is_over.set()

    with loader_of(folder, shuffle=True) as loader:
        together(consume_all, ask, set_epochs, threads=1)
    assert len(seen) == epochs // THREADS * THREADS
    with loader_of(folder, shuffle=True) as other:
        for state in states:
            other.load_state_dict(state)


def test_iterators_come_and_go(folder: Path) -> None:
    with loader_of(folder, shuffle=True) as loader:

        def begin_and_break() -> None:
            for number in range(6):
                for batch in loader:
                    assert batch.image.any()
                    break
                if number == 3:
                    gc.collect()

        together(begin_and_break)
        assert sorted(int(index) for batch in loader for index in batch.index) == [*range(COUNT)]


# One batch


def export(tensor: _core.Tensor, expected: np.ndarray, random_: random.Random) -> Any:
    """One of the ways to hold a tensor's memory; its content is right."""
    way = random_.randrange(6)
    if way == 0:
        made: Any = np.from_dlpack(tensor)
    elif way == 1:
        made = tensor.numpy()
    elif way == 2:
        made = memoryview(tensor)
    elif way == 3:
        made = np.asarray(tensor)
    elif way == 4:
        return tensor.__dlpack__(max_version=(1, 0) if random_.random() < 0.5 else None)
    else:
        return weakref.ref(tensor)
    assert (np.asarray(made) == expected).all()
    assert (tensor.shape, len(tensor)) == (expected.shape, expected.shape[0])
    return made


def test_a_batch_is_exported_and_released_by_many_threads(folder: Path) -> None:
    paths = [Path(path) for path, _ in fl.ImageFolder(folder).samples]
    engine = make_engine(paths, batch_size=8)
    run = start_run(engine)
    seeds = itertools.count()
    for _ in range(2):
        raw = run.next(0.0)
        tensor = raw.values[0]
        expected = tensor.numpy().copy()
        index = raw.index.copy()

        def hold_and_release(
            raw: _core.RawBatch = raw, expected: np.ndarray = expected, index: np.ndarray = index
        ) -> None:
            random_, held = random.Random(next(seeds)), []
            for _ in range(300):
                held.append(export(raw.values[0], expected, random_))
                assert (raw.index == index).all()
                assert raw.valid.all()
                if len(held) > 20:
                    random_.shuffle(held)
                    del held[10:]

        together(hold_and_release)
        assert (tensor.numpy() == expected).all()
        del raw, tensor, hold_and_release
    run.cancel()
    del run
    engine.close()
    assert batches_out(engine) == 0


def test_the_last_of_many_exports_gives_the_memory_back(folder: Path) -> None:
    paths = [Path(path) for path, _ in fl.ImageFolder(folder).samples]
    engine = make_engine(paths, batch_size=4)
    run = start_run(engine)
    for _ in range(5):
        tensor = run.next(0.0).values[0]
        exports: list[Any] = [np.from_dlpack(tensor) for _ in range(400)]
        random.shuffle(exports)
        del tensor

        def release(exports: list[Any] = exports) -> None:
            while exports:
                try:
                    exports.pop()
                except IndexError:
                    return

        together(release)
    run.cancel()
    del run
    engine.close()
    assert batches_out(engine) == 0


def test_threads_read_one_batch_of_a_loader(folder: Path) -> None:
    with loader_of(folder, batch_size=8, output="dlpack") as loader:
        batch = next(iter(loader))
        image, keys = batch.image.numpy().copy(), list(batch.sample_keys)

        def read() -> None:
            for _ in range(30):
                assert (batch["image"].numpy() == image).all()
                assert batch.index.tolist() == list(range(8))
                assert batch.valid.all()
                assert list(batch.sample_keys) == keys
                assert loader.state_dict(after=batch)["position"] == 8
                assert type(batch)(*batch).label is batch.label

        together(read)


# The end


def test_close_against_next(folder: Path) -> None:
    for round_ in range(15):
        loader = loader_of(folder, batch_size=1, num_threads=1 + round_ % 3)
        iterator, got = iter(loader), []
        has_begun = threading.Event()

        def consume(
            iterator: Any = iterator, got: list[int] = got, has_begun: threading.Event = has_begun
        ) -> None:
            try:
                for batch in iterator:
                    has_begun.set()
                    got += batch.index.tolist()
            except fl.ClosedError:
                pass
            finally:
                has_begun.set()

        def close(loader: fl.Loader = loader, has_begun: threading.Event = has_begun) -> None:
            has_begun.wait(60)
            loader.close()

        together(consume, close, threads=2)
        assert len(set(got)) == len(got)
        with pytest.raises(fl.ClosedError):
            iter(loader)


def test_close_against_iter_and_questions(folder: Path) -> None:
    for _ in range(15):
        loader = loader_of(folder)
        next(iter(loader))

        def use(loader: fl.Loader = loader) -> None:
            for _ in range(5):
                stats, state = loader.stats(), loader.state_dict()
                assert stats.stages["fetch"]["items"] > 0
                assert state["position"] <= COUNT
                try:
                    next(iter(loader))
                except fl.ClosedError:
                    return

        together(use, loader.close, threads=2)
        assert loader.stats().batches_delivered > 0


def test_close_all_while_loaders_are_made(folder: Path) -> None:
    dataset = fl.ImageFolder(folder)

    def make() -> None:
        for _ in range(8):
            loader = fl.Loader(dataset, transform=SMALL, num_threads=1)
            try:
                next(iter(loader))
            except fl.ClosedError:
                continue

    def close() -> None:
        for _ in range(20):
            fl.close_all()

    together(make, close, threads=2)
    fl.close_all()


# Runs that follow each other


def test_a_run_gets_successors_while_it_is_read(folder: Path) -> None:
    paths = [Path(path) for path, _ in fl.ImageFolder(folder).samples]
    engine = make_engine(paths, batch_size=2)
    for epoch in range(5):
        run, numbers = start_run(engine, epoch=epoch), []

        def consume(run: _core.Run = run, numbers: list[int] = numbers) -> None:
            while True:
                try:
                    numbers.append(run.next(0.0).number)
                except StopIteration:
                    return

        def prestart(run: _core.Run = run, epoch: int = epoch) -> None:
            for _ in range(20):
                run.prestart(start_run(engine, epoch=epoch + 1))
                assert run.delivered <= run.batches
                assert run.position <= COUNT

        together(consume, prestart, threads=2)
        assert sorted(numbers) == list(range(run.batches))
        assert run.is_admitted
    del run, consume, prestart
    gc.collect()
    engine.close()
    assert batches_out(engine) == 0


def test_engines_are_made_and_collected(folder: Path, pngs: fl.Files) -> None:
    jpegs = [Path(path) for path, _ in fl.ImageFolder(folder).samples[:4]]
    others = [Path(path) for path, _ in pngs.samples[:4]]

    def decode(data: memoryview) -> tuple[int, int, bytes]:
        assert bytes(data[1:4]) == b"PNG"
        return 4, 4, bytes(64)

    def live() -> None:
        for number in range(5):
            threads = Threads()
            engine = make_engine(
                jpegs + others,
                batch_size=2,
                decode_fallback=decode,
                start_python_thread=threads,
            )
            run = start_run(engine)
            for _ in range(number):
                assert run.next(0.0).values[1].shape == (2,)
            del run
            engine.close()
            for thread in threads.made:
                thread.join()
            if number % 2:
                gc.collect()

    together(live)


# What cannot change


def test_catalogs_and_cursors_are_read_by_many(folder: Path) -> None:
    dataset = fl.ImageFolder(folder)
    samples, targets = list(dataset.samples), dataset.targets.tolist()
    cursor = _core.Cursor(
        count=1000,
        shuffle=True,
        seed=1,
        epoch=2,
        start=0,
        batch_size=7,
        rank=0,
        world_size=1,
        uneven="pad",
        drop_last=False,
    )
    rows = np.concatenate([cursor.batch(number) for number in range(cursor.batches)])
    assert sorted(rows[:, 2]) == list(range(1000))

    def read() -> None:
        for _ in range(5):
            assert list(dataset.samples) == samples
            assert dataset.targets.tolist() == targets
            assert dataset.fingerprint == fl.ImageFolder(folder).fingerprint
            mine = [cursor.batch(number) for number in range(cursor.batches)]
            assert (np.concatenate(mine) == rows).all()
            assert cursor.position(3) == 21
            assert (_core.permutation(1000, 1, 2, 0, 1000) == rows[:, 2]).all()

    together(read)


def test_functions_of_the_core(folder: Path) -> None:
    data = Path(fl.ImageFolder(folder).samples[0][0]).read_bytes()
    picture = noise(1)
    rgbx = picture.convert("RGBX").tobytes()
    ops = [resize(8, 6)]
    whole = _core.decode(data, None)
    row, box = _core.apply_ops(ops, "NCHW", *picture.size, rgbx, 0, 0, 0)

    def call() -> None:
        for _ in range(10):
            assert (_core.decode(data, None) == whole).all()
            assert (_core.decode(data, (1, 2, 9, 7)) == whole[2:9, 1:10]).all()
            mine, my_box = _core.apply_ops(ops, "NCHW", *picture.size, rgbx, 0, 0, 0)
            assert (mine == row).all()
            assert my_box == box
            assert _core.check_ops(ops, "NCHW") == ("uint8", (3, 8, 6))
            assert _core.environment()["page_size"] > 0

    together(call)
