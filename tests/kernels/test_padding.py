# SPDX-License-Identifier: MIT
"""Pad, RandomCrop and RandomVerticalFlip against their definitions in NumPy."""

import kernel_reference as reference
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_chain import Chain
from kernel_examples import KEYS, POSITIONS, SEEDS, fixed, noise

SMALL = st.integers(1, 12)
PADDINGS = st.tuples(*[st.one_of(st.integers(-6, 6), st.integers(0, 30))] * 4)
FILLS = st.tuples(*[st.integers(0, 255)] * 3)
IMPOSSIBLE = r"leaves nothing|Required crop size|would make a picture of"
every_mode = pytest.mark.parametrize("mode", reference.MODES)


def pad_numbers(padding, mode, fill):
    return (*padding, reference.MODES.index(mode), *fill)


def run(library, ops, image, **keys):
    with Chain(library, ops) as chain:
        return chain.run(image, **keys)


@every_mode
@fixed(300)
@given(seed=SEEDS, width=SMALL, height=SMALL, padding=PADDINGS, fill=FILLS)
def test_pad(library, mode, seed, width, height, padding, fill):
    image = noise(seed, width, height)
    ops = [("pad", pad_numbers(padding, mode, fill))]
    want = reference.pad(image, padding, mode, fill)
    if want is None:
        with pytest.raises(ValueError, match=r"Pad: the padding .* leaves nothing of a"):
            run(library, ops, image)
    else:
        assert np.array_equal(run(library, ops, image), want)


@every_mode
@fixed(300)
@given(
    seed=SEEDS,
    width=SMALL,
    height=SMALL,
    size=st.tuples(SMALL, SMALL),
    padding=st.one_of(st.just((0, 0, 0, 0)), PADDINGS),
    pad_if_needed=st.booleans(),
    fill=FILLS,
    key=KEYS,
    position=POSITIONS,
)
def test_random_crop(
    library, mode, seed, width, height, size, padding, pad_if_needed, fill, key, position
):
    image = noise(seed, width, height)
    numbers = *size, float(pad_if_needed), *pad_numbers(padding, mode, fill)
    random = reference.Random(key, position, 0)
    want = reference.random_crop(random, image, size, padding, pad_if_needed, mode, fill)
    with Chain(library, [("random_crop", numbers)]) as chain:
        if want is None:
            with pytest.raises(ValueError, match=IMPOSSIBLE):
                chain.draw(width, height, key, position)
            return
        draw = chain.draw(width, height, key, position)
        assert np.array_equal(chain.apply(image, draw), want)
        # No more of the picture is read than the crop shows.
        assert draw.region.height <= max(size[0], 1)
        assert draw.region.width <= max(size[1], 1)


def test_a_crop_that_is_too_large_says_torchvisions_words(library):
    numbers = (9, 8, 0, *pad_numbers((1, 0, 1, 0), "constant", (0, 0, 0)))
    words = r"^Required crop size \(9, 8\) is larger than input image size \(20, 7\)"
    with pytest.raises(ValueError, match=words):
        run(library, [("random_crop", numbers)], noise(1, 5, 20))


def test_random_crops_reach_every_place(library):
    """A 3 x 2 crop of a 5 x 4 picture has nine places; each is drawn about as often."""
    image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    numbers = (2, 3, 0, *pad_numbers((0, 0, 0, 0), "constant", (0, 0, 0)))
    counts = {}
    with Chain(library, [("random_crop", numbers)]) as chain:
        for position in range(900):
            corner = int(chain.run(image, position=position)[0, 0, 0])
            counts[corner] = counts.get(corner, 0) + 1
    assert set(counts) == {3 * (5 * y + x) for y in range(3) for x in range(3)}
    assert min(counts.values()) > 60


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "channels_last"])
@pytest.mark.parametrize("mirrored", [0.0, 1.0])
def test_upside_down_in_the_store(library, layout, mirrored):
    image = noise(4, 13, 21)
    ops = [("random_vertical_flip", (1.0,)), ("random_horizontal_flip", (mirrored,))]
    want = image[::-1, ::-1] if mirrored else image[::-1]
    want = want if layout == "NHWC" else np.moveaxis(want, 2, 0)
    with Chain(library, ops, layout) as chain:
        assert np.array_equal(chain.run(image), want)
        # Nothing is kept for it.
        plain = [("random_vertical_flip", (0.0,))]
        with Chain(library, plain, layout) as other:
            assert chain.draw(13, 21).scratch == other.draw(13, 21).scratch


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_vertical_flips_are_drawn_by_position(library, p):
    image = noise(5, 6, 7)
    flips = 0
    with Chain(library, [("random_vertical_flip", (p,))]) as chain:
        for position in range(200):
            is_flipped = reference.Random(8, position, 0).unit() < p
            want = image[::-1] if is_flipped else image
            assert np.array_equal(chain.run(image, 8, position), want)
            flips += is_flipped
    assert abs(flips - 200 * p) <= 30


