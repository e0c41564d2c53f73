# SPDX-License-Identifier: MIT
"""Makes a folder of photo-like JPEGs, the same ones each time: for the demo and the benchmarks.

Sizes, sampling of colour, quality, progressive scans, grey and optimised tables vary as they do
in data sets from the web. The pictures lie in one folder a class, as ImageFolder wants them.
`python demo/pictures.py FOLDER [COUNT]` makes them by hand."""

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

VERSION = 1  # of what is drawn: a folder of another version is made anew
CLASSES = ("dunes", "forest", "harbour", "leaves", "market", "night", "rocks", "sky")
SUBSAMPLINGS = ("4:4:4", "4:2:2", "4:2:0", "4:2:0")  # the web's photos are mostly 4:2:0
LONG_SIDES = (200, 320, 400, 500, 500, 500, 640, 800, 1024, 1200)
COUNT = 400

# Two colours a class, dark and light; everything in a picture lies around the line between them.
PALETTES = {
    "dunes": ((92, 54, 28), (240, 205, 150)),
    "forest": ((12, 34, 16), (150, 180, 110)),
    "harbour": ((18, 42, 70), (190, 205, 215)),
    "leaves": ((40, 60, 8), (235, 225, 90)),
    "market": ((90, 20, 30), (250, 190, 120)),
    "night": ((4, 6, 20), (130, 110, 90)),
    "rocks": ((45, 42, 40), (205, 195, 185)),
    "sky": ((60, 110, 190), (245, 240, 235)),
}


def draw(number: int) -> Image.Image:
    """Picture `number`: noise of all scales with the falling spectrum of photos, a few sharp
    shapes, and a little grain as a sensor's."""
    random = np.random.default_rng([VERSION, number])
    name = CLASSES[number % len(CLASSES)]
    long_side = int(LONG_SIDES[int(random.integers(len(LONG_SIDES)))] * random.uniform(0.97, 1.0))
    short_side = max(200, int(long_side * random.choice([2 / 3, 3 / 4, 3 / 4, 1.0])))
    size = (long_side, short_side) if random.random() < 0.7 else (short_side, long_side)

    shade = np.zeros((size[1], size[0]), np.float32)
    tint = np.zeros_like(shade)
    for cells, weight in ((3, 1.0), (8, 0.5), (24, 0.28), (80, 0.16), (260, 0.09)):
        shade += weight * smooth_noise(random, cells, size)
        if cells <= 24:
            tint += weight * smooth_noise(random, cells, size)
    shade = np.clip(0.5 + 0.35 * shade, 0, 1)[..., None]
    dark, light = (np.array(colour, np.float32) for colour in PALETTES[name])
    pixels = dark + (light - dark) * shade
    pixels += tint[..., None] * np.array([14, -4, -12], np.float32)

    picture = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    add_shapes(random, picture)
    grain = random.integers(-5, 6, (size[1], size[0], 1), np.int16)
    grained = np.asarray(picture).astype(np.int16) + grain
    picture = Image.fromarray(grained.clip(0, 255).astype(np.uint8))
    return picture.convert("L") if number % 16 == 7 else picture


def smooth_noise(random: np.random.Generator, cells: int, size: tuple[int, int]) -> np.ndarray:
    rows = max(2, cells * size[1] // max(size))
    columns = max(2, cells * size[0] // max(size))
    grid = Image.fromarray(random.normal(size=(rows, columns)).astype(np.float32))
    return np.asarray(grid.resize(size, Image.Resampling.BICUBIC))


def add_shapes(random: np.random.Generator, picture: Image.Image) -> None:
    """Hard edges: the rest of a photo is smooth."""
    pen = ImageDraw.Draw(picture)
    width, height = picture.size
    for _ in range(int(random.integers(4, 12))):
        x, y = random.uniform(0, width), random.uniform(0, height)
        reach = random.uniform(0.03, 0.22) * min(width, height)
        colour = picture.getpixel((int(random.integers(width)), int(random.integers(height))))
        kind = int(random.integers(3))
        if kind == 0:
            pen.ellipse((x - reach, y - reach, x + reach, y + reach), fill=colour)
        elif kind == 1:
            pen.line((x, y, random.uniform(0, width), y + reach), fill=colour, width=3)
        else:
            corners = [
                (x + random.normal() * reach, y + random.normal() * reach) for _ in range(5)
            ]
            pen.polygon(corners, fill=colour)


def write(folder: Path, number: int) -> Path:
    random = np.random.default_rng([VERSION, number, 1])
    name = CLASSES[number % len(CLASSES)]
    path = folder / name / f"{name}-{number:04d}.jpg"
    draw(number).save(
        path,
        quality=int(random.integers(60, 98)),
        subsampling=str(random.choice(SUBSAMPLINGS)),
        progressive=number % 11 == 3,
        optimize=number % 5 == 1,
    )
    return path


def make(
    folder: Path, count: int = COUNT, progress: Callable[[Iterator[Path]], Iterator[Path]] = iter
) -> Path:
    """Makes `count` pictures under `folder`, unless they are there already, and returns it."""
    mark = folder / ".made"
    if mark.exists() and mark.read_text() == f"{VERSION} {count}\n":
        return folder
    for name in CLASSES:
        (folder / name).mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for _ in progress(pool.map(lambda number: write(folder, number), range(count))):
            pass
    mark.write_text(f"{VERSION} {count}\n")
    return folder


if __name__ == "__main__":
    made = make(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else COUNT)
    print(f"{len(list(made.rglob('*.jpg')))} pictures in {made}")
