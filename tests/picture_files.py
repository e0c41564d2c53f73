# SPDX-License-Identifier: MIT
"""Small pictures for tests, and what Pillow and NumPy make of them."""

from pathlib import Path

import numpy as np
import PIL
from PIL import Image

CLASSES = {"ant": 9, "bee": 8, "cat/young": 6}
COUNT = sum(CLASSES.values())
# Whose order of the resizing passes the installed Pillow has.
PASSES = "pillow13" if int(PIL.__version__.split(".")[0]) >= 13 else "horizontal_first"
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def pixels(number: int, width: int, height: int) -> np.ndarray:
    """Something with edges and gradients, different for each number: (height, width, 3) uint8."""
    random = np.random.default_rng(number)
    y, x = np.mgrid[0:height, 0:width]
    waves = [np.sin(x * random.uniform(0.05, 0.6) + y * random.uniform(0.05, 0.6)) for _ in "rgb"]
    noise = random.integers(-20, 21, (height, width, 3))
    return np.clip(np.stack(waves, -1) * 100 + 128 + noise, 0, 255).astype(np.uint8)


def size(number: int) -> tuple[int, int]:
    """(width, height), wide and high ones in turns."""
    return 40 + 7 * (number % 9), 36 + 11 * (number % 7)


def picture(number: int) -> Image.Image:
    """RGB mostly; some grey, one CMYK."""
    image = Image.fromarray(pixels(number, *size(number)))
    if number % 8 == 5:
        return image.convert("L")
    return image.convert("CMYK") if number == 11 else image


def write_folder(root: Path) -> None:
    number = 0
    for name, count in CLASSES.items():
        folder = root / name
        folder.mkdir(parents=True)
        for _ in range(count):
            picture(number).save(folder / f"{number:02}.jpg", quality=90)
            number += 1


def opened(path: str | Path) -> Image.Image:
    """As torchvision's ImageFolder opens it."""
    with Image.open(path) as image:
        return image.convert("RGB")


def shorter_edge(image: Image.Image, size: int) -> Image.Image:
    """torchvision's Resize(size)."""
    width, height = image.size
    if min(width, height) == size:
        return image
    if width <= height:
        return image.resize((size, int(size * height / width)), Image.Resampling.BILINEAR)
    return image.resize((int(size * width / height), size), Image.Resampling.BILINEAR)


def center_crop(image: Image.Image, size: int) -> Image.Image:
    """torchvision's CenterCrop(size) of a picture that is not smaller."""
    width, height = image.size
    left, top = round((width - size) / 2.0), round((height - size) / 2.0)
    return image.crop((left, top, left + size, top + size))


def normalized(image: Image.Image) -> np.ndarray:
    """ToTensor and Normalize in float32: (3, height, width)."""
    scaled = np.asarray(image).astype(np.float32) / np.float32(255)
    result = (scaled - np.float32(MEAN)) / np.float32(STD)
    return result.transpose(2, 0, 1)
