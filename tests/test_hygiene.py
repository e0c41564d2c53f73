# SPDX-License-Identifier: MIT
"""Rules of the C code that no compiler checks: who includes whom, names, sizes, banned calls."""

import os
import re
import shutil
import subprocess
import sysconfig
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
import pytest

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"

# Layers from the bottom; a folder may include those of lower layers and itself.
LAYERS = [
    {"base"},
    {"data", "stats", "device"},
    {"catalog", "order", "fetch", "format", "decode", "transform", "cache", "batch", "deliver"},
    {"pipeline"},
    {"feedline"},
    {"binding"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
# Stages that may include another stage: the reader of containers asks a fetcher for bytes, and
# what delivers a batch reads its slabs; the words of a row's shape are everybody's.
STAGE_PAIRS = {("format", "fetch"), ("deliver", "batch")}
ROW_SHAPE = "batch/layout.h"
THIRD_PARTY = "third_party"  # unmodified files of others: no rule but the includes

MAX_FILE, MAX_FUNCTION, MAX_HEADER = 600, 80, 250
# Shrinks only: the file or function and why it may be longer.
LONGER: dict[str, str] = {}

BANNED = {
    r"\b(malloc|calloc|realloc|reallocarray|free)\s*\(": "base/memory.c only",
    r"\b(aligned_alloc|posix_memalign|memalign|strdup|strndup)\s*\(": "base/memory.c only",
    r"\b(sprintf|vsprintf|strcpy|strcat|strtok|gets|atoi|atol|atof)\s*\(": "no bounds, no errors",
    r"\b(rand|srand|random|drand48)\s*\(": "base/philox.h",
    r"\b(alloca|__builtin_alloca)\s*\(": "unbounded stack",
    r"\b(setenv|putenv|setlocale|signal|sigaction|umask|chdir)\s*\(": "process-wide settings",
    r"\bPyGILState_\w+": "native threads never attach to Python",
    r"\b(usleep|sleep)\s*\(": "polling",
}

FILES = sorted(path for path in SRC.rglob("*.[ch]") if THIRD_PARTY not in path.parts)
HEADERS = [path for path in FILES if path.suffix == ".h"]
SOURCES = [path for path in FILES if path.suffix == ".c"]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'", re.DOTALL)


def name_of(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def code_of(path: Path) -> str:
    """The file without comments and the insides of strings; lines keep their numbers."""

    def blank(match: re.Match[str]) -> str:
        return "\n" * match.group().count("\n") or '""'

    text = path.read_text()
    # An include's name is a string too, and stays.
    lines = [line if INCLUDE.match(line) else None for line in text.splitlines()]
    blanked = TOKEN.sub(blank, text).splitlines()
    blanked += [""] * (len(lines) - len(blanked))
    return "\n".join(kept or line for kept, line in zip(lines, blanked, strict=True))


CODE = {path: code_of(path) for path in FILES}


def folder_of(name: str) -> str:
    """The folder of a file under src/; feedline.h and feedline.c are a layer of their own."""
    return name.split("/")[0] if "/" in name else "feedline"


def is_allowed(source: str, header: str) -> bool:
    """May `source` (a file under src/) include `header` (also under src/)?"""
    importer, imported = folder_of(source), folder_of(header)
    if imported == THIRD_PARTY or importer == imported:
        return True
    if importer not in LEVEL or imported not in LEVEL:
        return False
    if importer == "binding":
        return imported == "feedline"
    if LEVEL[importer] == LEVEL[imported]:
        return (importer, imported) in STAGE_PAIRS or header == ROW_SHAPE
    return LEVEL[importer] > LEVEL[imported]


def report(findings: list[str]) -> None:
    assert not findings, "\n" + "\n".join(findings)


def test_rules_of_inclusion_themselves() -> None:
    assert is_allowed("pipeline/engine.c", "base/sync.h")
    assert is_allowed("deliver/dlpack.c", "batch/slab.h")
    assert is_allowed("transform/chain.h", "batch/layout.h")
    assert is_allowed("binding/module.c", "feedline.h")
    assert not is_allowed("base/error.c", "data/dtype.h")
    assert not is_allowed("decode/jpeg.c", "fetch/local.h")
    assert not is_allowed("decode/jpeg.c", "batch/slab.h")
    assert not is_allowed("order/cursor.c", "pipeline/engine.h")
    assert not is_allowed("binding/module.c", "pipeline/engine.h")
    assert not is_allowed("strange/new.c", "base/error.h")


def test_include_directions() -> None:
    findings = []
    for path in FILES:
        for kind, header in INCLUDE.findall(CODE[path]):
            if kind == "<":
                continue
            if not (SRC / header).exists():
                findings.append(f"{name_of(path)}: {header} is not a path from src/")
            elif not is_allowed(name_of(path), header):
                findings.append(f"{name_of(path)} may not include {header}")
    report(findings)


def test_python_stays_in_the_binding() -> None:
    findings = [
        f"{name_of(path)} includes {header}"
        for path in FILES
        for _, header in INCLUDE.findall(CODE[path])
        if (header == "Python.h" or header.startswith("numpy/"))
        and folder_of(name_of(path)) != "binding"
    ]
    report(findings)


def test_own_header_comes_first() -> None:
    findings = []
    for path in SOURCES:
        own = path.with_suffix(".h")
        includes = [header for _, header in INCLUDE.findall(CODE[path])]
        if folder_of(name_of(path)) == "binding" or not own.exists() or not includes:
            continue
        if includes[0] != name_of(own):
            findings.append(f"{name_of(path)} includes {includes[0]} before {name_of(own)}")
    report(findings)


def test_file_names_are_unique() -> None:
    counts = Counter(path.name for path in FILES)
    report([name for name, count in counts.items() if count > 1])


def test_first_lines() -> None:
    findings = []
    for path in FILES:
        lines = path.read_text().splitlines()
        if lines[0] != "// SPDX-License-Identifier: MIT":
            findings.append(f"{name_of(path)}: the first line is not the licence")
        # A source with a header of its own is described there.
        elif not lines[1].startswith("// ") and not path.with_suffix(".h").exists():
            findings.append(f"{name_of(path)}: the second line does not say what the file is")
    report(findings)


def test_include_guards() -> None:
    findings = []
    for path in HEADERS:
        guard = "FL_" + re.sub(r"[^A-Z0-9]", "_", name_of(path).upper())
        if name_of(path) == "feedline.h":
            guard = "FL_FEEDLINE_H"
        if f"#ifndef {guard}\n#define {guard}\n" not in path.read_text():
            findings.append(f"{name_of(path)}: the guard is not {guard}")
    report(findings)


def test_sizes() -> None:
    findings = []
    for path in FILES:
        lines = CODE[path].splitlines()
        limit = MAX_HEADER if path.suffix == ".h" else MAX_FILE
        if len(lines) > limit and name_of(path) not in LONGER:
            findings.append(f"{name_of(path)}: {len(lines)} lines, at most {limit}")
        for first, last in functions(lines):
            name = f"{name_of(path)}:{first}"
            if last - first + 1 > MAX_FUNCTION and name not in LONGER:
                findings.append(f"{name}: a function of {last - first + 1} lines")
    report(findings)


def functions(lines: list[str]) -> list[tuple[int, int]]:
    """First and last line of each function: clang-format puts its braces into column 0."""
    found, start = [], None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            found.append((start, number))
            start = None
    return found


def test_functions_are_found() -> None:
    assert functions(["int f(void)", "{", "    return 0;", "}", "struct s {", "};"]) == [(2, 4)]


def test_banned_calls() -> None:
    findings = []
    for path in FILES:
        for pattern, instead in BANNED.items():
            if name_of(path) == "base/memory.c" and instead == "base/memory.c only":
                continue
            for match in re.finditer(pattern, CODE[path]):
                line = CODE[path].count("\n", 0, match.start()) + 1
                findings.append(f"{name_of(path)}:{line}: {match.group()} ({instead})")
    report(findings)


def test_macros_do_not_jump() -> None:
    findings = []
    for path in FILES:
        for match in re.finditer(r"^[ \t]*#\s*define\s+(\w+)((?:\\\n|[^\n])*)", CODE[path], re.M):
            if re.search(r"\b(return|goto)\b", match.group(2)):
                findings.append(f"{name_of(path)}: {match.group(1)} hides a jump")
    report(findings)


def test_nothing_is_left_to_do() -> None:
    pattern = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    findings = []
    for path in [*FILES, *(ROOT / "python").rglob("*.py"), *(ROOT / "tests").rglob("*.[ch]")]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if pattern.search(line):
                findings.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    report(findings)


def test_links_of_the_documentation_lead_somewhere() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks" / "README.md"]
    findings = []
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target and not (page.parent / target).exists():
                findings.append(f"{page.relative_to(ROOT)}: {target} is not there")
    report(findings)


# What needs the compiler.

needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("nm") is None,
    reason="gcc or nm is not installed: apt-get install gcc binutils",
)
FORMATS = {"PNG": ["libpng", "zlib"], "WEBP": ["libwebp", "libwebpdemux"]}


def has_libraries(packages: list[str]) -> bool:
    """Does pkg-config know them? So setup.py decides, too."""
    if shutil.which("pkg-config") is None:
        return False
    return subprocess.run(["pkg-config", "--exists", *packages], check=False).returncode == 0


FLAGS = [f"-DFL_HAVE_{name}" for name, packages in FORMATS.items() if has_libraries(packages)]
FLAGS += ["-std=gnu11", "-D_GNU_SOURCE", '-DFEEDLINE_VERSION="test"', f"-I{SRC}", "-pthread"]

SYNTAX = ["-x", "c", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]


def flags_for(path: Path) -> list[str]:
    if folder_of(name_of(path)) != "binding":
        return FLAGS
    return [
        *FLAGS,
        "-DNPY_NO_DEPRECATED_API=NPY_1_25_API_VERSION",
        "-DNPY_TARGET_VERSION=NPY_1_25_API_VERSION",
        "-isystem",
        sysconfig.get_path("include"),
        "-isystem",
        numpy.get_include(),
    ]


def run_side_by_side(commands: list[list[str]]) -> list[str]:
    """The outputs of those that failed."""

    def run(command: list[str]) -> str:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        return result.stdout + result.stderr if result.returncode != 0 else ""

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return [output for output in pool.map(run, commands) if output]


@needs_gcc
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_headers_stand_alone(compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    report(
        run_side_by_side([[compiler, *SYNTAX, *flags_for(path), str(path)] for path in HEADERS])
    )


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Path]:
    """Each source compiled as it is shipped, without the test hooks."""
    folder = tmp_path_factory.mktemp("objects")
    made = {path: folder / (name_of(path).replace("/", "-") + ".o") for path in SOURCES}
    report(
        run_side_by_side(
            [
                ["gcc", "-O1", "-fPIC", "-c", *flags_for(path), str(path), "-o", str(target)]
                for path, target in made.items()
            ]
        )
    )
    return made


def symbols(target: Path, *options: str) -> list[tuple[str, str, str]]:
    """(name, type as of nm, section) of what an object file defines."""
    text = subprocess.run(
        ["nm", "--defined-only", "--format=sysv", *options, str(target)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = [[part.strip() for part in line.split("|")] for line in text.splitlines()]
    return [(row[0], row[2], row[6]) for row in rows if len(row) == 7 and row[0] != "Name"]


@needs_gcc
def test_only_prefixed_symbols(objects: dict[Path, Path]) -> None:
    findings = []
    for path, target in objects.items():
        for name, _, _ in symbols(target, "--extern-only"):
            if not name.startswith("fl_") and name != "PyInit__core":
                findings.append(f"{name_of(path)}: {name} has no prefix")
    report(findings)


# State of the whole process, with the reason why it is allowed.
GLOBALS: dict[tuple[str, str], str] = {
    ("base/cpu.c", "allowed"): "the mask of CPU features, set before any kernel is chosen",
    ("binding/deferred.c", "deferred"): "objects may be let go when all that held them is gone",
    ("binding/module.c", "fl_numpy_api"): "NumPy's functions, written by its import",
    ("binding/module.c", "fl_numpy_apiPyArray_RUNTIME_VERSION"): "NumPy's, as well",
    ("binding/python_step.c", "served"): "a thread's own: which engine it must not wait for",
}
# CPython takes these without const, and never writes to them.
BINDING_TABLE = re.compile(
    r"(\w+_)?(slots|spec|methods|properties|members|definition|names|functions)"
)


@needs_gcc
def test_no_process_wide_state(objects: dict[Path, Path]) -> None:
    """Writable sections hold nothing: .data.rel.ro is constant once the loader has run."""
    findings = []
    for path, target in objects.items():
        for name, kind, section in symbols(target):
            writable = section.startswith((".data", ".bss", ".tbss", ".tdata", "*COM*"))
            if not writable or section.startswith(".data.rel.ro"):
                continue
            plain = re.sub(r"\.\d+$", "", name)
            if folder_of(name_of(path)) == "binding" and BINDING_TABLE.fullmatch(plain):
                continue
            if (name_of(path), plain) not in GLOBALS:
                findings.append(f"{name_of(path)}: {name} ({kind}, {section}) can change")
    report(findings)


@needs_gcc
def test_the_extension_exports_one_symbol() -> None:
    spec = pytest.importorskip("feedline._core", reason="the extension is not built").__file__
    assert [name for name, _, _ in symbols(Path(spec), "--dynamic", "--extern-only")] == [
        "PyInit__core"
    ]
