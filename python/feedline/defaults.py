# SPDX-License-Identifier: MIT
"""The numbers that a Loader chooses by itself, each with the reason that `explain()` shows."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

from . import _core

GIB = 1 << 30
MEMORY_CEILING = 2 * GIB
# Pillow refuses a picture above twice its MAX_IMAGE_PIXELS; so does the core.
MAX_PIXELS = 178_956_970


@dataclass(frozen=True)
class Choice:
    """A number and where it comes from."""

    value: int
    reason: str


def given(value: int) -> Choice:
    """A number that the user gave."""
    return Choice(value, "given")


def processes_on_this_machine() -> int:
    """torchrun's LOCAL_WORLD_SIZE, 1 without it. ValueError if it is not a positive number."""
    text = os.environ.get("LOCAL_WORLD_SIZE")
    if text is None:
        return 1
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ValueError(
            f"the environment variable LOCAL_WORLD_SIZE is {text!r}, not a positive number; "
            "unset it, or give num_threads"
        )
    return int(text)


def num_threads() -> Choice:
    """Threads that decode and transform: this process's share of the usable CPUs."""
    cpus, processes = _core.cpu_count(), processes_on_this_machine()
    reason = f"{cpus} usable CPUs (affinity and cgroup quota)"
    if processes > 1:
        reason += f" shared by LOCAL_WORLD_SIZE={processes} processes"
    return Choice(max(1, cpus // processes), reason)


def io_threads(threads: int) -> Choice:
    """Threads that wait for the disk: more than compute threads, because they only wait."""
    return Choice(min(16, max(4, 2 * threads)), "twice num_threads, between 4 and 16")


def prefetch_batches(threads: int, batch_size: int) -> Choice:
    """Undelivered batches: room for four samples a thread, and never fewer than two."""
    value = max(2, math.ceil(4 * threads / batch_size))
    return Choice(value, "4 samples a thread, at least 2 batches")


def listing_threads() -> int:
    """Threads that list a folder: they wait for the file system, so more than CPUs."""
    return min(16, 4 * _core.cpu_count())


def memory_limit() -> Choice:
    """Bytes of undelivered batches: at most 2 GiB and a quarter of what this process may use."""
    limit, source = usable_memory()
    if limit is not None and limit // 4 < MEMORY_CEILING:
        return Choice(max(1, limit // 4), f"a quarter of {source} ({limit} bytes)")
    return Choice(MEMORY_CEILING, "2 GiB")


def usable_memory(
    membership: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")
) -> tuple[int | None, str]:
    """The smallest of the cgroup's memory limits and the machine's memory, and which one it is."""
    found: list[tuple[int, str]] = [
        (limit, "the cgroup's memory limit") for limit in cgroup_limits(membership, mount)
    ]
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        machine = -1
    if machine > 0:
        found.append((machine, "the machine's memory"))
    return min(found) if found else (None, "")


def cgroup_limits(membership: Path, mount: Path) -> list[int]:
    """Memory limits, in bytes, of this process's cgroup (v2 and v1) and of those above it."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return []
    limits: list[int] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base, name = mount, "memory.max"
        elif "memory" in controllers.split(","):
            base, name = mount / "memory", "memory.limit_in_bytes"
        else:
            continue
        folder = base / path.lstrip("/")
        while True:
            limits += read_limit(folder / name)
            if folder == base or base not in folder.parents:
                break
            folder = folder.parent
    return limits


def read_limit(file: Path) -> list[int]:
    """The number in a cgroup's limit file; nothing if it is absent or says `max`."""
    try:
        text = file.read_text().strip()
    except OSError:
        return []
    return [int(text)] if text.isdigit() else []
