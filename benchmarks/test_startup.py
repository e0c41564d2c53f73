# SPDX-License-Identifier: MIT
"""How soon is the first batch there: from a cold interpreter, and in a set of 1.28 M entries?"""

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import results

QUESTION = "Start-up"
BATCH, THREADS, MANY = 32, 2, 1_281_167


def test_start_up(
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
            return ask("start_up", peer=peer, data=data, batch=BATCH, threads=THREADS)

        measures[peer] = measure
    found = interleaved(measures)
    many = interleaved(
        {"feedline": lambda: ask("many_entries", data=data, count=MANY, threads=THREADS)}
    )["feedline"]
    table.raw = {**found, "many entries": many}

    table.columns = ["", "import", "make", "first batch", "steady interval"]
    for name, runs in found.items():
        table.add(
            name,
            *(
                results.milliseconds(statistics.median(run[key] for run in runs))
                for key in ("import", "make", "first", "interval")
            ),
        )
    medians = {key: statistics.median(run[key] for run in many) for key in many[0]}
    table.notes += [
        f"{MANY:,} entries: first batch of {BATCH} after iter() "
        f"{results.milliseconds(medians['first'])}; handing the list of paths over "
        f"{results.milliseconds(medians['listing'])}",
        f"{MANY:,} entries: load_state_dict() at a random position and iter() "
        f"{results.milliseconds(medians['seek'])}, to the first batch "
        f"{results.milliseconds(medians['resumed'])}",
    ]
