# SPDX-License-Identifier: MIT
"""What only feedline is asked: hand-over, seek, listing, close, Ctrl-C, memory, threads."""

import gc
import itertools
import json
import os
import random
import signal
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tree
from questions import throughput


def files_of(data: str) -> list[str]:
    found = (path for path in Path(data).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    return sorted(map(str, found))


def percentiles(times: list[float]) -> dict[str, float]:
    p50, p99 = np.percentile(times, [50, 99])
    return {"p50": float(p50), "p99": float(p99)}


def hand_over(data: str, output: str, is_busy: bool, threads: int) -> dict[str, Any]:
    """next() while 1,000 batches are ready: with nothing left to do for the workers, or with
    them at work on the batches behind."""
    import feedline as fl
    from feedline import transforms as T

    ready, rows = 1000, 4
    batches = ready + 1 + (3000 if is_busy else 0)
    # The first picture takes long, so that the window is full before next() returns: from then
    # on each call lets one batch in for the one that it takes out.
    slow, *tiny = files_of(data)
    paths = [slow, *itertools.islice(itertools.cycle(tiny), batches * rows - 1)]
    loader = fl.Loader(
        fl.Files(paths, labels=[0] * len(paths)),
        batch_size=rows,
        transform=[T.CenterCrop(8)],
        output=output,
        num_threads=threads,
        prefetch_batches=ready + 1,
    )
    iterator = iter(loader)
    next(iterator)
    deadline = time.monotonic() + 120
    while loader.stats()["batches_ready"] < ready:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{loader.stats()['batches_ready']} batches are ready, not {ready}")
        time.sleep(0.01)
    gc.collect()
    times = []
    for _ in range(ready):
        start = time.perf_counter()
        next(iterator)
        times.append(time.perf_counter() - start)
    loader.close()
    return percentiles(times)


def many_entries(data: str, count: int, threads: int) -> dict[str, Any]:
    """A catalog of `count` entries that is listed already: the first batch of 32, the same from
    random positions, and the time that finding the position alone takes."""
    import feedline as fl
    from feedline import transforms as T

    paths = list(itertools.islice(itertools.cycle(files_of(data)), count))
    start = time.perf_counter()
    dataset = fl.Files(paths, labels=[0] * count)
    listing = time.perf_counter() - start

    def make() -> Any:
        return fl.Loader(
            dataset,
            batch_size=32,
            shuffle=True,
            seed=0,
            transform=[T.RandomResizedCrop(224), T.RandomHorizontalFlip()],
            output="numpy",
            num_threads=threads,
        )

    first, seek, resumed = [], [], []
    generator = random.Random(0)
    for _ in range(9):
        with make() as loader:
            start = time.perf_counter()
            next(iter(loader))
            first.append(time.perf_counter() - start)
            state = loader.state_dict()
        state["position"] = generator.randrange(count // 32) * 32
        with make() as loader:
            start = time.perf_counter()
            loader.load_state_dict(state)
            iterator = iter(loader)
            seek.append(time.perf_counter() - start)
            next(iterator)
            resumed.append(time.perf_counter() - start)
    return {
        "listing": listing,
        "first": statistics.median(first),
        "seek": statistics.median(seek),
        "resumed": statistics.median(resumed),
    }


def closing(data: str, threads: int) -> dict[str, Any]:
    """close() and Ctrl-C while all threads are at work."""
    import peers

    closes = []
    for _ in range(20):
        loader = peers.feedline(data, 16, threads)
        iterator = iter(loader)
        next(iterator)
        start = time.perf_counter()
        loader.close()
        closes.append(time.perf_counter() - start)
    interrupts = []
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    for number in range(5):
        loader = peers.feedline(data, 256, threads)
        iterator = iter(loader)
        sent = 0.0

        def interrupt() -> None:
            nonlocal sent
            time.sleep(0.05)  # by then next() waits for its first, large batch
            sent = time.perf_counter()
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            while True:
                next(iterator)
        except (KeyboardInterrupt, StopIteration):
            interrupts.append(time.perf_counter() - sent)
        thread.join()
        if sent == 0.0:
            raise RuntimeError(f"run {number} ended before the signal: too few pictures")
        loader.close()
    return {"close": max(closes), "interrupt": max(interrupts)}


def memory(data: str, batch: int, threads: int, epochs: int) -> dict[str, Any]:
    """PSS beyond an interpreter with NumPy and feedline imported: over the epochs, and what of
    it the batches are."""
    import feedline  # noqa: F401
    import peers

    idle = tree.pss(os.getpid())
    loader = peers.feedline(data, batch, threads)
    at: dict[int, int] = {}
    slabs = 0
    for epoch in range(1, epochs + 1):
        for pictures, _labels in loader:
            slabs = slabs or pictures.nbytes
        del pictures
        if epoch in (1, 5, 20, 50, 100, 200, 300) or epoch == epochs:
            at[epoch] = tree.pss(os.getpid()) - idle
    pool = loader.stats()["pool"]
    loader.close()
    return {
        "idle": idle,
        "after": {str(epoch): value for epoch, value in at.items()},
        "slab": slabs,
        "pool": pool,
    }


def catalog(data: str, count: int) -> dict[str, Any]:
    """Bytes an entry in all, and those of its whole path alone."""
    import feedline as fl

    paths = list(itertools.islice(itertools.cycle(files_of(data)), count))
    dataset = fl.Files(paths, labels=[0] * count)
    length = sum(len(os.fsencode(path)) for path in paths)
    return {"bytes": dataset._catalog.memory / count, "path": length / count}


def two_processes(data: str, batch: int, epochs: int) -> dict[str, Any]:
    """Two independent processes of one thread each, side by side; the slower one counts."""
    import feedline  # noqa: F401 - before the fork, so that no import is timed

    pipes = []
    for _ in range(2):
        reader, writer = os.pipe()
        if os.fork() == 0:
            result = throughput("feedline", data, batch, 1, epochs)
            os.write(writer, json.dumps(result).encode())
            os._exit(0)
        os.close(writer)
        pipes.append(reader)
    found = []
    for reader in pipes:
        with os.fdopen(reader) as pipe:
            found.append(json.loads(pipe.read()))
        os.wait()
    return {
        "images": sum(result["images"] for result in found),
        "wall": max(result["wall"] for result in found),
        "cpu": sum(result["cpu"] for result in found),
    }


QUESTIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "hand_over": hand_over,
    "many_entries": many_entries,
    "closing": closing,
    "memory": memory,
    "catalog": catalog,
    "two_processes": two_processes,
}
