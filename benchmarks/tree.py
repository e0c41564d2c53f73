# SPDX-License-Identifier: MIT
"""Runs a command and watches its whole process tree: wall time, CPU seconds, peak memory.

Memory is PSS (pages shared by n processes count 1/n in each), read every 0.1 s, so a peak that
is shorter than that can be missed. CPU seconds are those of the child and of all that it waited
for; the children that a job leaves behind would be missed, so jobs end their workers."""

import json
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

INTERVAL = 0.1


class JobFailed(RuntimeError):
    """A job ended with an error; the message is what it wrote."""


def children(pid: int) -> list[int]:
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in path.read_text().split()]
        except OSError:
            continue  # that thread has ended
    return found


def tree(pid: int) -> list[int]:
    members = [pid]
    for member in members:
        members += [child for child in children(member) if child not in members]
    return members


def pss(pid: int) -> int:
    """Bytes of this process; 0 once it has ended."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class Watch(threading.Thread):
    """The peak of the tree's memory, until stopped."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.peak, self.done = pid, 0, threading.Event()

    def run(self) -> None:
        while not self.done.wait(INTERVAL):
            self.peak = max(self.peak, sum(pss(member) for member in tree(self.pid)))

    def stop(self) -> int:
        self.done.set()
        self.join()
        return self.peak


def run(command: list[str], **environment: str) -> dict[str, Any]:
    """What the command printed as JSON on its last line, and about the tree: `total_wall`,
    `total_cpu` (seconds, start-up included) and `peak` (bytes)."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env={**os.environ, **environment},
        )
        watch = Watch(child.pid)
        watch.start()
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        peak = watch.stop()
        output.seek(0)
        errors.seek(0)
        text = output.read()
        if child.returncode != 0:
            raise JobFailed(f"{' '.join(command)}\n{text}{errors.read()}")
    result: dict[str, Any] = json.loads(text.strip().splitlines()[-1])
    result |= {"total_wall": wall, "total_cpu": usage.ru_utime + usage.ru_stime, "peak": peak}
    return result
