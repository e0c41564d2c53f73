# SPDX-License-Identifier: MIT
"""How much memory beyond the idle interpreter, and does it grow?"""

from pathlib import Path

import pytest

import results
from results import Ask

QUESTION = "Memory"
BATCH, THREADS, MANY = 64, 2, 1_281_167


def test_memory(
    data: Path,
    ask: Ask,
    table: results.Table,
    request: pytest.FixtureRequest,
) -> None:
    epochs = int(request.config.getoption("--memory-epochs"))
    run = ask("memory", data=data, batch=BATCH, threads=THREADS, epochs=epochs)
    entries = ask("catalog", data=data, count=MANY)
    table.raw = {"memory": run, "catalog": entries}
    table.columns = ["after epoch", "beyond the idle interpreter"]
    for epoch, value in run["after"].items():
        table.add(epoch, results.megabytes(value))
    slabs = run["pool"]["free_slabs"] + run["pool"]["out_slabs"]
    table.notes += [
        f"idle, with NumPy and feedline imported: {results.megabytes(run['idle'])}; "
        f"peak of the process: {results.megabytes(run['peak'])}",
        f"in the pool and with the loop: {slabs} slabs of {results.megabytes(run['slab'])}, "
        f"a batch of {BATCH} each",
        f"catalog of {MANY:,} entries: {entries['bytes']:.1f} bytes an entry in all; "
        f"a path alone is {entries['path']:.1f} bytes",
    ]
