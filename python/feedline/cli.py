# SPDX-License-Identifier: MIT
"""The command `feedline`."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import sys
from collections.abc import Sequence
from typing import Any

from . import _core, defaults

PACKAGES = ("numpy", "pillow", "torch")


def environment() -> dict[str, Any]:
    """Versions and features found, and the defaults that follow from them."""
    packages = {name: installed_version(name) for name in PACKAGES}
    threads = defaults.num_threads()
    memory = defaults.memory_limit()
    gil = getattr(sys, "_is_gil_enabled", None)
    return {
        "feedline": _core.__version__,
        "python": platform.python_version(),
        "gil": True if gil is None else bool(gil()),
        "platform": platform.platform(),
        **packages,
        "core": _core.environment(),
        "cpu_count": _core.cpu_count(),
        "num_threads": {"value": threads.value, "reason": threads.reason},
        "memory_limit": {"value": memory.value, "reason": memory.reason},
    }


def installed_version(name: str) -> str | None:
    """The version of a package, without importing it."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def as_text(facts: dict[str, Any], indent: str = "") -> str:
    """One fact a line."""
    lines = []
    for name, value in facts.items():
        if isinstance(value, dict):
            lines.append(f"{indent}{name}:")
            lines.append(as_text(value, indent + "  "))
        else:
            lines.append(f"{indent}{name}: {'not installed' if value is None else value}")
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(
        prog="feedline", description="Tools of the feedline data loader."
    )
    commands = result.add_subparsers(dest="command", required=True, metavar="command")
    env = commands.add_parser("env", help="show versions, and what was found on this machine")
    env.add_argument("--json", action="store_true", help="as JSON")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    chosen = parser().parse_args(arguments)
    facts = environment()
    print(json.dumps(facts, indent=2, default=str) if chosen.json else as_text(facts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
