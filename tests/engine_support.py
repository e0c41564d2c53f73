# SPDX-License-Identifier: MIT
"""Pictures, engines and runs for the tests of feedline._core."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from feedline import _core

UINT8, INT64, FLOAT16, BFLOAT16, FLOAT32 = range(5)  # as data/dtype.h numbers them
WAIT_S = 60.0  # for what must happen; a test that needs it has failed

Op = tuple[str, tuple[float, ...]]


def resize(height: int, width: int) -> Op:
    return "resize", (height, width, -1, 2, 0)  # bilinear, the passes of Pillow 13


def to_dtype(dtype: int) -> Op:
    return "to_dtype", (dtype, 1)


def noise(seed: int, width: int = 40, height: int = 30) -> Image.Image:
    """A picture that no other seed makes."""
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    return Image.fromarray(pixels)


def encode(image: Image.Image, kind: str = "JPEG") -> bytes:
    target = io.BytesIO()
    image.save(target, kind)
    return target.getvalue()


def write_pictures(folder: Path, count: int, kind: str = "JPEG") -> list[Path]:
    """`count` pictures of 40 x 30 pixels."""
    paths = []
    for number in range(count):
        path = folder / f"{number:04}.{kind.lower()}"
        path.write_bytes(encode(noise(number), kind))
        paths.append(path)
    return paths


class Threads:
    """Starts Python threads for an engine, and knows them."""

    def __init__(self) -> None:
        self.made: list[threading.Thread] = []

    def __call__(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target)
        thread.start()
        self.made.append(thread)


def make_engine(
    paths: Sequence[Path],
    *,
    ops: Sequence[Op] = (resize(8, 6),),
    layout: str = "NCHW",
    extra: Sequence[tuple[Any, ...]] = (),
    **options: Any,
) -> _core.Engine:
    """Fields "image" and "label" (twice the sample's number), and `extra` ones."""
    labels = np.arange(len(paths), dtype=np.int64) * 2
    catalog = _core.Catalog.from_paths([bytes(path) for path in paths], labels)
    arguments: dict[str, Any] = {
        "fields": [
            ("image", "file", "image", tuple(ops), layout),
            ("label", "label", "int64", (), "NCHW"),
            *extra,
        ],
        "batch_size": 4,
        "num_threads": 2,
        "io_threads": 2,
        "prefetch_batches": 2,
        "memory_limit": 1 << 28,
        "in_order": True,
        "output": "dlpack",
        "max_pixels": 10_000_000,
    }
    return _core.Engine(catalog, **(arguments | options))


def start_run(engine: _core.Engine, **options: Any) -> _core.Run:
    arguments: dict[str, Any] = {
        "shuffle": False,
        "seed": 0,
        "epoch": 0,
        "start": 0,
        "rank": 0,
        "world_size": 1,
        "uneven": "pad",
        "drop_last": False,
    }
    return engine.start_run(**(arguments | options))


def batches_out(engine: _core.Engine) -> int:
    """Slabs that batches and exported arrays hold, once no native thread works on one."""
    return int(engine.stats()["pool"]["out_slabs"])


def take_all(run: _core.Run) -> list[_core.RawBatch]:
    batches = []
    while True:
        try:
            batches.append(run.next(0.0))
        except StopIteration:
            return batches


def decode_with_pillow(data: memoryview) -> tuple[int, int, bytes]:
    image = Image.open(io.BytesIO(data)).convert("RGB")
    return image.width, image.height, image.convert("RGBX").tobytes()


def first_values(engine: _core.Engine) -> tuple[Any, ...]:
    """The only batch of the engine's pictures. Nothing but its values holds its memory: the
    engine is closed, so that no thread of it does."""
    run = start_run(engine)
    values = run.next(0.0).values
    assert not take_all(run)
    assert engine.close() == 0
    return values


def expected_pixels(paths: list[Path]) -> np.ndarray:
    """(4, 3, 8, 6): what Pillow makes of the pictures."""
    rows = [
        np.asarray(Image.open(path).resize((6, 8), Image.Resampling.BILINEAR)) for path in paths
    ]
    return np.stack(rows).transpose(0, 3, 1, 2)


class Gate:
    """A Pillow step that says when it was entered and waits until it may go on."""

    def __init__(self) -> None:
        self.entered, self.open = threading.Event(), threading.Event()

    def __call__(self, data: memoryview) -> tuple[int, int, bytes]:
        self.entered.set()
        assert self.open.wait(WAIT_S)
        return decode_with_pillow(data)


def engine_of_bmps(
    tmp_path: Path, decode: Callable[[memoryview], Any], count: int = 4, **options: Any
) -> tuple[_core.Engine, Threads]:
    threads = Threads()
    engine = make_engine(
        write_pictures(tmp_path, count, "BMP"),
        decode_fallback=decode,
        **({"start_python_thread": threads} | options),
    )
    return engine, threads


def join_all(threads: Threads) -> None:
    for thread in threads.made:
        thread.join(WAIT_S)
        assert not thread.is_alive()
