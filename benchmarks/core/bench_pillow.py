# SPDX-License-Identifier: MIT
"""The peer of bench_core: the same crops of the same files by Pillow and NumPy.

    python benchmarks/core/bench_pillow.py FOLDER [--rounds 5] [--json FILE]

Each round is one process of bench_core and one turn of Pillow in this process, in changing
order: both work on one thread, their CPU time counts, medians are shown.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import PIL
from PIL import Image, features

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "build" / "bench" / "bench_core"
SIDE, BATCH = 224, 64
MEAN = np.array([0.485, 0.456, 0.406], np.float32).reshape(3, 1, 1)
STD = np.array([0.229, 0.224, 0.225], np.float32).reshape(3, 1, 1)

Crop = tuple[int, int, int, int, bool, str]


def read_crops(folder: str, epoch: int) -> list[Crop]:
    """The crops that bench_core draws in this epoch: x, y, width, height, flip, path."""
    with tempfile.NamedTemporaryFile() as file:
        command = [CORE, "--boxes", file.name, "--rounds", "1", "--first-epoch", str(epoch)]
        subprocess.run([*command, folder], check=True)
        lines = Path(file.name).read_text().splitlines()
    crops = []
    for line in lines:
        _, x, y, width, height, flip, path = line.split("\t", 6)
        crops.append((int(x), int(y), int(width), int(height), flip == "1", path))
    return crops


def run_pillow(crops: list[Crop], batch: np.ndarray) -> float:
    """Read, decode, crop, resize, flip, normalise into the batch: CPU ms a picture."""
    start = time.thread_time()
    for position, (x, y, width, height, flip, path) in enumerate(crops):
        with Image.open(path) as image:
            image = image.convert("RGB").crop((x, y, x + width, y + height))
        image = image.resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        if flip:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        row = batch[position % BATCH]
        np.divide(np.asarray(image).transpose(2, 0, 1), np.float32(255), out=row)
        row -= MEAN
        row /= STD
    return (time.thread_time() - start) * 1000 / len(crops)


def run_core(folder: str, epoch: int) -> dict[str, float]:
    command = [CORE, "--json", "-", "--rounds", "1", "--first-epoch", str(epoch), folder]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(result.stdout)["ms"]


def measure(folder: str, rounds: int) -> dict[str, float]:
    """Medians in ms a picture."""
    batch = np.zeros((BATCH, 3, SIDE, SIDE), np.float32)
    found: dict[str, list[float]] = {"pillow": []}
    for epoch in range(rounds):
        crops = read_crops(folder, epoch)
        if epoch % 2:
            found["pillow"].append(run_pillow(crops, batch))
        core = run_core(folder, epoch)
        if epoch % 2 == 0:
            found["pillow"].append(run_pillow(crops, batch))
        for key, value in core.items():
            found.setdefault(key, []).append(value)
    return {key: statistics.median(values) for key, values in found.items()}


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if not CORE.exists():
        sys.exit("build it first: make -C benchmarks/core")
    found = measure(arguments.folder, arguments.rounds)

    names = {
        "core": "the core: read, crop decode, resize, normalise",
        "bare": "libjpeg-turbo, whole pictures, nothing else",
        "pillow": f"Pillow {PIL.__version__} and NumPy {np.__version__}, the same work",
    }
    print(f"{'one thread, CPU time a picture':<50}{'ms':>8}{'a second':>10}{'x Pillow':>10}")
    for key, name in names.items():
        time_ms = found[key]
        ratio = found["pillow"] / time_ms
        print(f"{name:<50}{time_ms:>8.3f}{1000 / time_ms:>10.0f}{ratio:>10.2f}")
    if arguments.json:
        record = {
            "command": f"bench_pillow.py --rounds {arguments.rounds}",
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "cpu": cpu_model(),
            "cpus": len(os.sched_getaffinity(0)),
            "pillow": PIL.__version__,
            "pillow_libjpeg_turbo": features.version("libjpeg_turbo"),
            "numpy": np.__version__,
            "ms": found,
        }
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
