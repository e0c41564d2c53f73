# SPDX-License-Identifier: MIT
"""A traceback holds the iterator while the interpreter ends."""

import sys

import feedline as fl


def fail() -> None:
    for _ in fl.Loader(fl.ImageFolder(sys.argv[1]), batch_size=3, output="numpy"):
        raise RuntimeError


def hook(kind: type[BaseException], value: BaseException, traceback: object) -> None:
    sys.last_value = value


sys.excepthook = hook
try:
    fail()
except RuntimeError as error:
    held = error
