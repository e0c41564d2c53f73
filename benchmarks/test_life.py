# SPDX-License-Identifier: MIT
"""What do the ends cost: between two epochs, at close(), at Ctrl-C?"""

import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

import results
from results import Ask, Found, Measures

QUESTION = "Ends"
BATCH, THREADS = 16, 2


def test_ends(
    data: Path,
    ask: Ask,
    interleaved: Callable[[Measures], Found],
    ask_peers: Callable[..., Measures],
    table: results.Table,
) -> None:
    measures = ask_peers(
        "epoch_gap",
        ("feedline", "torch+pillow"),
        data=data,
        batch=BATCH,
        threads=THREADS,
        epochs=6,
    )
    measures["closing"] = partial(ask, "closing", data=data, threads=THREADS)
    table.raw = found = interleaved(measures)

    table.columns = ["", "batch interval", "gap between epochs", "gap in intervals"]
    for name, runs in found.items():
        if name == "closing":
            continue
        gap = statistics.median(run["gap"] for run in runs)
        interval = statistics.median(run["interval"] for run in runs)
        table.add(
            name,
            results.milliseconds(interval),
            results.milliseconds(gap),
            f"{gap / interval:.1f}",
        )
    for key, text in (("close", "close() while busy"), ("interrupt", "Ctrl-C in next()")):
        worst = max(run[key] for run in found["closing"])
        table.notes.append(f"{text}, the longest: {results.milliseconds(worst)}")
