# SPDX-License-Identifier: MIT
"""Threads and descriptors of this process, as the kernel sees them."""

import os
from pathlib import Path


def thread_ids() -> set[str]:
    return set(os.listdir("/proc/self/task"))


def thread_name(thread: str) -> str:
    try:
        return Path(f"/proc/self/task/{thread}/comm").read_text().strip()
    except OSError:
        return "ended meanwhile"


def descriptors() -> dict[str, str]:
    found = {}
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            found[descriptor] = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            continue  # the listing's own, closed by now
    return found
