# SPDX-License-Identifier: MIT
"""fork() before and after the first batch: parent and child both go on, each with own threads."""

import os
import sys
import warnings

import feedline as fl
from feedline import transforms as T

# From 3.12 on os.fork() warns where threads are.
warnings.simplefilter("ignore", DeprecationWarning)

loader = fl.Loader(
    fl.ImageFolder(sys.argv[1]),
    batch_size=4,
    shuffle=True,
    transform=[T.RandomResizedCrop(9)],
    output="numpy",
)


def rows(batches: object) -> list[bytes]:
    return [batch.image.tobytes() for batch in batches]


def in_child(work: object) -> None:
    """Runs `work` in a child that ends as interpreters do; its failure is the parent's."""
    child = os.fork()
    if child == 0:
        work()
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    if status != 0:
        sys.exit(f"the child ended with status {status}")


def refusal(ask: object) -> str:
    try:
        ask()
    except fl.ClosedError as error:
        return str(error)
    return "nothing was refused"


def before_the_first_batch() -> None:
    assert len(rows(loader)) == 6


def after_some_batches() -> None:
    assert "fork" in refusal(lambda: next(iterator))
    assert "fork" in refusal(lambda: len(iterator))
    assert held.image.tobytes() == first
    assert loader.state_dict() == state
    loader.load_state_dict(state)
    assert rows(loader) == expected[2:]
    loader.set_epoch(0)
    assert rows(loader) == expected


in_child(before_the_first_batch)
expected = rows(loader)
loader.set_epoch(0)
iterator = iter(loader)
held = next(iterator)
first = held.image.tobytes()
next(iterator)
state = loader.state_dict()
in_child(after_some_batches)
in_child(lambda: loader.close())
in_child(lambda: None)
assert rows(iterator) == expected[2:]
