# SPDX-License-Identifier: MIT
"""What every loader is asked; each function runs in a fresh process (job.py)."""

import gc
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import peers


def cpu_seconds() -> float:
    """Of this process and of the children that it has waited for."""
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    return total


def close(loader: Any) -> None:
    if hasattr(loader, "close"):
        loader.close()


def throughput(
    peer: str, data: str, batch: int, threads: int, epochs: int, **options: Any
) -> dict[str, Any]:
    """Whole epochs: images a second of wall and of CPU time, and the first batch. The workers'
    start and end are in it, the imports and the listing of the folder are not."""
    loader = peers.LOADERS[peer](data, batch, threads, **options)
    images, first = 0, 0.0
    cpu, start = cpu_seconds(), time.perf_counter()
    for _ in range(epochs):
        for pictures, _labels in loader:
            first = first or time.perf_counter() - start
            images += len(pictures)
    wall = time.perf_counter() - start
    close(loader)
    del loader
    gc.collect()  # torch's persistent workers end with their iterator
    return {"images": images, "wall": wall, "cpu": cpu_seconds() - cpu, "first": first}


def start_up(peer: str, data: str, batch: int, threads: int) -> dict[str, Any]:
    """From an interpreter that has imported nothing to the first batch, in steps."""
    marks = [time.perf_counter()]
    if peer == "feedline":
        import feedline  # noqa: F401
    else:
        peers.import_torchvision()
    marks.append(time.perf_counter())
    loader = peers.LOADERS[peer](data, batch, threads)
    marks.append(time.perf_counter())
    iterator = iter(loader)
    next(iterator)
    marks.append(time.perf_counter())
    names = ("import", "make", "first")
    result = {name: marks[i + 1] - marks[i] for i, name in enumerate(names)}
    # The steady interval, to tell what of the first batch is start-up.
    rest = sum(1 for _ in iterator)
    result["interval"] = (time.perf_counter() - marks[-1]) / rest if rest else 0.0
    del iterator
    close(loader)
    return result


def epoch_gap(peer: str, data: str, batch: int, threads: int, epochs: int) -> dict[str, Any]:
    """From the last batch of an epoch to the first one of the next, by the median interval."""
    loader = peers.LOADERS[peer](data, batch, threads)
    inside, between = [], []
    last = 0.0
    for epoch in range(epochs):
        is_first = True
        for _ in loader:
            now = time.perf_counter()
            if not is_first:
                inside.append(now - last)
            elif epoch > 0:
                between.append(now - last)
            last, is_first = now, False
    close(loader)
    return {"interval": statistics.median(inside), "gap": statistics.median(between)}


QUESTIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "throughput": throughput,
    "start_up": start_up,
    "epoch_gap": epoch_gap,
}
