# SPDX-License-Identifier: MIT
"""Geometry against Pillow, bit for bit, and against the rules written in Python."""

import kernel_reference as reference
import numpy as np
import PIL
import pytest
from kernel_chain import Chain
from PIL import Image

BILINEAR = 2
PASSES = 0 if int(PIL.__version__.split(".")[0]) >= 13 else 1  # of the installed Pillow


def noise(rng, width, height):
    """A picture; every third one has only black and white, the worst case for rounding."""
    image = rng.integers(0, 256, (height, width, 3), np.uint8)
    return np.where(image > 127, 255, 0).astype(np.uint8) if rng.integers(3) == 0 else image


def pillow_resize(image, width, height, filter=BILINEAR):
    resized = Image.fromarray(image).resize((width, height), filter)
    return np.asarray(resized)


def random_side(rng):
    """1 to 400; small ones and one pixel come often."""
    return int(rng.choice([1, 2, rng.integers(1, 12), rng.integers(1, 100), rng.integers(1, 401)]))


def resize_op(width, height, passes=PASSES, filter=BILINEAR):
    return "resize", (height, width, -1, filter, passes)


def run(library, ops, image, **keys):
    with Chain(library, ops) as chain:
        return chain.run(image, **keys)


def test_resize_is_pillows(library):
    rng = np.random.default_rng(1)
    for _ in range(2000):
        width, height, new_width, new_height = (random_side(rng) for _ in range(4))
        if PASSES == 1 and height > 100 * width:
            continue  # some releases before 13 have another rule there
        image = noise(rng, width, height)
        got = run(library, [resize_op(new_width, new_height)], image)
        want = pillow_resize(image, new_width, new_height)
        assert np.array_equal(got, want), (width, height, new_width, new_height)


@pytest.mark.parametrize("size", [(4000, 3), (3, 4000), (6000, 40), (40, 6000), (1, 9000)])
@pytest.mark.parametrize("new", [(1, 1), (7, 5), (224, 224), (1, 300), (500, 2)])
def test_extreme_shapes(library, size, new):
    if PASSES == 1 and size[1] > 100 * size[0]:
        pytest.skip("some releases before Pillow 13 have another rule there")
    image = noise(np.random.default_rng(2), *size)
    assert np.array_equal(run(library, [resize_op(*new)], image), pillow_resize(image, *new))


@pytest.mark.parametrize("passes", [0, 1])
def test_both_orders_of_the_passes(library, passes):
    rng = np.random.default_rng(3)
    differing = 0
    for _ in range(150):
        width, height, new_width, new_height = (int(n) for n in rng.integers(1, 90, 4))
        image = noise(rng, width, height)
        want = reference.resize(image, new_width, new_height, passes)
        got = run(library, [resize_op(new_width, new_height, passes)], image)
        assert np.array_equal(got, want), (width, height, new_width, new_height)
        other = reference.resize(image, new_width, new_height, 1 - passes)
        differing += not np.array_equal(want, other)
    assert differing > 5  # the order shows, so the test can tell


def test_the_reference_is_pillow():
    rng = np.random.default_rng(4)
    for _ in range(150):
        width, height, new_width, new_height = (int(n) for n in rng.integers(1, 90, 4))
        image = noise(rng, width, height)
        want = pillow_resize(image, new_width, new_height)
        assert np.array_equal(reference.resize(image, new_width, new_height, PASSES), want)


def test_random_resized_crop_is_drawn_and_resized_as_described(library):
    rng = np.random.default_rng(5)
    seen = set()
    for i in range(600):
        width, height = random_side(rng), random_side(rng)
        new_width, new_height = int(rng.integers(1, 260)), int(rng.integers(1, 260))
        low, high = sorted(rng.uniform(0.02, 1.2, 2))
        scale, ratio = [((0.08, 1.0), (3 / 4, 4 / 3)), ((low, high), (0.2, 9.0))][i % 2]
        key, position = int(rng.integers(1 << 63)), int(rng.integers(1 << 40))
        op = "random_resized_crop", (new_height, new_width, *scale, *ratio, BILINEAR, PASSES)
        flip = "random_horizontal_flip", (0.5,)
        image = noise(rng, width, height)
        got = run(library, [op, flip], image, key=key, position=position)

        random = reference.Random(key, position, 0)
        x, y, w, h = reference.draw_crop(random, width, height, scale, ratio)
        if PASSES == 1 and h > 100 * w:
            continue
        want = pillow_resize(image[y : y + h, x : x + w], new_width, new_height)
        is_flipped = reference.Random(key, position, 1).unit() < 0.5
        seen.add(is_flipped)
        want = want[:, ::-1] if is_flipped else want
        assert np.array_equal(got, want), (width, height, (x, y, w, h), new_width, new_height)
    assert seen == {True, False}


