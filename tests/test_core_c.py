# SPDX-License-Identifier: MIT
"""Runs the programs of tests/core, which test the C core without Python, one test each."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "tests" / "core"
PROGRAMS = sorted(path.stem for path in CORE.glob("test_*.c"))
BUILD = ROOT / "build" / "core"

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("make") is None,
    reason="gcc or make is not installed: apt-get install gcc make",
)


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of the programs, built; what fails to compile fails every test with its text."""
    jobs = len(os.sched_getaffinity(0))
    result = subprocess.run(
        ["make", "-s", f"-j{jobs}", "-C", str(CORE), "build", f"BUILD={BUILD}"],
        capture_output=True,
        text=True,
        check=False,
        env={key: value for key, value in os.environ.items() if key != "MAKEFLAGS"},
    )
    if result.returncode != 0:
        pytest.fail(f"the C tests do not build:\n{result.stdout}{result.stderr}", pytrace=False)
    return BUILD


def test_there_are_programs() -> None:
    assert PROGRAMS


@pytest.mark.timeout(600)  # the first one to run also builds them all
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(programs: Path, name: str) -> None:
    result = subprocess.run(
        [str(programs / name)], capture_output=True, text=True, check=False, cwd=CORE, timeout=300
    )
    if result.returncode != 0:
        pytest.fail(
            f"{name} ended with {result.returncode}:\n{result.stdout}{result.stderr}",
            pytrace=False,
        )
