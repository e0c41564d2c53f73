# SPDX-License-Identifier: MIT
"""Every error says what is wrong, where (the file, whole), and what to do about it."""

import io
import os
import pickle
import re
import socket
import subprocess
import sys
import tempfile
import traceback
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import feedline as fl
from feedline import transforms as T

PICTURE = Image.fromarray(np.arange(300, dtype=np.uint8).reshape(10, 10, 3))


def encoded(image: Image.Image = PICTURE, kind: str = "JPEG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def with_frame(place: int, value: bytes) -> bytes:
    """A JPEG whose frame header (precision, height, width, components) claims something else."""
    data = bytearray(encoded())
    start = data.index(b"\xff\xc0") + 4 + place
    data[start : start + len(value)] = value
    return bytes(data)


def bmp_of(width: int, height: int) -> bytes:
    """A BMP, which Pillow reads, that claims a size."""
    data = bytearray(encoded(kind="BMP"))
    data[18:26] = width.to_bytes(4, "little") + height.to_bytes(4, "little")
    return bytes(data)


def png_of(width: int, height: int) -> bytes:
    """A PNG that claims a size."""
    data = bytearray(encoded(kind="PNG"))
    data[16:24] = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    data[29:33] = zlib.crc32(data[12:29]).to_bytes(4, "big")
    return bytes(data)


def write(data: bytes) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(data)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def make_large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2 << 30)


@dataclass
class Case:
    """A file, and what its error says."""

    make: Callable[[Path], Any]
    kind: type[Exception]
    wrong: str
    advice: str
    transform: list[T.Transform] = field(default_factory=list)
    also_bytes: bool = False  # reading fails already


AGAIN = "write (the file|it) again or take it out of the data set"
OUT = "take it out of the data set"
CASES = {
    "missing": Case(
        lambda path: None, FileNotFoundError, "cannot open the file: No such", "moved or deleted",
        also_bytes=True,
    ),
    "below a file": Case(
        lambda path: path.parent.joinpath("file").touch(), FileNotFoundError, "No such file",
        "moved or deleted", also_bytes=True,
    ),
    "link to nowhere": Case(
        lambda path: path.symlink_to("nowhere"), FileNotFoundError, "No such file",
        "moved or deleted", also_bytes=True,
    ),
    "link to itself": Case(
        lambda path: path.symlink_to(path.name), OSError, "cannot open the file", OUT,
        also_bytes=True,
    ),
    "folder": Case(Path.mkdir, fl.DecodeError, "it is a folder, not a file", OUT, also_bytes=True),
    "pipe": Case(os.mkfifo, fl.DecodeError, "it is a FIFO, not a file", OUT, also_bytes=True),
    "device": Case(
        lambda path: path.symlink_to("/dev/zero"), fl.DecodeError, "it is a device", OUT,
        also_bytes=True,
    ),
    "socket": Case(make_socket, OSError, "cannot open the file", OUT, also_bytes=True),
    "2 GiB": Case(
        make_large, fl.LimitError, "the file has 2147483648 bytes", f"make it smaller or {OUT}",
        also_bytes=True,
    ),
    "empty": Case(write(b""), fl.DecodeError, "the file is empty", AGAIN),
    "text": Case(
        write(b"no picture"), fl.DecodeError, "neither feedline nor Pillow knows this format",
        f"convert it or {OUT}",
    ),
    "start of a JPEG": Case(write(b"\xff\xd8\xff"), fl.DecodeError, "truncated", AGAIN),
    "cut JPEG": Case(write(encoded()[:-20]), fl.DecodeError, "the file is truncated", AGAIN),
    "12 bits": Case(
        write(with_frame(0, b"\x0c")), fl.DecodeError, "precision 12", "convert it to a baseline",
    ),
    "no height": Case(write(with_frame(1, b"\0\0")), fl.DecodeError, "Empty JPEG image", AGAIN),
    "claims 4 gigapixels": Case(
        write(with_frame(1, b"\xff\0\xff\0")), fl.LimitError, "65280 x 65280 pixels, more than",
        f"make it smaller or {OUT}",
    ),
    "claims more than JPEG can": Case(
        write(with_frame(1, b"\xff\xff\xff\xff")), fl.LimitError, "65500 pixels",
        f"make it smaller or {OUT}",
    ),
    "cut PNG": Case(
        write(encoded(kind="PNG")[:-30]), fl.DecodeError, "the file is truncated", AGAIN,
    ),
    "cut WebP": Case(
        write(encoded(kind="WEBP")[:-30]), fl.DecodeError, "the WebP of .* truncated", AGAIN,
    ),
    "cut BMP": Case(write(encoded(kind="BMP")[:-30]), fl.DecodeError, "Pillow says: ", AGAIN),
    "PNG of 4 gigapixels": Case(
        write(png_of(65280, 65280)), fl.LimitError, "65280 x 65280 pixels, more than",
        f"make it smaller or {OUT}",
    ),
    "BMP of 4 gigapixels": Case(
        write(bmp_of(65280, 65280)), fl.LimitError, "Pillow says: .*4261478400 pixels",
        f"make it smaller or {OUT}",
    ),
    "resized to nothing": Case(
        write(encoded(Image.new("RGB", (90, 2)))), ValueError, "would make a picture of 8 x 0",
        "both sides must be from 1", [T.Resize(7, max_size=8)],
    ),
    "resized to too much": Case(
        write(encoded(Image.new("RGB", (900, 2)))), ValueError, "picture of 900000 x 2000",
        "more than the limit", [T.Resize(2000)],
    ),
}  # fmt: skip

