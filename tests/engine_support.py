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
