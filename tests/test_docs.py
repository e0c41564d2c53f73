# SPDX-License-Identifier: MIT
"""The Python in README and quick start runs as it stands, on a small folder of pictures."""

import re
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/quick-start.md")


def blocks(page: str) -> list[str]:
    return re.findall(
        r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize("page", PAGES)
def test_code_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(
        "torch", reason="the examples ask for torch tensors; torch is not installed"
    )
    for root in ("train", "imagenet/train"):
        for name in ("cat", "dog"):
            folder = tmp_path / root / name
            folder.mkdir(parents=True)
            for number in range(3):
                Image.new("RGB", (40, 30), (80 * number, 0, 0)).save(folder / f"{number}.jpg")
    monkeypatch.chdir(tmp_path)
    code = blocks(page)
    assert code
    names: dict[str, object] = {}
    for block in code:
        exec(compile(block, page, "exec"), names)
    images, labels = names["images"], names["labels"]
    assert tuple(images.shape[1:]) == (3, 224, 224)  # type: ignore[attr-defined]
    assert len(images) == len(labels)  # type: ignore[arg-type]
    assert str(images.dtype) == "torch.float32"  # type: ignore[attr-defined]
    names["loader"].close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("page", [*PAGES, "benchmarks/README.md"])
def test_make_targets_exist(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(
        r"(?:^ {4}|`)make ([a-z-]+)", (ROOT / page).read_text(), re.MULTILINE
    ):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
