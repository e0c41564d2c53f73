# SPDX-License-Identifier: MIT
"""Batches as torch tensors, by the exchange API and by from_dlpack."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine_support import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    batches_out,
    expected_pixels,
    first_values,
    make_engine,
    resize,
    to_dtype,
    write_pictures,
)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_pictures(tmp_path_factory.mktemp("pictures"), 4)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [(None, "uint8"), (FLOAT16, "float16"), (BFLOAT16, "bfloat16"), (FLOAT32, "float32")],
)
def test_torch_output(paths: list[Path], dtype: int | None, name: str) -> None:
    torch = pytest.importorskip("torch")
    ops = (resize(8, 6),) if dtype is None else (resize(8, 6), to_dtype(dtype))
    engine = make_engine(paths, ops=ops, output="torch")
    image, label = first_values(engine)
    assert (image.dtype, label.dtype) == (getattr(torch, name), torch.int64)
    assert (tuple(image.shape), image.stride()) == ((4, 3, 8, 6), (144, 48, 6, 1))
    expected = torch.from_numpy(expected_pixels(paths).copy())
    if dtype is not None:
        expected = (expected.to(torch.float32) / 255).to(image.dtype)
    assert torch.equal(image, expected)
    assert label.tolist() == [0, 2, 4, 6]
    label.add_(1)
    assert image.device.type == "cpu"
    part = image[1:, 0]
    del image, label
    assert batches_out(engine) == 1
    del part
    assert batches_out(engine) == 0
    engine.close()


def test_torch_of_a_tensor(paths: list[Path]) -> None:
    torch = pytest.importorskip("torch")
    engine = make_engine(paths, layout="channels_last")
    image, label = first_values(engine)
    for made in (image.torch(), torch.from_dlpack(image), torch.utils.dlpack.from_dlpack(image)):
        assert made.is_contiguous(memory_format=torch.channels_last)
        assert made.data_ptr() == image.numpy().__array_interface__["data"][0]
        assert torch.equal(made, torch.from_numpy(expected_pixels(paths).copy()))
    copied = torch.from_dlpack(image, copy=True)
    assert copied.data_ptr() != image.torch().data_ptr()
    assert label.torch().tolist() == [0, 2, 4, 6]
    del made, image, label
    assert batches_out(engine) == 0
    engine.close()


def test_torch_without_the_exchange_api(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    if hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        monkeypatch.setattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    engine = make_engine(paths, output="torch")
    image, label = first_values(engine)
    assert torch.equal(image, torch.from_numpy(expected_pixels(paths).copy()))
    del image, label
    assert batches_out(engine) == 0
    engine.close()


def test_torch_is_missed_by_name(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="pip install torch"):
        make_engine(paths, output="torch")
