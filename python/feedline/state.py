# SPDX-License-Identifier: MIT
"""The state of a loader: a few numbers that json can store, and their check on the way back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

STATE_VERSION: Final = 1
ORDER_VERSION: Final = 1
MAX_UINT64: Final = (1 << 64) - 1
ORDERS: Final = ("sequential", "shuffled")
KEYS: Final = ("version", "order_version", "seed", "epoch", "position", "order_fingerprint")


@dataclass(frozen=True)
class Place:
    """A position, counted over all ranks, in the order of an epoch."""

    epoch: int
    position: int


@dataclass(frozen=True)
class OrderFacts:
    """What must be the same for a position to mean the same: the data set and its order."""

    shuffle: bool
    count: int
    fingerprint: int

    @property
    def text(self) -> str:
        """As the state stores it: order, number of samples, hash of their names."""
        kind = ORDERS[self.shuffle]
        return f"{kind}-{self.count}-{self.fingerprint:016x}"

    def difference(self, stored: str) -> str | None:
        """What differs from a stored text, in words; None if nothing does."""
        if stored == self.text:
            return None
        parts, mine = stored.split("-"), self.text.split("-")
        if len(parts) != 3 or parts[0] not in ORDERS or not parts[1].isdecimal():
            return f"its order_fingerprint {stored!r} is not one of feedline's"
        if parts[0] != mine[0]:
            return f"its order is {parts[0]}, this loader's is {mine[0]}: shuffle differs"
        if parts[1] != mine[1]:
            return f"its data set has {parts[1]} samples, this loader's has {mine[1]}"
        return "the data set has as many samples, but other names, labels or classes"


def build_state(facts: OrderFacts, seed: int, place: Place) -> dict[str, Any]:
    """The state that goes on at `place`."""
    return {
        "version": STATE_VERSION,
        "order_version": ORDER_VERSION,
        "seed": seed,
        "epoch": place.epoch,
        "position": place.position,
        "order_fingerprint": facts.text,
    }


def read_state(state: Mapping[str, Any], facts: OrderFacts, seed: int | None) -> tuple[int, Place]:
    """(seed, place) of a state that fits. `seed` None: any seed fits.

    Raises:
        TypeError: the state is no mapping, or a value has the wrong type.
        ValueError: keys are missing or unknown, or the state does not fit this loader; the
            message names what differs.
    """
    if not isinstance(state, Mapping):
        raise TypeError(f"a state is a dict from state_dict(), got {type(state).__name__}")
    missing = [key for key in KEYS if key not in state]
    unknown = [str(key) for key in state if key not in KEYS]
    if missing or unknown:
        problems = [f"{', '.join(missing)} missing"] if missing else []
        problems += [f"{', '.join(unknown)} unknown"] if unknown else []
        raise ValueError(f"this is not the state of a feedline.Loader: {'; '.join(problems)}")
    for key, expected in (("version", STATE_VERSION), ("order_version", ORDER_VERSION)):
        if whole_number(state, key) != expected:
            raise ValueError(
                f"the state has {key} {state[key]}, this feedline reads {expected}: "
                "it was written by another version of feedline"
            )
    stored_seed, epoch = whole_number(state, "seed"), whole_number(state, "epoch")
    position, stored = whole_number(state, "position"), state["order_fingerprint"]
    if not isinstance(stored, str):
        raise TypeError(f"the state's order_fingerprint is a string, got {stored!r}")
    if difference := facts.difference(stored):
        raise ValueError(f"the state does not fit this loader: {difference}")
    if seed is not None and stored_seed != seed:
        raise ValueError(
            f"the state does not fit this loader: its seed is {stored_seed}, this loader's "
            f"{seed}; make the loader with seed={stored_seed}"
        )
    if position > facts.count:
        raise ValueError(f"the state's position {position} is beyond {facts.count} samples")
    return stored_seed, Place(epoch, position)


def whole_number(state: Mapping[str, Any], key: str) -> int:
    """A value of the state as an integer from 0 to 2**64 - 1."""
    value = state[key]
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"the state's {key} is an integer, got {brief(value)}")
    if not 0 <= value <= MAX_UINT64:
        raise ValueError(f"the state's {key} is from 0 to 2**64 - 1, got {brief(value)}")
    return value


def brief(value: Any) -> str:
    """A value for an error, also one with more digits than Python prints."""
    try:
        return repr(value)
    except ValueError:
        return "a number of thousands of digits"
