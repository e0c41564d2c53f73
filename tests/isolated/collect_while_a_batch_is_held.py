# SPDX-License-Identifier: MIT
"""A collected loader stops its threads although its batches live on; those stay whole."""

import gc
import os
import sys
import time

import feedline as fl
from feedline import transforms as T


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


before = threads()
loader = fl.Loader(
    fl.ImageFolder(sys.argv[1]), batch_size=4, transform=[T.Resize((8, 8))], output="dlpack"
)
loader.itself = loader  # a cycle: only the collector finds it
batches = [batch for _, batch in zip(range(3), loader, strict=False)]
stored = [bytes(batch.image) for batch in batches]
if threads() <= before:
    sys.exit("there were no threads")
del loader
gc.collect()
deadline = time.monotonic() + 20
while threads() > before:
    if time.monotonic() > deadline:
        sys.exit("threads are left")
    time.sleep(0.01)
if [bytes(batch.image) for batch in batches] != stored:
    sys.exit("a batch has changed")
