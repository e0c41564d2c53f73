# SPDX-License-Identifier: MIT
"""Ctrl-C while next() waits: nothing hangs, nothing is said."""

import os
import signal
import sys
import tempfile
import threading
from pathlib import Path

from PIL import Image

import feedline as fl
import feedline.loader

opened = threading.Event()


def decode(data: memoryview) -> tuple[int, int, bytes]:
    os.kill(os.getpid(), signal.SIGINT)
    opened.wait(60)
    return 1, 1, b"1234"


feedline.loader.decode_fallback = lambda: decode
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "1.bmp"
    Image.new("RGB", (3, 3)).save(path)
    iterator = iter(fl.Loader(fl.Files([path]), output="numpy"))
    try:
        next(iterator)
    except KeyboardInterrupt:
        opened.set()
        sys.exit(0)
sys.exit("was not interrupted")
