# SPDX-License-Identifier: MIT
"""The Loader: options, the life of its engine, epochs and state."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

from . import _core, defaults, distributed, options, state, threads
from ._core import ClosedError, Engine, Run
from .batch import Batch, batch_type
from .datasets import Dataset
from .defaults import Choice
from .distributed import Ranks
from .explain import Explanation, explain
from .iterator import LoaderIterator, RunRecord
from .pillow_step import decode_fallback
from .pinned import allocator_or_warning
from .state import OrderFacts, Place
from .stats import Stats
from .threads import PythonThreads
from .transforms import Transform

# What a child of a fork inherited and must not touch, not even by freeing it: locks in it may be
# held by threads that do not exist there.
_inherited: list[object] = []

JOIN_SECONDS: Final = 2.0


class Loader:
    """Feeds batches of a data set, from threads of a C core.

    Args:
        dataset: feedline.ImageFolder or feedline.Files.
        batch_size: samples a batch on this rank, at least 1.
        shuffle: True: another order each epoch, a function of (seed, epoch).
        drop_last: leave out a last batch that is not full.
        seed: 0 to 2**64 - 1, for order and random transforms; None: drawn once (see `seed`),
            which only one rank alone can do.
        rank, world_size: this process among those that share the data; None: found at the first
            len() or iter(), from torch.distributed or torchrun's environment.
        uneven: what happens when samples do not divide among the ranks. "pad": the first ones come
            again (torch's rule); "drop": the rest is left out; "mask": padded so that all batches
            are full, `batch.valid` False in padded rows.
        transform: a list of feedline.transforms (for the field `image`), or a dict of lists by
            field.
        output: what a batch is made of: "dlpack" (feedline.Tensor), "numpy" or "torch".
        as_dict: plain dicts instead of named tuples.
        layout: of pictures: "NCHW", "NHWC", or "channels_last" (shape of NCHW, memory of NHWC).
        pin_memory: batches in torch's pinned memory; without torch or an accelerator a warning.
        num_threads: threads that decode and transform; None: the usable CPUs, shared by
            LOCAL_WORLD_SIZE processes.
        io_threads: threads that read files; None: twice num_threads, between 4 and 16.
        prefetch_batches: batches under way at most; None: 4 samples a thread, at least 2.
        memory_limit: bytes of batches under way; None: 2 GiB or a quarter of the usable memory,
            whichever is less. A batch that is due is made even above it.
        timeout: seconds that `next()` waits for a batch; 0: for ever.
        in_order: False: batches as they come; a state in mid-epoch is then approximate.

    Every option is a read-only attribute of the same name. Threads start with the first `next()`.

    Raises:
        TypeError, ValueError: an option is of the wrong type, or impossible; the message names it.
    """

    dataset: Dataset
    batch_size: int
    shuffle: bool
    drop_last: bool
    seed: int
    uneven: str
    transform: Sequence[Transform] | Mapping[str, Sequence[Transform]] | None
    output: str
    as_dict: bool
    layout: str
    pin_memory: bool
    num_threads: int
    io_threads: int
    prefetch_batches: int
    memory_limit: int
    timeout: float
    in_order: bool

    def __init__(
        self,
        dataset: Dataset,
        *,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int | None = 0,
        rank: int | None = None,
        world_size: int | None = None,
        uneven: str = "pad",
        transform: Sequence[Transform] | Mapping[str, Sequence[Transform]] | None = None,
        output: str = "dlpack",
        as_dict: bool = False,
        layout: str = "NCHW",
        pin_memory: bool = False,
        num_threads: int | None = None,
        io_threads: int | None = None,
        prefetch_batches: int | None = None,
        memory_limit: int | None = None,
        timeout: float = 0.0,
        in_order: bool = True,
    ) -> None:
        given = {
            name: value for name, value in locals().items() if name not in ("self", "dataset")
        }
        self._set("dataset", options.dataset(dataset))
        self._set("batch_size", options.whole("batch_size", batch_size, 1, options.MAX_INT32))
        self._set("uneven", options.one_of("uneven", uneven, options.UNEVEN))
        self._set("output", options.output(output))
        self._set("layout", options.one_of("layout", layout, options.LAYOUTS))
        self._set("timeout", options.seconds("timeout", timeout))
        for name in ("shuffle", "drop_last", "as_dict", "pin_memory", "in_order"):
            self._set(name, options.truth(name, given[name]))
        if self.drop_last and self.uneven == "mask":
            raise ValueError(
                'drop_last=True does not go with uneven="mask", which fills every batch'
            )
        self._set("transform", transform)
        self._chains = options.chains(transform, self.dataset)
        self._core_fields = options.core_fields(
            self.dataset, self._chains, self.layout, self.output
        )
        self._choose_numbers(num_threads, io_threads, prefetch_batches, memory_limit)

        value, self._is_seed_drawn = options.seed(seed)
        self._set("seed", value)
        self._rank = options.whole_or_none("rank", rank, 0, options.MAX_INT32)
        self._world_size = options.whole_or_none("world_size", world_size, 1, options.MAX_INT32)
        if self._rank is not None and self._world_size is not None:
            distributed.resolve(self._rank, self._world_size)
        self._refuse_drawn_seed(self._world_size or 1)
        self._ranks: Ranks | None = None

        self._given = given | {"seed": self.seed}
        self._facts = OrderFacts(self.shuffle, len(self.dataset), self.dataset.fingerprint)
        self._batch_type: type[Batch] = batch_type(tuple(self.dataset.fields))
        # Guards everything below. Nothing that waits is called under it. Reentrant, because a
        # signal handler may close the loader in the middle of any method.
        self._lock = threading.RLock()
        self._engine: Engine | None = None
        self._python_threads = PythonThreads()
        self._is_closed = False
        self._registration: object = None  # while there is an engine
        self._final_stats: dict[str, Any] = {}  # the engine's, once it is closed
        self._next: Place | None = Place(0, 0)  # of the next iter(); None: follows from _last
        self._last: RunRecord | None = None
        self._successor: tuple[Place, Run] | None = None

    # Options

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Loader.__annotations__ or name in ("rank", "world_size"):
            raise AttributeError(
                f"{name} cannot be changed after the Loader was made; make another Loader"
            )
        object.__setattr__(self, name, value)

    def _choose_numbers(
        self,
        num_threads: int | None,
        io_threads: int | None,
        prefetch_batches: int | None,
        memory_limit: int | None,
    ) -> None:
        whole, most = options.whole_or_none, options.MAX_INT32
        threads_ = whole("num_threads", num_threads, 1, options.MAX_THREADS)
        io = whole("io_threads", io_threads, 1, options.MAX_THREADS)
        prefetch = whole("prefetch_batches", prefetch_batches, 1, most)
        memory = whole("memory_limit", memory_limit, 1, options.MAX_INT64)

        compute = defaults.given(threads_) if threads_ else defaults.num_threads()
        self._choices: dict[str, Choice] = {
            "num_threads": compute,
            "io_threads": defaults.given(io) if io else defaults.io_threads(compute.value),
            "prefetch_batches": defaults.given(prefetch)
            if prefetch
            else defaults.prefetch_batches(compute.value, self.batch_size),
            "memory_limit": defaults.given(memory) if memory else defaults.memory_limit(),
        }
        for name, choice in self._choices.items():
            self._set(name, choice.value)

    @property
    def rank(self) -> int | None:
        """This process's rank; None while it was neither given nor found."""
        return self._rank if self._ranks is None else self._ranks.rank

    @property
    def world_size(self) -> int | None:
        """Number of ranks; None while it was neither given nor found."""
        return self._world_size if self._ranks is None else self._ranks.world_size

    def _resolve_ranks(self) -> Ranks:
        """Found anew each time, so that a change is noticed."""
        ranks = distributed.resolve(self._rank, self._world_size)
        known = self._ranks
        if known is not None and (known.rank, known.world_size) != (ranks.rank, ranks.world_size):
            raise ValueError(
                f"this Loader was rank {known.rank} of {known.world_size} ({known.source}), and "
                f"now is rank {ranks.rank} of {ranks.world_size} ({ranks.source}); call len() and "
                "iter() only after the process group was made, or give rank and world_size"
            )
        self._refuse_drawn_seed(ranks.world_size)
        self._ranks = ranks
        return ranks

    def _refuse_drawn_seed(self, world_size: int) -> None:
        if self._is_seed_drawn and world_size > 1:
            raise ValueError(
                f"seed=None with world_size={world_size}: every rank would draw its own; "
                "give all ranks the same seed"
            )

    # Epochs

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank."""
        ranks = self._resolve_ranks()
        # The number does not depend on the order, and the sequential one needs no table.
        cursor = _core.Cursor(
            count=len(self.dataset),
            shuffle=False,
            seed=self.seed,
            epoch=0,
            start=0,
            batch_size=self.batch_size,
            rank=ranks.rank,
            world_size=ranks.world_size,
            uneven=self.uneven,
            drop_last=self.drop_last,
        )
        return cursor.batches

    def __iter__(self) -> LoaderIterator:
        """A pass over an epoch; starts no thread.

        Epoch `epoch`; the one after it if the iterator made last has delivered a batch. Iterators
        are independent of each other.

        Raises:
            ClosedError: the loader was closed.
            ValueError: rank and world size are contradictory.
        """
        ranks = self._resolve_ranks()
        with self._lock:
            engine = self._open_engine()
            place = self._next_place()
            run = self._take_successor(place) or self._start_run(engine, place, ranks)
            self._next, self._last = None, RunRecord(run, place)
            record = self._last
        return LoaderIterator(self, record, run)

    @property
    def epoch(self) -> int:
        """The epoch of the iterator made last, or the one that was set since."""
        with self._lock:
            return self._next.epoch if self._next is not None else self._last_record().start.epoch

    def set_epoch(self, epoch: int) -> None:
        """The next `iter()` starts this epoch.

        Equal to the epoch of a state that was loaded and not used yet, it goes on at that state's
        position; another epoch drops the position, with a warning.
        """
        epoch = options.whole("epoch", epoch, 0, state.MAX_UINT64)
        with self._lock:
            waiting = self._next_place()
            keeps = waiting.epoch == epoch
            self._next = waiting if keeps else Place(epoch, 0)
            cancelled = self._drop_successor(self._next)
        if cancelled is not None:
            cancelled.cancel()
        if not keeps and waiting.position > 0:
            warnings.warn(
                f"set_epoch({epoch}) drops the loaded position {waiting.position} of epoch "
                f"{waiting.epoch}",
                UserWarning,
                stacklevel=2,
            )

    def _last_record(self) -> RunRecord:
        assert self._last is not None  # _next is None only between iter() and set_epoch()
        return self._last

    def _next_place(self) -> Place:
        if self._next is not None:
            return self._next
        last = self._last_record()
        return Place(last.start.epoch + 1, 0) if last.has_moved else last.start

    def _start_run(self, engine: Engine, place: Place, ranks: Ranks) -> Run:
        return engine.start_run(
            shuffle=self.shuffle,
            seed=self.seed,
            epoch=place.epoch,
            start=place.position,
            rank=ranks.rank,
            world_size=ranks.world_size,
            uneven=self.uneven,
            drop_last=self.drop_last,
        )

    # The next epoch's run is fed as soon as this one's last batch is on its way.

    def _prestart_after(self, record: RunRecord) -> None:
        with self._lock:
            if record.is_prestarted:
                return
            record.is_prestarted = True
            place = Place(record.start.epoch + 1, 0)
            engine, ranks, run = self._engine, self._ranks, record.run
            if (
                record is not self._last
                or self._next is not None
                or engine is None
                or run is None
                or ranks is None
                or place.epoch > state.MAX_UINT64
            ):
                return
            try:
                successor = self._start_run(engine, place, ranks)
                run.prestart(successor)
            except (ClosedError, MemoryError):
                return  # the next iter() starts it, or says what is wrong
            self._successor = (place, successor)

    def _take_successor(self, place: Place) -> Run | None:
        found, self._successor = self._successor, None
        if found is None:
            return None
        if found[0] == place:
            return found[1]
        found[1].cancel()
        return None

    def _drop_successor(self, place: Place | None) -> Run | None:
        """What has to be cancelled, outside the lock, unless it is the run for `place`."""
        if self._successor is None or self._successor[0] == place:
            return None
        found, self._successor = self._successor, None
        return found[1]

    # State

    def state_dict(self, after: Batch | None = None) -> dict[str, Any]:
        """A few numbers, fit for json, that let another Loader go on where this one is.

        Args:
            after: as if this batch were the last one received, for whoever fetches ahead.

        Counts what the iterator made last has delivered, batches with an error included. At the
        end of an epoch it is the beginning of the next one. Threads, batch size, transforms and
        world size may be others when it is loaded.

        Raises:
            TypeError, ValueError: `after` is no batch that a loader delivered.
        """
        with self._lock:
            seed = self.seed
            place = self._next if self._next is not None else self._last_record().place_now()
        if after is not None:
            if not isinstance(after, Batch):
                raise TypeError(
                    f"after is a batch from this loader, got {type(after).__name__} "
                    "(a dict does not know where it comes from)"
                )
            if after._origin is None:
                raise ValueError(
                    "after is a rebuilt batch; give the one that the loader delivered"
                )
            facts, seed = after._origin.order
            difference = self._facts.difference(facts.text)
            if difference is None and seed != self.seed:
                difference = f"its seed was {seed}, this loader's is {self.seed}"
            if difference is not None:
                raise ValueError(f"after is a batch from another loader: {difference}")
            place = after._origin.place_after
        return state.build_state(self._facts, seed, place)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """The next `iter()` goes on where the state was taken, once. `{}` resets to the beginning.

        With seed=None the state's seed is taken over.

        Raises:
            TypeError: the state is no mapping, or a value has the wrong type.
            ValueError: it does not fit this loader; the message names what differs.
        """
        if isinstance(state_dict, Mapping) and not state_dict:
            seed, place = self.seed, Place(0, 0)
        else:
            expected = None if self._is_seed_drawn else self.seed
            seed, place = state.read_state(state_dict, self._facts, expected)
            if place.position == self._facts.count and place.position > 0:
                place = Place(place.epoch + 1, 0)
        with self._lock:
            self._set("seed", seed)
            self._given["seed"] = seed
            self._next = place
            cancelled = self._drop_successor(None)
        if cancelled is not None:
            cancelled.cancel()

    # Life

    def _open_engine(self) -> Engine:
        if self._is_closed:
            raise ClosedError("the Loader was closed; make another one")
        if self._engine is None:
            self._engine = Engine(
                self.dataset._catalog,
                fields=self._core_fields,
                batch_size=self.batch_size,
                num_threads=self.num_threads,
                io_threads=self.io_threads,
                prefetch_batches=self.prefetch_batches,
                memory_limit=self.memory_limit,
                in_order=self.in_order,
                output=self.output,
                max_pixels=defaults.MAX_PIXELS,
                allocate=allocator_or_warning() if self.pin_memory else None,
                decode_fallback=decode_fallback(),
                start_python_thread=self._python_threads.start,
                full_batches=self.uneven == "mask",
            )
            self._registration = threads.register(self)
        return self._engine

    def close(self) -> None:
        """Stop all threads, at most within two seconds. Idempotent; batches stay valid.

        Warns (RuntimeWarning) if a thread is stuck in the kernel and was left behind.
        """
        with self._lock:
            self._is_closed = True
            engine, self._engine = self._engine, None
            self._successor = None
            if engine is not None:
                self._final_stats = engine.stats()  # until all threads have stopped
        threads.unregister(self._registration)
        if engine is None:
            return
        stuck = engine.close()
        self._python_threads.join(JOIN_SECONDS)
        self._final_stats = engine.stats()
        with self._lock:
            if self._last is not None:
                self._last.freeze()
        engine.close()  # once more: drops the Python objects that the run has just let go of
        if stuck > 0:
            warnings.warn(
                f"{stuck} thread(s) of {self!r} did not stop within two seconds, probably inside "
                "a read from a file system that does not answer; they end when it does",
                RuntimeWarning,
                stacklevel=2,
            )

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _after_fork(self) -> None:
        """In the child: the engine's threads are not here; the next iter() makes another one."""
        self._lock = threading.RLock()
        self._python_threads = PythonThreads()
        if self._last is not None:
            _inherited.append(self._last.run)
            self._last.freeze(is_in_child=True)
        _inherited.extend((self._engine, self._successor))
        self._engine = self._successor = None

    # Reports

    def stats(self) -> Stats:
        """Counters at this moment: of the iterator made last, and of the engine."""
        with self._lock:
            engine, record = self._engine, self._last
            values: dict[str, Any] = {"epoch": self.epoch, "batches": 0, "delivered": 0}
            if record is not None:
                values["batches"], values["delivered"] = record.batches, record.delivered
            counters = engine.stats() if engine is not None else self._final_stats
        return Stats(values | counters)

    def explain(self) -> Explanation:
        """What was chosen and why: threads, memory, what the transforms give. Print it."""
        return explain(self, self._choices)

    def __repr__(self) -> str:
        names = ("batch_size", "shuffle", "seed", "output")
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"Loader({self.dataset!r}, {shown})"

    # A copy is made from the description: it has no engine, and starts with epoch 0.

    def __getstate__(self) -> dict[str, Any]:
        return {"dataset": self.dataset, "options": self._given, "drawn": self._is_seed_drawn}

    def __setstate__(self, description: dict[str, Any]) -> None:
        Loader.__init__(self, description["dataset"], **description["options"])
        self._is_seed_drawn = description["drawn"]
