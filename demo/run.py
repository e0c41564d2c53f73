# SPDX-License-Identifier: MIT
"""The main job from end to end: load a folder of JPEGs for some epochs with shuffle and
augmentation, stop in the middle and resume in another process, compare pixels with Pillow, draw
a contact sheet, and measure. `make demo` runs it; `--data FOLDER` takes your own pictures."""

import argparse
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

import against_pillow
import feedline as fl
import pictures
import sheet
from feedline import transforms as T

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BENCHMARKS = ROOT / "benchmarks"
sys.path.append(str(BENCHMARKS))
BATCH, EPOCHS = 32, 3
JPEG = (".jpg", ".jpeg")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of JPEGs, with or without class folders")
    parser.add_argument("--resume", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.resume:
        return resume(options.data, options.resume)

    data = find(options.data) if options.data else make()
    step("Load")
    train(data)
    ok = stop_and_resume(data)
    ok &= compare(data)
    preview(data)
    measure(data)
    return 0 if ok else 1


def step(title: str) -> None:
    print(f"\n== {title}", flush=True)


def make() -> Path:
    step("Pictures")
    folder = ROOT / "build" / "pictures"

    def progress(made: Iterator[Path]) -> Iterator[Path]:
        return iter(tqdm(made, total=pictures.COUNT, unit=" pictures", desc="drawing"))

    return pictures.make(folder, progress=progress)


def find(folder: Path) -> Path:
    """The folder as ImageFolder wants it: pictures that lie in it directly become one class."""
    if not folder.is_dir():
        sys.exit(f"{folder} is not a folder")
    folder = folder.resolve()
    if not any(path.suffix.lower() in JPEG for path in folder.iterdir()):
        return folder
    root = ROOT / "build" / "demo" / hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    root.mkdir(parents=True, exist_ok=True)
    link = root / folder.name
    if not link.exists():
        link.symlink_to(folder)
    return root


def loader_of(data: Path, **options: Any) -> fl.Loader:
    augment = [T.RandomResizedCrop(224), T.RandomHorizontalFlip()]
    options.setdefault("transform", [*augment, T.Normalize(T.IMAGENET_MEAN, T.IMAGENET_STD)])
    options.setdefault("batch_size", BATCH)
    options.setdefault("shuffle", True)
    return fl.Loader(fl.ImageFolder(data), seed=0, output="numpy", **options)


def train(data: Path) -> None:
    with loader_of(data) as loader:
        print(loader.explain())
        print(f"{len(loader.dataset)} pictures in {len(loader.dataset.classes)} classes, {data}")
        for epoch in range(EPOCHS):
            for images, labels in tqdm(loader, unit=" batches", desc=f"epoch {epoch}"):
                assert len(images) == len(labels)


def digest(batch: Any) -> str:
    """Of all that a batch holds: pixels, labels, and which samples they are."""
    made = hashlib.sha256()
    for values in (batch.image, batch.label, batch.index):
        made.update(values.tobytes())
    return made.hexdigest()


def stop_and_resume(data: Path) -> bool:
    step("Stop in the middle, resume in a new process")
    with loader_of(data) as loader:
        whole = [digest(batch) for batch in loader]
    middle = len(whole) // 2
    with loader_of(data) as loader:
        iterator = iter(loader)
        first = [digest(next(iterator)) for _ in range(middle)]
        state = loader.state_dict()
    print(f"stopped after {middle} of {len(whole)} batches: {json.dumps(state)}")

    path = ROOT / "build" / "demo-state.json"
    path.write_text(json.dumps(state))
    command = [sys.executable, str(HERE / "run.py"), "--data", str(data), "--resume", str(path)]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rest = json.loads(result.stdout)
    equal = first + rest["digests"] == whole
    print(
        f"process {rest['pid']} went on with {rest['threads']} threads and gave "
        f"{len(rest['digests'])} batches: "
        + ("all are equal to the uninterrupted epoch's" if equal else "THEY DIFFER")
    )
    return equal


def resume(data: Path, state: Path) -> int:
    """The other process; one thread more, since the thread count must not matter."""
    threads = len(os.sched_getaffinity(0)) + 1
    with loader_of(data, num_threads=threads) as loader:
        loader.load_state_dict(json.loads(state.read_text()))
        digests = [digest(batch) for batch in loader]
    print(json.dumps({"pid": os.getpid(), "threads": threads, "digests": digests}))
    return 0


def compare(data: Path) -> bool:
    step("Pixels against Pillow")
    ok = True
    for title, chain, reference in against_pillow.CASES:
        with loader_of(data, transform=chain, shuffle=False, layout="NHWC") as loader:
            count, differ = against_pillow.compare(loader, reference)
        print(f"{title}: {differ} of {count} pictures differ")
        ok &= differ == 0
    return ok


def preview(data: Path) -> None:
    step("Contact sheet")
    augment = [T.RandomResizedCrop(224), T.RandomHorizontalFlip()]
    with loader_of(data, transform=augment, layout="NHWC") as loader:
        batch = next(iter(loader))
        names = [loader.dataset.classes[label] for label in batch.label]
        path = sheet.save(batch.image, names, ROOT / "preview.png")
    print(f"an augmented batch, labelled: {path}")


def measure(data: Path) -> None:
    step("Measured, each in a fresh process")
    import results
    import tree

    peers = [("feedline", sys.executable)]
    if python := python_with_torch():
        peers.append(("torch+pillow", python))
    threads = len(os.sched_getaffinity(0))
    rows = [("", "images/s", "CPU s", "peak memory", "first batch")]
    for peer, python in peers:
        arguments = {
            "peer": peer, "data": str(data), "batch": BATCH, "threads": threads, "epochs": EPOCHS
        }  # fmt: skip
        command = [python, str(BENCHMARKS / "job.py"), "throughput", json.dumps(arguments)]
        try:
            run = tree.run(command)
        except tree.JobFailed as error:
            print(f"{peer} failed: {str(error).strip().splitlines()[-1]}")
            continue
        rows.append(
            (
                peer,
                f"{run['images'] / run['wall']:.0f}",
                f"{run['cpu']:.2f}",
                results.megabytes(run["peak"]),
                results.milliseconds(run["first"]),
            )
        )
    for row in rows:
        print("  ".join([row[0].ljust(14), *(cell.rjust(12) for cell in row[1:])]))
    print(
        f"{EPOCHS} epochs, batches of {BATCH}, {threads} threads or workers; {results.machine()}"
    )
    if len(peers) == 1:
        print("torch is not installed: `make bench` installs it and compares with its DataLoader")


def python_with_torch() -> str | None:
    """This interpreter if it has torch and torchvision, else that of `make bench`."""
    if all(importlib.util.find_spec(name) for name in ("torch", "torchvision")):
        return sys.executable
    other = ROOT / ".venv-all" / "bin" / "python"
    return str(other) if other.exists() else None


if __name__ == "__main__":
    sys.exit(main())
