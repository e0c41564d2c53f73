# SPDX-License-Identifier: MIT
"""What do more threads cost, and what do they bring?"""

import os
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

import results
from results import Ask, Found, Measures

QUESTION = "Scaling by threads"
BATCH = 64


def test_scaling(
    data: Path,
    epochs: int,
    ask: Ask,
    interleaved: Callable[[Measures], Found],
    table: results.Table,
) -> None:
    cpus = len(os.sched_getaffinity(0))
    counts = sorted({1, 2, *(n for n in (4, 8, 16, 32) if n <= cpus)})
    measures: Measures = {
        f"{threads} threads" if threads > 1 else "1 thread": partial(
            ask,
            "throughput",
            peer="feedline",
            data=data,
            batch=BATCH,
            threads=threads,
            epochs=epochs,
        )
        for threads in counts
    }
    measures["2 processes of 1 thread"] = partial(
        ask, "two_processes", data=data, batch=BATCH, epochs=epochs
    )

    table.raw = found = interleaved(measures)
    table.columns = ["", "images/s", "CPU ms/image"]
    wall, cpu = {}, {}
    for name, runs in found.items():
        wall[name] = statistics.median(run["images"] / run["wall"] for run in runs)
        cpu[name] = statistics.median(run["cpu"] / run["images"] for run in runs)
        table.add(name, f"{wall[name]:.0f}", f"{1e3 * cpu[name]:.3f}")
    table.notes += [
        f"CPU time an image, 2 threads to 1: {cpu['2 threads'] / cpu['1 thread']:.3f}",
        "wall rate, 2 threads to 2 processes: "
        f"{wall['2 threads'] / wall['2 processes of 1 thread']:.3f}",
    ]
