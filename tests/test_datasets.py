# SPDX-License-Identifier: MIT
"""feedline.ImageFolder and feedline.Files: what they list, their fields, copies and pickles."""

import copy
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feedline as fl
from picture_files import CLASSES, COUNT

pytestmark = pytest.mark.parallel


def touch(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def torchvision_listing(root: Path, extensions: tuple[str, ...]) -> list[tuple[str, int]]:
    """torchvision's rule: sorted classes; in each the sorted walk, in each folder sorted names."""
    found = []
    classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    for number, name in enumerate(classes):
        for folder, _, files in sorted(os.walk(root / name, followlinks=True)):
            for file in sorted(files):
                if file.lower().endswith(extensions):
                    found.append((os.path.join(folder, file), number))
    return found


def test_image_folder_lists_as_torchvision(tmp_path: Path) -> None:
    touch(tmp_path, "b/2.jpg", "b/10.JPG", "b/x/1.png", "b/x-y/3.jpeg", "b/notes.txt", "top.jpg")
    touch(tmp_path, "a/z.webp", "a/B.bmp", "a/a.ppm", "Z/1.tiff")
    dataset = fl.ImageFolder(tmp_path)
    assert dataset.classes == ["Z", "a", "b"]
    assert dataset.class_to_idx == {"Z": 0, "a": 1, "b": 2}
    expected = torchvision_listing(tmp_path, fl.datasets.IMAGE_EXTENSIONS)
    assert list(dataset.samples) == expected
    assert dataset.samples == expected
    assert dataset.imgs == expected
    assert dataset.targets.tolist() == [label for _, label in expected]
    assert dataset.targets.dtype == np.int64
    assert not dataset.targets.flags.writeable
    assert len(dataset) == len(expected) == 8
    assert dataset.key(0) == "Z/1.tiff"
    assert repr(dataset) == f"ImageFolder({str(tmp_path)!r}): 8 samples in 3 classes"


def test_samples_are_a_sequence(folder: Path) -> None:
    samples = fl.ImageFolder(folder).samples
    everything = list(samples)
    assert len(samples) == COUNT
    assert samples[-1] == everything[-1]
    assert samples[3:9:2] == everything[3:9:2]
    assert everything[5] in samples
    assert samples.index(everything[5]) == 5
    assert samples != everything[1:]
    assert samples != "text"
    assert repr(samples).startswith(f"<{COUNT} samples: ('")
    with pytest.raises(IndexError):
        samples[COUNT]


def test_extensions(tmp_path: Path) -> None:
    touch(tmp_path, "a/1.jpg", "a/2.PNG", "a/3.raw")
    for extensions in (".png", [".png"], (".PNG",)):
        dataset = fl.ImageFolder(tmp_path, extensions=extensions)
        assert [dataset.key(index) for index in range(len(dataset))] == ["a/2.PNG"]
    with pytest.raises(ValueError, match="at least one ending"):
        fl.ImageFolder(tmp_path, extensions=())
    with pytest.raises(TypeError, match=r"such as '.jpg', got 3"):
        fl.ImageFolder(tmp_path, extensions=[3])  # type: ignore[list-item]


def test_empty_classes(tmp_path: Path) -> None:
    touch(tmp_path, "full/1.jpg")
    (tmp_path / "hollow").mkdir()
    with pytest.raises(FileNotFoundError, match="hollow"):
        fl.ImageFolder(tmp_path)
    dataset = fl.ImageFolder(tmp_path, allow_empty=True)
    assert dataset.classes == ["full", "hollow"]
    assert len(dataset) == 1


def test_a_root_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        fl.ImageFolder(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        fl.ImageFolder(tmp_path)  # no class folders
    touch(tmp_path, "file")
    with pytest.raises(NotADirectoryError, match="file"):
        fl.ImageFolder(tmp_path / "file")


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "data/a/1.jpg")
    monkeypatch.setenv("HOME", str(tmp_path))
    dataset = fl.ImageFolder("~/data")
    assert dataset.samples[0] == (str(tmp_path / "data/a/1.jpg"), 0)


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff\xfe.jpg")
    touch(tmp_path, f"a/{name}")
    dataset = fl.ImageFolder(tmp_path)
    assert dataset.samples[0] == (os.path.join(tmp_path, "a", name), 0)
    files = fl.Files([os.path.join(tmp_path, "a", name)])
    assert os.path.exists(files.samples[0][0])


def test_files(tmp_path: Path) -> None:
    paths = [tmp_path / "1.jpg", str(tmp_path / "2.jpg"), os.fsencode(tmp_path / "3.jpg")]
    plain = fl.Files(paths)
    assert list(plain.fields) == ["image"]
    assert plain.samples[2] == (str(tmp_path / "3.jpg"), -1)
    assert plain.key(1) == str(tmp_path / "2.jpg")
    assert repr(plain) == "Files: 3 samples without labels"
    with pytest.raises(AttributeError, match="without labels"):
        _ = plain.targets
    labels: Any
    for labels in ([5, -6, 7], np.array([5, -6, 7], np.int8), (np.int64(5), -6, 7)):
        labelled = fl.Files(iter(paths), labels)
        assert list(labelled.fields) == ["image", "label"]
        assert labelled.targets.tolist() == [5, -6, 7]
        assert repr(labelled) == "Files: 3 samples with labels"


@pytest.mark.parametrize(
    ("paths", "labels", "error", "words"),
    [
        ("one.jpg", None, TypeError, "got the one path 'one.jpg'"),
        (Path("one.jpg"), None, TypeError, "got the one path"),
        ([], None, ValueError, "there are no paths"),
        (["a", 3], None, TypeError, r"paths\[1\] is a path, got 3"),
        (["a", "b"], [1], ValueError, "2 paths, but 1 labels"),
        (["a", "b"], [1, 2.5], TypeError, "got 1 dimensions of float64"),
        (["a", "b"], [[1], [2]], TypeError, "got 2 dimensions of int64"),
        (["a"], [True], TypeError, "of bool"),
        (["a"], np.array([2**63], np.uint64), ValueError, "does not fit int64"),
        (["a\0b"], None, ValueError, r"no file can have the name of paths\[0\]"),
        (["a", ""], None, ValueError, r"no file can have the name of paths\[1\]"),
        (["\ud800"], None, ValueError, r"no file can have the name of paths\[0\]"),
        (["x" * 4096], None, ValueError, r"paths\[0\] has 4096 bytes, more than the 4095"),
        (3, None, TypeError, "paths is a list of paths, got 3"),
        (["a"], [[1], [2, 3]], TypeError, "labels are a flat sequence of integers"),
        (["a"], [2**64], TypeError, "of object"),
    ],
)
def test_files_that_cannot_be(paths: Any, labels: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        fl.Files(paths, labels)


def test_default_fields(folder: Path) -> None:
    fields = fl.ImageFolder(folder).fields
    assert dict(fields) == {"image": fl.Field("file"), "label": fl.Field("label")}
    assert fields["image"].decode == "image"
    assert fields["label"].decode == "int64"
    with pytest.raises(TypeError):
        fields["other"] = fl.Field("file")  # type: ignore[index]


def test_fields_by_source_or_description(folder: Path) -> None:
    dataset = fl.ImageFolder(
        folder, fields={"raw": fl.Field("file", decode="bytes"), "y": "label"}
    )
    assert list(dataset.fields.items()) == [
        ("raw", fl.Field("file", "bytes")),
        ("y", fl.Field("label", "int64")),
    ]


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"image": "jpg"}, ValueError, "no source 'jpg'; it has: file, label"),
        ({"image": 3}, TypeError, "field 'image' is a source or a feedline.Field"),
        (["image"], TypeError, "a dict from names to sources, got list"),
        ({}, ValueError, "at least one field"),
        ({"class": "label"}, ValueError, "must be an identifier"),
        ({"a.b": "label"}, ValueError, "must be an identifier"),
        ({"_a": "label"}, ValueError, "without a leading underscore"),
        ({"index": "label"}, ValueError, "every batch has an attribute of that name"),
        ({3: "label"}, TypeError, "field names are strings"),
    ],
)
def test_wrong_fields(folder: Path, fields: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        fl.ImageFolder(folder, fields=fields)


def test_files_without_labels_have_no_such_source() -> None:
    with pytest.raises(ValueError, match="Files has no source 'label'; it has: file"):
        fl.Files(["a.jpg"], fields={"y": "label"})


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("jpg",), ValueError, "sources are: file, label"),
        (("file", "text"), ValueError, "it can be: image, bytes"),
        (("label", "image"), ValueError, "it can be: int64"),
        ((3,), TypeError, "source is a string"),
        (("file", 3), TypeError, "decode is a string"),
    ],
)
def test_wrong_field(arguments: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        fl.Field(*arguments)


def test_copies_share_the_table(folder: Path) -> None:
    dataset = fl.ImageFolder(folder)
    for twin in (copy.copy(dataset), copy.deepcopy(dataset)):
        assert twin._catalog is dataset._catalog


def test_pickled_folder_is_listed_again(folder: Path) -> None:
    dataset = fl.ImageFolder(folder, fields={"y": "label"}, extensions=".jpg")
    stored = pickle.dumps(dataset)
    assert len(stored) < 1000
    twin = pickle.loads(stored)
    assert twin.samples == dataset.samples
    assert twin.fields == dataset.fields
    assert twin.extensions == (".jpg",)
    assert twin.fingerprint == dataset.fingerprint


def test_pickled_folder_that_has_changed(tmp_path: Path) -> None:
    touch(tmp_path, "a/1.jpg", "a/2.jpg")
    stored = pickle.dumps(fl.ImageFolder(tmp_path))
    touch(tmp_path, "a/3.jpg")
    with pytest.raises(ValueError, match="it had 2 samples, it has 3; make it anew"):
        pickle.loads(stored)
    (tmp_path / "a/1.jpg").unlink()
    with pytest.raises(ValueError, match="it has 2, with other names"):
        pickle.loads(stored)


@pytest.mark.parametrize("labels", [None, [3, -1, 2**62]])
def test_pickled_files(labels: list[int] | None) -> None:
    dataset = fl.Files(["b.jpg", os.fsdecode(b"\xff.jpg"), "a/c.jpg"], labels)
    twin = pickle.loads(pickle.dumps(dataset))
    assert twin.samples == dataset.samples
    assert twin.sources == dataset.sources
    assert twin.fingerprint == dataset.fingerprint


def test_fingerprint_is_of_names_below_the_root(tmp_path: Path) -> None:
    for root in ("one", "two"):
        touch(tmp_path, f"{root}/a/1.jpg", f"{root}/b/2.jpg")
    touch(tmp_path, "three/a/1.jpg", "three/b/3.jpg")
    one, two, three = (fl.ImageFolder(tmp_path / root) for root in ("one", "two", "three"))
    assert one.fingerprint == two.fingerprint != three.fingerprint


def test_folder_of_the_fixture(folder: Path) -> None:
    dataset = fl.ImageFolder(folder)
    assert dataset.classes == sorted(name.split("/")[0] for name in CLASSES)
    assert np.bincount(dataset.targets).tolist() == list(CLASSES.values())
