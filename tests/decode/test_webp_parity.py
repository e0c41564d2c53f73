# SPDX-License-Identifier: MIT
"""WebP pixels and verdicts against Pillow: lossy, lossless, transparent, animated, damaged."""

import io
import random
import struct

import numpy as np
import pytest
from native_decoder import FORMATS, DecodeError, shared_files
from PIL import Image
from pillow_answers import check, check_boxes, check_whole, pillow

pytestmark = pytest.mark.skipif(
    "WEBP" not in FORMATS, reason="libwebp is not installed: apt-get install libwebp-dev"
)


def picture(mode: str, width: int, height: int, seed: int) -> Image.Image:
    """Smooth colours with noise on top; transparency in between."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / (5 + c)) + np.cos(y / (7 - c)) for c in range(4)]
    pixels = np.stack(waves, -1) * 55 + 128 + rng.normal(0, 12, (height, width, 4))
    pixels[..., 3] = (waves[3] * 300 + 128).clip(0, 255)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8), "RGBA").convert(mode)


def encode(image: Image.Image, **options) -> bytes:
    out = io.BytesIO()
    image.save(out, "WEBP", **options)
    return out.getvalue()


SIZES = [(1, 1), (2, 3), (7, 7), (8, 16), (17, 9), (33, 40), (130, 67), (131, 70)]


@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGB", "RGBA"])
@pytest.mark.parametrize("lossless", [False, True])
def test_made_by_pillow(decoder, mode, lossless):
    rng = random.Random(1)
    for seed, (width, height) in enumerate(SIZES):
        for quality, method in ((0, 0), (60, 4), (100, 6)):
            options = {"quality": quality, "method": method, "lossless": lossless}
            if mode in ("LA", "RGBA"):
                options |= {"exact": seed % 2 == 1, "alpha_quality": 100 - 50 * (seed % 2)}
            data = encode(picture(mode, width, height, seed), **options)
            check(decoder, data, rng, 12)


@pytest.mark.parametrize("quality", [0, 20, 60, 95])
def test_columns_and_rows_at_the_edges(decoder, quality):
    """Where upsampling or the loop filter would see a box's edge."""
    data = encode(picture("RGB", 45, 38, 2), quality=quality)
    want = pillow(data)
    for first in range(38):
        for size in (1, 2, 3):
            x, y = min(first, 45 - size), min(first, 38 - size)
            got = decoder.decode(data, (x, 0, size, 38))
            assert np.array_equal(got, want[:, x : x + size])
            got = decoder.decode(data, (0, y, 45, size))
            assert np.array_equal(got, want[y : y + size])


def animation(mode: str, lossless: bool, **options) -> bytes:
    frames = [picture(mode, 30, 22, seed) for seed in range(3)]
    return encode(frames[0], save_all=True, append_images=frames[1:], lossless=lossless, **options)


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize("lossless", [False, True])
def test_animations(decoder, mode, lossless):
    rng = random.Random(3)
    for options in ({}, {"background": (9, 80, 200, 255)}, {"allow_mixed": True}):
        data = animation(mode, lossless, **options)
        assert Image.open(io.BytesIO(data)).n_frames == 3
        check(decoder, data, rng, 20)
        for size in range(0, len(data), 7):
            check_whole(decoder, data[:size])


def chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def u24(value: int) -> bytes:
    return value.to_bytes(3, "little")


def riff(*chunks: bytes) -> bytes:
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def extended(flags: int, width: int, height: int) -> bytes:
    return chunk(b"VP8X", struct.pack("<I", flags) + u24(width - 1) + u24(height - 1))


def frame_chunk(data: bytes, x: int, y: int, width: int, height: int, flags: int = 0) -> bytes:
    place = u24(x // 2) + u24(y // 2) + u24(width - 1) + u24(height - 1) + u24(100)
    return chunk(b"ANMF", place + bytes([flags]) + data[12:])


@pytest.mark.parametrize("lossless", [False, True])
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_first_frame_covers_a_part(decoder, mode, lossless):
    """Black around it, as on Pillow's canvas, whatever the background is said to be."""
    rng = random.Random(4)
    still = encode(picture("RGB", 16, 10, 4), lossless=lossless)
    if mode == "RGBA":  # only the lossless kind has no chunk of its own for transparency
        still = encode(picture("RGBA", 16, 10, 4), lossless=True)
    for x, y in ((0, 0), (4, 6), (24, 20), (0, 20)):
        for flags in range(4):
            data = riff(
                extended(0x12, 40, 30),
                chunk(b"ANIM", b"\x10\x60\xc0\xff" + b"\0\0"),
                frame_chunk(still, x, y, 16, 10, flags),
                frame_chunk(still, 2, 2, 16, 10, flags),
            )
            check(decoder, data, rng, 40)
    outside = [extended(0x12, 40, 30), chunk(b"ANIM", bytes(6)), frame_chunk(still, 30, 6, 16, 10)]
    check_whole(decoder, riff(*outside))


def test_other_chunks(decoder):
    rng = random.Random(5)
    image = picture("RGBA", 20, 20, 5)
    data = encode(image, exif=b"Exif\0\0junk", xmp=b"<x/>", icc_profile=b"profile" * 9)
    check(decoder, data, rng)
    check(decoder, data + b"behind", rng)
    check_whole(decoder, data.replace(b"EXIF", b"ABCD"))
    check_whole(decoder, data.replace(b"VP8X", b"VP8Y"))
    check_whole(decoder, data.replace(b"RIFF", b"RIFX"))
    for size in range(len(data)):
        check_whole(decoder, data[:size])


@pytest.mark.parametrize("lossless", [False, True])
def test_cut_files(decoder, lossless):
    data = encode(picture("RGB", 30, 20, 6), lossless=lossless)
    for size in range(len(data)):
        check_whole(decoder, data[:size])
        with pytest.raises(DecodeError):
            decoder.decode(data[:size], (3, 2, 20, 9))
        if size >= 20:  # with the sizes right, so that the picture data itself is cut
            shorter = data[: size & ~1]
            shorter = riff(chunk(shorter[12:16], shorter[20:]))
            check_whole(decoder, shorter)


def test_damaged_files(decoder):
    """Random bytes changed: the same verdict and pixels."""
    rng = random.Random(7)
    sources = [
        *(encode(picture("RGB", 30, 20, s), quality=50 * s) for s in range(3)),
        encode(picture("RGB", 30, 20, 3), lossless=True),
        encode(picture("RGBA", 30, 20, 4), lossless=True),
        encode(picture("RGBA", 30, 20, 5)),
        animation("RGBA", False),
    ]
    decoded = 0
    for _ in range(4000):
        data = bytearray(rng.choice(sources))
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(4, len(data))] = rng.choice([rng.randrange(256), 0, 0xFF])
        decoded += check_whole(decoder, bytes(data)) is not None
    assert decoded > 500


def test_awkward_files(decoder):
    rng = random.Random(8)
    decoded = 0
    for path in shared_files("cases/images", (".webp",)):
        data = path.read_bytes()
        want = check_whole(decoder, data)
        if want is not None:
            check_boxes(decoder, data, want, rng, 50)
            decoded += 1
    assert decoded >= 5


def test_limits(decoder):
    data = encode(picture("RGB", 30, 20, 9))
    with pytest.raises(DecodeError, match="30 x 20 pixels") as caught:
        decoder.decode(data, max_pixels=599)
    assert caught.value.kind == "limit"
    huge = riff(extended(0, 16384, 16384), data[12:])
    with pytest.raises(DecodeError):
        decoder.decode(huge)
