# SPDX-License-Identifier: MIT
"""feedline's data set, transforms and values against torchvision's own, where it is installed."""

import itertools
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# Before torchvision: it skips these tests where there is none.
from torchvision_support import torch  # isort: skip
import PIL
from PIL import Image
from torchvision.datasets import ImageFolder
from torchvision.transforms import Compose, InterpolationMode, v2
from torchvision.transforms import Normalize as NormalizeV1
from torchvision.transforms import ToTensor as ToTensorV1

import feedline as fl
from feedline import transforms as T

PASSES = "pillow13" if int(PIL.__version__.split(".")[0]) >= 13 else "horizontal_first"

# Folders

NAMES = [
    b"a", b"B", b"a-b", b"a.b", b"a b", b"z\n", b"10", b"9", b"_", b"A", b".hidden", b"x.jpg",
    b"\xff\xfe", b"\x80", b"\xc3", b"\xc3\xa9", b"\xed\x9f\xbf", b"\xed\xa0\x80", b"\xee\x80\x80",
    b"\xef\xbf\xbd", b"\xf0\x9f\x98\x80", b"c" * 200, b"a\\b",
]  # fmt: skip
ENDINGS = [b".jpg", b".JPG", b".jPeG", b".png", b".tiff", b".TIF", b".webp", b".ppm", b".gif"]
ENDINGS += [b".txt", b"", b".jpg.txt", b".jpg ", b"jpg"]


def fill(folder: bytes, beside: bytes, depth: int, chance: random.Random) -> None:
    """Files, FIFOs, folders and links of all kinds, but no loops: those torchvision walks."""
    for _ in range(chance.randint(0, 6)):
        path = os.path.join(folder, chance.choice(NAMES) + chance.choice(ENDINGS))
        if os.path.lexists(path):
            continue
        match chance.randint(0, 7):
            case 0:
                os.mkfifo(path)
            case 1:
                os.symlink(b"/nonexistent", path)
            case 2:
                os.symlink(b"/dev/null", path)
            case _:
                open(path, "wb").close()
    for _ in range(chance.randint(0, 2) if depth else chance.randint(1, 5)):
        path = os.path.join(folder, chance.choice(NAMES) + chance.choice([b"", b".jpg"]))
        if depth > 3 or os.path.lexists(path):
            continue
        if chance.random() < 0.1:
            os.symlink(beside, path)
        else:
            os.mkdir(path)
            fill(path, beside, depth + 1, chance)


def facts(kind: Any, root: Path, allow_empty: bool) -> Any:
    try:
        folder = kind(str(root), allow_empty=allow_empty)
    except FileNotFoundError as error:
        # Behind it: which classes, as far as they fit, and advice.
        return str(error).removeprefix("[Errno 2] ")[:35]
    return folder.classes, folder.class_to_idx, list(folder.samples), list(folder.targets)


