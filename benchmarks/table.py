# SPDX-License-Identifier: MIT
"""Redraws the tables of benchmarks/README.md from build/benchmarks/*.json."""

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
ORDER = ("Throughput", "Scaling by threads", "Hand-over", "Start-up", "Ends", "Memory")


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


def main() -> None:
    folder = HERE.parent / "build" / "benchmarks"
    found = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    if not found:
        sys.exit(f"no results in {folder}: run `pytest benchmarks` first")
    found.sort(key=lambda result: ORDER.index(result["question"]))
    readme = HERE / "README.md"
    head, _, rest = readme.read_text().partition(BEGIN)
    tail = rest.partition(END)[2]
    tables = "\n".join(markdown(result) for result in found)
    readme.write_text(f"{head}{BEGIN}\n\n{tables}\n{END}{tail}")


if __name__ == "__main__":
    main()
