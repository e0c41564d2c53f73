# SPDX-License-Identifier: MIT
"""The Python step: what Pillow decodes, what it raises, and its threads."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine_support import (
    Threads,
    decode_with_pillow,
    encode,
    engine_of_bmps,
    join_all,
    make_engine,
    noise,
    start_run,
    take_all,
)


def test_pillow_decodes_what_the_core_does_not(tmp_path: Path) -> None:
    engine, threads = engine_of_bmps(tmp_path, decode_with_pillow, 9)
    images = np.concatenate([raw.values[0].numpy() for raw in take_all(start_run(engine))])
    for number, image in enumerate(images):
        expected = noise(number).resize((6, 8), Image.Resampling.BILINEAR)
        np.testing.assert_array_equal(image, np.asarray(expected).transpose(2, 0, 1))
    assert 1 <= len(threads.made) <= 2
    assert engine.stats()["stages"]["python"]["items"] == 9
    assert engine.close() == 0
    join_all(threads)


class SpecialError(Exception):
    def __init__(self, detail: int) -> None:
        super().__init__("special")
        self.detail = detail


def test_an_exception_of_the_step_is_raised_itself(tmp_path: Path) -> None:
    made = SpecialError(7)

    def decode(data: memoryview) -> tuple[int, int, bytes]:
        if bytes(data) == encode(noise(2), "BMP"):
            raise made
        return decode_with_pillow(data)

    engine, threads = engine_of_bmps(tmp_path, decode, batch_size=1)
    run = start_run(engine)
    assert [run.next(0.0).number for _ in range(2)] == [0, 1]
    with pytest.raises(SpecialError) as caught:
        run.next(0.0)
    assert caught.value is made
    assert made.__notes__ == [f"while loading sample 2: {str(tmp_path / '0002.bmp')!r}"]
    assert any(entry.name == "decode" for entry in caught.traceback)
    assert run.next(0.0).number == 3
    engine.close()
    join_all(threads)


def test_exceptions_nobody_asks_for_are_dropped(tmp_path: Path) -> None:
    class Fault(Exception):
        pass

    alive: weakref.WeakSet[Fault] = weakref.WeakSet()

    def decode(data: memoryview) -> tuple[int, int, bytes]:
        fault = Fault()
        alive.add(fault)
        raise fault

    engine, threads = engine_of_bmps(tmp_path, decode, 4)  # one batch: one is reported
    run = start_run(engine)
    with pytest.raises(Fault):
        run.next(0.0)
    run.cancel()
    del run
    engine.close()
    join_all(threads)
    del engine
    make_engine([tmp_path / "0000.bmp"]).close()  # drains what native threads let go
    gc.collect()
    assert not alive


@pytest.mark.parametrize(
    ("returned", "error", "text"),
    [
        (None, TypeError, r"\(width, height, bytes\)"),
        ((1, 1), TypeError, r"\(width, height, bytes\)"),
        ((1, 1, "pixels"), TypeError, r"\(width, height, bytes\)"),
        ((1, 1, b"123"), ValueError, "3 bytes for 1 x 1 pixels"),
        ((0, 5, b""), ValueError, "0 x 5"),
        ((-1, -1, b"1234"), ValueError, "-1 x -1"),
        ((1 << 30, 1 << 30, b"1234"), ValueError, "4 bytes for"),
    ],
)
def test_what_a_step_must_return(
    tmp_path: Path, returned: Any, error: type[Exception], text: str
) -> None:
    engine, threads = engine_of_bmps(tmp_path, lambda data: returned)
    with pytest.raises(error, match=text):
        start_run(engine).next(0.0)
    engine.close()
    join_all(threads)


def test_the_bytes_are_lent_for_the_call(tmp_path: Path) -> None:
    kept: list[tuple[memoryview, memoryview]] = []

    def decode(data: memoryview) -> tuple[int, int, bytes]:
        assert data.readonly
        kept.append((data, data[:4]))
        return decode_with_pillow(data)

    engine, threads = engine_of_bmps(tmp_path, decode, 1)
    raw = start_run(engine).next(0.0)
    engine.close()
    join_all(threads)
    del engine, raw
    whole, part = kept[0]
    # The view is released after the call; who kept a part of it keeps the bytes alive.
    with pytest.raises(ValueError, match="released"):
        bytes(whole)
    assert bytes(part)[:2] == b"BM"


def test_a_thread_that_does_not_start(tmp_path: Path) -> None:
    threads, failures = Threads(), [RuntimeError("can't start new thread")]

    def start(target: Callable[[], None]) -> None:
        if failures:
            raise failures.pop()
        threads(target)

    engine, _ = engine_of_bmps(tmp_path, decode_with_pillow, start_python_thread=start)
    run = start_run(engine)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        run.next(0.0)
    assert run.next(0.0).number == 0  # no batch was lost
    engine.close()
    join_all(threads)
