# SPDX-License-Identifier: MIT
"""Tensor: DLPack, buffers, NumPy and torch over a batch's memory, and who keeps it alive."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import queue
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine_support import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    batches_out,
    expected_pixels,
    first_values,
    make_engine,
    resize,
    start_run,
    to_dtype,
    write_pictures,
)
from feedline import _core

pytestmark = pytest.mark.parallel

IS_COPIED = 2  # dlpack.h: DLPACK_FLAG_BITMASK_IS_COPIED


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_pictures(tmp_path_factory.mktemp("pictures"), 4)


# ---- What a tensor says of itself


def test_properties(paths: list[Path]) -> None:
    engine = make_engine(paths)
    image, label = first_values(engine)
    assert image.shape == (4, 3, 8, 6)
    assert image.strides == (144, 48, 6, 1)
    assert (image.dtype, image.ndim, image.nbytes, len(image)) == ("uint8", 4, 576, 4)
    assert repr(image) == "<feedline.Tensor shape=(4, 3, 8, 6) dtype=uint8>"
    assert (label.shape, label.strides, label.dtype, label.nbytes) == ((4,), (1,), "int64", 32)


@pytest.mark.parametrize(
    ("layout", "shape", "strides"),
    [
        ("NHWC", (4, 8, 6, 3), (144, 18, 3, 1)),
        ("channels_last", (4, 3, 8, 6), (144, 1, 18, 3)),
    ],
)
def test_layouts(
    paths: list[Path], layout: str, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    engine = make_engine(paths, layout=layout)
    image, _ = first_values(engine)
    assert (image.shape, image.strides) == (shape, strides)
    expected = expected_pixels(paths)
    if layout == "NHWC":
        expected = expected.transpose(0, 2, 3, 1)
    for array in (image.numpy(), np.from_dlpack(image), np.asarray(memoryview(image))):
        assert array.shape == shape
        assert array.strides == strides  # of bytes, as an element is one
        np.testing.assert_array_equal(array, expected)
    engine.close()


def test_cannot_be_made_or_subclassed() -> None:
    with pytest.raises(TypeError):
        _core.Tensor()
    with pytest.raises(TypeError):
        type("Own", (_core.Tensor,), {})


def test_weak_references(paths: list[Path]) -> None:
    engine = make_engine(paths)
    image, _ = first_values(engine)
    reference = weakref.ref(image)
    assert reference() is image
    del image, _
    assert reference() is None


# ---- DLPack capsules


def name_of(capsule: Any) -> str:
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return str(get_name(capsule).decode())


class Versioned(ctypes.Structure):
    """The head of DLManagedTensorVersioned, as dlpack.h lays it out."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
    )


def head_of(capsule: Any) -> Versioned:
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return Versioned.from_address(get_pointer(capsule, b"dltensor_versioned"))


