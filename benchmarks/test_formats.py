# SPDX-License-Identifier: MIT
"""What does one picture cost in each format, whole and cropped, beside Pillow?"""

import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

import questions_formats
import results
from results import Ask, Found, Measures

QUESTION = "Decoding of formats"
COUNT = 40


def test_formats(
    data: Path,
    ask: Ask,
    interleaved: Callable[[Measures], Found],
    table: results.Table,
) -> None:
    table.columns = ["", "feedline", "Pillow", "crop: feedline", "Pillow", "times"]
    for kind in questions_formats.FORMATS:
        measures = {
            peer: partial(ask, "decode_format", peer=peer, data=data, kind=kind, count=COUNT)
            for peer in questions_formats.DECODERS
        }
        found = interleaved(measures)
        table.raw[kind] = found
        whole, crop = (
            {peer: statistics.median(run[name] for run in runs) for peer, runs in found.items()}
            for name in ("whole", "crop")
        )
        table.add(
            kind,
            *(results.milliseconds(whole[peer]) for peer in found),
            *(results.milliseconds(crop[peer]) for peer in found),
            f"{crop['Pillow'] / crop['feedline']:.2f}",
        )
    table.notes.append(
        "CPU time of one thread a picture, its longer side at most 500; crops of 8 to 100 % of it"
    )
