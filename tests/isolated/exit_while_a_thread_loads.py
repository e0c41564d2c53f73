# SPDX-License-Identifier: MIT
"""The main thread ends while another one, not a daemon, is in the middle of an epoch."""

import sys
import threading

import feedline as fl

started = threading.Event()


def load() -> None:
    loader = fl.Loader(fl.ImageFolder(sys.argv[1]), output="numpy")
    try:
        while True:
            for _ in loader:
                started.set()
    except fl.ClosedError:
        pass  # what it is told at exit


threading.Thread(target=load).start()
started.wait(60)
