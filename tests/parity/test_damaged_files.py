# SPDX-License-Identifier: MIT
"""Damaged files get Pillow's verdict: the same pixels where it decodes, else an error.

Whole pictures only: under a crop feedline does not see every fault, as docs/limits.md says.
"""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import feedline as fl

# Pillow warns of some faults, also on the loader's threads: there an error would be a verdict.
QUIET = pytest.mark.filterwarnings("ignore")
FLIPS = 2000
KINDS = {
    "baseline": ("RGB", {}),
    "progressive": ("RGB", {"progressive": True}),
    "grey": ("L", {}),
    "cmyk": ("CMYK", {}),
    "restarts": ("RGB", {"restart_marker_blocks": 2, "subsampling": 0}),
    "segments": ("RGB", {"icc_profile": bytes(100), "comment": b"words", "exif": b"Exif\0\0II*"}),
    "rgb": ("RGB", {"keep_rgb": True}),
}


def encoded(kind: str) -> bytes:
    mode, options = KINDS[kind]
    y, x = np.mgrid[0:29, 0:37]
    waves = [np.sin(x * 0.3 + c) + np.cos(y * 0.21 * (c + 1)) for c in range(3)]
    noise = np.random.default_rng(3).integers(-9, 10, (29, 37, 3))
    pixels = np.clip(np.stack(waves, -1) * 60 + 128 + noise, 0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(file, "JPEG", **options)
    return file.getvalue()


def pillows_verdict(data: bytes) -> np.ndarray | None:
    """The pixels; None: refused."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            return np.asarray(image.convert("RGB"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def compare(contents: list[bytes], folder: Path) -> int:
    """Checks every content as a file; the number of those that were decoded."""
    paths = [folder / f"{number}.jpg" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    decoded = 0
    with fl.Loader(fl.Files(paths), output="numpy", layout="NHWC") as loader:
        iterator = iter(loader)
        for path, content in zip(paths, contents, strict=True):
            expected = pillows_verdict(content)
            if expected is None:
                with pytest.raises((fl.DecodeError, fl.LimitError)) as raised:
                    next(iterator)
                assert raised.value.filename == str(path)
                assert str(path) in str(raised.value)
            else:
                assert np.array_equal(next(iterator).image[0], expected), content
                decoded += 1
    return decoded


@QUIET
@pytest.mark.parametrize("kind", KINDS)
def test_every_beginning_of_a_file(kind: str, tmp_path: Path) -> None:
    whole = encoded(kind)
    assert 1 <= compare([whole[:size] for size in range(len(whole) + 1)], tmp_path) <= 3


@QUIET
@pytest.mark.parametrize("kind", KINDS)
def test_flipped_bits(kind: str, tmp_path: Path) -> None:
    random = np.random.default_rng(len(kind))
    whole, contents = encoded(kind), []
    count = FLIPS // len(KINDS)
    for _ in range(count):
        content = bytearray(whole)
        for place in random.integers(0, len(whole), random.integers(1, 4)):
            content[place] ^= 1 << int(random.integers(0, 8))
        contents.append(bytes(content))
    assert 0.2 * count < compare(contents, tmp_path) < count


def test_bytes_behind_the_end_are_ignored(tmp_path: Path) -> None:
    wholes = [encoded(kind) for kind in KINDS]
    tails = [b"\0", b"\xff", b"\xff\xd8\xff\xe0", bytes(70_000), b"\xff\xd9" * 3]
    contents = [whole + tail for whole in wholes for tail in tails]
    assert compare(contents, tmp_path) == len(contents)
