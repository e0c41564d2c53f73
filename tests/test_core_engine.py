# SPDX-License-Identifier: MIT
"""Engine and Run: delivery, waiting, errors, foreign memory, close and fork."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import pickle
import signal
import threading
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine_support import (
    WAIT_S,
    Gate,
    Threads,
    batches_out,
    decode_with_pillow,
    encode,
    engine_of_bmps,
    join_all,
    make_engine,
    noise,
    start_run,
    take_all,
    write_pictures,
)
from feedline import _core

# ---- Delivery


def test_an_epoch(tmp_path: Path) -> None:
    engine = make_engine(write_pictures(tmp_path, 10))
    run = start_run(engine)
    assert (run.batches, run.delivered, run.position, run.epoch) == (3, 0, 0, 0)
    assert engine.stats()["stages"]["compute"]["threads"] == 0  # nothing starts before next()
    batches = take_all(run)
    assert [batch.number for batch in batches] == [0, 1, 2]
    assert [batch.index.tolist() for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [len(batch.values[1]) for batch in batches] == [4, 4, 2]
    assert batches[2].values[1].numpy().tolist() == [16, 18]
    assert (run.delivered, run.position, run.is_admitted) == (3, 10, True)
    assert [run.position_after(number) for number in range(3)] == [4, 8, 10]
    for number in (-1, 3):
        with pytest.raises(ValueError, match="batches 0 to 2"):
            run.position_after(number)
    for _ in range(2):
        with pytest.raises(StopIteration):
            run.next(0.0)
    stats = engine.stats()
    assert (stats["batches_delivered"], stats["samples_delivered"]) == (3, 10)
    assert list(stats["stages"]) == ["plan", "fetch", "compute", "python", "copy"]
    assert stats["stages"]["fetch"]["items"] == 10
    assert stats["pool"]["out_slabs"] >= 3
    assert engine.close() == 0


def test_threads_share_a_run(tmp_path: Path) -> None:
    engine = make_engine(write_pictures(tmp_path, 40), batch_size=1)
    run = start_run(engine)
    taken: list[list[int]] = [[] for _ in range(4)]

    def consume(numbers: list[int]) -> None:
        numbers.extend(batch.number for batch in take_all(run))

    threads = [threading.Thread(target=consume, args=(numbers,)) for numbers in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for numbers in taken for number in numbers) == list(range(40))
    assert all(numbers == sorted(numbers) for numbers in taken)
    engine.close()


def test_a_successor_is_fed_at_the_end(tmp_path: Path) -> None:
    engine = make_engine(write_pictures(tmp_path, 6), batch_size=2)
    first, second = start_run(engine), start_run(engine, epoch=1)
    first.prestart(second)
    take_all(first)
    assert [batch.index.tolist() for batch in take_all(second)] == [[0, 1], [2, 3], [4, 5]]
    assert engine.stats()["batches_delivered"] == 6
    for wrong in (first, None, engine):
        with pytest.raises(TypeError, match="another Run"):
            first.prestart(wrong)
    engine.close()


def test_the_same_rows_as_apply_ops(tmp_path: Path) -> None:
    paths = write_pictures(tmp_path, 6)
    ops = (
        ("random_resized_crop", (16, 12, 0.1, 1.0, 0.75, 4 / 3, 2, 0)),
        ("random_horizontal_flip", (0.5,)),
    )
    engine = make_engine(paths, ops=ops, batch_size=6)
    raw = start_run(engine, shuffle=True, seed=5, epoch=3).next(0.0)
    images = raw.values[0].numpy()
    for row, index in enumerate(raw.index):
        picture = Image.open(paths[index]).convert("RGB")
        pixels = picture.convert("RGBX").tobytes()
        expected, box = _core.apply_ops(
            ops, "NCHW", picture.width, picture.height, pixels, 5, 3, row
        )
        np.testing.assert_array_equal(images[row], expected)
        x, y, width, height = box
        assert 0 <= x < x + width <= 40
        assert 0 <= y < y + height <= 30
    engine.close()


# ---- Errors


def damaged(tmp_path: Path, what: Callable[[Path], None]) -> tuple[list[Path], _core.Engine]:
    """Ten pictures, of which number 5 is what `what` makes of it."""
    paths = write_pictures(tmp_path, 10)
    what(paths[5])
    return paths, make_engine(paths, batch_size=2)


def test_a_bad_file_is_its_batchs_error(tmp_path: Path) -> None:
    paths, engine = damaged(tmp_path, lambda path: path.write_bytes(path.read_bytes()[:500]))
    run = start_run(engine)
    assert [run.next(0.0).number for _ in range(2)] == [0, 1]
    with pytest.raises(_core.DecodeError) as caught:
        run.next(0.0)
    error = caught.value
    assert isinstance(error, OSError)
    assert isinstance(error, _core.CoreError)
    assert str(error).startswith(f"cannot decode {str(paths[5])!r}: ")
    assert str(error).endswith(f"{error.reason} (sample 5)")
    assert (error.filename, error.index) == (str(paths[5]), 5)
    assert (run.delivered, run.position) == (3, 6)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy)) == (_core.DecodeError, str(error))
    assert (copy.filename, copy.index, copy.reason) == (str(paths[5]), 5, error.reason)
    assert [batch.number for batch in take_all(run)] == [3, 4]
    engine.close()


def test_a_missing_file(tmp_path: Path) -> None:
    paths, engine = damaged(tmp_path, Path.unlink)
    run = start_run(engine, start=4)
    with pytest.raises(FileNotFoundError) as caught:
        run.next(0.0)
    error: Any = caught.value
    assert (error.errno, error.filename, error.index) == (errno.ENOENT, str(paths[5]), 5)
    assert str(paths[5]) in str(error)
    assert "(sample 5)" in str(error)
    assert error.reason
    engine.close()


def test_a_picture_beyond_the_limit(tmp_path: Path) -> None:
    paths = write_pictures(tmp_path, 2)
    paths[1].write_bytes(encode(noise(1, 50, 50)))
    engine = make_engine(paths, batch_size=1, max_pixels=2000)
    run = start_run(engine)
    run.next(0.0)
    with pytest.raises(_core.LimitError, match=r"2000") as caught:
        run.next(0.0)
    assert isinstance(caught.value, ValueError)
    assert (caught.value.filename, caught.value.index) == (str(paths[1]), 1)
    assert str(paths[1]) in str(caught.value)
    engine.close()


def test_odd_bytes_and_long_paths_are_named_whole(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(4):
        folder /= "d" * 200
        folder.mkdir()
    path = folder / os.fsdecode(b"caf\xe9.jpg")
    engine = make_engine([path])
    with pytest.raises(FileNotFoundError) as caught:
        start_run(engine).next(0.0)
    assert len(str(path)) > 512
    assert caught.value.filename == str(path)
    assert os.fsencode(caught.value.filename) == os.fsencode(path)
    engine.close()


def test_without_pillow_the_way_out_is_named(tmp_path: Path) -> None:
    paths = write_pictures(tmp_path, 1, "BMP")
    engine = make_engine(paths)
    with pytest.raises(_core.DecodeError, match="pip install pillow") as caught:
        start_run(engine).next(0.0)
    assert caught.value.filename == str(paths[0])
    engine.close()


@pytest.mark.parametrize("attribute", ["filename", "index", "reason"])
def test_attributes_of_exceptions_made_in_python(attribute: str) -> None:
    expected = {"filename": None, "index": -1, "reason": ""}[attribute]
    assert getattr(_core.DecodeError("text"), attribute) == expected
    assert getattr(_core.LimitError("text"), attribute) == expected
    assert str(_core.DecodeError("text")) == "text"


# ---- Waiting


def test_a_timeout_loses_nothing(tmp_path: Path) -> None:
    gate = Gate()
    engine, threads = engine_of_bmps(tmp_path, gate)
    run = start_run(engine)
    for _ in range(2):
        with pytest.raises(TimeoutError, match=r"batch 0 .* timeout=0.02 seconds"):
            run.next(0.02)
    assert run.delivered == 0
    gate.open.set()
    assert run.next(WAIT_S).number == 0
    engine.close()
    join_all(threads)


@pytest.mark.parametrize("timeout", [-1.0, float("nan"), float("-inf")])
def test_timeouts_that_cannot_be(tmp_path: Path, timeout: float) -> None:
    engine = make_engine(write_pictures(tmp_path, 1))
    run = start_run(engine)
    with pytest.raises(ValueError, match="timeout"):
        run.next(timeout)
    assert run.next(float("inf")).number == 0
    engine.close()


def test_ctrl_c_ends_the_wait(tmp_path: Path) -> None:
    gate = Gate()

    def decode(data: memoryview) -> tuple[int, int, bytes]:
        if not gate.entered.is_set():
            os.kill(os.getpid(), signal.SIGINT)
        return gate(data)

    engine, threads = engine_of_bmps(tmp_path, decode)
    run = start_run(engine)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run.next(0.0)
    finally:
        signal.signal(signal.SIGINT, previous)
    gate.open.set()
    assert run.next(WAIT_S).number == 0
    engine.close()
    join_all(threads)


def test_a_signal_handler_may_close(tmp_path: Path) -> None:
    gate = Gate()

    def decode(data: memoryview) -> tuple[int, int, bytes]:
        if not gate.entered.is_set():
            os.kill(os.getpid(), signal.SIGUSR1)
        return gate(data)

    def handle(*_: Any) -> None:
        gate.open.set()
        engine.close()

    engine, threads = engine_of_bmps(tmp_path, decode)
    previous = signal.signal(signal.SIGUSR1, handle)
    try:
        with pytest.raises(_core.ClosedError):
            start_run(engine).next(0.0)
    finally:
        signal.signal(signal.SIGUSR1, previous)
    join_all(threads)


# ---- Close, cancel, garbage


def test_close_from_another_thread(tmp_path: Path) -> None:
    gate = Gate()
    engine, threads = engine_of_bmps(tmp_path, gate)
    run = start_run(engine)

    def close() -> None:
        assert gate.entered.wait(WAIT_S)
        engine.close()

    closer = threading.Thread(target=close)
    closer.start()
    with pytest.raises(_core.ClosedError, match="closed"):
        run.next(0.0)
    gate.open.set()
    closer.join()
    join_all(threads)
    assert engine.is_closed
    assert engine.close() == 0
    with pytest.raises(_core.ClosedError):
        run.next(0.0)
    with pytest.raises(_core.ClosedError):
        start_run(engine)


def test_close_in_a_python_step(tmp_path: Path) -> None:
    def decode(data: memoryview) -> tuple[int, int, bytes]:
        assert engine.close() == 0
        return decode_with_pillow(data)

    engine, threads = engine_of_bmps(tmp_path, decode)
    with pytest.raises(_core.ClosedError):
        start_run(engine).next(0.0)
    join_all(threads)
    assert engine.close() == 0


def test_cancel(tmp_path: Path) -> None:
    engine = make_engine(write_pictures(tmp_path, 10))
    run, other = start_run(engine), start_run(engine)
    run.next(0.0)
    run.cancel()
    run.cancel()
    with pytest.raises(_core.ClosedError):
        run.next(0.0)
    assert run.delivered == 1
    assert len(take_all(other)) == 3
    engine.close()


def test_engines_in_cycles_are_collected(tmp_path: Path) -> None:
    class Owner:
        def __init__(self) -> None:
            self.threads = Threads()
            paths = write_pictures(tmp_path, 4, "BMP")
            self.engine = make_engine(
                paths, decode_fallback=self.decode, start_python_thread=self.start
            )
            self.run = start_run(self.engine)

        def start(self, target: Callable[[], None]) -> None:
            self.threads(target)

        def decode(self, data: memoryview) -> tuple[int, int, bytes]:
            return decode_with_pillow(data)

    # With a thread running, its stack holds the owner: it has ended only after close().
    owner = Owner()
    assert owner.run.next(0.0).number == 0
    owner.engine.close()
    join_all(owner.threads)
    idle = Owner()
    gone = weakref.ref(owner), weakref.ref(idle)
    del owner, idle
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


def test_dropped_in_mid_epoch(tmp_path: Path) -> None:
    for _ in range(20):
        engine = make_engine(write_pictures(tmp_path, 10), batch_size=1)
        run = start_run(engine)
        raw = run.next(0.0)
        del engine, run
        assert raw.index.tolist() == [0]


# ---- Memory that Python owns


class Block:
    """A piece of memory at an address that suits."""

    alive = 0

    def __init__(self, size: int, nbytes: int | None = None, shift: int = 0) -> None:
        self.memory = ctypes.create_string_buffer(size + 4096)
        self.nbytes = size if nbytes is None else nbytes
        self.address = (ctypes.addressof(self.memory) + 4095) // 4096 * 4096 + shift
        Block.alive += 1

    def __del__(self) -> None:
        Block.alive -= 1

    def data_ptr(self) -> int:
        return self.address


def test_allocate_is_called_for_each_batch(tmp_path: Path) -> None:
    threads: set[int] = set()
    sizes: list[int] = []

    def allocate(size: int) -> Block:
        threads.add(threading.get_ident())
        sizes.append(size)
        return Block(size)

    paths = write_pictures(tmp_path, 12)
    engine = make_engine(paths, allocate=allocate, extra=[("raw", "file", "bytes", (), "NCHW")])
    batches = take_all(start_run(engine))
    assert len(sizes) == 6  # three batches, and the bytes of each
    assert threads == {threading.get_ident()}
    for batch in batches:
        for index, raw in zip(batch.index, batch.values[2], strict=True):
            assert bytes(raw) == paths[index].read_bytes()
    assert Block.alive == 6
    engine.close()
    del engine
    array = np.from_dlpack(batches[0].values[0])
    del batches, batch, raw
    make_engine(paths).close()  # drains what was let go
    assert Block.alive == 1
    del array
    make_engine(paths).close()
    assert Block.alive == 0


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda size: Block(size, nbytes=16), ValueError, r"allocate\(\d+\) must return"),
        (lambda size: Block(size, shift=8), ValueError, "at a multiple of 64"),
        (lambda size: object(), AttributeError, "nbytes"),
        (lambda size: {}[size], KeyError, r"\d+"),
    ],
)
def test_allocate_that_fails(
    tmp_path: Path, make: Callable[[int], Any], error: type[Exception], text: str
) -> None:
    makers = [make]

    def allocate(size: int) -> Any:
        return makers.pop()(size) if makers else Block(size)

    engine = make_engine(write_pictures(tmp_path, 4), allocate=allocate)
    run = start_run(engine)
    with pytest.raises(error, match=text):
        run.next(0.0)
    assert run.next(0.0).number == 0  # no batch was lost
    engine.close()


# ---- Fork


def test_a_child_does_not_touch_what_it_inherited(tmp_path: Path) -> None:
    paths = write_pictures(tmp_path, 12)
    engine = make_engine(paths, batch_size=2)
    run = start_run(engine)
    raw = run.next(0.0)
    array = raw.values[0].numpy()
    sum_before = int(array.sum())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: threads and fork
        child = os.fork()
    if child == 0:
        code = 1
        try:
            assert engine.is_closed
            for call in (lambda: run.next(0.0), lambda: start_run(engine)):
                with pytest.raises(_core.ClosedError, match=r"fork\(\)"):
                    call()
            assert int(array.sum()) == sum_before
            assert engine.close() == 0
            run.cancel()
            del raw, array, run, engine
            gc.collect()
            fresh = make_engine(paths, batch_size=2)
            assert len(take_all(start_run(fresh))) == 6
            assert fresh.close() == 0
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert int(array.sum()) == sum_before
    assert len(take_all(run)) == 5
    assert engine.close() == 0
    del raw
    assert batches_out(engine) == 1
    del array
    assert batches_out(engine) == 0
