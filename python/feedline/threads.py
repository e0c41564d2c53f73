# SPDX-License-Identifier: MIT
"""Lives of threads and loaders: Python-made threads, interpreter exit, and fork.

Nothing is started by importing this module. At exit every open loader is closed before the
interpreter waits for its non-daemon threads: a plain `atexit` would come after that wait, which
would then never end.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Protocol


class Closable(Protocol):
    """A loader, as this module sees it."""

    def close(self) -> None: ...
    def _after_fork(self) -> None: ...


# By a key of each registration, so that a loader which is collected takes itself off. Every use is
# one operation of dict, which no other thread sees half done, and which needs no lock: a signal
# handler may close loaders at any moment, and a lock may be held at a fork.
_open_loaders: dict[object, weakref.ref[Closable]] = {}
_generation = 0


def generation() -> int:
    """How many forks lie between this process and the one that imported feedline."""
    return _generation


def register(loader: Closable) -> object:
    """Have `loader` closed at exit and told of forks, while it lives; the key to end that."""
    key, remove = object(), _open_loaders.pop
    _open_loaders[key] = weakref.ref(loader, lambda _: remove(key, None))
    return key


def unregister(key: object) -> None:
    """The loader of that key is closed."""
    _open_loaders.pop(key, None)


def open_loaders() -> list[Closable]:
    """Those that live and were not closed."""
    found = [reference() for reference in list(_open_loaders.values())]
    return [loader for loader in found if loader is not None]


def close_all() -> None:
    """Close every loader of this process that is still open."""
    for loader in open_loaders():
        loader.close()


class PythonThread(threading.Thread):
    """One of an engine's; known to the others from its first act on."""

    def __init__(self, target: Callable[[], None], name: str, running: set[PythonThread]) -> None:
        super().__init__(target=target, name=name, daemon=False)
        self._known = running

    def run(self) -> None:
        self._known.add(self)
        del self._known  # which would be a cycle
        super().run()


class PythonThreads:
    """The Python-made threads of one engine: started on demand, joined when it is closed.

    Without a lock: a signal handler may close the loader while a thread is being started.
    """

    def __init__(self) -> None:
        self._running: set[PythonThread] = set()
        self._started = 0

    def start(self, target: Callable[[], None]) -> None:
        """Run `target()` on a new thread. RuntimeError if there can be none."""
        self._forget_ended()
        self._started += 1
        name = f"feedline-python-{self._started}"
        PythonThread(target, name, self._running).start()

    def join(self, seconds: float) -> None:
        """Wait for all of them, at most so long; the calling thread is not waited for."""
        deadline = time.monotonic() + seconds
        for thread in list(self._running):
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))
        self._forget_ended()

    def _forget_ended(self) -> None:
        for thread in list(self._running):
            if not thread.is_alive():
                self._running.discard(thread)


def _after_fork_in_child() -> None:
    global _generation
    _generation += 1
    for loader in open_loaders():
        loader._after_fork()


# Runs before the interpreter joins non-daemon threads; concurrent.futures relies on it too.
threading._register_atexit(close_all)  # type: ignore[attr-defined]
os.register_at_fork(after_in_child=_after_fork_in_child)
