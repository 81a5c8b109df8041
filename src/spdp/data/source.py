"""Records in pieces.

Whatever holds them is seen as blocks ``(m, k, k)``, one at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.blocks import record_stack, size_of_block, size_of_first
from spdp.errors import DataError, InvalidMatrixError
from spdp.kernels.place import on_device

__all__ = [
    "BLOCK_BYTES",
    "Source",
    "as_source",
    "chain",
    "is_dask",
    "read_piece",
    "rows_per_block",
]

BLOCK_BYTES = 16 << 20
DEVICE_BYTES = 1 << 30  # of a block on a device, where work has to be started for each
Read = Callable[[], Iterator[Any]]


class Source:
    """A collection of k×k matrices that can be read block by block.

    Parameters
    ----------
    read : callable
        Returns an iterator over blocks, afresh at each call: arrays ``(m, k, k)``,
        single matrices, or lists of matrices.
    k : int
    n : int or None
        Number of records, None when only reading tells.
    name : str
        How messages call the source.
    rereadable : bool
        Whether the source can be read more than once.
    chunks : sequence, optional
        Pieces that a worker of a cluster can read on its own, in order: Dask's delayed
        objects, or functions of no argument that can be pickled.
    device : bool
        Whether its blocks lie on a GPU.
    """

    def __init__(
        self,
        read: Read,
        k: int,
        n: int | None,
        name: str,
        *,
        rereadable: bool = True,
        chunks: Sequence[Any] | None = None,
        device: bool = False,
    ) -> None:
        self._read = read
        self.k = k
        self.n = n
        self.name = name
        self.rereadable = rereadable
        self.chunks = chunks
        self.device = device
        self._started = False

    def blocks(self) -> Iterator[Any]:
        """Every record once, in blocks."""
        if self._started and not self.rereadable:
            raise DataError(
                f"{self.name} can be read only once; "
                "pass an array, a file or a function that opens it anew"
            )
        self._started = True
        return self._read()

    __iter__ = blocks


def rows_per_block(k: int, itemsize: int = 8, size: int = BLOCK_BYTES) -> int:
    """Records in a block of about ``size`` bytes."""
    return max(1, size // (itemsize * k * k))


def as_source(X: Any, name: str = "X") -> Source:
    """See data as records in pieces.

    An array or memory map ``(n, k, k)``, CuPy's and torch's on a GPU too; a list of
    matrices, each in its own dtype; an iterator of blocks (read once); a function that
    returns such an iterator afresh; a Dask array; a :class:`Source`, or a list of them.
    """
    if isinstance(X, Source):
        return X
    if is_dask(X):
        return _from_dask(X, name)
    if isinstance(X, Iterator):
        return _from_iterator(X, name)
    if callable(X):
        return _from_function(X, name)
    if isinstance(X, list | tuple):
        return _from_list(X, name)
    return _from_array(record_stack(X, name), name)


def chain(parts: Sequence[Source]) -> Source:
    """Several sources one after the other."""
    if len({part.k for part in parts}) != 1:
        sizes = ", ".join(f"{part.name} {part.k}×{part.k}" for part in parts)
        raise DataError(f"sources hold matrices of different sizes: {sizes}")
    counts = [part.n for part in parts]
    chunks = [part.chunks for part in parts]
    more = f" and {len(parts) - 1} more" if len(parts) > 1 else ""
    return Source(
        lambda: (block for part in parts for block in part.blocks()),
        parts[0].k,
        None if None in counts else sum(count or 0 for count in counts),
        parts[0].name + more,
        rereadable=all(part.rereadable for part in parts),
        chunks=None if None in chunks else [piece for some in chunks for piece in some or ()],
    )


def _from_array(A: NDArray[Any], name: str) -> Source:
    device = on_device(A)
    step = rows_per_block(A.shape[1], A.itemsize, DEVICE_BYTES if device else BLOCK_BYTES)
    starts = range(0, len(A), step)

    def read() -> Iterator[Any]:
        return (A[i : i + step] for i in starts)

    return Source(read, A.shape[1], len(A), name, device=device)


def _from_list(items: Sequence[Any], name: str) -> Source:
    """A list of matrices, or of sources."""
    if items and any(isinstance(item, Source) or is_dask(item) for item in items):
        return chain([as_source(item, f"{name}[{i}]") for i, item in enumerate(items)])
    k = size_of_first(items, name)
    step = rows_per_block(k)
    starts = range(0, len(items), step)
    return Source(lambda: (list(items[i : i + step]) for i in starts), k, len(items), name)


def is_dask(item: Any) -> bool:
    """Whether something is Dask's: a collection, or a delayed piece of one."""
    return type(item).__module__.startswith("dask.")


def _from_iterator(blocks: Iterator[Any], name: str) -> Source:
    try:
        first = next(blocks)
    except StopIteration:
        raise DataError(f"{name} holds no records") from None

    def read() -> Iterator[Any]:
        yield first
        yield from blocks

    return Source(read, size_of_block(first, name), None, name, rereadable=False)


def _from_function(function: Callable[[], Any], name: str) -> Source:
    try:
        first = next(iter(function()))
    except StopIteration:
        raise DataError(f"{name} holds no records") from None
    return Source(lambda: iter(function()), size_of_block(first, name), None, name)


def _from_dask(array: Any, name: str) -> Source:
    """A Dask array (n, k, k), in its chunks."""
    shape = getattr(array, "shape", None)
    if shape is None or len(shape) != 3 or shape[1] != shape[2]:
        raise InvalidMatrixError(f"{name} has shape {shape}; expected a Dask array (n, k, k)")
    chunks = list(array.rechunk({1: -1, 2: -1}).to_delayed().ravel())
    n = None if np.isnan(shape[0]) else int(shape[0])
    return Source(lambda: map(read_piece, chunks), int(shape[1]), n, name, chunks=chunks)


def read_piece(chunk: Any) -> NDArray[Any]:
    """The records of one chunk, read where this runs."""
    return np.asanyarray(chunk.compute() if is_dask(chunk) else chunk())  # masks are refused
