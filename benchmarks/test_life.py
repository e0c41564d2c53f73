# SPDX-License-Identifier: MIT
"""What do the ends cost: between two epochs, at close(), at Ctrl-C?"""

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import results

QUESTION = "Ends"
BATCH, THREADS = 16, 2


def test_ends(
    data: Path,
    ask: Callable[..., dict[str, Any]],
    interleaved: Callable[..., dict[str, list[dict[str, Any]]]],
    available: Callable[[str], str | None],
    table: results.Table,
) -> None:
    measures: dict[str, Callable[[], dict[str, Any]]] = {}
    for peer in ("feedline", "torch+pillow"):
        if reason := available(peer):
            table.notes.append(f"left out: {peer}: {reason}")
            continue

        def measure(peer: str = peer) -> dict[str, Any]:
            return ask("epoch_gap", peer=peer, data=data, batch=BATCH, threads=THREADS, epochs=6)

        measures[peer] = measure
    measures["closing"] = lambda: ask("closing", data=data, threads=THREADS)
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