class Wrapped:
    """Hands one capsule to a consumer."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (None, "dltensor"),
        ((0, 8), "dltensor"),
        ((1, 0), "dltensor_versioned"),
        ((1, 3), "dltensor_versioned"),
        ((2, 0), "dltensor_versioned"),
    ],
)
def test_the_version_chooses_the_form(paths: list[Path], version: Any, name: str) -> None:
    engine = make_engine(paths)
    image, _ = first_values(engine)
    assert name_of(image.__dlpack__(max_version=version)) == name
    assert name_of(image.__dlpack__()) == "dltensor"


def test_device_is_the_cpu(paths: list[Path]) -> None:
    engine = make_engine(paths)
    image, _ = first_values(engine)
    assert image.__dlpack_device__() == (1, 0)
    capsule = image.__dlpack__(max_version=(1, 0), dl_device=(1, 0))
    head = head_of(capsule)
    assert (head.major, head.flags, head.device_type, head.device_id) == (1, 0, 1, 0)


def test_a_capsule_that_nobody_consumed_gives_the_memory_back(paths: list[Path]) -> None:
    engine = make_engine(paths)
    image, label = first_values(engine)
    capsules = [image.__dlpack__(), label.__dlpack__(max_version=(1, 0))]
    del image, label
    assert batches_out(engine) == 1
    capsules.pop()
    assert batches_out(engine) == 1
    capsules.pop()
    assert batches_out(engine) == 0


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_consumed_capsule_leaves_the_memory_to_its_consumer(
    paths: list[Path], version: Any
) -> None:
    engine = make_engine(paths)
    image, _ = first_values(engine)
    wrapped = Wrapped(image.__dlpack__(max_version=version))
    array = np.from_dlpack(wrapped)
    assert name_of(wrapped.capsule).startswith("used_dltensor")
    del image, _, wrapped
    assert batches_out(engine) == 1
    np.testing.assert_array_equal(array, expected_pixels(paths))
    assert array.flags.writeable == (version is not None)  # NumPy's rule for the legacy form
    part = array[1:, 0]
    del array
    assert batches_out(engine) == 1
    del part
    assert batches_out(engine) == 0


def test_a_capsule_is_consumed_once(paths: list[Path]) -> None:
    engine = make_engine(paths)
    image, _ = first_values(engine)
    wrapped = Wrapped(image.__dlpack__(max_version=(1, 0)))
    array = np.from_dlpack(wrapped)
    with pytest.raises(ValueError, match="PyCapsule"):
        np.from_dlpack(wrapped)
    del array, wrapped, image, _
    assert batches_out(engine) == 0


def test_many_exports_of_one_tensor(paths: list[Path]) -> None:
    engine = make_engine(paths)
    image, _ = first_values(engine)
    arrays = [np.from_dlpack(image) for _ in range(5)]
    arrays[0][0, 0, 0, 0] = 201
    assert {int(array[0, 0, 0, 0]) for array in arrays} == {201}
    del image, _
    while arrays:
        assert batches_out(engine) == 1
        arrays.pop()
    assert batches_out(engine) == 0


def test_a_copy_is_the_consumers_own(paths: list[Path]) -> None:
    engine = make_engine(paths)
    image, _ = first_values(engine)
    capsule = image.__dlpack__(max_version=(1, 0), copy=True)
    head = head_of(capsule)
    assert head.flags == IS_COPIED
    assert head.data % 256 == 0
    shared = image.__dlpack__(max_version=(1, 0), copy=False)
    assert head_of(shared).flags == 0
    assert head_of(shared).data == image.numpy().__array_interface__["data"][0]
    del shared
    image.numpy()[:] = 0
    legacy = np.from_dlpack(Wrapped(image.__dlpack__(copy=True)))
    array = np.from_dlpack(Wrapped(capsule))
    del image, _
    assert batches_out(engine) == 0
    np.testing.assert_array_equal(array, expected_pixels(paths))
    assert not legacy.any()


def test_copy_of_a_strided_tensor(paths: list[Path]) -> None:
    engine = make_engine(paths, layout="channels_last")
    image, _ = first_values(engine)
    array = np.from_dlpack(image, copy=True)
    assert array.strides == (144, 1, 18, 3)
    np.testing.assert_array_equal(array, expected_pixels(paths))
    engine.close()


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"dl_device": (3, 0)}, BufferError, r"device \(3, 0\)"),
        ({"dl_device": (2, 0)}, BufferError, r"device \(1, 0\)"),
        ({"dl_device": (1, 1)}, BufferError, r"device \(1, 1\)"),
        ({"stream": 1}, BufferError, "stream must be None"),
        ({"dl_device": "cpu"}, TypeError, "dl_device must be a tuple"),
        ({"max_version": 1}, TypeError, "max_version must be a tuple"),
        ({"max_version": (1,)}, TypeError, "max_version must be a tuple"),
        ({"max_version": ("1", "0")}, TypeError, "int"),
        ({"versions": (1, 0)}, TypeError, "versions"),
    ],
)
def test_what_cannot_be_exported(
    paths: list[Path], arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    engine = make_engine(paths)
    image, label = first_values(engine)
    with pytest.raises(error, match=text):
        image.__dlpack__(**arguments)
    with pytest.raises(TypeError):
        image.__dlpack__(None)
    del image, label
    assert batches_out(engine) == 0


# ---- The buffer protocol


def test_buffers(paths: list[Path]) -> None:
    engine = make_engine(paths)
    image, label = first_values(engine)
    view, labels = memoryview(image), memoryview(label)
    assert (view.shape, view.strides, view.format) == ((4, 3, 8, 6), (144, 48, 6, 1), "B")
    assert (view.nbytes, view.readonly, view.c_contiguous) == (576, False, True)
    assert (labels.format, labels.itemsize, labels.tolist()) == ("l", 8, [0, 2, 4, 6])
    expected = expected_pixels(paths)
    assert bytes(image) == expected.tobytes()
    assert hashlib.sha256(image).digest() == hashlib.sha256(expected.tobytes()).digest()
    assert image.__buffer__(0).nbytes == 576
    view[0, 0, 0, 0] = 77
    assert image.numpy()[0, 0, 0, 0] == 77
    del image, label, labels
    assert batches_out(engine) == 1
    view.release()
    assert batches_out(engine) == 0


def test_buffers_that_are_not_contiguous(paths: list[Path]) -> None:
    engine = make_engine(paths, layout="channels_last")
    image, _ = first_values(engine)
    view = memoryview(image)
    assert (view.c_contiguous, view.f_contiguous, view.contiguous) == (False, False, False)
    assert bytes(view) == expected_pixels(paths).tobytes()
    with pytest.raises(BufferError, match="not C-contiguous"):
        hashlib.sha256(image)
    engine.close()


@pytest.mark.parametrize(("dtype", "code"), [(FLOAT16, "e"), (FLOAT32, "f")])
def test_buffers_of_floats(paths: list[Path], dtype: int, code: str) -> None:
    engine = make_engine(paths, ops=(resize(8, 6), to_dtype(dtype)))
    image, _ = first_values(engine)
    view = memoryview(image)
    assert view.format == code
    expected = (expected_pixels(paths).astype(np.float32) / 255).astype(code)
    np.testing.assert_array_equal(np.asarray(view), expected)
    engine.close()


def test_bfloat16_has_no_buffer(paths: list[Path]) -> None:
    engine = make_engine(paths, ops=(resize(8, 6), to_dtype(BFLOAT16)))
    image, _ = first_values(engine)
    assert (image.dtype, image.nbytes) == ("bfloat16", 4 * 3 * 8 * 6 * 2)
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(image)
    engine.close()


# ---- NumPy


def test_arrays_are_writable_and_based_on_the_tensor(paths: list[Path]) -> None:
    engine = make_engine(paths)
    image, label = first_values(engine)
    array = image.numpy()
    assert isinstance(array.base, _core.Tensor)
    assert array.flags.writeable
    assert array.flags.aligned
    assert array.flags.c_contiguous
    assert not array.flags.owndata
    np.testing.assert_array_equal(array, expected_pixels(paths))
    assert label.numpy().tolist() == [0, 2, 4, 6]
    array[:] = 9
    assert set(bytes(image)) == {9}
    del image, label
    assert batches_out(engine) == 1
    del array
    assert batches_out(engine) == 0


def test_numpy_output(paths: list[Path]) -> None:
    engine = make_engine(paths, output="numpy")
    image, label = first_values(engine)
    assert (type(image), image.dtype, label.dtype) == (np.ndarray, np.uint8, np.int64)
    np.testing.assert_array_equal(image, expected_pixels(paths))
    engine.close()


def test_bfloat16_in_numpy(paths: list[Path]) -> None:
    ops = (resize(8, 6), to_dtype(BFLOAT16))
    try:
        import ml_dtypes
    except ImportError:
        engine = make_engine(paths, ops=ops)
        image, _ = first_values(engine)
        with pytest.raises(TypeError, match="pip install ml_dtypes"):
            image.numpy()
        engine.close()
        with pytest.raises(TypeError, match="pip install ml_dtypes"):
            make_engine(paths, ops=ops, output="numpy")
    else:
        engine = make_engine(paths, ops=ops, output="numpy")
        image, _ = first_values(engine)
        expected = (expected_pixels(paths).astype(np.float32) / 255).astype(ml_dtypes.bfloat16)
        np.testing.assert_array_equal(image, expected)
        engine.close()


def test_index_and_valid(paths: list[Path]) -> None:
    engine = make_engine(paths)
    run = start_run(engine, uneven="mask", world_size=3, rank=2)
    raw = run.next(0.0)
    # Rank 2 of 3 has positions 2, 5, 8, 11 of a data set of 4: all but the first are padding.
    assert raw.index.tolist() == [2, 1, 0, 3]
    assert raw.valid.tolist() == [True, False, False, False]
    assert (raw.index.dtype, raw.valid.dtype) == (np.int64, np.bool_)
    index = raw.index
    run.cancel()
    engine.close()
    del raw, run
    assert index.tolist() == [2, 1, 0, 3]


# ---- Fields whose rows have their own sizes


def test_rows_of_their_own_sizes(tmp_path: Path) -> None:
    paths = write_pictures(tmp_path, 3)
    engine = make_engine(
        paths, ops=(), output="numpy", extra=[("raw", "file", "bytes", (), "NCHW")]
    )
    assert engine.fields == [
        ("image", "uint8", None),
        ("label", "int64", ()),
        ("raw", "uint8", None),
    ]
    images, _, raws = first_values(engine)
    assert [type(images), type(raws)] == [list, list]
    for path, image, raw in zip(paths, images, raws, strict=True):
        assert raw.tobytes() == path.read_bytes()
        expected = np.asarray(Image.open(path).convert("RGB")).transpose(2, 0, 1)
        np.testing.assert_array_equal(image, expected)
    del images, _, raws, image
    assert batches_out(engine) == 1  # one row holds them all
    del raw
    assert batches_out(engine) == 0
    engine.close()


def test_an_empty_row(tmp_path: Path) -> None:
    paths = [tmp_path / "empty", tmp_path / "full"]
    paths[0].write_bytes(b"")
    paths[1].write_bytes(b"abc")
    labels = np.zeros(2, np.int64)
    catalog = _core.Catalog.from_paths([bytes(path) for path in paths], labels)
    engine = _core.Engine(
        catalog,
        fields=[("raw", "file", "bytes", (), "NCHW")],
        batch_size=2,
        num_threads=1,
        io_threads=1,
        prefetch_batches=1,
        memory_limit=1 << 20,
        in_order=True,
        output="dlpack",
        max_pixels=1,
    )
    (rows,) = first_values(engine)
    assert [row.shape for row in rows] == [(0,), (3,)]
    assert [bytes(row) for row in rows] == [b"", b"abc"]
    assert rows[0].numpy().tolist() == []
    assert np.from_dlpack(rows[0]).tolist() == []
    engine.close()


# ---- Lives


def test_arrays_outlive_the_engine(paths: list[Path]) -> None:
    engine = make_engine(paths)
    run = start_run(engine)
    raw = run.next(0.0)
    array, dlpack = raw.values[0].numpy(), np.from_dlpack(raw.values[1])
    engine.close()
    del engine, run
    gc.collect()
    expected = expected_pixels(paths)
    np.testing.assert_array_equal(array, expected)
    assert dlpack.tolist() == [0, 2, 4, 6]
    assert raw.index.tolist() == [0, 1, 2, 3]
    del raw
    gc.collect()
    np.testing.assert_array_equal(array, expected)


def test_release_on_other_threads_after_the_engine_is_gone(paths: list[Path]) -> None:
    engine = make_engine(paths * 10)
    run = start_run(engine)
    given: queue.Queue[Any] = queue.Queue()
    for _ in range(10):
        image, label = run.next(0.0).values
        given.put((np.from_dlpack(image), label.__dlpack__(), image.numpy(), memoryview(label)))
    del image, label
    engine.close()
    del engine, run

    def drop() -> None:
        while not given.empty():
            try:
                arrays = given.get_nowait()
            except queue.Empty:
                return
            assert arrays[0].sum() == arrays[2].sum()

    threads = [threading.Thread(target=drop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert given.empty()


def test_batches_in_cycles_are_collected(paths: list[Path]) -> None:
    engine = make_engine(paths)

    class Holder:
        pass

    run = start_run(engine)
    holder: Any = Holder()
    holder.self = holder
    holder.raw = run.next(0.0)
    holder.array = holder.raw.values[0].numpy()
    run.cancel()
    engine.close()
    del run
    assert batches_out(engine) == 1
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None
    assert batches_out(engine) == 0


def test_kept_batches_are_never_written_again(paths: list[Path]) -> None:
    engine = make_engine(paths * 8, batch_size=4)
    run = start_run(engine)
    kept = [run.next(0.0).values[0].numpy() for _ in range(8)]
    expected = expected_pixels(paths)
    for array in kept:
        np.testing.assert_array_equal(array, expected)
    assert len({array.__array_interface__["data"][0] for array in kept}) == 8
    engine.close()
