# SPDX-License-Identifier: MIT
"""Every filter against Pillow, bit for bit, on drawn sizes and boxes and on the longest sides."""

import kernel_reference as reference
import numpy as np
import PIL
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_chain import Chain
from kernel_examples import KEYS, POSITIONS, SEEDS, SIDES, fixed, noise
from PIL import Image

PASSES = 0 if int(PIL.__version__.split(".")[0]) >= 13 else 1  # of the installed Pillow
LONGEST = 65500  # of a JPEG
every_filter = pytest.mark.parametrize("kind", reference.FILTERS.values(), ids=reference.FILTERS)


def has_other_rule(width, height):
    """Some releases before Pillow 13 have another order of passes there."""
    return PASSES == 1 and height > 100 * width


def run(library, ops, image, **keys):
    with Chain(library, ops) as chain:
        return chain.run(image, **keys)


def resize(library, image, width, height, kind, passes=PASSES):
    return run(library, [("resize", (height, width, -1, kind, passes))], image)


def pillow_resize(image, width, height, kind):
    return np.asarray(Image.fromarray(image).resize((width, height), kind))


@every_filter
@fixed(150)
@given(seed=SEEDS, width=SIDES, height=SIDES, new_width=SIDES, new_height=SIDES)
def test_sizes(library, kind, seed, width, height, new_width, new_height):
    if has_other_rule(width, height):
        return
    image = noise(seed, width, height)
    want = pillow_resize(image, new_width, new_height, kind)
    assert np.array_equal(resize(library, image, new_width, new_height, kind), want)


@every_filter
@fixed(60)
@given(
    seed=SEEDS,
    width=SIDES,
    height=SIDES,
    new_width=st.integers(1, 120),
    new_height=st.integers(1, 120),
    scale=st.tuples(st.floats(0.01, 1.0), st.floats(0.01, 1.0)).map(sorted),
    ratio=st.tuples(st.floats(0.1, 9.0), st.floats(0.1, 9.0)).map(sorted),
    key=KEYS,
    position=POSITIONS,
)
def test_boxes(
    library, kind, seed, width, height, new_width, new_height, scale, ratio, key, position
):
    """RandomResizedCrop: the box that is drawn, as a picture of its own."""
    random = reference.Random(key, position, 0)
    x, y, w, h = reference.draw_crop(random, width, height, scale, ratio)
    if has_other_rule(w, h):
        return
    image = noise(seed, width, height)
    op = "random_resized_crop", (new_height, new_width, *scale, *ratio, kind, PASSES)
    got = run(library, [op], image, key=key, position=position)
    want = pillow_resize(image[y : y + h, x : x + w], new_width, new_height, kind)
    assert np.array_equal(got, want)


LONG = [
    ((LONGEST, 1), (7, 1)),
    ((LONGEST, 2), (224, 3)),
    ((LONGEST, 3), (1, 1)),
    ((LONGEST, 1), (LONGEST - 1, 1)),
    ((LONGEST - 1, 1), (LONGEST, 1)),
    ((3, 2), (LONGEST, 1)),
    ((1000, 2), (LONGEST, 2)),
    ((1, 1), (LONGEST, 2)),
]


@every_filter
@pytest.mark.parametrize("is_turned", [False, True], ids=["wide", "tall"])
@pytest.mark.parametrize(("size", "new"), LONG)
def test_longest_sides(library, kind, size, new, is_turned):
    if is_turned:
        size, new = size[::-1], new[::-1]
    if has_other_rule(*size):
        pytest.skip("some releases before Pillow 13 have another rule there")
    image = noise(sum(size) + kind, *size)
    assert np.array_equal(resize(library, image, *new, kind), pillow_resize(image, *new, kind))


@every_filter
@pytest.mark.parametrize("passes", [0, 1])
@fixed(25)
@given(
    seed=SEEDS,
    sizes=st.tuples(*[st.integers(1, 60)] * 4),
)
def test_both_orders_of_the_passes(library, kind, passes, seed, sizes):
    width, height, *new = sizes
    image = noise(seed, width, height)
    want = reference.resize(image, *new, passes, kind)
    assert np.array_equal(resize(library, image, *new, kind, passes), want)


@every_filter
@fixed(40)
@given(
    seed=SEEDS,
    sizes=st.tuples(*[st.integers(1, 60)] * 4),
    window=st.tuples(*[st.integers(1, 70)] * 2),
)
def test_windows(library, kind, seed, sizes, window):
    """Only a part of the resized picture is computed, from a part of the picture."""
    width, height, *new = sizes
    image = noise(seed, width, height)
    ops = [("resize", (new[1], new[0], -1, kind, PASSES)), ("center_crop", window[::-1])]
    with Chain(library, ops) as chain:
        draw = chain.draw(width, height)
        got = chain.apply(image, draw)
    whole = reference.resize(image, *new, PASSES, kind)
    assert np.array_equal(got, reference.center_crop(whole, *window))
    reach = 2 * reference.SUPPORT.get(kind, 0.5) * max(width / new[0], 1) + 3
    assert draw.region.width <= window[0] * width / new[0] + reach


def test_nearest_adds_up():
    """The long sides above can tell sums of steps from products."""
    size_in, size_out = 1000, LONGEST
    step = size_in / size_out
    products = [int((i + 0.5) * step) for i in range(size_out)]
    assert (reference.nearest(size_in, size_out) != products).any()


def test_rounding_hits_both_ends():
    """Bicubic and lanczos overshoot, so their sums are clipped; the tests above can tell."""
    for kind in (reference.BICUBIC, reference.LANCZOS):
        matrix = reference.weights(50, 80, kind)
        assert matrix.min() < 0
        edge = np.where(np.arange(50) < 25, 0, 255)
        sums = matrix @ edge + (1 << 21) >> 22
        assert sums.min() < 0
        assert sums.max() > 255
