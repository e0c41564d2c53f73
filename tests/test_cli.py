# SPDX-License-Identifier: MIT
"""The command `feedline`, and the numbers that are chosen by themselves."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import feedline as fl
from feedline import cli, defaults, pinned


def test_env(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["env", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["feedline"] == fl.__version__
    assert facts["numpy"] == np.__version__
    assert facts["python"].startswith(f"{sys.version_info[0]}.{sys.version_info[1]}")
    assert facts["cpu_count"] >= 1
    assert cli.main(["env"]) == 0
    text = capsys.readouterr().out
    assert f"feedline: {fl.__version__}" in text
    assert all(f"{name}:" in text for name in facts)


def test_a_command_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main([])
    assert caught.value.code == 2
    assert "command" in capsys.readouterr().err


def test_everything_public_is_there() -> None:
    assert all(hasattr(fl, name) for name in fl.__all__)


def test_memory_limits_of_cgroups(tmp_path: Path) -> None:
    membership, mount = tmp_path / "cgroup", tmp_path / "fs"
    (mount / "outer/inner").mkdir(parents=True)
    (mount / "outer/memory.max").write_text("4000\n")
    (mount / "outer/inner/memory.max").write_text("max\n")
    (mount / "memory/old").mkdir(parents=True)
    (mount / "memory/old/memory.limit_in_bytes").write_text("3000\n")
    membership.write_text("0::/outer/inner\n")
    assert defaults.cgroup_limits(membership, mount) == [4000]
    assert defaults.usable_memory(membership, mount) == (4000, "the cgroup's memory limit")
    membership.write_text("9:cpu:/x\n5:memory:/old\n")
    assert defaults.cgroup_limits(membership, mount) == [3000]
    membership.write_text("0::/\n")
    assert defaults.cgroup_limits(membership, mount) == []
    limit, source = defaults.usable_memory(tmp_path / "none", mount)
    assert limit is not None
    assert source == "the machine's memory"


@pytest.mark.parametrize(
    ("usable", "value"), [(4000, 1000), (2, 1), (1 << 40, 2 << 30), (None, 2 << 30)]
)
def test_default_memory_limit(
    monkeypatch: pytest.MonkeyPatch, usable: int | None, value: int
) -> None:
    monkeypatch.setattr(defaults, "usable_memory", lambda: (usable, "the test"))
    assert defaults.memory_limit().value == value


def test_default_threads_and_batches() -> None:
    assert [defaults.io_threads(threads).value for threads in (1, 3, 64)] == [4, 6, 16]
    assert defaults.prefetch_batches(2, 256).value == 2
    assert defaults.prefetch_batches(8, 10).value == 4  # 32 samples, rounded up


class FakeTorch:
    """torch, as far as pinned memory goes."""

    uint8 = "uint8"

    def __init__(self, is_available: bool) -> None:
        self.accelerator = self
        self.found = is_available

    def is_available(self) -> bool:
        return self.found

    def empty(self, size: int, *, dtype: str, pin_memory: bool) -> tuple[int, str, bool]:
        return size, dtype, pin_memory


def test_pinned_blocks_are_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert pinned.allocator() == (None, "torch is not installed")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "torch", FakeTorch(False))  # type: ignore[arg-type]
    assert pinned.allocator() == (None, "torch finds no accelerator")
    monkeypatch.setitem(sys.modules, "torch", FakeTorch(True))  # type: ignore[arg-type]
    allocate, reason = pinned.allocator()
    assert allocate is not None
    assert allocate(7) == (7, "uint8", True)
    assert reason == "blocks of torch's pinned memory"
