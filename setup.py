# SPDX-License-Identifier: MIT
"""Builds the C extension `feedline._core`; everything else stands in pyproject.toml."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
WARNINGS = (
    "-Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wcast-qual -Wstrict-prototypes "
    "-Wmissing-prototypes -Wundef -Wvla -Wformat=2"
).split()


def pkg_config(option: str, name: str) -> list[str]:
    """Flags of a system library; an empty list if pkg-config does not know it."""
    try:
        result = subprocess.run(
            ["pkg-config", option, name], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return []
    return result.stdout.split() if result.returncode == 0 else []


class BuildExtension(build_ext):
    """build_ext that says how to get what is missing."""

    def build_extensions(self) -> None:
        if not self.has_jpeg():
            sys.exit(
                "feedline needs libjpeg-turbo's development files (jpeglib.h). Install them:\n"
                "    Debian, Ubuntu:  apt-get install libjpeg62-turbo-dev || "
                "apt-get install libjpeg-turbo8-dev\n"
                "    Fedora:          dnf install libjpeg-turbo-devel"
            )
        super().build_extensions()

    def has_jpeg(self) -> bool:
        compiler = self.compiler.compiler[0]
        source = "#include <stdio.h>\n#include <jpeglib.h>\nint v = LIBJPEG_TURBO_VERSION_NUMBER;\n"
        command = [compiler, "-x", "c", "-fsyntax-only", *pkg_config("--cflags", "libjpeg"), "-"]
        return subprocess.run(command, input=source, text=True, check=False).returncode == 0


def extension() -> Extension:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    compile_args = ["-O3", "-std=gnu11", "-fvisibility=hidden", "-pthread", "-fno-math-errno"]
    compile_args += ["-ffp-contract=off", *WARNINGS, *pkg_config("--cflags", "libjpeg")]
    # NumPy's headers are not clean under these warnings.
    compile_args += ["-isystem", numpy.get_include()]
    link_args = ["-pthread"]
    if os.environ.get("FEEDLINE_WERROR"):
        compile_args.append("-Werror")
    if os.environ.get("FEEDLINE_DEBUG"):
        compile_args += ["-O1", "-g", "-UNDEBUG"]
    if sanitizers := os.environ.get("FEEDLINE_SANITIZE"):
        compile_args += [f"-fsanitize={sanitizers}", "-g", "-O1", "-fno-omit-frame-pointer"]
        link_args.append(f"-fsanitize={sanitizers}")
    return Extension(
        "feedline._core",
        sources=sorted(str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.c")),
        depends=sorted(str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.h")),
        include_dirs=["src"],
        define_macros=[
            ("_GNU_SOURCE", None),
            ("FEEDLINE_VERSION", f'"{version}"'),
            ("NPY_NO_DEPRECATED_API", "NPY_1_25_API_VERSION"),
            ("NPY_TARGET_VERSION", "NPY_1_25_API_VERSION"),
        ],
        extra_compile_args=compile_args,
        extra_link_args=link_args,
        libraries=["jpeg", "m"],
    )


setup(ext_modules=[extension()], cmdclass={"build_ext": BuildExtension})
