# SPDX-License-Identifier: MIT
"""How soon is the first batch there: from a cold interpreter, and in a set of 1.28 M entries?"""

import statistics
from collections.abc import Callable
from pathlib import Path

import results
from results import Ask, Found, Measures

QUESTION = "Start-up"
BATCH, THREADS, MANY = 32, 2, 1_281_167


def test_start_up(
    data: Path,
    ask: Ask,
    interleaved: Callable[[Measures], Found],
    ask_peers: Callable[..., Measures],
    table: results.Table,
) -> None:
    measures = ask_peers(
        "start_up", ("feedline", "torch+pillow"), data=data, batch=BATCH, threads=THREADS
    )
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
