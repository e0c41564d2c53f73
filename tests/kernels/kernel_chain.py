# SPDX-License-Identifier: MIT
"""fl_chain for Python: one picture in, one row out, with guards around all memory."""

import ctypes

import numpy as np

MAX_OPS, MAX_DRAWS = 16, 8
LAYOUTS = {"NCHW": 0, "NHWC": 1, "channels_last": 2}
# enum fl_dtype; bfloat16 is looked at as its bits.
DTYPES = {0: np.uint8, 2: np.float16, 3: np.uint16, 4: np.float32}
UINT8, FLOAT16, BFLOAT16, FLOAT32 = 0, 2, 3, 4
GUARD = 64


class OpSpec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("values", ctypes.POINTER(ctypes.c_double)),
        ("count", ctypes.c_int32),
    ]


class Box(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in ("x", "y", "width", "height")]


class RowShape(ctypes.Structure):
    _fields_ = [
        ("dimensions", ctypes.c_int32),
        ("shape", ctypes.c_int64 * 3),
        ("strides", ctypes.c_int64 * 3),
    ]


class Draw(ctypes.Structure):
    _fields_ = [
        ("width", ctypes.c_int32),
        ("height", ctypes.c_int32),
        ("region", Box),
        ("scratch", ctypes.c_size_t),
        ("shape", RowShape),
        ("size", ctypes.c_size_t),
        ("values", ctypes.c_int32 * MAX_DRAWS * MAX_OPS),
    ]


class Scratch(ctypes.Structure):
    _fields_ = [
        ("block", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("used", ctypes.c_size_t),
    ]


class Error(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_int),
        ("os_error", ctypes.c_int),
        ("message", ctypes.c_char * 320),
        ("place", ctypes.c_char * 512),
        ("index", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("exception", ctypes.c_void_p * 2),
    ]


READ = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int32,
    ctypes.c_void_p,
)


class RowSource(ctypes.Structure):
    _fields_ = [("read", READ), ("context", ctypes.c_void_p)]


def declare(library):
    """Tells ctypes the signatures of what is called here."""
    pointer = ctypes.c_void_p
    library.fl_chain_create.argtypes = [pointer, ctypes.c_int32, ctypes.c_int, pointer, pointer]
    library.fl_chain_destroy.argtypes = [pointer]
    library.fl_chain_dtype.argtypes = [pointer]
    side, word = ctypes.c_int32, ctypes.c_uint64
    library.fl_chain_make_draw.argtypes = [pointer, side, side, word, word, pointer, pointer]
    library.fl_chain_apply.argtypes = [pointer, pointer, RowSource, pointer, pointer, pointer]
    library.fl_cpu_features.restype = ctypes.c_uint32
    library.fl_cpu_set_mask.argtypes = [ctypes.c_uint32]
    library.fl_scratch_reserve.argtypes = [pointer, ctypes.c_size_t, pointer]
    library.fl_scratch_deinit.argtypes = [pointer]
    return library


class Chain:
    """One fl_chain with a scratch of its own. `ops`: (name, numbers) each."""

    def __init__(self, library, ops, layout="NHWC"):
        self.library = library
        self.handle = ctypes.c_void_p()
        self.scratch = Scratch()
        specs = (OpSpec * len(ops))()
        for spec, (name, values) in zip(specs, ops, strict=True):
            numbers = (ctypes.c_double * len(values))(*values)
            spec.name, spec.values, spec.count = name.encode(), numbers, len(values)
        error = Error()
        status = library.fl_chain_create(
            specs, len(ops), LAYOUTS[layout], ctypes.byref(self.handle), ctypes.byref(error)
        )
        if status:
            raise ValueError(error.message.decode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.library.fl_scratch_deinit(ctypes.byref(self.scratch))
        self.library.fl_chain_destroy(self.handle)

    def draw(self, width, height, key=0, position=0):
        draw, error = Draw(), Error()
        status = self.library.fl_chain_make_draw(
            self.handle, width, height, key, position, ctypes.byref(draw), ctypes.byref(error)
        )
        if status:
            raise ValueError(error.message.decode())
        return draw

    def apply(self, image, draw, misalignment=0):
        """The row for an image (height, width, 3), as an array with the row's shape."""
        assert image.shape == (draw.height, draw.width, 3)
        dtype = np.dtype(DTYPES[self.library.fl_chain_dtype(self.handle)])
        start = GUARD + misalignment * dtype.itemsize
        memory = np.full(start + draw.size + GUARD, 0xA5, np.uint8)
        source = Rows(image, draw.region)
        error = Error()
        self._reserve(draw.scratch)
        status = self.library.fl_chain_apply(
            self.handle,
            ctypes.byref(draw),
            source.struct,
            ctypes.byref(self.scratch),
            memory.ctypes.data + start,
            ctypes.byref(error),
        )
        assert status == 0, error.message
        assert source.rows_read == draw.region.height
        assert (memory[:start] == 0xA5).all()
        assert (memory[start + draw.size :] == 0xA5).all()
        row = np.frombuffer(memory[start : start + draw.size].tobytes(), dtype)
        strides = [n * dtype.itemsize for n in draw.shape.strides]
        return np.lib.stride_tricks.as_strided(row, tuple(draw.shape.shape), strides)

    def run(self, image, key=0, position=0):
        return self.apply(image, self.draw(image.shape[1], image.shape[0], key, position))

    def _reserve(self, size):
        assert self.library.fl_scratch_reserve(ctypes.byref(self.scratch), size, None) == 0
        # Not a byte more than was asked for, and nothing left of the picture before.
        self.scratch.size = min(self.scratch.size, size)
        if size:
            ctypes.memset(self.scratch.block, 0x5A, size)


class Rows:
    """A row source over a box of an image; X is noise."""

    def __init__(self, image, box):
        assert box.x >= 0
        assert box.y >= 0
        assert box.width >= 1
        assert box.height >= 1
        cut = image[box.y : box.y + box.height, box.x : box.x + box.width]
        assert cut.shape[:2] == (box.height, box.width)
        noise = np.random.default_rng(1).integers(0, 256, (*cut.shape[:2], 1), np.uint8)
        self.pixels = np.ascontiguousarray(np.concatenate([cut, noise], axis=2))
        self.rows_read = 0
        self.read = READ(self._read)  # kept: the core has only its address
        self.struct = RowSource(self.read, None)

    def _read(self, context, rows, stride, count, error):
        size = self.pixels.shape[1] * 4
        assert self.rows_read + count <= self.pixels.shape[0]
        for i in range(count):
            ctypes.memmove(rows + i * stride, self.pixels[self.rows_read + i].ctypes.data, size)
        self.rows_read += count
        return 0
