# SPDX-License-Identifier: MIT
"""The C core as Python sees it. Private: feedline's Python modules are the public face."""

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

__version__: str

class CoreError(Exception):
    """Never raised itself; carries nothing. Base for the core's own exception types."""

class DecodeError(CoreError, OSError):
    """A file's bytes are not what they claim to be (Pillow raises OSError there too).

    Attributes `filename` (str, surrogateescape; None if unknown), `index` (int, -1 if unknown),
    `reason` (str)."""

    filename: str | None
    index: int
    reason: str

class LimitError(CoreError, ValueError):
    """Something is larger than a limit allows; attributes as DecodeError."""

    filename: str | None
    index: int
    reason: str

class ClosedError(CoreError, RuntimeError):
    """The loader or the iterator was closed."""

@final
class Catalog:
    """Places and labels of samples; immutable, no Python object a sample."""

    @classmethod
    def scan_folder(
        cls, root: bytes, extensions: Sequence[bytes], allow_empty: bool, threads: int
    ) -> Catalog: ...
    @classmethod
    def from_paths(
        cls, paths: Sequence[bytes], labels: npt.NDArray[np.int64] | None
    ) -> Catalog: ...
    def __len__(self) -> int: ...
    def path(self, index: int, /) -> bytes: ...
    def label(self, index: int, /) -> int: ...
    def labels(self) -> npt.NDArray[np.int64]: ...
    @property
    def has_labels(self) -> bool: ...
    @property
    def class_names(self) -> list[bytes]: ...
    @property
    def fingerprint(self) -> int: ...
    @property
    def memory(self) -> int: ...

@final
class Cursor:
    """One run over an epoch: which sample is in row r of batch g on this rank (docs/order.md)."""

    def __new__(
        cls,
        *,
        count: int,
        shuffle: bool,
        seed: int,
        epoch: int,
        start: int,
        batch_size: int,
        rank: int,
        world_size: int,
        uneven: str,
        drop_last: bool,
    ) -> Cursor: ...
    @property
    def batches(self) -> int: ...
    def rows(self, number: int, /) -> int: ...
    # int64 (rows, 4): position, random position, index, valid
    def batch(self, number: int, /) -> npt.NDArray[np.int64]: ...
    def position(self, delivered: int, /) -> int: ...

def permutation(
    count: int, seed: int, epoch: int, start: int, stop: int
) -> npt.NDArray[np.int64]: ...
def philox(
    counter: tuple[int, int, int, int], key: tuple[int, int]
) -> tuple[int, int, int, int]: ...

@final
class Tensor:
    """A typed view of a batch's memory: DLPack, buffer protocol, `.numpy()`, `.torch()`."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...  # in elements, as DLPack's and torch's
    @property
    def dtype(self) -> str: ...
    @property
    def ndim(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def __len__(self) -> int: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def numpy(self) -> npt.NDArray[Any]: ...
    def torch(self) -> Any: ...

@final
class RawBatch:
    """What Run.next returns: `values` in the order of the fields, each in the engine's output form
    (a list of per-row arrays for LATE fields), and the hidden fields."""

    @property
    def values(self) -> tuple[Any, ...]: ...
    @property
    def number(self) -> int: ...
    @property
    def index(self) -> npt.NDArray[np.int64]: ...  # a view of the batch's memory
    @property
    def valid(self) -> npt.NDArray[np.bool_]: ...

@final
class Run:
    """One pass over an order. next() from several threads: each batch goes to one of them."""

    # timeout in seconds, 0 = none. StopIteration at the end; TimeoutError; ClosedError; the
    # batch's own error (the batch then counts as received).
    def next(self, timeout: float, /) -> RawBatch: ...
    def cancel(self) -> None: ...
    @property
    def batches(self) -> int: ...  # of this run in all
    @property
    def delivered(self) -> int: ...  # received, failed ones included
    @property
    def position(self) -> int: ...  # the cursor's position after `delivered`
    def position_after(self, number: int, /) -> int: ...  # as if batch `number` were the last
    @property
    def epoch(self) -> int: ...
    @property
    def is_admitted(self) -> bool: ...  # all its batches are on their way
    def prestart(self, successor: Run, /) -> None: ...  # feed `successor` once is_admitted

@final
class Engine:
    """A loader's threads, budgets and memory. Starts nothing before the first Run.next."""

    def __new__(
        cls,
        catalog: Catalog,
        *,
        # (name, source "file"|"label", decode "image"|"bytes"|"int64",
        #  ops [(name, (numbers...))], layout "NCHW"|"NHWC"|"channels_last")
        fields: Sequence[tuple[str, str, str, Sequence[tuple[str, tuple[float, ...]]], str]],
        batch_size: int,
        num_threads: int,
        io_threads: int,
        prefetch_batches: int,
        memory_limit: int,
        in_order: bool,
        output: str,  # "dlpack" | "numpy" | "torch"
        max_pixels: int,
        # Pinned memory: called attached inside next() with a size in bytes; returns an object
        # with data_ptr() and nbytes that owns the block (torch.empty(..., pin_memory=True)).
        allocate: Callable[[int], Any] | None = None,
        # The Pillow step: called on a Python thread with (bytes as memoryview) and returns
        # (width, height, RGBX bytes). None: files that the core cannot read are errors.
        decode_fallback: Callable[[memoryview], tuple[int, int, bytes]] | None = None,
        # Starts one Python thread that runs `target()`; called attached inside next().
        start_python_thread: Callable[[Callable[[], None]], None] | None = None,
        # Runs have uneven="mask". Else no batch has more rows than there are samples, and no
        # memory is taken for more.
        full_batches: bool = False,
    ) -> Engine: ...
    def start_run(
        self,
        *,
        shuffle: bool,
        seed: int,
        epoch: int,
        start: int,
        rank: int,
        world_size: int,
        uneven: str,
        drop_last: bool,
    ) -> Run: ...
    # Stops and waits (detached) up to 2 s; returns the number of threads left behind.
    def close(self) -> int: ...
    @property
    def is_closed(self) -> bool: ...
    # {"stages": {"fetch": {"items": ...}, ...}, "batches_delivered": ..., "pool": {...}}
    def stats(self) -> dict[str, Any]: ...
    # (name, dtype, row shape or None if LATE)
    @property
    def fields(self) -> list[tuple[str, str, tuple[int, ...] | None]]: ...

# Checks a chain without making an engine: (dtype, row shape or None). ValueError says why not.
def check_ops(
    ops: Sequence[tuple[str, tuple[float, ...]]], layout: str, /
) -> tuple[str, tuple[int, ...] | None]: ...
def cpu_count() -> int: ...
def set_cpu_mask(mask: int, /) -> None: ...
def environment() -> dict[str, Any]: ...  # versions and features found, for `feedline env`

# Ops on one picture, for tests and preview: RGBX bytes in, one row out. `epoch` and `position` key
# the draws as in a run. Returns (array, the box that would have been decoded).
def apply_ops(
    ops: Sequence[tuple[str, tuple[float, ...]]],
    layout: str,
    width: int,
    height: int,
    pixels: bytes,
    seed: int,
    epoch: int,
    position: int,
    /,
) -> tuple[npt.NDArray[Any], tuple[int, int, int, int]]: ...
def decode(data: bytes, box: tuple[int, int, int, int] | None, /) -> npt.NDArray[np.uint8]: ...
