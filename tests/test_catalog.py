# SPDX-License-Identifier: MIT
"""Catalogs as Python sees them: against os.walk by torchvision's rule, names that are not UTF-8,
errors, the fingerprint of docs/order.md, memory, and threads that change what was given."""

import gc
import os
import threading

import numpy as np
import pytest

pytestmark = pytest.mark.parallel

_core = pytest.importorskip("feedline._core", reason="the extension is not built")
psutil = pytest.importorskip("psutil", reason="psutil is not installed")

EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
MASK = (1 << 64) - 1


def scan(root, extensions=EXTENSIONS, allow_empty=False, threads=2):
    encoded = [extension.encode() for extension in extensions]
    return _core.Catalog.scan_folder(os.fsencode(root), encoded, allow_empty, threads)


def paths_of(catalog):
    return [os.fsdecode(catalog.path(index)) for index in range(len(catalog))]


def make_files(root, *names):
    for name in names:
        path = os.path.join(os.fsencode(root), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb"):
            pass


def listed_by_rule(root, extensions=EXTENSIONS):
    """(classes, [(path, label)]) by torchvision's rule, written down with os.walk."""
    root = os.fspath(root)
    classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    samples = []
    for label, name in enumerate(classes):
        walked = sorted(os.walk(os.path.join(root, name), followlinks=True))
        for folder, _, files in walked:
            samples += [
                (os.path.join(folder, file), label)
                for file in sorted(files)
                if file.lower().endswith(extensions)
            ]
    return classes, samples


def assert_as_by_rule(root):
    classes, samples = listed_by_rule(root)
    assert samples
    for threads in (1, 2, 5):
        catalog = scan(root, threads=threads)
        assert [os.fsdecode(name) for name in catalog.class_names] == classes
        assert list(zip(paths_of(catalog), catalog.labels().tolist(), strict=True)) == samples
        assert [catalog.label(index) for index in range(len(catalog))] == catalog.labels().tolist()
        assert catalog.has_labels


AWKWARD = [
    "a/1.jpg",
    "a/1.JPEG",
    "a/.png",
    "a/png",
    "a/x.png.txt",
    "a/ space .webp",
    "a/sub/2.jpg",
    "a/sub-1/2.jpg",
    "a/sub 1/2.jpg",
    "a/sub.jpg/3.jpg",
    "a/sub/deeper/and/deeper/4.tiff",
    "A/1.jpg",
    "b.c/1.jpg",
    "b/1.jpg",
    "b/\N{KELVIN SIGN}.jpg",
    "\N{LATIN SMALL LETTER E WITH ACUTE}/1.jpg",
    "\N{GRINNING FACE}/1.jpg",
    "new\nline/1.jpg",
    b"\xff/1.jpg",
    b"\xee\x80\x80/1.jpg",  # U+E000 sorts behind the surrogate of a lone byte, in front as bytes
    b"\xe2\x82/1.jpg",
    b"\xe2\x82\xac/1.jpg",
    b"b/\xff\xfe.jpg",
    b"b/\xed\xa0\x80.jpg",
    b"b/\xf0\x9f\x98.jpg",
    b"b/\xf0\x9f\x98\x80.jpg",
]


def test_tree_as_by_rule(tmp_path):
    make_files(tmp_path, "at-the-top.jpg", *AWKWARD)
    assert_as_by_rule(tmp_path)


def test_random_trees_as_by_rule(tmp_path):
    rng = np.random.default_rng(3)
    parts = [
        b"a",
        b"B",
        b"\xc3\xa9",
        b"\xff",
        b"\xef\xbf\xbd",
        b"-",
        b" ",
        b"0",
        b".",
        b"\xf0\x9f",
    ]
    for tree in range(5):
        root = tmp_path / str(tree)
        for _ in range(200):
            depth = rng.integers(2, 5)
            names = [b"".join(rng.choice(parts, rng.integers(1, 5))) for _ in range(depth)]
            make_files(root, b"/".join(b"d" + name for name in names) + b".jpg")
        assert_as_by_rule(root)


def test_links(tmp_path):
    make_files(tmp_path, "a/1.jpg", "elsewhere-not-a-class.txt")
    os.symlink("a", tmp_path / "b")
    os.symlink("1.jpg", tmp_path / "a" / "alias.jpg")
    os.symlink("nowhere", tmp_path / "a" / "broken.jpg")
    os.symlink("nowhere", tmp_path / "broken-class")
    assert_as_by_rule(tmp_path)


def test_loops_end(tmp_path):
    make_files(tmp_path, "a/x/1.jpg", "b/2.jpg")
    os.symlink("..", tmp_path / "a" / "x" / "up")
    os.symlink("../..", tmp_path / "a" / "x" / "top")
    os.symlink("../b", tmp_path / "a" / "other")
    os.symlink("../a", tmp_path / "b" / "other")
    found = [os.path.relpath(path, tmp_path) for path in paths_of(scan(tmp_path))]
    assert found == [
        "a/other/2.jpg",  # and not a/other/other, which is a again
        "a/x/1.jpg",
        "b/2.jpg",
        "b/other/x/1.jpg",
    ]


def test_pipes_and_sockets_count_by_name(tmp_path):
    make_files(tmp_path, "a/1.jpg")
    os.mkfifo(tmp_path / "a" / "2.jpg")
    assert_as_by_rule(tmp_path)


def test_no_class_folder(tmp_path):
    make_files(tmp_path, "1.jpg")
    with pytest.raises(
        FileNotFoundError, match=f"Couldn't find any class folder in {tmp_path}\\."
    ):
        scan(tmp_path)
    with pytest.raises(FileNotFoundError, match="Couldn't find any class folder"):
        scan(tmp_path, allow_empty=True)


def test_empty_classes(tmp_path):
    make_files(tmp_path, "b/1.jpg", "a/1.txt", "c/x/2.txt")
    message = r"no valid file for the classes a, c\. Supported extensions are: \.jpg, \.png$"
    with pytest.raises(FileNotFoundError, match=message):
        scan(tmp_path, extensions=(".jpg", ".png"))
    catalog = scan(tmp_path, allow_empty=True)
    assert catalog.class_names == [b"a", b"b", b"c"]
    assert catalog.labels().tolist() == [1]


def test_all_extensions_fit_the_message(tmp_path):
    make_files(tmp_path, *(f"class-with-a-long-name-{i:04}/1.txt" for i in range(1000)))
    with pytest.raises(FileNotFoundError) as caught:
        scan(tmp_path)
    text = str(caught.value)
    assert "class-with-a-long-name-0000, class-with-a-long-name-0001" in text
    assert "more. Supported extensions are: " + ", ".join(EXTENSIONS) in text


def test_missing_root(tmp_path):
    make_files(tmp_path, "file")
    with pytest.raises(FileNotFoundError) as caught:
        scan(tmp_path / "missing")
    assert caught.value.filename == str(tmp_path / "missing")
    with pytest.raises(NotADirectoryError) as caught:
        scan(tmp_path / "file")
    assert caught.value.filename == str(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        scan("")


def test_bad_arguments():
    with pytest.raises(ValueError, match="threads must be at least 1, it is 0"):
        scan("/", threads=0)
    with pytest.raises(ValueError, match="null byte"):
        scan("a\0b")
    with pytest.raises(TypeError, match=r"paths\[1\] must be bytes, not str"):
        _core.Catalog.from_paths([b"a", "b"], None)
    with pytest.raises(ValueError, match=r"contains a NUL byte.*\(sample 1\)"):
        _core.Catalog.from_paths([b"a", b"b\0"], None)
    with pytest.raises(ValueError, match="there are 1 paths, but 2 labels"):
        _core.Catalog.from_paths([b"a"], np.zeros(2, np.int64))
    with pytest.raises(TypeError, match="cannot create"):
        _core.Catalog()
    catalog = _core.Catalog.from_paths([b"a"], None)
    for index in (1, -1, 1 << 70):
        with pytest.raises(IndexError):
            catalog.path(index)
        with pytest.raises(IndexError):
            catalog.label(index)


def test_paths_come_back():
    paths = [b"/data/a/1", b"/data/b/2", b"/data/b/2", b"/data/", b"/data/b/\xff"]
    labels = np.array([1, -5, np.iinfo(np.int64).max, np.iinfo(np.int64).min, 0])
    catalog = _core.Catalog.from_paths(paths, labels)
    assert [catalog.path(index) for index in range(len(catalog))] == paths
    assert catalog.labels().tolist() == labels.tolist()
    assert catalog.class_names == []
    bare = _core.Catalog.from_paths(iter(paths[:2]), None)
    assert not bare.has_labels
    assert bare.labels().tolist() == [-1, -1]
    assert len(_core.Catalog.from_paths([], None)) == 0


def fingerprint(names, labels, classes):
    """As docs/order.md defines it."""
    state = 0

    def absorb(number):
        nonlocal state
        state = (state ^ number & MASK) * 0x9E3779B97F4A7C15 & MASK
        state ^= state >> 32

    def absorb_name(name):
        absorb(len(name))
        for at in range(0, len(name), 8):
            absorb(int.from_bytes(name[at : at + 8], "little"))

    absorb(len(names))
    for name, label in zip(names, labels, strict=True):
        absorb_name(name)
        absorb(label)
    absorb(len(classes))
    for name in classes:
        absorb_name(name)
    return state


def test_fingerprint(tmp_path):
    make_files(tmp_path, "b/12345678.jpg", "a/1.jpg", "b/\N{EURO SIGN}.jpg")
    names = [b"a/1.jpg", b"b/12345678.jpg", "b/\N{EURO SIGN}.jpg".encode()]
    assert scan(tmp_path).fingerprint == fingerprint(names, [0, 1, 1], [b"a", b"b"])
    # Another place for the same data.
    moved = tmp_path.rename(tmp_path.with_name(tmp_path.name + "-moved"))
    assert scan(moved).fingerprint == fingerprint(names, [0, 1, 1], [b"a", b"b"])

    listed = _core.Catalog.from_paths([b"/x/y/1", b"/x/z"], None)
    assert listed.fingerprint == fingerprint([b"y/1", b"z"], [-1, -1], [])
    assert _core.Catalog.from_paths([b"/q/y/1", b"/q/z"], None).fingerprint == listed.fingerprint
    labelled = _core.Catalog.from_paths([b"y/1", b"z"], np.array([3, -4]))
    assert labelled.fingerprint == fingerprint([b"y/1", b"z"], [3, -4], [])


def test_memory_of_a_million_entries():
    """At most 32 bytes an entry beyond the paths' bytes, and nothing of Python's."""
    count = 1_280_000
    gc.collect()
    paths = [b"/data/train/n%08d/n%08d_%d.JPEG" % (i // 1300, i // 1300, i) for i in range(count)]
    labels = np.arange(count) // 1300
    size = sum(map(len, paths))
    before = psutil.Process().memory_info().rss
    catalog = _core.Catalog.from_paths(paths, labels)
    assert len(catalog) == count
    assert catalog.memory <= size + 16 * count
    grown = psutil.Process().memory_info().rss - before
    assert grown <= size + 32 * count


def test_the_list_may_change_meanwhile():
    """from_paths releases the GIL: another thread clears the list and overwrites the labels."""
    for _ in range(5):
        paths = [b"folder/file-%d" % i for i in range(100_000)]
        labels = np.arange(100_000)
        start = threading.Event()

        def spoil(paths=paths, labels=labels, start=start):
            start.wait()
            labels.fill(-1)
            paths.clear()

        thread = threading.Thread(target=spoil)
        thread.start()
        start.set()
        catalog = _core.Catalog.from_paths(paths, labels)
        thread.join()
        assert len(catalog) in (0, 100_000)
        if len(catalog):
            assert catalog.path(99_999) == b"folder/file-99999"


def test_scans_in_parallel(tmp_path):
    make_files(tmp_path, *(f"{c}/{s}/{i}.jpg" for c in "abc" for s in "xyz" for i in range(20)))
    want = scan(tmp_path, threads=1).fingerprint
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(scan(tmp_path, threads=3).fingerprint))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [want] * 6
