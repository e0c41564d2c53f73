# SPDX-License-Identifier: MIT
"""JPEG pixels against Pillow: whole pictures, random boxes, awkward and cut files."""

import io
import random

import numpy as np
import pytest
from native_decoder import DecodeError, shared_files
from PIL import Image
from pillow_answers import check_boxes, pillow


def test_real_pictures(decoder):
    rng = random.Random(1)
    files = shared_files("data/imagenet-sample")
    for path in files:
        data = path.read_bytes()
        want = pillow(data)
        assert np.array_equal(decoder.decode(data), want), path.name
        check_boxes(decoder, data, want, rng, 10)


def test_awkward_files(decoder):
    rng = random.Random(2)
    decoded = 0
    for path in shared_files("cases/images"):
        data = path.read_bytes()
        want = pillow(data)
        if want is None:
            with pytest.raises(DecodeError):
                decoder.decode(data)
            continue
        assert np.array_equal(decoder.decode(data), want), path.name
        check_boxes(decoder, data, want, rng, 50)
        decoded += 1
    assert decoded >= 15


def picture(mode: str, width: int, height: int, seed: int) -> Image.Image:
    """Smooth colours with noise on top: every coefficient gets used."""
    rng = np.random.default_rng(seed)
    channels = {"L": 1, "RGB": 3, "CMYK": 4}[mode]
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / (5 + c)) + np.cos(y / (7 - c)) for c in range(channels)]
    pixels = np.stack(waves, -1) * 55 + 128 + rng.normal(0, 12, (height, width, channels))
    pixels = pixels.clip(0, 255).astype(np.uint8)
    return Image.frombytes(mode, (width, height), pixels.tobytes())


def encode(image: Image.Image, **options) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", **options)
    return out.getvalue()


SIZES = [(1, 1), (2, 3), (7, 7), (8, 16), (17, 9), (33, 40), (130, 67)]


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("progressive", [False, True])
def test_made_by_pillow(decoder, mode, subsampling, progressive):
    rng = random.Random(3)
    for seed, (width, height) in enumerate(SIZES):
        for quality in (10, 75, 100):
            options = {"quality": quality, "progressive": progressive, "optimize": seed % 2 == 1}
            if mode != "L":
                options["subsampling"] = subsampling
            if seed % 3 == 0:
                options["restart_marker_blocks"] = 3
            data = encode(picture(mode, width, height, seed), **options)
            want = pillow(data)
            assert np.array_equal(decoder.decode(data), want)
            check_boxes(decoder, data, want, rng, 8)


@pytest.mark.parametrize("progressive", [False, True])
def test_cut_files(decoder, progressive):
    """Whole decodes agree with Pillow about every cut; a box never crashes nor differs."""
    image = picture("RGB", 40, 40, 5)
    data = encode(image, quality=60, subsampling=2, progressive=progressive)
    want = pillow(data)
    for size in range(len(data)):
        cut = data[:size]
        expected = pillow(cut)
        if expected is None:
            with pytest.raises(DecodeError):
                decoder.decode(cut)
        else:
            assert np.array_equal(decoder.decode(cut), expected), size
        with pytest.raises(DecodeError):  # the end marker is always missing
            decoder.decode(cut, (3, 2, 20, 9))
    assert np.array_equal(decoder.decode(data, (3, 2, 20, 9)), want[2:11, 3:23])


def test_damaged_files(native, decoder):
    """Random bytes changed: where Pillow decodes, so do we, with the same pixels."""
    rng = random.Random(7)
    sources = [
        encode(picture("RGB", 50, 40, 1), quality=70, subsampling=2),
        encode(picture("RGB", 50, 40, 2), quality=70, subsampling=0, restart_marker_blocks=4),
        encode(picture("RGB", 50, 40, 3), quality=70, progressive=True),
        encode(picture("CMYK", 50, 40, 4), quality=70),
        encode(picture("L", 50, 40, 5), quality=70),
    ]
    is_new = hasattr(native, "jpeg12_read_scanlines")  # libjpeg-turbo 3
    decoded = refused = 0
    for _ in range(1500):
        data = bytearray(rng.choice(sources))
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(160, len(data))] = rng.choice([rng.randrange(256), 0, 0xFF])
        data = bytes(data)
        want = pillow(data)
        try:
            got = decoder.decode(data)
        except DecodeError:
            got = None
        if want is None:
            assert got is None, data.hex()
            refused += 1
        else:
            assert got is not None, data.hex()
            # Block smoothing of damaged progressive files changed in libjpeg-turbo 3,
            # which Pillow carries.
            if is_new or b"\xff\xc2" not in data:
                assert np.array_equal(got, want), data.hex()
            decoded += 1
    assert decoded > 100
    assert refused > 100


def test_bytes_behind_the_end(decoder):
    image = picture("RGB", 64, 64, 8)
    data = encode(image)
    want = pillow(data)
    for tail in (b"\0", b"\xff", b"trailer", data, b"\0" * 70000):
        assert np.array_equal(decoder.decode(data + tail), want)
        assert np.array_equal(decoder.decode(data + tail, (0, 0, 5, 5)), want[:5, :5])


@pytest.mark.parametrize("gap", [100, 70000])
@pytest.mark.parametrize("marker", [b"\xff\xae", b"\xff\xd9", b"\xff\xda\x00\x08"])
def test_markers_behind_the_last_row(decoder, gap, marker):
    """Pillow looks for faults behind the last row in the block of 64 KiB that it reached."""
    data = encode(picture("RGB", 64, 64, 9))[:-2] + b"\0" * gap + marker
    want = pillow(data)
    if want is None:
        with pytest.raises(DecodeError):
            decoder.decode(data)
    else:
        assert np.array_equal(decoder.decode(data), want)


def test_pillow_waits_for_no_end_marker_once_all_rows_are_there(decoder):
    """The sizes at which Pillow accepts a file without its last two bytes are ours too."""
    for seed in range(60):
        data = encode(picture("L", 16 + seed, 16, seed), quality=90)[:-2]
        want = pillow(data)
        if want is None:
            with pytest.raises(DecodeError, match="truncated"):
                decoder.decode(data)
        else:
            assert np.array_equal(decoder.decode(data), want)
