# SPDX-License-Identifier: MIT
"""Pictures that are not part of the project, and the order model of the tests above."""

import os
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("FEEDLINE_SHARED", TESTS.parents[1] / "shared"))
sys.path.insert(0, str(TESTS))


def shared_files(folder: str) -> list[Path]:
    """The files of a folder of sample pictures; the test is skipped without it."""
    path = SHARED / folder
    if not path.is_dir():
        pytest.skip(f"no sample pictures in {path} (set FEEDLINE_SHARED)")
    return sorted(file for file in path.rglob("*") if file.is_file())


@pytest.fixture(scope="session")
def photographs() -> list[Path]:
    """300 pictures of ImageNet, of all sizes, a few of them grey or CMYK."""
    files = [file for file in shared_files("data/imagenet-sample") if file.suffix == ".JPEG"]
    return files or [file for file in shared_files("data/imagenet-sample") if is_jpeg(file)]


@pytest.fixture(scope="session")
def awkward_pictures() -> list[Path]:
    """Files that decoders disagree about: damaged, odd colour spaces, other formats."""
    return [file for file in shared_files("cases/images") if file.suffix != ".tsv"]


def is_jpeg(file: Path) -> bool:
    return file.suffix.lower() in (".jpg", ".jpeg")