def test_random_resized_crop_draws(native):
    """Many boxes, exactly, with the case in which no try fits."""
    rng = np.random.default_rng(6)
    for i in range(3000):
        width, height = random_side(rng), random_side(rng)
        # No try fits at a scale above 1: the central crop.
        scale, ratio = [((0.08, 1.0), (3 / 4, 4 / 3)), ((1.5, 4.0), (0.5, 2.0))][i % 5 == 0]
        values = (3, 5, *scale, *ratio, BILINEAR, 0)
        with Chain(native, [("random_resized_crop", values)]) as chain:
            draw = chain.draw(width, height, key=i * 0x9E3779B97F4A7C15 % (1 << 64), position=i)
        random = reference.Random(i * 0x9E3779B97F4A7C15 % (1 << 64), i, 0)
        want = reference.draw_crop(random, width, height, scale, ratio)
        x, y, w, h = draw.values[0][0], draw.values[0][1], draw.values[0][2], draw.values[0][3]
        assert (x, y, w, h) == want
        # Only the crop is read, and all of it that the resize looks at.
        box = draw.region
        assert x <= box.x < box.x + box.width <= x + w
        assert y <= box.y < box.y + box.height <= y + h


@pytest.mark.parametrize("max_size", [None, 40, 70])
def test_shorter_edge(library, max_size):
    rng = np.random.default_rng(7)
    for _ in range(150):
        width, height = int(rng.integers(1, 120)), int(rng.integers(1, 120))
        new_width, new_height = reference.resized_size(width, height, 32, max_size)
        image = noise(rng, width, height)
        ops = [("resize", (32, -1, -1 if max_size is None else max_size, BILINEAR, PASSES))]
        if new_width == 0 or new_height == 0:
            with pytest.raises(ValueError, match="Resize would make a picture of"):
                run(library, ops, image)
            continue
        if PASSES == 1 and height > 100 * width:
            continue
        want = pillow_resize(image, new_width, new_height)
        assert np.array_equal(run(library, ops, image), want)


def test_resize_and_center_crop_compute_only_the_window(library):
    rng = np.random.default_rng(8)
    for width, height in [(500, 375), (375, 500), (1000, 40), (333, 64), (20, 30)]:
        image = noise(rng, width, height)
        new_width, new_height = reference.resized_size(width, height, 64)
        ops = [("resize", (64, -1, -1, BILINEAR, PASSES)), ("center_crop", (56, 56))]
        with Chain(library, ops) as chain:
            draw = chain.draw(width, height)
            got = chain.apply(image, draw)
        want = reference.center_crop(pillow_resize(image, new_width, new_height), 56, 56)
        assert np.array_equal(got, want)
        reach = 2 * max(width / new_width, 1) + 3
        assert draw.region.width <= 56 * width / new_width + reach
        assert draw.region.height <= 56 * height / new_height + reach


def test_scratch_of_a_large_picture_is_small(native):
    """A 12-megapixel picture is never in memory as a whole (48 MB)."""
    for width, height in [(4000, 3000), (3000, 4000)]:
        for passes in (0, 1):
            ops = [("resize", (256, -1, -1, BILINEAR, passes)), ("center_crop", (224, 224))]
            with Chain(native, ops) as chain:
                assert chain.draw(width, height).scratch < 2 << 20
            values = (224, 224, 1.0, 1.0, 0.75, 1.3333, BILINEAR, passes)
            with Chain(native, [("random_resized_crop", values)]) as chain:
                assert chain.draw(width, height).scratch < 2 << 20