@fixed(400)
@given(data=st.data(), seed=SEEDS, key=KEYS, position=POSITIONS)
def test_random_chains(library, data, seed, key, position):
    """Any order of the geometry ops, each really applied one after the other."""
    image = want = noise(seed, data.draw(st.integers(1, 50)), data.draw(st.integers(1, 50)))
    side = st.integers(1, 60)
    ops = []
    for i in range(data.draw(st.integers(0, 6))):
        name = data.draw(st.sampled_from(sorted(STEPS)))
        random = reference.Random(key, position, i)
        numbers, want = STEPS[name](data.draw, side, random, want)
        ops.append((name, numbers))
        if want is None:
            with pytest.raises(ValueError, match=IMPOSSIBLE):
                run(library, ops, image, key=key, position=position)
            return
    got = run(library, ops, image, key=key, position=position)
    assert np.array_equal(got, want), (image.shape, ops)


def step_resize(draw, side, random, image):
    height, width, passes = draw(side), draw(side), draw(st.integers(0, 1))
    kind = draw(st.sampled_from(list(reference.FILTERS.values())))
    numbers = (height, width, -1, kind, passes)
    return numbers, reference.resize(image, width, height, passes, kind)


def step_resized_crop(draw, side, random, image):
    height, width, passes = draw(side), draw(side), draw(st.integers(0, 1))
    kind = draw(st.sampled_from(list(reference.FILTERS.values())))
    x, y, w, h = reference.draw_crop(random, image.shape[1], image.shape[0], (0.1, 1), (0.5, 2))
    numbers = (height, width, 0.1, 1.0, 0.5, 2.0, kind, passes)
    return numbers, reference.resize(image[y : y + h, x : x + w], width, height, passes, kind)


def step_center_crop(draw, side, random, image):
    height, width = draw(side), draw(side)
    return (height, width), reference.center_crop(image, width, height)


def step_pad(draw, side, random, image):
    padding, mode, fill = draw(PADDINGS), draw(st.sampled_from(reference.MODES)), draw(FILLS)
    return pad_numbers(padding, mode, fill), reference.pad(image, padding, mode, fill)


def step_random_crop(draw, side, random, image):
    size, padding, fill = (draw(side), draw(side)), draw(PADDINGS), draw(FILLS)
    mode, if_needed = draw(st.sampled_from(reference.MODES)), draw(st.sampled_from([1, 1, 0]))
    numbers = (*size, if_needed, *pad_numbers(padding, mode, fill))
    return numbers, reference.random_crop(random, image, size, padding, if_needed, mode, fill)


def step_horizontal_flip(draw, side, random, image):
    return (0.5,), image[:, ::-1] if random.unit() < 0.5 else image


def step_vertical_flip(draw, side, random, image):
    return (0.5,), image[::-1] if random.unit() < 0.5 else image


STEPS = {
    "resize": step_resize,
    "random_resized_crop": step_resized_crop,
    "center_crop": step_center_crop,
    "pad": step_pad,
    "random_crop": step_random_crop,
    "random_horizontal_flip": step_horizontal_flip,
    "random_vertical_flip": step_vertical_flip,
}


@every_mode
def test_padding_of_a_large_picture_keeps_few_rows(native, mode):
    """A 12-megapixel picture is never in memory as a whole (48 MB)."""
    with Chain(native, [("pad", pad_numbers((7, 7, 7, 7), mode, (0, 0, 0)))]) as chain:
        assert chain.draw(4000, 3000).scratch < 1 << 20
