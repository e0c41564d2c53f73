# SPDX-License-Identifier: MIT
"""How long does next() take when 1,000 batches are ready?"""

import importlib.util
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

import results
from results import Ask, Found, Measures

QUESTION = "Hand-over"


def test_hand_over(
    data: Path,
    ask: Ask,
    interleaved: Callable[[Measures], Found],
    table: results.Table,
    tmp_path: Path,
) -> None:
    outputs = ["dlpack", "numpy"]
    if importlib.util.find_spec("torch"):
        outputs.append("torch")
    else:
        table.notes.append("left out: torch: torch is not installed")
    tiny = make_tiny(tmp_path)
    measures: Measures = {
        f"{output}, workers {'busy' if is_busy else 'paused'}": partial(
            ask, "hand_over", data=tiny, output=output, is_busy=is_busy, threads=1
        )
        for output in outputs
        for is_busy in (False, True)
    }
    table.raw = found = interleaved(measures)
    table.columns = ["", "p50", "p99"]
    for name, runs in found.items():
        table.add(
            name,
            *(
                results.microseconds(statistics.median(run[key] for run in runs))
                for key in ("p50", "p99")
            ),
        )


def make_tiny(folder: Path) -> Path:
    """Pictures that cost next to nothing: the hand-over is asked for, not the decoder. The first
    one by name is large."""
    from PIL import Image

    (folder / "a").mkdir()
    Image.new("RGB", (4000, 3000)).save(folder / "a" / "0.jpg", progressive=True)
    for number in range(1, 65):
        Image.new("RGB", (16, 16), (number * 3, 128, 0)).save(folder / "a" / f"{number}.jpg")
    return folder
