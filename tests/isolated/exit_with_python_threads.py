# SPDX-License-Identifier: MIT
"""The interpreter ends while Python-made threads of the Pillow step wait for work."""

import sys
import tempfile
import threading
from pathlib import Path

from PIL import Image

import feedline as fl

with tempfile.TemporaryDirectory() as folder:
    paths = [Path(folder) / f"{number}.bmp" for number in range(20)]
    for number, path in enumerate(paths):
        Image.new("RGB", (9, 8), (number, 0, 0)).save(path)
    iterator = iter(fl.Loader(fl.Files(paths), output="numpy", num_threads=2))
    for _ in range(3):
        next(iterator)
    names = [thread.name for thread in threading.enumerate()]
    if not any(name.startswith("feedline-python") for name in names):
        sys.exit(f"no Python-made thread among {names}")
    if any(thread.daemon for thread in threading.enumerate()):
        sys.exit("a daemon thread")
