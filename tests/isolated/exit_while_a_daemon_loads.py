# SPDX-License-Identifier: MIT
"""The interpreter ends while a daemon thread is inside next()."""

import contextlib
import sys
import threading

import feedline as fl

started = threading.Event()


def load() -> None:
    loader = fl.Loader(fl.ImageFolder(sys.argv[1]), output="numpy")
    with contextlib.suppress(fl.ClosedError):
        while True:
            for _ in loader:
                started.set()


threading.Thread(target=load, daemon=True).start()
started.wait(60)
