# SPDX-License-Identifier: MIT
"""The loaders that are compared, each as an iterable of batches over a folder of classes.

The work is the usual one of training: RandomResizedCrop(224), RandomHorizontalFlip, Normalize,
float32 NCHW, shuffled. Torch is imported only by the peers that need it."""

import importlib.util
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

SIZE = 224


def feedline(data: str, batch: int, threads: int, output: str = "numpy", **options: Any) -> Any:
    import feedline as fl
    from feedline import transforms as T

    return fl.Loader(
        fl.ImageFolder(data),
        batch_size=batch,
        shuffle=True,
        seed=0,
        transform=[
            T.RandomResizedCrop(SIZE),
            T.RandomHorizontalFlip(),
            T.Normalize(T.IMAGENET_MEAN, T.IMAGENET_STD),
        ],
        output=output,
        num_threads=threads,
        **options,
    )


def torch_pillow(data: str, batch: int, threads: int) -> Any:
    """torch's DataLoader with `threads` worker processes over torchvision's ImageFolder."""
    torchvision = import_torchvision()
    return torch_loader(torchvision.datasets.ImageFolder(data, compose()), batch, threads)


def torch_decode_jpeg(data: str, batch: int, threads: int) -> Any:
    """The same with torchvision's own decoder in place of Pillow."""
    import torch

    torchvision = import_torchvision()
    decode = torchvision.io.decode_image
    rgb = torchvision.io.ImageReadMode.RGB
    v2 = importlib.import_module("torchvision.transforms.v2")

    def read(path: str) -> Any:
        return decode(torchvision.io.read_file(path), mode=rgb)

    chain = v2.Compose(
        [
            v2.RandomResizedCrop(SIZE, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ]
    )
    dataset = torchvision.datasets.ImageFolder(data, chain, loader=read)
    return torch_loader(dataset, batch, threads)


def compose() -> Any:
    transforms = import_torchvision().transforms
    return transforms.Compose(
        [
            transforms.RandomResizedCrop(SIZE),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ]
    )


def torch_loader(dataset: Any, batch: int, workers: int) -> Any:
    import torch

    return torch.utils.data.DataLoader(
        dataset,
        batch_size=batch,
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0,
    )


LOADERS: dict[str, Callable[..., Iterable[Any]]] = {
    "feedline": feedline,
    "torch+pillow": torch_pillow,
    "torch+decode_jpeg": torch_decode_jpeg,
}


_library: Any = None


def import_torchvision() -> Any:
    """torchvision, also where its compiled half does not fit the torch that is installed: its
    Python half wants two operators to be known by then. Nothing here calls them."""
    global _library
    if _library is None and not has_torchvision_operators():
        import torch

        _library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            _library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision

    return torchvision


def has_torchvision_operators() -> bool:
    """Loads torchvision's operators if they fit, without importing torchvision."""
    import torch

    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("torchvision is not installed", name="torchvision")
    for path in Path(spec.origin).parent.glob("_C*.so"):
        try:
            torch.ops.load_library(path)
        except OSError:
            continue
    return hasattr(torch.ops.torchvision, "nms")


def missing(name: str) -> str | None:
    """Why this peer cannot run here; None if it can."""
    if name == "feedline":
        return None
    for module in ("torch", "torchvision"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed"
    if name == "torch+decode_jpeg":
        import torch

        torchvision = import_torchvision()
        try:
            torchvision.io.decode_jpeg(torch.zeros(4, dtype=torch.uint8))
        except RuntimeError as error:
            if "Couldn't load the image extension" in str(error):
                return "torchvision's decoder does not fit this torch"
    return None
