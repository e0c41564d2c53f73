# SPDX-License-Identifier: MIT
"""The core's decoder by ctypes, built apart from the extension."""

import ctypes
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("FEEDLINE_SHARED", ROOT.parent / "shared"))
FOLDERS = ("base", "data", "decode")

FL_OK = 0
STATUS_NAMES = {
    3: "needs python",
    -1: "no memory",
    -4: "data",
    -5: "unsupported",
    -6: "limit",
    -7: "cancelled",
}


class Limits(ctypes.Structure):
    _fields_ = [("max_pixels", ctypes.c_int64), ("max_scans", ctypes.c_int32)]


class Picture(ctypes.Structure):
    _fields_ = [
        ("bytes", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("width", ctypes.c_int32),
        ("height", ctypes.c_int32),
        ("memory", ctypes.c_size_t),
    ]


class Box(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in ("x", "y", "width", "height")]


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


class DecodeError(Exception):
    """What the core answered: a status and its message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.kind = STATUS_NAMES.get(status, str(status))


class Decoder:
    """One fl_decoder."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.handle = ctypes.c_void_p()
        assert library.fl_decoder_create(ctypes.byref(self.handle), None) == FL_OK

    def close(self) -> None:
        self.library.fl_decoder_destroy(self.handle)

    def size(self, data: bytes) -> tuple[int, int]:
        picture = self._open(data, 1 << 40, 1000)
        self.library.fl_decoder_close(self.handle)
        return picture.width, picture.height

    def decode(self, data, box=None, *, max_pixels=178956970, max_scans=1000, rows=None):
        """The box's pixels, (height, width, 3); the whole picture by default."""
        try:
            picture = self._open(data, max_pixels, max_scans)
            x, y, width, height = box or (0, 0, picture.width, picture.height)
            error = Error()
            start = self.library.fl_decoder_start
            self._check(start(self.handle, Box(x, y, width, height), ctypes.byref(error)), error)
            pixels = self._read(height, width, rows or height)
            error = Error()
            self._check(self.library.fl_decoder_finish(self.handle, ctypes.byref(error)), error)
            return pixels[..., :3]
        finally:
            self.library.fl_decoder_close(self.handle)

    def _open(self, data, max_pixels, max_scans):
        picture, error = Picture(), Error()
        status = self.library.fl_decoder_open(
            self.handle,
            data,
            len(data),
            ctypes.byref(Limits(max_pixels, max_scans)),
            None,
            ctypes.byref(picture),
            ctypes.byref(error),
        )
        self._check(status, error)
        return picture

    def _read(self, height, width, rows_a_call):
        # One pixel more a row: nothing may be written behind the box.
        pixels = np.full((height, width + 1, 4), 77, np.uint8)
        source = self.library.fl_decoder_rows(self.handle)
        for y in range(0, height, rows_a_call):
            error = Error()
            count = min(rows_a_call, height - y)
            address = pixels[y:].ctypes.data
            stride = pixels.strides[0]
            status = source.read(source.context, address, stride, count, ctypes.addressof(error))
            self._check(status, error)
        assert (pixels[:, width] == 77).all()
        return pixels[:, :width]

    def _check(self, status, error):
        if status != FL_OK:
            raise DecodeError(status, error.message.decode())


# Optional formats: the define, and how pkg-config and the linker call their libraries.
OPTIONAL = {
    "PNG": (["libpng"], ["-lpng", "-lz"]),
    "WEBP": (["libwebp", "libwebpdemux"], ["-lwebpdemux", "-lwebp"]),
}


def has_format(name: str) -> bool:
    """Are the libraries for this format installed?"""
    command = ["pkg-config", "--exists", *OPTIONAL[name][0]]
    try:
        return subprocess.run(command, check=False).returncode == 0
    except FileNotFoundError:
        return False


FORMATS = [name for name in OPTIONAL if has_format(name)]


def build(folder: Path) -> ctypes.CDLL:
    """Compiles the decoder's part of the core to a library in `folder` and loads it.

    FEEDLINE_TEST_JPEG names another libjpeg to link, as linker arguments.
    """
    path = folder / "core.so"
    sources = [str(p) for folder in FOLDERS for p in sorted((ROOT / "src" / folder).glob("*.c"))]
    command = [
        os.environ.get("CC", "cc"),
        "-shared",
        "-fPIC",
        "-O2",
        "-std=gnu11",
        "-D_GNU_SOURCE",
    ]
    command += [
        "-pthread",
        *(f"-DFL_HAVE_{name}" for name in FORMATS),
        f"-I{ROOT / 'src'}",
        *sources,
        *os.environ.get("FEEDLINE_TEST_JPEG", "-ljpeg").split(),
        *(option for name in FORMATS for option in OPTIONAL[name][1]),
        "-lm",
        "-o",
        str(path),
    ]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(path))
    pointer = ctypes.c_void_p
    library.fl_decoder_create.argtypes = [pointer, pointer]
    library.fl_decoder_destroy.argtypes = [pointer]
    library.fl_decoder_open.argtypes = [
        pointer, ctypes.c_char_p, ctypes.c_size_t, pointer, pointer, pointer, pointer,
    ]  # fmt: skip
    library.fl_decoder_start.argtypes = [pointer, Box, pointer]
    library.fl_decoder_rows.argtypes = [pointer]
    library.fl_decoder_rows.restype = RowSource
    library.fl_decoder_finish.argtypes = [pointer, pointer]
    library.fl_decoder_close.argtypes = [pointer]
    return library


def shared_files(folder: str, suffixes: tuple[str, ...] = (".jpg", ".jpeg")) -> list[Path]:
    """The files of a folder of sample pictures; the test is skipped without it."""
    path = SHARED / folder
    if not path.is_dir():
        pytest.skip(f"no sample pictures in {path} (set FEEDLINE_SHARED)")
    return sorted(p for p in path.iterdir() if p.suffix.lower() in suffixes)
