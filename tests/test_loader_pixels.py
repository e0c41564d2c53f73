# SPDX-License-Identifier: MIT
"""Every row of every batch equals what Pillow and NumPy make of its file, bit for bit."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import feedline as fl
import picture_files as reference
from feedline import _core
from feedline import transforms as T

pytestmark = pytest.mark.parallel

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = (
    Path(os.environ.get("FEEDLINE_SHARED", ROOT.parent / "shared")) / "data" / "imagenet-sample"
)
PASSES = reference.PASSES
NORMALIZE = T.Normalize(reference.MEAN, reference.STD)


def batches(dataset: fl.Dataset, transform: Sequence[T.Transform], **options: Any) -> list[Any]:
    options.setdefault("output", "numpy")
    with fl.Loader(dataset, batch_size=5, transform=transform, **options) as loader:
        return list(loader)


def pictures_of(dataset: fl.Dataset) -> list[str]:
    return [path for path, _ in dataset.samples]  # type: ignore[attr-defined]


def test_pictures_of_their_own_sizes(folder: Path) -> None:
    dataset = fl.ImageFolder(folder)
    paths = pictures_of(dataset)
    for batch in batches(dataset, [], shuffle=True, layout="NHWC"):
        assert isinstance(batch.image, list)
        for index, pixels in zip(batch.index, batch.image, strict=True):
            assert (pixels == np.asarray(reference.opened(paths[index]))).all()


def test_resize_crop_normalize(folder: Path) -> None:
    dataset = fl.ImageFolder(folder)
    paths = pictures_of(dataset)
    chain = [T.Resize(34, passes=PASSES), T.CenterCrop(32), NORMALIZE]
    for batch in batches(dataset, chain, shuffle=True):
        assert batch.image.dtype == np.float32
        for index, pixels in zip(batch.index, batch.image, strict=True):
            image = reference.shorter_edge(reference.opened(paths[index]), 34)
            expected = reference.normalized(reference.center_crop(image, 32))
            assert (pixels == expected).all()


def test_resize_to_a_pair_and_scale(folder: Path) -> None:
    dataset = fl.ImageFolder(folder)
    paths = pictures_of(dataset)
    chain = [T.Resize((20, 30), passes=PASSES), T.ToDtype("float32", scale=True)]
    for batch in batches(dataset, chain, layout="NHWC"):
        for index, pixels in zip(batch.index, batch.image, strict=True):
            image = reference.opened(paths[index]).resize((30, 20), Image.Resampling.BILINEAR)
            floats = np.asarray(image).astype(np.float32)
            assert (pixels == floats * np.float32(1 / 255)).all()


@pytest.mark.parametrize("epoch", [0, 3])
def test_random_crops_are_pillows_of_the_drawn_box(folder: Path, epoch: int) -> None:
    """The core tells the box; the pixels are Pillow's, mirrored or not."""
    dataset = fl.ImageFolder(folder)
    paths = pictures_of(dataset)
    chain = [T.RandomResizedCrop((24, 26), passes=PASSES), T.RandomHorizontalFlip()]
    specs = [step._spec() for step in chain]
    mirrored = 0
    with fl.Loader(
        dataset,
        batch_size=5,
        shuffle=True,
        seed=9,
        transform=chain,
        layout="NHWC",
        output="numpy",
    ) as loader:
        loader.set_epoch(epoch)
        position = 0
        for batch in loader:
            for index, pixels in zip(batch.index, batch.image, strict=True):
                image = reference.opened(paths[index])
                rgbx = image.convert("RGBX").tobytes()
                _, (x, y, width, height) = _core.apply_ops(
                    specs, "NHWC", *image.size, rgbx, 9, epoch, position
                )
                crop = image.crop((x, y, x + width, y + height))
                expected = np.asarray(crop.resize((26, 24), Image.Resampling.BILINEAR))
                is_mirrored = bool((pixels == expected[:, ::-1]).all())
                assert is_mirrored or (pixels == expected).all()
                mirrored += is_mirrored
                position += 1
    assert 0 < mirrored < len(dataset)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_flips_that_are_certain(folder: Path, p: float) -> None:
    dataset = fl.ImageFolder(folder)
    plain = batches(dataset, [T.Resize((9, 10))])
    flipped = batches(dataset, [T.Resize((9, 10)), T.RandomHorizontalFlip(p)])
    for one, two in zip(plain, flipped, strict=True):
        assert (two.image == (one.image[..., ::-1] if p else one.image)).all()


def test_real_pictures() -> None:
    if not SAMPLES.is_dir():
        pytest.skip(f"{SAMPLES} is not there")
    paths = sorted(SAMPLES.glob("*.JPEG"))[::15]
    chain = [T.Resize(256, passes=PASSES), T.CenterCrop(224), NORMALIZE]
    for batch in batches(fl.Files(paths), chain, shuffle=True):
        for index, pixels in zip(batch.index, batch.image, strict=True):
            image = reference.shorter_edge(reference.opened(paths[index]), 256)
            expected = reference.normalized(reference.center_crop(image, 224))
            assert (pixels == expected).all()


# What only Pillow reads


def odd_files(root: Path) -> list[Path]:
    """PNG, palette with transparency, animations, WebP, 16 bits; what Pillow alone reads."""
    rgb = Image.fromarray(reference.pixels(1, 50, 40))
    rgba = rgb.copy()
    rgba.putalpha(Image.linear_gradient("L").resize(rgb.size))
    palette = rgb.quantize(17)
    palette.info["transparency"] = 3
    other = Image.fromarray(reference.pixels(2, 50, 40))
    deep = Image.fromarray(np.arange(2000, dtype=np.uint16).reshape(40, 50) * 30)
    files: dict[str, tuple[Image.Image, dict[str, Any]]] = {
        "rgb.png": (rgb, {}),
        "rgba.png": (rgba, {}),
        "palette.png": (palette, {"transparency": 3}),
        "bits.png": (rgb.convert("1"), {}),
        "moving.gif": (rgb, {"save_all": True, "append_images": [other]}),
        "lossless.webp": (rgb, {"lossless": True}),
        "deep.png": (deep, {}),
        "plain.bmp": (rgb, {}),
        "plain.ppm": (rgb, {}),
        "named.jpg": (rgb, {"format": "PNG"}),
    }
    for name, (image, options) in files.items():
        image.save(root / name, **options)
    return [root / name for name in files]


@pytest.mark.filterwarnings("ignore:Palette images with Transparency:UserWarning")
def test_other_formats(tmp_path: Path) -> None:
    paths = odd_files(tmp_path)
    dataset = fl.Files(paths)
    seen = 0
    chain = [T.Resize((30, 20), passes=PASSES)]
    for batch in batches(dataset, chain, layout="NHWC", num_threads=2):
        for index, pixels in zip(batch.index, batch.image, strict=True):
            image = reference.opened(paths[index]).resize((20, 30), Image.Resampling.BILINEAR)
            assert (pixels == np.asarray(image)).all(), paths[index].name
            seen += 1
    assert seen == len(paths)
    for batch in batches(dataset, [], layout="NHWC"):
        for index, pixels in zip(batch.index, batch.image, strict=True):
            assert (pixels == np.asarray(reference.opened(paths[index]))).all()
