# SPDX-License-Identifier: MIT
"""The core's transforms by ctypes, built apart from the extension: `native` is their library."""

import ctypes
import os
import subprocess
from pathlib import Path

import pytest
from kernel_chain import declare

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("base", "data", "transform")
AVX2 = 1


@pytest.fixture(scope="session")
def native(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernels") / "kernels.so"
    sources = [str(p) for folder in FOLDERS for p in sorted((ROOT / "src" / folder).glob("*.c"))]
    flags = "-shared -fPIC -O2 -std=gnu11 -D_GNU_SOURCE -pthread -ffp-contract=off -fno-math-errno"
    command = [os.environ.get("CC", "cc"), *flags.split(), f"-I{ROOT / 'src'}"]
    command += [*sources, "-lm", "-o", str(path)]
    subprocess.run(command, check=True)
    return declare(ctypes.CDLL(str(path)))


@pytest.fixture(params=["scalar", "avx2"])
def library(native, request):
    """The library with one kind of kernels allowed for the chains that the test makes."""
    mask = AVX2 if request.param == "avx2" else 0
    native.fl_cpu_set_mask(mask)
    if native.fl_cpu_features() != mask:
        native.fl_cpu_set_mask(0xFFFFFFFF)
        pytest.skip("this CPU has no AVX2")
    yield native
    native.fl_cpu_set_mask(0xFFFFFFFF)
