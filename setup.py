# SPDX-License-Identifier: MIT
"""Builds the C extension `feedline._core`; everything else stands in pyproject.toml.

Switches in the environment: FEEDLINE_WERROR (warnings are errors), FEEDLINE_DEBUG (asserts, no
optimisation), FEEDLINE_SANITIZE=address,undefined or thread."""

import hashlib
import os
import shlex
import subprocess
import sys
import sysconfig
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
WARNINGS = [
    *("-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Wcast-qual"),
    *("-Wstrict-prototypes", "-Wmissing-prototypes", "-Wundef", "-Wvla", "-Wformat=2"),
]
INSTALL = {
    "Python.h": "apt-get install python3-dev (of this interpreter's version)",
    "jpeglib.h": "apt-get install libjpeg-dev    (Fedora: dnf install libjpeg-turbo-devel)",
}
# Formats that are decoded natively if pkg-config knows their libraries; else they are left to
# Pillow. The define, pkg-config's names, the linker's names.
OPTIONAL = {
    "FL_HAVE_PNG": (["libpng", "zlib"], ["png", "z"]),
    "FL_HAVE_WEBP": (["libwebp", "libwebpdemux"], ["webpdemux", "webp"]),
}
PROBES = {
    "Python.h": "#include <Python.h>\n",
    # The macro is libjpeg-turbo's own: the old libjpeg lacks what the decoder needs.
    "jpeglib.h": "#include <stdio.h>\n#include <jpeglib.h>\n"
    "int v = LIBJPEG_TURBO_VERSION_NUMBER;\n",
}


def pkg_config(*arguments: str) -> list[str] | None:
    """Flags of system libraries; None if pkg-config does not know them."""
    try:
        result = subprocess.run(
            ["pkg-config", *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return None
    return result.stdout.split() if result.returncode == 0 else None


class BuildExtension(build_ext):
    """build_ext that says how to get what is missing, compiles files side by side and keeps the
    objects: only what changed is compiled again, also by the next `pip install -e .`."""

    def build_extensions(self) -> None:
        self.check_system()
        super().build_extensions()

    def check_system(self) -> None:
        compiler = self.compiler.compiler
        includes = [
            "-I" + sysconfig.get_path("include"),
            *(pkg_config("--cflags", "libjpeg") or []),
        ]
        for name, source in PROBES.items():
            command = [*compiler, "-x", "c", "-fsyntax-only", *includes, "-"]
            try:
                probe = subprocess.run(
                    command, input=source, text=True, capture_output=True, check=False
                )
            except FileNotFoundError:
                sys.exit(f"feedline needs a C compiler ({compiler[0]}): apt-get install gcc")
            if probe.returncode != 0:
                sys.exit(f"feedline needs {name}: {INSTALL[name]}\n{probe.stderr}")

    def build_extension(self, ext: Extension) -> None:
        flags = [*self.compiler.compiler_so, *ext.extra_compile_args]
        flags += [
            f"-D{name}" + (f"={value}" if value else "") for name, value in ext.define_macros
        ]
        digest = hashlib.sha256(" ".join(flags).encode()).hexdigest()[:12]
        folder = Path("build") / "objects" / (sysconfig.get_config_var("SOABI") + "-" + digest)
        # Not part of the digest, so that environments share objects: where the headers lie.
        flags += [f"-I{path}" for path in (*ext.include_dirs, *self.compiler.include_dirs)]
        flags += ["-isystem", numpy.get_include()]  # they are not clean under these warnings
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            objects = list(
                pool.map(lambda source: compile_one(source, folder, flags), ext.sources)
            )
        self.compiler.link_shared_object(
            objects,
            self.get_ext_fullpath(ext.name),
            libraries=self.get_libraries(ext),
            extra_postargs=ext.extra_link_args,
            build_temp=self.build_temp,
            target_lang="c",
        )


def compile_one(source: str, folder: Path, flags: list[str]) -> str:
    """Compiles one file unless its object is newer than all that it was made from."""
    target = folder / Path(source).with_suffix(".o")
    rule = target.with_suffix(".d")
    if target.exists() and rule.exists():
        inputs = rule.read_text().replace("\\\n", " ").partition(":")[2].split()
        made = target.stat().st_mtime
        if all(Path(name).exists() and Path(name).stat().st_mtime <= made for name in inputs):
            return str(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [*flags, "-MMD", "-MF", str(rule), "-c", source, "-o", str(target)]
    print(f"compiling {source}", flush=True)
    if subprocess.run(command, check=False).returncode != 0:
        target.unlink(missing_ok=True)
        sys.exit(f"{source} does not compile:\n{shlex.join(command)}")
    return str(target)


def extension() -> Extension:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    compile_args = ["-O3", "-std=gnu11", "-fvisibility=hidden", "-pthread", "-fno-math-errno"]
    compile_args += ["-ffp-contract=off", *WARNINGS, *(pkg_config("--cflags", "libjpeg") or [])]
    link_args = ["-pthread"]
    formats: list[tuple[str, None]] = []
    libraries = ["jpeg"]
    for define, (packages, names) in OPTIONAL.items():
        flags = pkg_config("--cflags", *packages)
        if flags is not None:
            formats.append((define, None))
            compile_args += flags
            libraries += names
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
            *formats,
            ("FEEDLINE_VERSION", f'"{version}"'),
            ("NPY_NO_DEPRECATED_API", "NPY_1_25_API_VERSION"),
            ("NPY_TARGET_VERSION", "NPY_1_25_API_VERSION"),
        ],
        extra_compile_args=compile_args,
        extra_link_args=link_args,
        libraries=[*libraries, "m"],
    )


setup(ext_modules=[extension()], cmdclass={"build_ext": BuildExtension})
