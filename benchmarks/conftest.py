# SPDX-License-Identifier: MIT
"""Benchmarks: `pytest benchmarks [--data FOLDER] [--rounds N]`.

Each measurement runs in a fresh process; the peers of a question take turns in rounds, so that
whatever else the machine does hits all of them; medians count. The tables are printed at the
end, and build/benchmarks/QUESTION.json holds each number with command, date and machine."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT / "demo")]

import peers  # noqa: E402
import pictures  # noqa: E402
import results  # noqa: E402
import tree  # noqa: E402
from results import Ask, Found, Measures  # noqa: E402

TABLES: list[results.Table] = []
JPEG = {".jpg", ".jpeg"}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("feedline's benchmarks")
    group.addoption("--data", help="folder of JPEGs (default: pictures that the demo makes)")
    group.addoption("--rounds", type=int, default=5, help="turns of each peer (default: 5)")
    group.addoption("--epochs", type=int, default=4, help="epochs a measurement (default: 4)")
    group.addoption("--memory-epochs", type=int, default=100, help="for test_memory.py")


@pytest.fixture(scope="session")
def rounds(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--rounds"))


@pytest.fixture(scope="session")
def epochs(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--epochs"))


@pytest.fixture(scope="session")
def data(request: pytest.FixtureRequest) -> Path:
    """The pictures as one folder a class, warm in the page cache. A flat folder is copied into
    classes, since every peer wants classes."""
    given = request.config.getoption("--data")
    if given is None:
        folder = pictures.make(ROOT / "build" / "pictures")
    else:
        folder = Path(given).resolve()
        if not folder.is_dir():
            raise pytest.UsageError(f"--data {given}: no such folder")
        flat = sorted(path for path in folder.iterdir() if path.suffix.lower() in JPEG)
        if flat:
            folder = into_classes(flat, ROOT / "build" / "benchmarks" / "data" / folder.name)
    for path in folder.rglob("*"):
        if path.is_file():
            path.read_bytes()
    return folder


def into_classes(files: list[Path], target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    for number, path in enumerate(files):
        folder = target / f"class-{number % 10}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / path.name)
    return target


@pytest.fixture(scope="session")
def ask() -> Ask:
    """Runs one job of job.py in a fresh interpreter."""

    def run(question: str, **arguments: Any) -> dict[str, Any]:
        return tree.run([sys.executable, str(HERE / "job.py"), question, results.dump(arguments)])

    return run


@pytest.fixture
def ask_peers(ask: Ask, table: results.Table) -> Callable[..., Measures]:
    """One measurement for each of the named peers that can run here; the table says which
    cannot, and why."""

    def make(question: str, names: tuple[str, ...], **arguments: Any) -> Measures:
        measures: Measures = {}
        for peer in names:
            if reason := peers.missing(peer):
                table.notes.append(f"left out: {peer}: {reason}")
            else:
                measures[peer] = partial(ask, question, peer=peer, **arguments)
        return measures

    return make


@pytest.fixture(scope="session")
def bare_decode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("bare") / "bare_decode"
    source = HERE / "bare_decode.c"
    subprocess.run(
        ["cc", "-O3", "-D_GNU_SOURCE", str(source), "-ljpeg", "-o", str(target)], check=True
    )
    return target


@pytest.fixture
def table(request: pytest.FixtureRequest, data: Path) -> Iterator[results.Table]:
    """The test's table: it is written and printed if the test has filled it."""
    made = results.Table(request.module.QUESTION, data, sys.argv[1:])
    yield made
    if made.rows:
        made.save(ROOT / "build" / "benchmarks")
        TABLES.append(made)


@pytest.fixture
def interleaved(rounds: int) -> Callable[[Measures], Found]:
    """Calls each of the named measurements once a round, starting with another one each time."""

    def run(measures: Measures) -> Found:
        names = list(measures)
        found: Found = {name: [] for name in names}
        for turn in range(rounds):
            shift = turn % len(names)
            for name in names[shift:] + names[:shift]:
                found[name].append(measures[name]())
        return found

    return run


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for made in TABLES:
        terminalreporter.section(made.question)
        terminalreporter.write_line(made.text())
    if TABLES:
        terminalreporter.write_line(results.machine())
