# SPDX-License-Identifier: MIT
"""One pass over an epoch: what `iter(loader)` returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from . import threads
from ._core import ClosedError, Run
from .batch import Origin, make_batch
from .state import Place

if TYPE_CHECKING:
    from .loader import Loader


class RunRecord:
    """A run and what the loader remembers of it once its iterator is gone.

    Holds neither loader nor iterator. Frozen, when the loader is closed or in the child of a fork,
    it holds no run either, and so no engine: who looks at `run` takes it once, since another
    thread may freeze the record meanwhile.
    """

    __slots__ = ("batches", "is_finished", "is_prestarted", "place", "received", "run", "start")

    def __init__(self, run: Run, start: Place) -> None:
        self.run: Run | None = run
        self.start = start
        self.batches = run.batches
        self.received = 0  # after the last next(), for the child of a fork
        self.place = start  # where to go on, once frozen
        self.is_finished = False  # StopIteration was raised
        self.is_prestarted = False  # the next epoch's run was made, or needs none

    @property
    def delivered(self) -> int:
        """Batches received, failed ones included."""
        run = self.run
        return self.received if run is None else run.delivered

    @property
    def has_moved(self) -> bool:
        """The next iterator takes the next epoch."""
        return self.is_finished or self.delivered > 0

    def place_now(self) -> Place:
        """Where another run would go on."""
        run = self.run
        return self.place if run is None else self.place_after(run, run.delivered)

    def count(self, run: Run) -> None:
        """Note what `run` has delivered.

        Of threads that share an iterator the one that writes last has seen the latest number,
        because it looks again.
        """
        delivered = -1
        while delivered != run.delivered:
            self.received = delivered = run.delivered

    def place_after(self, run: Run, delivered: int) -> Place:
        """Where to go on after so many batches; at the end the next epoch begins."""
        if delivered == 0:
            return self.start
        if delivered >= self.batches:
            return Place(self.start.epoch + 1, 0)
        return Place(self.start.epoch, run.position_after(delivered - 1))

    def freeze(self, is_in_child: bool = False) -> None:
        """Let the run go. In a child its counts must not be asked for: they are behind a lock."""
        run = self.run
        if run is None:
            return
        if not is_in_child:
            self.received = run.delivered
        self.place = self.place_after(run, self.received)
        self.run = None


class LoaderIterator(Iterator[Any]):
    """Batches of one epoch, in order.

    Several threads may share one iterator: each batch goes to one of them. After an error, which
    stands for its batch, iteration may go on.
    """

    def __init__(self, loader: Loader, record: RunRecord, run: Run) -> None:
        self._loader = loader
        self._record = record
        self._run = run
        self._timeout = loader.timeout
        self._names = tuple(loader.dataset.fields)
        self._dataset = loader.dataset
        self._order = (loader._facts, loader.seed)
        self._as_dict = loader.as_dict
        self._type = loader._batch_type
        self._generation = threads.generation()

    def __iter__(self) -> LoaderIterator:
        return self

    def __next__(self) -> Any:
        """The next batch: a Batch, or a dict with `as_dict=True`.

        Raises:
            StopIteration: the epoch is over.
            TimeoutError: no batch within `timeout` seconds; it can be asked for again.
            DecodeError, OSError, ...: a sample of this batch failed; the message names its file.
            ClosedError: the loader was closed.
            RuntimeError: the iterator was made before a fork.
        """
        if self._generation != threads._generation:
            self._refuse_after_fork()
        record, run = self._record, self._run
        try:
            raw = run.next(self._timeout)
        except StopIteration:
            record.is_finished = True
            raise
        finally:
            record.count(run)
        if not record.is_prestarted and run.is_admitted:
            self._loader._prestart_after(record)
        if self._as_dict:
            return dict(zip(self._names, raw.values, strict=True))
        place = record.place_after(run, raw.number + 1)
        return make_batch(self._type, raw.values, Origin(raw, self._dataset, self._order, place))

    def __len__(self) -> int:
        """Batches that are left."""
        if self._generation != threads._generation:
            self._refuse_after_fork()
        return self._record.batches - self._run.delivered

    def __reduce__(self) -> NoReturn:
        raise TypeError("an iterator of a Loader cannot be pickled or copied; pickle the Loader")

    def __del__(self, generation: Callable[[], int] = threads.generation) -> None:
        # A break in mid-epoch. Absent attributes: __init__ did not get that far. At the end of the
        # interpreter this module's globals may be gone already.
        run = getattr(self, "_run", None)
        if run is not None and getattr(self, "_generation", -1) == generation():
            run.cancel()

    def _refuse_after_fork(self) -> NoReturn:
        raise ClosedError(
            "this iterator was made before the process was forked, and its threads are not here; "
            "call iter(loader) again in this process"
        )
