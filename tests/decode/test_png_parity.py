# SPDX-License-Identifier: MIT
"""PNG pixels and verdicts against Pillow: every mode and depth, chunks of all kinds, damage."""

import io
import random
import struct
import zlib

import numpy as np
import pytest
from native_decoder import FORMATS, DecodeError, shared_files
from PIL import Image, PngImagePlugin
from pillow_answers import check, check_boxes, check_whole, pillow

pytestmark = pytest.mark.skipif(
    "PNG" not in FORMATS, reason="libpng is not installed: apt-get install libpng-dev"
)

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
KINDS = [(d, c) for c in CHANNELS for d in (1, 2, 4, 8, 16) if d >= 8 or c in (0, 3)]
KINDS = [kind for kind in KINDS if kind != (16, 3)]
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4)]
PASSES += [(1, 0, 2, 2), (0, 1, 1, 2)]


def chunk(name: bytes, data: bytes = b"", crc: int | None = None) -> bytes:
    crc = zlib.crc32(name + data) if crc is None else crc
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc)


def header(width, height, depth, colour, interlace=0, compression=0, filters=0) -> bytes:
    fields = (width, height, depth, colour, compression, filters, interlace)
    return chunk(b"IHDR", struct.pack(">IIBBBBB", *fields))


def row_bytes(width: int, depth: int, colour: int) -> int:
    return (width * depth * CHANNELS[colour] + 7) // 8


