# SPDX-License-Identifier: MIT
"""Which rank this process is, and of how many.

From the arguments, else from torch.distributed if it is imported and initialised, else from the
environment that torchrun sets. torch is never imported for it.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Ranks:
    """Rank `rank` of `world_size`, 0 <= rank < world_size, and where that comes from."""

    rank: int
    world_size: int
    source: str


def resolve(rank: int | None, world_size: int | None) -> Ranks:
    """The process's place among the ranks.

    Both arguments given: they hold, whatever the surroundings say (one rank that evaluates alone,
    groups of ranks that share their samples). One given: the other is found, and must fit.

    Raises:
        ValueError: rank is not below world_size, or arguments and surroundings disagree.
    """
    if world_size == 1 and rank is None:
        rank = 0
    if rank is not None and world_size is not None:
        return checked(Ranks(rank, world_size, "given"))
    found = from_surroundings()
    if world_size is not None and world_size != found.world_size:
        raise ValueError(
            f"world_size={world_size} was given without rank, but {found.source} says "
            f"{found.world_size}; give rank as well"
        )
    if rank is not None and rank != found.rank:
        raise ValueError(
            f"rank={rank} was given without world_size, but {found.source} says rank "
            f"{found.rank} of {found.world_size}; give world_size as well"
        )
    return found


def checked(ranks: Ranks) -> Ranks:
    """ValueError unless 0 <= rank < world_size."""
    if ranks.world_size < 1:
        raise ValueError(f"world_size is at least 1, got {ranks.world_size}")
    if not 0 <= ranks.rank < ranks.world_size:
        raise ValueError(
            f"rank {ranks.rank} is not in the interval [0, {ranks.world_size - 1}] "
            f"(world_size={ranks.world_size})"
        )
    return ranks


def from_surroundings() -> Ranks:
    """What torch.distributed or torchrun says; a process alone otherwise."""
    torch, environment = from_torch(), from_environment()
    if torch is not None and environment is not None:
        if (torch.rank, torch.world_size) != (environment.rank, environment.world_size):
            raise ValueError(
                f"torch.distributed says rank {torch.rank} of {torch.world_size}, but "
                f"{environment.source} says rank {environment.rank} of {environment.world_size}; "
                "give rank and world_size"
            )
        return torch
    return torch or environment or Ranks(0, 1, "a process alone")


def from_torch() -> Ranks | None:
    """What torch.distributed says, if it has been imported and initialised."""
    module = sys.modules.get("torch.distributed")
    if module is None or not module.is_available() or not module.is_initialized():
        return None
    return checked(Ranks(module.get_rank(), module.get_world_size(), "torch.distributed"))


def from_environment() -> Ranks | None:
    """What torchrun's RANK and WORLD_SIZE say, if they are set."""
    rank, world_size = number("RANK"), number("WORLD_SIZE")
    if rank is None and world_size is None:
        return None
    if rank is None and world_size == 1:
        rank = 0
    if rank is None or world_size is None:
        raise ValueError(
            "of the environment variables RANK and WORLD_SIZE only one is set; "
            "set both or none, or give rank and world_size"
        )
    return checked(Ranks(rank, world_size, f"the environment (RANK={rank})"))


def number(name: str) -> int | None:
    """A variable of the environment as a number; None if it is not set."""
    text = os.environ.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"the environment variable {name} is {text!r}, not a number")
    return int(text)
