# SPDX-License-Identifier: MIT
"""torchvision, where it and torch are installed; the tests that import this are skipped else."""

import importlib
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")


def import_torchvision() -> Any:
    """torchvision, also where its compiled operators do not fit torch: nothing here needs them."""
    try:
        pytest.importorskip("torchvision", reason="torchvision is not installed")
    except RuntimeError:  # operator torchvision::nms does not exist
        schemas = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            schemas.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        importlib.import_module("torchvision")
        return schemas


SCHEMAS = import_torchvision()