def raw_rows(rng: np.random.Generator, width, height, depth, colour, interlaced) -> bytes:
    """Random rows with random filters: any such bytes are a picture."""
    sizes = [(width, height)]
    if interlaced:
        sizes = [(-(-(width - x) // dx), -(-(height - y) // dy)) for x, y, dx, dy in PASSES]
    out = bytearray()
    for columns, rows in sizes:
        for _ in range(max(rows, 0) if columns > 0 else 0):
            out.append(rng.integers(5))
            out += rng.bytes(row_bytes(columns, depth, colour))
    return bytes(out)


def make(
    depth=8, colour=2, width=23, height=17, interlaced=False, before=b"", behind=b"", seed=0, cut=0
) -> bytes:
    """A PNG of random rows; the data in chunks of `cut` bytes if given."""
    rng = np.random.default_rng(seed)
    packed = zlib.compress(raw_rows(rng, width, height, depth, colour, interlaced), 1)
    step = cut or len(packed)
    data = b"".join(chunk(b"IDAT", packed[i : i + step]) for i in range(0, len(packed), step))
    palette = b""
    if colour == 3:
        palette = chunk(b"PLTE", rng.bytes(3 * int(rng.integers(1, 257))))
    start = SIGNATURE + header(width, height, depth, colour, int(interlaced))
    return start + palette + before + data + behind + chunk(b"IEND")


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize(("depth", "colour"), KINDS)
def test_every_kind(decoder, depth, colour, interlaced):
    rng = random.Random(1)
    sizes = [(w, h) for w in (1, 2, 3, 5, 9) for h in (1, 2, 4, 5, 8)] + [(67, 41), (130, 9)]
    for seed, (width, height) in enumerate(sizes):
        data = make(depth, colour, width, height, interlaced, seed=seed, cut=seed % 3 * 100)
        check(decoder, data, rng)


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("entries", [1, 2, 3, 16, 255, 256])
def test_palettes(decoder, entries, interlaced):
    rng = random.Random(2)
    numbers = np.random.default_rng(entries)
    for depth in (1, 2, 4, 8):
        palette = numbers.bytes(3 * entries)
        for alphas in (None, b"", b"\0", b"\xff\0", b"\xff\x80\0", numbers.bytes(entries)):
            before = chunk(b"PLTE", palette)
            if alphas is not None:
                before += chunk(b"tRNS", alphas)
            raw = raw_rows(numbers, 19, 13, depth, 3, interlaced)
            start = SIGNATURE + header(19, 13, depth, 3, int(interlaced)) + before
            data = start + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND")
            check(decoder, data, rng, 3)


def test_transparent_colours(decoder):
    rng = random.Random(3)
    for depth, colour in KINDS:
        if colour not in (0, 2):
            continue
        for value in (0, 1, 5, 255, 256, 65535):
            key = struct.pack(">H", value) * CHANNELS[colour]
            check(decoder, make(depth, colour, before=chunk(b"tRNS", key)), rng, 2)


MODES = ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"]


@pytest.mark.parametrize("mode", MODES)
def test_made_by_pillow(decoder, mode):
    rng = random.Random(4)
    for seed, (width, height) in enumerate([(1, 1), (7, 5), (33, 40), (130, 67)]):
        numbers = np.random.default_rng(seed)
        y, x = np.mgrid[:height, :width]
        smooth = (np.sin(x / 9 + seed) + np.cos(y / 7)) * 60 + 128
        pixels = (smooth[..., None] + numbers.normal(0, 9, (height, width, 4))).clip(0, 255)
        image = Image.fromarray(pixels.astype(np.uint8), "RGBA")
        if mode == "I;16":
            image = Image.fromarray((pixels[..., 0] * 257).astype(np.uint16))
        elif mode == "P":
            image = image.convert("RGB").quantize(16 + seed)
        else:
            image = image.convert(mode)
        for options in ({}, {"optimize": True}, {"compress_level": 0}, {"compress_type": 3}):
            out = io.BytesIO()
            if mode == "P" and seed == 2:
                options = {**options, "transparency": 3}
            image.save(out, "PNG", **options)
            check(decoder, out.getvalue(), rng, 10)


def test_animations(decoder):
    """The first frame, or the picture that stands in for it."""
    rng = random.Random(5)
    frames = [Image.new("RGB", (20, 12), (i * 40, 9, 250 - i)) for i in range(4)]
    for default in (False, True):
        for mode in ("RGB", "RGBA", "P", "L"):
            out = io.BytesIO()
            first, *rest = [frame.convert(mode) for frame in frames]
            first.save(out, "PNG", save_all=True, append_images=rest, default_image=default)
            check(decoder, out.getvalue(), rng)
            for size in range(0, len(out.getvalue()), 3):
                check_whole(decoder, out.getvalue()[:size])


def frame_control(number=0, width=23, height=17, x=0, y=0) -> bytes:
    return chunk(b"fcTL", struct.pack(">IIIIIHHBB", number, width, height, x, y, 1, 10, 0, 0))


def animation_control(frames=2) -> bytes:
    return chunk(b"acTL", struct.pack(">II", frames, 0))


def packed(size: int) -> bytes:
    return zlib.compress(bytes(size), 9)


INFO = PngImagePlugin.MAX_TEXT_CHUNK
CHUNKS = {
    "no frames": animation_control(0),
    "frames": animation_control() + frame_control(),
    "frames twice": animation_control() + animation_control() + frame_control(),
    "frame without a count": frame_control(),
    "frame of a part": animation_control() + frame_control(0, 10, 10, 3, 2),
    "frame outside": animation_control() + frame_control(0, 23, 17, 1, 0),
    "frame far outside": frame_control(0, 23, 17, 0xFFFFFFFF, 0),
    "frame of nothing": animation_control() + frame_control(0, 0, 0),
    "first frame is second": animation_control() + frame_control(1),
    "two frames": frame_control(0) + frame_control(1),
    "same frame twice": frame_control(0) + frame_control(0),
    "short frame": chunk(b"fcTL", bytes(25)),
    "short count": chunk(b"acTL", bytes(7)),
    "frame data": chunk(b"fdAT", bytes(4) + packed(100)),
    "frame and data": frame_control(0) + chunk(b"fdAT", struct.pack(">I", 1) + packed(100)),
    "short frame data": frame_control(0) + chunk(b"fdAT", b"abc"),
    "gamma": chunk(b"gAMA", bytes(4)),
    "short gamma": chunk(b"gAMA", bytes(3)),
    "short chromaticity": chunk(b"cHRM", bytes(31)),
    "chromaticity": chunk(b"cHRM", bytes(32)),
    "no intent": chunk(b"sRGB"),
    "intent": chunk(b"sRGB", b"\x09"),
    "short size": chunk(b"pHYs", bytes(8)),
    "size": chunk(b"pHYs", bytes(8) + b"\1"),
    "short key": chunk(b"tRNS", b"\0\1\2\3\4"),
    "key": chunk(b"tRNS", b"\0\1\2\3\4\5"),
    "text": chunk(b"tEXt", b"key\0value"),
    "broken text": chunk(b"tEXt", b"key") + chunk(b"tEXt") + chunk(b"tEXt", b"\0a"),
    "packed text": chunk(b"zTXt", b"key\0\0" + packed(999)),
    "packed text, broken": chunk(b"zTXt", b"key\0\0junk"),
    "packed text, cut": chunk(b"zTXt", b"key\0\0" + packed(99999)[:50]),
    "packed text, method": chunk(b"zTXt", b"key\0\1" + packed(999)),
    "packed text, none": chunk(b"zTXt", b"key\0") + chunk(b"zTXt", b"key") + chunk(b"zTXt"),
    "packed text at the limit": chunk(b"zTXt", b"key\0\0" + packed(INFO)),
    "packed text, bomb": chunk(b"zTXt", b"key\0\0" + packed(INFO + 1)),
    "packed text, large bomb": chunk(b"zTXt", b"key\0\0" + packed(9 * INFO)),
    "international": chunk(b"iTXt", b"key\0\0\0en\0key\0v\xc3\xa4lue"),
    "international, packed": chunk(b"iTXt", b"key\0\1\0en\0key\0" + packed(99)),
    "international, bomb": chunk(b"iTXt", b"key\0\1\0en\0key\0" + packed(2 * INFO)),
    "international, other bomb": chunk(b"iTXt", b"key\0\1\1en\0key\0" + packed(2 * INFO)),
    "international, short": b"".join(
        chunk(b"iTXt", text) for text in (b"", b"k", b"k\0", b"k\0\1", b"k\0\1\0", b"k\0\1\0e\0")
    ),
    "profile": chunk(b"iCCP", b"name\0\0" + packed(3000)),
    "profile, broken": chunk(b"iCCP", b"name\0\0" + b"junk" * 1000),
    "profile, method": chunk(b"iCCP", b"name\0\1" + packed(3000)),
    "profile, no method": chunk(b"iCCP", b"name\0"),
    "profile, no name": chunk(b"iCCP", b"\0\0" + packed(3000)),
    "profile, no end": chunk(b"iCCP", b"name"),
    "profile, odd": chunk(b"iCCP", b"\0"),
    "profile, empty": chunk(b"iCCP"),
    "profile at the limit": chunk(b"iCCP", b"n\0\0" + packed(INFO)),
    "profile, bomb": chunk(b"iCCP", b"n\0\0" + packed(INFO + 1)),
    "exif": chunk(b"eXIf", b"MM\0*junk"),
    "unknown": chunk(b"abCD", b"x") + chunk(b"ABCD", b"x") + chunk(b"_1_9"),
    "impossible name": chunk(b"ab D", b"x"),
    "checksum": chunk(b"tEXt", b"key\0value", 1),
    "checksum of the unknown": chunk(b"abCD", b"x", 1),
    "header again": header(9, 9, 8, 2),
    "short header": chunk(b"IHDR", bytes(12)),
    "palette": chunk(b"PLTE", bytes(9)),
    "long palette": chunk(b"PLTE", bytes(771)),
    "end": chunk(b"IEND"),
    "data": chunk(b"IDAT", b""),
    "more data": chunk(b"IDAT", b"abc") + chunk(b"DDAT", b"abc"),
}


@pytest.mark.parametrize("name", CHUNKS)
@pytest.mark.parametrize("colour", [0, 2, 3, 6])
def test_chunks(decoder, name, colour):
    """Before and behind the picture, whole and cut."""
    text = CHUNKS[name]
    for data in (make(8, colour, before=text), make(8, colour, behind=text)):
        check_whole(decoder, data)
        for size in {len(data) - n for n in (1, 4, 8, 11, 12, 13, 14, 16, 17)}:
            check_whole(decoder, data[:size])


def test_all_texts_together(decoder):
    """Pillow's limit for a whole file: 64 MiB of text."""
    full = chunk(b"zTXt", b"key\0\0" + packed(INFO))
    for text in (full * 64, full * 65, chunk(b"zTXt", b"\0\0" + packed(INFO)) * 65):
        check_whole(decoder, make(before=text))
    check_whole(decoder, make(before=full * 40, behind=full * 25))


def test_odd_headers(decoder):
    rng = np.random.default_rng(6)
    for fields in [
        *((9, 7, depth, colour) for depth in (0, 1, 3, 8, 16, 32) for colour in range(8)),
        (0, 7, 8, 2), (9, 0, 8, 2), (1 << 31, 1, 8, 0), (9, 7, 8, 2, 1), (9, 7, 8, 2, 7),
        (9, 7, 8, 2, 0, 3), (9, 7, 8, 2, 0, 0, 1),
    ]:  # fmt: skip
        depth = fields[2] if fields[2] in (1, 8, 16) else 8
        colour = fields[3] if fields[3] in CHANNELS else 2
        interlaced = len(fields) > 4 and fields[4] != 0
        data = zlib.compress(raw_rows(rng, 9, 7, depth, colour, interlaced))
        check_whole(decoder, SIGNATURE + header(*fields) + chunk(b"IDAT", data) + chunk(b"IEND"))
    for data in (b"", SIGNATURE, SIGNATURE + chunk(b"IEND"), SIGNATURE + chunk(b"IDAT", b"")):
        check_whole(decoder, data)


def test_streams(decoder):
    """The compressed data: its end, its check, its window, its filters."""
    rng = np.random.default_rng(7)
    raw = raw_rows(rng, 40, 30, 8, 2, False)
    good = zlib.compress(raw)
    start = SIGNATURE + header(40, 30, 8, 2)
    small = zlib.compressobj(9, zlib.DEFLATED, 9)
    small_window = small.compress(raw) + small.flush()
    bad_filter = bytearray(raw)
    bad_filter[121 * 15] = 5
    streams = {
        "bad check": good[:-1] + bytes([good[-1] ^ 1]),
        "no check": good[:-4],
        "part of the check": good[:-2],
        "bytes behind": good + b"junk",
        "rows behind": zlib.compress(raw + bytes(5000)),
        "a bomb behind": zlib.compress(raw + bytes(1 << 24)),
        "small window": small_window,
        "wrong window": bytes([0x08, 0x1D]) + good[2:],
        "no deflate": bytes([0x79, 0xBB]) + good[2:],
        "bad filter": zlib.compress(bytes(bad_filter)),
        "half a row": zlib.compress(raw[:300]),
        "stored": zlib.compress(raw, 0),
        "nothing": b"",
    }
    for stream in streams.values():
        for cut in (7, 1000, 70000):
            parts = [stream[i : i + cut] for i in range(0, len(stream), cut)] or [b""]
            data = start + b"".join(chunk(b"IDAT", part, 9) for part in parts)
            check_whole(decoder, data + chunk(b"IEND"))
            check_whole(decoder, data)


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize(("depth", "colour"), [(8, 2), (4, 3), (16, 0), (1, 0)])
def test_stream_that_ends_early(decoder, depth, colour, interlaced):
    """Behind a row: the rest is black, as with Pillow; in the middle of one: an error."""
    rng = random.Random(8)
    good = make(depth, colour, 40, 30, interlaced, cut=0)
    start, data = good.split(b"IDAT")[0][:-4], good.split(b"IDAT")[1]
    raw = zlib.decompress(data[: data.index(b"IEND") - 8])
    decoded = 0
    for size in range(0, len(raw), 5 if len(raw) > 500 else 1):
        packed = zlib.compress(raw[:size], 0 if size % 2 else 6)
        for cut in (len(packed), len(packed) - 4, 60):
            parts = [packed[i : i + cut] for i in range(0, len(packed), cut)]
            data = start + b"".join(chunk(b"IDAT", part) for part in parts) + chunk(b"IEND")
            want = check_whole(decoder, data)
            if want is not None:
                decoded += 1
                check_boxes(decoder, data, want, rng, 3)
            check_whole(decoder, data[:-17])
    assert decoded >= 5


@pytest.mark.parametrize("interlaced", [False, True])
def test_cut_files(decoder, interlaced):
    """Wholes agree about every cut; a box, too, but for what is missing below it."""
    data = make(8, 2, 30, 20, interlaced, cut=300, before=CHUNKS["text"], behind=CHUNKS["text"])
    want = pillow(data)
    for size in range(len(data)):
        check_whole(decoder, data[:size])
        try:
            got = decoder.decode(data[:size], (3, 2, 20, 9))
        except DecodeError:
            assert pillow(data[:size]) is None
        else:
            assert np.array_equal(got, want[2:11, 3:23])
            assert pillow(data[:size]) is not None
    check_boxes(decoder, data, want, random.Random(9), 50)


def test_damaged_files(decoder):
    """Random bytes changed: the same verdict and pixels."""
    rng = random.Random(10)
    sources = [
        make(depth, colour, 12, 9, interlaced, CHUNKS["packed text"], CHUNKS["text"], cut=90)
        for depth, colour in KINDS
        for interlaced in (False, True)
    ]
    decoded = 0
    for _ in range(6000):
        data = bytearray(rng.choice(sources))
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(8, len(data))] = rng.choice([rng.randrange(256), 0, 0xFF])
        if rng.random() < 0.7:
            data = repair(data)
        decoded += check_whole(decoder, bytes(data)) is not None
    assert decoded > 1000


def repair(data: bytearray) -> bytearray:
    """With right checksums, so that the damage gets further in."""
    at = 8
    while at + 8 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        end = at + 8 + size
        if end + 4 > len(data):
            break
        data[end : end + 4] = struct.pack(">I", zlib.crc32(data[at + 4 : end]))
        at = end + 4
    return data


def test_awkward_files(decoder):
    rng = random.Random(11)
    decoded = []
    for path in shared_files("cases/images", (".png",)):
        want = check_whole(decoder, path.read_bytes())
        if want is not None:
            check_boxes(decoder, path.read_bytes(), want, rng, 50)
            decoded.append(path.name)
    assert len(decoded) >= 5


def test_limits(decoder):
    data = make(8, 2, 30, 20)
    with pytest.raises(DecodeError, match="30 x 20 pixels") as caught:
        decoder.decode(data, max_pixels=599)
    assert caught.value.kind == "limit"
    huge = SIGNATURE + header(0x7FFFFFFF, 0x7FFFFFFF, 16, 6) + chunk(b"IDAT", b"")
    with pytest.raises(DecodeError) as caught:
        decoder.decode(huge)
    assert caught.value.kind == "limit"
