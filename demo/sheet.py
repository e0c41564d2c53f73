# SPDX-License-Identifier: MIT
"""A contact sheet: the pictures of a batch with their names below."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

COLUMNS, CELL, CAPTION = 8, 160, 18


def save(images: npt.NDArray[np.uint8], names: Sequence[str], path: Path) -> Path:
    """Draws `images` (rows, height, width, 3) in rows of eight."""
    rows = -(-len(images) // COLUMNS)
    canvas = Image.new("RGB", (COLUMNS * CELL, rows * (CELL + CAPTION)), "white")
    pen = ImageDraw.Draw(canvas)
    for number, (pixels, name) in enumerate(zip(images, names, strict=True)):
        left = number % COLUMNS * CELL
        top = number // COLUMNS * (CELL + CAPTION)
        small = Image.fromarray(pixels).resize((CELL - 4, CELL - 4), Image.Resampling.LANCZOS)
        canvas.paste(small, (left + 2, top + 2))
        text = name
        while pen.textlength(text) > CELL - 4:
            text = text[:-1]
        pen.text((left + 3, top + CELL), text, fill="black")
    canvas.save(path)
    return path