LONG = "/".join(["a" * 250] * 3)
NAMES = {
    "plain": "picture.jpg",
    "odd": "new\nline 'quoted' größe.jpg",
    "not UTF-8": os.fsdecode(b"\xff\xfe.jpg"),
    "long": f"{LONG}/picture.jpg",
}


def error_of(path: str, options: dict[str, Any], decode: str = "image") -> Exception:
    """What loading the file raises, behind one that is well."""
    good = Path(path).parent / "good.jpg"
    good.write_bytes(encoded())
    dataset = fl.Files([good, path], fields={"image": fl.Field("file", decode)})
    with fl.Loader(dataset, output="numpy", **options) as loader:
        iterator = iter(loader)
        next(iterator)
        with pytest.raises(Exception, match=r"\(sample 1\)") as raised:
            next(iterator)
        with pytest.raises(StopIteration):  # the error stood for its batch
            next(iterator)
    return raised.value


def check_text(error: Exception, path: str, case: Case) -> None:
    text = str(error)
    assert isinstance(error, case.kind)
    assert repr(path) in text
    assert re.search(f"{case.wrong}.*{case.advice}", text), text
    assert text.count("cannot") <= 2, text
    assert "BytesIO" not in text
    if isinstance(error, OSError | fl.LimitError):
        assert error.filename == path
        assert error.index == 1
        assert error.reason in text
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == text


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_files(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    path = tmp_path / "picture.jpg"
    case.make(path)
    check_text(error_of(str(path), {"transform": case.transform}), str(path), case)
    if case.also_bytes:
        check_text(error_of(str(path), {}, "bytes"), str(path), case)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "kind", ["missing", "folder", "empty", "text", "cut JPEG", "cut PNG", "cut BMP"]
)
def test_whole_names(name: str, kind: str, tmp_path: Path) -> None:
    """Also with quotes, line breaks, bytes that are no text, and more than 512 bytes."""
    path = tmp_path / NAMES[name]
    path.parent.mkdir(parents=True, exist_ok=True)
    CASES[kind].make(path)
    check_text(error_of(str(path), {}), str(path), CASES[kind])