def test_random_trees(tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    (beside / "below").mkdir(parents=True)
    (beside / "1.jpg").touch()
    (beside / "below" / "2.PNG").touch()
    for number, allow_empty in itertools.product(range(100), (False, True)):
        root = tmp_path / f"{number}, {allow_empty}"
        root.mkdir()
        fill(os.fsencode(root), os.fsencode(beside), 0, random.Random(number))
        mine, theirs = (facts(kind, root, allow_empty) for kind in (fl.ImageFolder, ImageFolder))
        assert mine == theirs


# Values


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every value in every channel, in different orders, without loss."""
    path = tmp_path_factory.mktemp("picture") / "picture.png"
    values = np.random.default_rng(1).permuted(np.tile(np.arange(256), (3, 4)), axis=1)
    Image.fromarray(values.T.reshape(32, 32, 3).astype(np.uint8)).save(path)
    return path


def loaded(path: Path, chain: list[T.Transform]) -> Any:
    with fl.Loader(fl.Files([path]), transform=chain, output="torch") as loader:
        return next(iter(loader)).image[0]


FLOATS = [torch.float32, torch.float16, torch.bfloat16]
NUMBERS = (T.IMAGENET_MEAN, T.IMAGENET_STD)
MEANS = [NUMBERS, ((0.5,) * 3, (0.5,) * 3), ((-1.0, 0.1, 7.0), (1e-3, 3.0, -2.0))]


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("dtype", [torch.uint8, *FLOATS])
def test_to_dtype(picture: Path, dtype: Any, scale: bool) -> None:
    theirs = v2.Compose([v2.PILToTensor(), v2.ToDtype(dtype, scale=scale)])(Image.open(picture))
    mine = loaded(picture, [T.ToDtype(dtype, scale=scale)])
    assert mine.dtype == theirs.dtype
    assert torch.equal(mine, theirs)


@pytest.mark.parametrize("numbers", MEANS, ids=["imagenet", "halves", "odd"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_normalize(picture: Path, numbers: Any, dtype: Any) -> None:
    """Behind v2's ToDtype, and behind ToTensor; a cast afterwards."""
    image, cast = Image.open(picture), v2.ToDtype(dtype)
    scaled = [v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(*numbers)]
    mine = [T.ToDtype(torch.float32, scale=True), T.Normalize(*numbers), T.ToDtype(dtype)]
    assert torch.equal(loaded(picture, mine), cast(v2.Compose(scaled)(image)))
    divided = Compose([ToTensorV1(), NormalizeV1(*numbers)])(image)
    assert torch.equal(loaded(picture, mine[1:]), cast(divided))


# Sizes and parameters


def outcome(make: Any, image: Image.Image) -> Any:
    """(width, height) of the result, or that the parameters or the picture are refused."""
    try:
        return make()(image).size
    except (TypeError, ValueError):
        return "refused"


def chain_outcome(make: Any, path: Path) -> Any:
    try:
        _, height, width = loaded(path, [make()]).shape
    except (TypeError, ValueError):
        return "refused"
    return width, height


def cases() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    nan, infinity = float("nan"), float("inf")
    sizes = [1, 5, 33, -1, (5,), [5], (5, 6), [6, 5], (5, 6, 7), (), None, "5", torch.Size([5, 6])]
    for name in ("Resize", "CenterCrop", "RandomResizedCrop"):
        for size in [*sizes, nan, 1j, np.array(5.5), (None, 5), {5: 1}, range(5, 7)]:
            yield name, (size,), {}
    for most in (None, 0, -1, 5, 6, 100, "6", (6,)):
        yield "Resize", (5,), {"max_size": most}
        yield "Resize", ((5,),), {"max_size": most}
        yield "Resize", ((5, 6),), {"max_size": most}
    for scale in [(0.1, 1.0), [0.1, 1.0], (0, 1), (1, 2), 0.5, nan, ("a", "b"), None, (-2, -1)]:
        yield "RandomResizedCrop", (5,), {"scale": scale}
    for ratio in [(0.5, 2), [0.5, 2.0], (1, 1), 1, None, ("a", 1)]:
        yield "RandomResizedCrop", (5,), {"ratio": ratio}
    for p in (0, 1, 0.5, np.float32(0.5), -0.1, 1.1, None, "0.5", nan, infinity, 1j, (0.5,)):
        yield "RandomHorizontalFlip", (p,), {}
    for mode in (InterpolationMode.BILINEAR, Image.Resampling.BILINEAR, 2, None, [], "BILINEAR"):
        yield "Resize", (5,), {"interpolation": mode}
        yield "RandomResizedCrop", (5,), {"interpolation": mode}
    for antialias in (True, None):
        yield "Resize", (5,), {"antialias": antialias}


@pytest.mark.filterwarnings("ignore:Scale and ratio should be of kind:UserWarning")
def test_sizes_and_refused_parameters(tmp_path: Path) -> None:
    path, image = tmp_path / "picture.png", Image.new("RGB", (50, 40))
    image.save(path)
    for name, arguments, options in cases():
        theirs = outcome(lambda: getattr(v2, name)(*arguments, **options), image)  # noqa: B023
        mine = chain_outcome(lambda: getattr(T, name)(*arguments, **options), path)  # noqa: B023
        assert mine == theirs, (name, arguments, options)


SIZES = [(1, 1), (1, 50), (50, 1), (31, 57), (57, 31), (300, 4)]
RESIZES = [(5, None, 5), (7, 8, (4, 9)), (64, 100, 70), (33, None, (1, 200))]


def pixels_or_none(make: Any) -> Any:
    """None: the result would have no pixels."""
    try:
        return make()
    except ValueError:
        return None


@pytest.mark.parametrize("size", SIZES)
def test_odd_sizes(size: tuple[int, int], tmp_path: Path) -> None:
    """Resize by the shorter edge, capped, and CenterCrop with padding: the pixels of both."""
    path = tmp_path / "picture.png"
    random_pixels = np.random.default_rng(7).integers(0, 256, (*size, 3), dtype=np.uint8)
    Image.fromarray(random_pixels).save(path)
    for edge, most, crop in RESIZES:
        mine = [T.Resize(edge, max_size=most, passes=PASSES), T.CenterCrop(crop)]
        theirs = [v2.Resize(edge, max_size=most), v2.CenterCrop(crop), v2.PILToTensor()]
        expected = pixels_or_none(lambda: v2.Compose(theirs)(Image.open(path)))  # noqa: B023
        result = pixels_or_none(lambda: loaded(path, mine))  # noqa: B023
        assert (result is None) == (expected is None)
        assert result is None or torch.equal(result, expected)
