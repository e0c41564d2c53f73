# SPDX-License-Identifier: MIT
"""Runs each script of isolated/ in a process of its own: it must end by itself, silently."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parent / "isolated").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_script(script: Path, folder: Path) -> None:
    """The script gets a folder of pictures. 0 and no output is success."""
    result = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-W", "error", str(script), str(folder)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