def test_pillows_own_exception_is_the_cause(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(b"no picture")
    error = error_of(str(path), {})
    assert type(error.__cause__).__name__ == "UnidentifiedImageError"
    assert "pillow_step.py" in "".join(traceback.format_exception(error))


@pytest.mark.filterwarnings("error")
def test_a_warning_that_was_made_an_error_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "bomb.bmp"
    path.write_bytes(bmp_of(10_000, 10_000))
    with (
        fl.Loader(fl.Files([path]), output="numpy") as loader,
        pytest.raises(Image.DecompressionBombWarning, match="100000000 pixels") as raised,
    ):
        next(iter(loader))
    assert raised.value.__notes__ == [f"while loading sample 0: {str(path)!r}"]


WITHOUT_PILLOW = """
import sys
sys.modules["PIL"] = None
import feedline as fl
loader = fl.Loader(fl.Files([sys.argv[1]]), output="numpy")
try:
    next(iter(loader))
except fl.DecodeError as error:
    print(error)
"""


def test_without_pillow(tmp_path: Path) -> None:
    path = tmp_path / "picture.bmp"
    path.write_bytes(encoded(kind="BMP"))
    command = [sys.executable, "-c", WITHOUT_PILLOW, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert repr(str(path)) in done.stdout
    assert "it is not a JPEG" in done.stdout
    assert "pip install pillow" in done.stdout


# A folder's errors

FOLDERS = {
    "not there": ("nowhere", FileNotFoundError, "cannot list this folder", "is the path right"),
    "a file": ("file", NotADirectoryError, "cannot list this folder", "a folder is wanted"),
    "no classes": ("flat", FileNotFoundError, "find any class folder", "one folder a class"),
    "empty class": ("empty", FileNotFoundError, "no valid file for the classes b", "allow_empty"),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_folders(name: str, tmp_path: Path) -> None:
    root, kind, wrong, advice = FOLDERS[name]
    (tmp_path / "file").touch()
    for file in ("flat/1.jpg", "empty/a/1.jpg", "empty/b/1.txt"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    with pytest.raises(kind, match=f"{wrong}.*; .*{advice}") as raised:
        fl.ImageFolder(tmp_path / root)
    assert raised.value.filename == str(tmp_path / root)
    assert repr(str(tmp_path / root)) in str(raised.value)


def unprivileged() -> Iterator[str]:
    """Run as nobody where the tests run as root, whom no right is missing."""
    yield "import os, sys"
    if os.geteuid() == 0:
        yield "os.setuid(65534)"
    yield "try: next(iter(fl.Loader(fl.Files([sys.argv[1]]), output='numpy')))"
    yield "except PermissionError as error: print(error)"
    yield "try: fl.ImageFolder(sys.argv[2])"
    yield "except PermissionError as error: print(error)"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter. pytest takes their rights from its own whenever one
    of its runs starts."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_missing_rights(open_folder: Path) -> None:
    path, root = open_folder / "picture.jpg", open_folder / "root"
    path.write_bytes(encoded())
    path.chmod(0)
    (root / "class" / "closed").mkdir(parents=True)
    (root / "class" / "closed").chmod(0)
    program = "import feedline as fl\n" + "\n".join(unprivileged())
    command = [sys.executable, "-c", program, str(path), str(root)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    (root / "class" / "closed").chmod(0o755)
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert "cannot open the file: Permission denied; give this user the right to read it" in first
    assert repr(str(path)) in first
    assert "cannot list this folder" in second
    assert "give this user the right to read it" in second
    assert repr(str(root / "class" / "closed")) in second


# Errors without a file: what is wrong, and what is possible.


def loader(**options: Any) -> fl.Loader:
    return fl.Loader(fl.Files(["a.jpg"], [3]), output="numpy", **options)


def three_views(chain: list[T.Transform], batch_size: int, **options: Any) -> fl.Loader:
    dataset = fl.Files(["a.jpg"], fields={"a": "file", "b": "file", "c": "file"})
    transform = dict.fromkeys(dataset.fields, chain)
    return fl.Loader(dataset, batch_size=batch_size, transform=transform, **options)


def closed() -> Any:
    made = loader()
    made.close()
    return iter(made)


FLOAT = T.ToDtype("float32")
NORMALIZE = T.Normalize((0.5,), (0.5,))
WITHOUT_A_FILE: dict[str, tuple[Callable[[], Any], str, str]] = {
    "a resize behind Normalize": (
        lambda: loader(transform=[NORMALIZE, T.Resize(5)]),
        "field 'image': Resize works on 8-bit pixels", "put it before Normalize",
    ),
    "Normalize twice": (
        lambda: loader(transform=[NORMALIZE, NORMALIZE]), "normalised already", "use one",
    ),
    "Normalize in 16 bits": (
        lambda: loader(transform=[T.ToDtype("float16"), NORMALIZE]),
        "works in float32, but the pictures are float16", "put ToDtype.float16. behind Normalize",
    ),
    "two casts": (
        lambda: loader(transform=[T.ToDtype("float16"), T.ToDtype("bfloat16")]),
        "float16 already", "cast once",
    ),
    "back to uint8": (
        lambda: loader(transform=[FLOAT, T.ToDtype("uint8")]), "float32 by then", "are uint8 any",
    ),
    "too many transforms": (
        lambda: loader(transform=[T.CenterCrop(5)] * 40), "at most", "not 40",
    ),
    "an end that is too large": (
        lambda: loader(transform=[T.Resize((100_000, 100_000))]), "100000 x 100000", "limit of",
    ),
    "a batch that is too large": (
        lambda: iter(three_views([T.Resize((16_000, 16_000)), FLOAT], 2**31 - 1, uneven="mask")),
        "larger than memory", "use a smaller batch size",
    ),
    "another library's transform": (
        lambda: loader(transform=[print]), "print", "feedline.transforms",
    ),
    "no such field": (
        lambda: loader(transform={"images": []}), "no field 'images'", "fields are: image, label",
    ),
    "no such source": (
        lambda: fl.Files(["a"], fields={"label": "label"}), "no source 'label'", "it has: file",
    ),
    "no such decode": (
        lambda: fl.Field("file", "text"), "cannot be decoded as 'text'", "it can be: image, bytes",
    ),
    "not a data set": (
        lambda: fl.Loader(["a.jpg"]), "got builtins.list", "feedline.ImageFolder, feedline.Files",
    ),
    "a closed loader": (closed, "was closed", "make another one"),
    "an option that is not there": (lambda: loader(sampler=[0]), "sampler", "unexpected keyword"),
    "an option that cannot be changed": (
        lambda: setattr(loader(), "batch_size", 5), "batch_size cannot be changed", "make another",
    ),
    "a state of another data set": (
        lambda: loader().load_state_dict(fl.Loader(fl.Files(["b.jpg"])).state_dict()),
        "data set|names", "names|another|differ",
    ),
    "a state that is none": (lambda: loader().load_state_dict([1]), "state", "got|not"),
    "half of the ranks": (
        lambda: len(loader(world_size=2)), "world_size=2 was given without rank", "give rank",
    ),
    "a drawn seed on two ranks": (
        lambda: loader(seed=None, rank=0, world_size=2), "every rank would draw", "the same seed",
    ),
    "mask and drop_last": (
        lambda: loader(uneven="mask", drop_last=True), "does not go with", "fills every batch",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WITHOUT_A_FILE)
def test_without_a_file(name: str) -> None:
    make, wrong, advice = WITHOUT_A_FILE[name]
    with pytest.raises((TypeError, ValueError, RuntimeError, AttributeError)) as raised:
        make()
    assert re.search(wrong, str(raised.value)), raised.value
    assert re.search(advice, str(raised.value)), raised.value
