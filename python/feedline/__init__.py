# SPDX-License-Identifier: MIT
"""feedline: a data loader for training, with a C core that has its own threads.

import feedline as fl
from feedline import transforms as T

loader = fl.Loader(
    fl.ImageFolder("train"),
    batch_size=256,
    shuffle=True,
    transform=[T.RandomResizedCrop(224), T.RandomHorizontalFlip(),
               T.Normalize(T.IMAGENET_MEAN, T.IMAGENET_STD)],
    output="torch",
)
for images, labels in loader:
    ...
"""

from . import transforms
from ._core import ClosedError, DecodeError, LimitError, Tensor, __version__
from .batch import Batch
from .datasets import Dataset, Field, Files, ImageFolder
from .loader import Loader
from .threads import close_all

__all__ = [
    "Batch",
    "ClosedError",
    "Dataset",
    "DecodeError",
    "Field",
    "Files",
    "ImageFolder",
    "LimitError",
    "Loader",
    "Tensor",
    "__version__",
    "close_all",
    "transforms",
]
