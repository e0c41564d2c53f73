# SPDX-License-Identifier: MIT
"""Arguments of Engine and Run, and the core's functions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine_support import (
    decode_with_pillow,
    encode,
    make_engine,
    noise,
    resize,
    start_run,
    write_pictures,
)
from feedline import _core

# ---- Arguments

IMAGE = ("image", "file", "image", (resize(8, 6),), "NCHW")


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"output": "jax"}, ValueError, "'dlpack', 'numpy' or 'torch', not 'jax'"),
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"num_threads": 0}, ValueError, "num_threads"),
        ({"prefetch_batches": 0}, ValueError, "prefetch_batches"),
        ({"memory_limit": 0}, ValueError, "memory_limit"),
        ({"fields": []}, ValueError, "1 to 14 fields"),
        ({"fields": [IMAGE] * 15}, ValueError, "1 to 14 fields"),
        ({"fields": ["image"]}, TypeError, "a field is a tuple"),
        ({"fields": [("image", "file")]}, TypeError, "5 arguments"),
        ({"fields": [(*IMAGE[:1], "web", *IMAGE[2:])]}, ValueError, "'file', 'label'"),
        ({"fields": [(*IMAGE[:2], "jpeg", *IMAGE[3:])]}, ValueError, "'bytes', 'int64'"),
        ({"fields": [(*IMAGE[:4], "CHW")]}, ValueError, "'NHWC' or 'channels_last'"),
        ({"fields": [(*IMAGE[:3], (resize(8, 6),) * 17, "NCHW")]}, ValueError, "at most 16"),
        ({"fields": [(*IMAGE[:3], ("resize",), "NCHW")]}, TypeError, "an op is a tuple"),
        ({"fields": [(*IMAGE[:3], [("resize", "x")], "NCHW")]}, TypeError, "must be real"),
        ({"fields": [(*IMAGE[:3], [("blur", ())], "NCHW")]}, ValueError, "blur"),
        ({"allocate": 3}, TypeError, "allocate must be callable"),
        ({"decode_fallback": decode_with_pillow}, ValueError, "start_python_thread"),
        ({"threads": 3}, TypeError, "threads"),
    ],
)
def test_engine_arguments(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        make_engine([tmp_path / "none.jpg"], **options)


def test_missing_arguments_are_named(tmp_path: Path) -> None:
    catalog = _core.Catalog.from_paths([b"/none.jpg"], None)
    with pytest.raises(TypeError, match=r"Engine\(\) needs the keyword argument 'fields'"):
        _core.Engine(catalog)  # type: ignore[call-arg]
    engine = make_engine([tmp_path / "none.jpg"])
    with pytest.raises(TypeError, match=r"start_run\(\) needs the keyword argument 'epoch'"):
        engine.start_run(shuffle=True, seed=0)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"uneven": "wrap"}, "'pad', 'drop', 'mask'"),
        ({"seed": -1}, "seed must be from 0"),
        ({"epoch": 1 << 64}, "epoch must be from 0"),
        ({"rank": 2, "world_size": 2}, "rank"),
    ],
)
def test_run_arguments(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    engine = make_engine([tmp_path / "none.jpg"])
    with pytest.raises(ValueError, match=text):
        start_run(engine, **options)


def test_full_batches_need_their_memory(tmp_path: Path) -> None:
    paths = write_pictures(tmp_path, 3)
    with pytest.raises(ValueError, match="needs full_batches"):
        start_run(make_engine(paths, batch_size=4), uneven="mask")
    run = start_run(make_engine(paths, batch_size=4, full_batches=True), uneven="mask")
    assert run.next(0).index.tolist() == [0, 1, 2, 0]


# ---- Functions


def test_decode(tmp_path: Path) -> None:
    data = encode(noise(1))
    expected = np.asarray(Image.open(write_pictures(tmp_path, 2)[1]).convert("RGB"))
    np.testing.assert_array_equal(_core.decode(data, None), expected)
    np.testing.assert_array_equal(_core.decode(data, (3, 4, 20, 11)), expected[4:15, 3:23])
    for box in ((0, 0, 41, 1), (-1, 0, 1, 1), (0, 30, 1, 1), (0, 0, 0, 1)):
        with pytest.raises(ValueError, match="inside a picture of 40 x 30"):
            _core.decode(data, box)
    with pytest.raises(TypeError, match="box must be"):
        _core.decode(data, [0, 0, 1, 1])  # type: ignore[arg-type]
    with pytest.raises(_core.DecodeError, match=r"^cannot decode: "):
        _core.decode(data[:300], None)
    with pytest.raises(_core.DecodeError, match="no decoder of this build"):
        _core.decode(encode(noise(1), "BMP"), None)


def test_check_ops() -> None:
    assert _core.check_ops((resize(8, 6),), "NCHW") == ("uint8", (3, 8, 6))
    assert _core.check_ops((resize(8, 6),), "NHWC") == ("uint8", (8, 6, 3))
    assert _core.check_ops((), "NCHW") == ("uint8", None)
    with pytest.raises(ValueError, match="blur"):
        _core.check_ops((("blur", ()),), "NCHW")


def test_apply_ops_counts_its_pixels() -> None:
    array, box = _core.apply_ops((resize(2, 2),), "NHWC", 4, 3, bytes(48), 0, 0, 0)
    assert (array.shape, box) == ((2, 2, 3), (0, 0, 4, 3))
    for width, height, size in ((4, 3, 47), (4, 3, 49), (0, 3, 0), (1 << 30, 1 << 30, 48)):
        with pytest.raises(ValueError, match=f"not {size} in all"):
            _core.apply_ops((), "NCHW", width, height, bytes(size), 0, 0, 0)


def test_environment() -> None:
    environment = _core.environment()
    assert environment["version"] == _core.__version__
    assert environment["page_size"] == os.sysconf("SC_PAGESIZE")
    assert environment["libjpeg_turbo"][0].isdigit()
    for library in ("libpng", "libwebp"):
        assert environment[library] is None or environment[library][0].isdigit()
    assert set(environment["cpu_features"]) <= {"avx2"}
    assert 1 <= _core.cpu_count() <= len(os.sched_getaffinity(0))
