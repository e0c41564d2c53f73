# SPDX-License-Identifier: MIT
"""Normalise, cast and layouts against NumPy, step by step in float32."""

import kernel_reference as reference
import numpy as np
import pytest
from kernel_chain import BFLOAT16, FLOAT16, FLOAT32, UINT8, Chain

IMAGENET = (0.485, 0.456, 0.406, 0.229, 0.224, 0.225)
NUMBERS = [
    IMAGENET,
    (0.5, 0.5, 0.5, 0.5, 0.5, 0.5),
    (0.4914, 0.4822, 0.4465, 0.2023, 0.1994, 0.2010),
    (-3.0, 1e-30, 7e20, -0.25, 3.0, 1e3),
    (0.1, 0.2, 0.3, 1e-39, 3e38, 1e-30),  # a subnormal std, quotients that overflow
]


def picture(width, height, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def every_value():
    """All 256 values in all channels, in different orders."""
    values = np.arange(256, dtype=np.uint8).reshape(4, 64)
    return np.stack([values, values[::-1], values[:, ::-1]], axis=2)


def scaled(image, scale):
    x = image.astype(np.float32)
    if scale == 1:
        return x / np.float32(255)
    return x * np.float32(1.0 / 255.0) if scale == 2 else x


def normalized(x, numbers):
    mean, std = np.float32(numbers[:3]), np.float32(numbers[3:])
    with np.errstate(over="ignore"):
        return (x - mean) / std


def cast(x, dtype):
    with np.errstate(over="ignore"):
        if dtype == FLOAT16:
            return x.astype(np.float16)
    return reference.bfloat16_bits(x) if dtype == BFLOAT16 else x


def laid_out(image, layout):
    return image if layout == "NHWC" else np.moveaxis(image, 2, 0)


def equal_bits(got, want):
    got, want = np.ascontiguousarray(got), np.ascontiguousarray(want)
    return got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()


def check(library, ops, image, want, layout="NHWC", misalignment=0):
    with Chain(library, ops, layout) as chain:
        draw = chain.draw(image.shape[1], image.shape[0])
        got = chain.apply(image, draw, misalignment)
    assert equal_bits(got, laid_out(want, layout))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "channels_last"])
@pytest.mark.parametrize("dtype", [UINT8, FLOAT16, BFLOAT16, FLOAT32])
def test_every_width_layout_and_dtype(library, layout, dtype):
    for width in [*range(1, 40), 224]:
        image = picture(width, 3, width)
        ops = [] if dtype == UINT8 else [("normalize", IMAGENET), ("to_dtype", (dtype, 0))]
        want = image if dtype == UINT8 else cast(normalized(scaled(image, 1), IMAGENET), dtype)
        for misalignment in range(3):
            check(library, ops, image, want, layout, misalignment)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", [UINT8, FLOAT16, BFLOAT16, FLOAT32])
def test_flip_in_the_store(library, layout, dtype):
    for width in range(1, 40):
        image = picture(width, 2, width)
        ops = [("random_horizontal_flip", (1.0,)), ("to_dtype", (dtype, 1))]
        want = image if dtype == UINT8 else cast(scaled(image, 1), dtype)
        check(library, ops, image, want[:, ::-1], layout)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16, FLOAT32])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_normalize_of_every_value(library, layout, dtype, numbers):
    image = every_value()
    for scale in (None, 0, 1, 2):
        # Without ToDtype: x / 255.
        x = scaled(image, 1 if scale is None else scale)
        before = [] if scale is None else [("to_dtype", (FLOAT32, scale))]
        ops = [*before, ("normalize", numbers), ("to_dtype", (dtype, 0))]
        check(library, ops, image, cast(normalized(x, numbers), dtype), layout)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16, FLOAT32])
@pytest.mark.parametrize("scale", [0, 1, 2])
def test_cast_of_every_value(library, layout, dtype, scale):
    image = every_value()
    check(
        library, [("to_dtype", (dtype, scale))], image, cast(scaled(image, scale), dtype), layout
    )


def test_the_ways_to_scale_differ():
    """x / 255 and x * (1 / 255) are not the same float32; the tests above can tell."""
    values = np.arange(256, dtype=np.uint8)
    assert (scaled(values, 1) != scaled(values, 2)).sum() == 126


def test_sixteen_bits_round_to_even(native):
    """The two rounding functions on floats of all sizes, ties and specials."""
    import ctypes

    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 200_000, np.uint32)
    ties = (bits[:50_000] & np.uint32(0xFFFFE000)) | np.uint32(0x1000)
    edges = np.float32(
        [0, -0.0, 65504, 65519.99, 65520, 2**-24, 2**-25, 2**-25 * 1.0001, 2**-14, 6.1e-5, np.inf]
    )
    values = np.concatenate([bits, ties, edges.view(np.uint32)]).view(np.float32)
    values = np.concatenate([values, rng.uniform(-7e4, 7e4, 50_000).astype(np.float32)])
    values = values[~np.isnan(values)]
    for name, want in (
        ("fl_float16_from", cast(values, FLOAT16).view(np.uint16)),
        ("fl_bfloat16_from", cast(values, BFLOAT16)),
    ):
        function = getattr(native, name)
        function.argtypes, function.restype = [ctypes.c_float], ctypes.c_uint16
        got = np.fromiter((function(v) for v in values.tolist()), np.uint16, len(values))
        assert np.array_equal(got, want)
