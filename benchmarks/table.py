# SPDX-License-Identifier: MIT
"""Redraws the tables of benchmarks/README.md, and the one of README.md, from the results in
build/benchmarks."""

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
ORDER = (
    "Throughput",
    "Scaling by threads",
    "Decoding of formats",
    "Hand-over",
    "Start-up",
    "Ends",
    "Memory",
)


def markdown(result: dict[str, Any]) -> str:
    columns, rows = result["columns"], result["rows"]
    lines = [f"### {result['question']}", ""]
    lines.append("| " + " | ".join(columns) + " |")
    lines.append("|" + "---|" + "---:|" * (len(columns) - 1))
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    lines.append("")
    lines += [f"- {note}" for note in result["notes"]]
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    data = result["data"]
    lines += [
        f"- `{result['command']}`, {result['date']}, commit {result['commit']}",
        f"- {result['machine']}; {versions}",
        f"- {data['pictures']} JPEGs, {data['bytes'] / 1e6:.1f} MB, warm in the page cache",
        "",
    ]
    return "\n".join(lines)


def redraw(page: Path, begin: str, end: str, text: str) -> None:
    """Replaces what stands between two marks."""
    head, found, rest = page.read_text().partition(begin)
    if not found or end not in rest:
        sys.exit(f"{page} has no marks {begin} and {end}")
    page.write_text(f"{head}{begin}\n\n{text}\n{end}{rest.partition(end)[2]}")


def main() -> None:
    folder = HERE.parent / "build" / "benchmarks"
    found = {}
    for path in folder.glob("*.json"):
        result = json.loads(path.read_text())
        found[result["question"]] = result
    missing = [question for question in ORDER if question not in found]
    if missing:
        sys.exit(f"no results for {', '.join(missing)} in {folder}: run `pytest benchmarks` first")
    tables = "\n".join(markdown(found[question]) for question in ORDER)
    redraw(HERE / "README.md", BEGIN, END, tables)
    # The README has the first table, without its heading.
    first = markdown(found[ORDER[0]]).split("\n", 2)[2]
    redraw(HERE.parent / "README.md", "<!-- figures: begin -->", "<!-- figures: end -->", first)


if __name__ == "__main__":
    main()
