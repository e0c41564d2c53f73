# SPDX-License-Identifier: MIT
"""How many pictures a second, of wall and of CPU time, and for how much memory?"""

import os
import statistics
from collections.abc import Callable
from pathlib import Path

import results
import tree
from results import Found, Measures

QUESTION = "Throughput"
BATCH, THREADS = 64, 2
PEERS = ("feedline", "torch+pillow", "torch+decode_jpeg")


def test_throughput(
    data: Path,
    epochs: int,
    ask_peers: Callable[..., Measures],
    interleaved: Callable[[Measures], Found],
    bare_decode: Path,
    table: results.Table,
) -> None:
    files = sorted(
        str(path) for path in data.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg")
    )
    measures = ask_peers(
        "throughput", PEERS, data=data, batch=BATCH, threads=THREADS, epochs=epochs
    )
    measures["libjpeg-turbo, whole, bare"] = lambda: tree.run(
        [str(bare_decode), str(epochs), *files]
    )

    table.raw = found = interleaved(measures)
    counts = {name: {run["images"] for run in runs} for name, runs in found.items()}
    assert all(count == {len(files) * epochs} for count in counts.values()), counts

    table.columns = ["", "images/CPU s", "CPU ms/image", "images/s", "first batch", "peak memory"]
    per_cpu = {}
    for name, runs in found.items():
        per_cpu[name] = statistics.median(run["images"] / run["cpu"] for run in runs)
        wall = statistics.median(run["images"] / run["wall"] for run in runs)
        first = statistics.median(run["first"] for run in runs)
        peak = statistics.median(run["peak"] for run in runs)
        table.add(
            name,
            f"{per_cpu[name]:.0f}",
            f"{1e3 / per_cpu[name]:.2f}",
            f"{wall:.0f}",
            results.milliseconds(first) if first else "-",
            results.megabytes(peak),
        )
    for name, value in per_cpu.items():
        if name != "feedline":
            ratio = per_cpu["feedline"] / value
            table.notes.append(f"feedline's images per CPU second: {ratio:.2f} x {name}")
    table.notes.append(
        f"{THREADS} threads or workers (bare: 1 thread), batches of {BATCH}, {epochs} epochs a "
        f"process, medians of {len(found['feedline'])} rounds, {os.cpu_count()} CPUs"
    )
