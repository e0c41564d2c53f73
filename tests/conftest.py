# SPDX-License-Identifier: MIT
"""Pictures that the tests make themselves, and a check that no test leaves anything behind."""

import gc
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

# Before NumPy comes in: its linear algebra keeps the threads of its first use, and the check
# below would blame the test that happened to be the first.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

# A shell has the jobs that it puts into the background ignore SIGINT, and children inherit that:
# Python makes no KeyboardInterrupt then, which several tests wait for.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

from leftovers import descriptors, thread_ids, thread_name
from picture_files import write_folder

PATIENCE_SECONDS = 5.0


@pytest.fixture(autouse=True)
def nothing_is_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test after which threads or descriptors are there that were not before it.

    Threads of a collected loader end on their own, so they are given a moment.
    """
    threads, files = thread_ids(), descriptors()
    yield
    request.node.funcargs.clear()  # which would keep what other fixtures made
    gc.collect()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        new_threads = thread_ids() - threads
        new_files = {fd: name for fd, name in descriptors().items() if fd not in files}
        if not new_threads and not new_files:
            return
        if time.monotonic() > deadline:
            names = sorted(thread_name(thread) for thread in new_threads)
            pytest.fail(f"left behind: threads {names}, descriptors {new_files}")
        time.sleep(0.01)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """23 JPEGs of several sizes and kinds in three class folders, one of them nested."""
    root = tmp_path_factory.mktemp("pictures")
    write_folder(root)
    return root
