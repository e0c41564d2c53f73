# SPDX-License-Identifier: MIT
"""Pinned memory, owned by torch.

torch's allocator waits for copies to the device before it hands a block out again, so a block is
made anew for each batch and given back by dropping it.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

Allocate = Callable[[int], Any]


def allocator() -> tuple[Allocate | None, str]:
    """What makes a pinned block of some bytes, or None, and the reason in words."""
    if importlib.util.find_spec("torch") is None:
        return None, "torch is not installed"
    torch = importlib.import_module("torch")
    if not has_accelerator(torch):
        return None, "torch finds no accelerator"

    def allocate(size: int) -> Any:
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)

    return allocate, "blocks of torch's pinned memory"


def has_accelerator(torch: Any) -> bool:
    """Can this torch pin memory for a device?"""
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        return bool(accelerator.is_available())
    return bool(torch.cuda.is_available())


def allocator_or_warning() -> Allocate | None:
    """The allocator; without one a warning, and batches lie in plain memory."""
    allocate, reason = allocator()
    if allocate is None:
        warnings.warn(
            f"pin_memory=True, but {reason}: batches are delivered in pageable memory",
            UserWarning,
            stacklevel=4,
        )
    return allocate
