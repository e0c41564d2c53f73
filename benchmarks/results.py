# SPDX-License-Identifier: MIT
"""Tables of results: as text, as JSON with command, date and machine, as Markdown."""

import datetime
import json
import os
import platform
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

Ask = Callable[..., dict[str, Any]]  # a question with its arguments
Measures = dict[str, Callable[[], dict[str, Any]]]  # by the name of a row
Found = dict[str, list[dict[str, Any]]]  # a result a round


def dump(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, default=str)


def machine() -> str:
    """Processor, cores, memory, system and Python in one line."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    return (
        f"{len(os.sched_getaffinity(0))} cores of {model}, {memory:.0f} GiB, {system}, "
        f"Python {platform.python_version()}"
    )


def versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("feedline", "numpy", "pillow", "torch", "torchvision"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str:
    result = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return result.stdout.strip() or "unknown"


@dataclass
class Table:
    """One question: `columns` name the values of each row; `raw` keeps what they come from."""

    question: str
    data: Path
    arguments: list[str]
    columns: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict)

    def add(self, *cells: str) -> None:
        self.rows.append(list(cells))

    def text(self) -> str:
        table = [self.columns, *self.rows]
        widths = [max(len(row[i]) for row in table) for i in range(len(self.columns))]
        lines = []
        for row in table:
            cells = [row[0].ljust(widths[0])]
            cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            lines.append("  ".join(cells))
        return "\n".join([*lines, *self.notes])

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = self.question.lower().replace(" ", "-").replace(",", "")
        files = [path for path in self.data.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg")]
        text = json.dumps(
            {
                "question": self.question,
                # A folder by its name: where it lies is this machine's own affair.
                "command": shlex.join(
                    ["pytest", *(Path(a).name if Path(a).is_dir() else a for a in self.arguments)]
                ),
                "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
                "machine": machine(),
                "versions": versions(),
                "commit": commit(),
                "data": {
                    "name": self.data.name,
                    "pictures": len(files),
                    "bytes": sum(path.stat().st_size for path in files),
                },
                "columns": self.columns,
                "rows": self.rows,
                "notes": self.notes,
                "raw": self.raw,
            },
            indent=1,
        )
        (folder / f"{name}.json").write_text(text + "\n")


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds < 10 else f"{seconds:.1f} s"


def microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us"


def megabytes(count: float) -> str:
    return f"{count / 1e6:.0f} MB"
