"""Data in pieces: whatever holds the records is seen as blocks ``(m, k, k)``, read one at a time, here or on a Dask cluster.

Work on records is a function of one block, sent to where the block is: :meth:`Records.each` yields its (small) results in order. On a
cluster the blocks never leave their workers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError, InvalidMatrixError
from spdp.geometry import matrix_stack

__all__ = ["BLOCK_BYTES", "DaskRecords", "Prepared", "Records", "as_records", "chain"]

BLOCK_BYTES = 16 << 20
Work = Callable[..., Any]


class Records:
    """A collection of k×k matrices that can be read block by block.

    Parameters
    ----------
    read : callable
        Returns an iterator over arrays ``(m, k, k)``, afresh at each call.
    k : int
    n : int or None
        Number of records, None when only reading tells.
    name : str
        How messages call the source.
    again : bool
        Whether the source can be read more than once.
    """

    def __init__(self, read: Callable[[], Iterator[NDArray[Any]]], k: int, n: int | None, name: str, again: bool = True) -> None:
        self._read = read
        self.k = k
        self.n = n
        self.name = name
        self.again = again
        self._started = False

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Every record once, in blocks. A block of the wrong shape is an error that names the source."""
        if self._started and not self.again:
            raise DataError(f"{self.name} can be read only once; pass an array, a file or a function that opens it anew")
        self._started = True
        for block in self._read():
            yield check_block(block, self.k, self.name)

    def each(self, work: Work, *args: Any) -> Iterator[Any]:
        """``work(block, *args)`` for every block, in order."""
        return (work(block, *args) for block in self.blocks())

    def prepare(self, first: Work, *args: Any, keep_bytes: int = 0) -> "Prepared":
        """Apply ``first`` to every block and keep its results, where the blocks are, for further work."""
        return _LocalPrepared(self, first, args, keep_bytes)


class Prepared(ABC):
    """Results of a first pass over records, kept for further passes."""

    @abstractmethod
    def each(self, work: Work, *args: Any) -> Iterator[Any]:
        """``work(result, *args)`` for every result, in order."""

    def sample(self, work: Work, *args: Any) -> Iterator[Any]:
        """The same for a part of the blocks that is cheap to visit: all of them, or every 2nd, 4th, … where not all could be kept."""
        return self.each(work, *args)


class _LocalPrepared(Prepared):
    """Kept in memory as far as they fit. Which blocks are kept depends on their number and sizes only, never on their content."""

    def __init__(self, records: Records, first: Work, args: tuple[Any, ...], keep_bytes: int) -> None:
        self._records, self._first, self._args, self._limit = records, first, args, keep_bytes
        self._kept: list[Any] | None = None
        self._stride = 1

    def each(self, work: Work, *args: Any) -> Iterator[Any]:
        if self._kept is not None and self._stride == 1:
            return (work(result, *args) for result in self._kept)
        return self._visit(work, *args)

    def _visit(self, work: Work, *args: Any) -> Iterator[Any]:
        kept: list[Any] = []
        stride, size = 1, 0
        for i, result in enumerate(self._records.each(self._first, *self._args)):
            if self._kept is None and i % stride == 0:
                kept.append(result)
                size += result[0].nbytes
                while size > self._limit and len(kept) > 1:
                    if not self._records.again:
                        raise DataError(
                            f"{self._records.name} can be read only once and is too large to keep; method='oneshot' reads it once"
                        )
                    kept, stride = kept[::2], 2 * stride
                    size = sum(part[0].nbytes for part in kept)
            yield work(result, *args)
        if self._kept is None:
            self._kept, self._stride = kept, stride

    def sample(self, work: Work, *args: Any) -> Iterator[Any]:
        assert self._kept is not None, "a full pass comes first"
        return (work(result, *args) for result in self._kept)


class DaskRecords(Records):
    """Records in the chunks of a Dask collection: work goes to the workers, and only its results come back.

    A worker that dies loses nothing: its tasks are run again elsewhere, and a block's result is counted once because it is asked for once.
    """

    def __init__(self, chunks: list[Any], k: int, n: int | None, name: str, client: Any) -> None:
        super().__init__(self._refuse, k, n, name)
        self.chunks, self.client = chunks, client

    def _refuse(self) -> Iterator[NDArray[Any]]:
        raise DataError(f"{self.name} stays on its workers: raw records are not brought here")

    def each(self, work: Work, *args: Any) -> Iterator[Any]:
        from dask import delayed

        tasks = [delayed(_checked, pure=False)(work, chunk, self.k, self.name, *args) for chunk in self.chunks]
        return self.collect(tasks)

    def collect(self, tasks: list[Any]) -> Iterator[Any]:
        """Results of tasks in order."""
        futures = self.client.compute(tasks, retries=3)
        for future in futures:
            yield future.result()

    def prepare(self, first: Work, *args: Any, keep_bytes: int = 0) -> Prepared:
        from dask import delayed

        tasks = [delayed(_checked, pure=False)(first, chunk, self.k, self.name, *args) for chunk in self.chunks]
        return _RemotePrepared(self, self.client.compute(tasks, retries=3))


class _RemotePrepared(Prepared):
    def __init__(self, records: DaskRecords, futures: list[Any]) -> None:
        self._records, self._futures = records, futures

    def each(self, work: Work, *args: Any) -> Iterator[Any]:
        from dask import delayed

        return self._records.collect([delayed(work, pure=False)(future, *args) for future in self._futures])


def _checked(work: Work, block: Any, k: int, name: str, *args: Any) -> Any:
    return work(check_block(block, k, name), *args)


def check_block(block: Any, k: int, name: str) -> NDArray[Any]:
    """A block as (m, k, k), or an error that names the source."""
    B = matrix_stack(block, name)
    if B.ndim == 2:
        B = B[None]
    if B.ndim != 3 or B.shape[-1] != k:
        raise InvalidMatrixError(f"{name} has a block of shape {B.shape}; expected (m, {k}, {k})")
    return B


def rows_per_block(k: int, itemsize: int = 8) -> int:
    """Records in a block of about ``BLOCK_BYTES``."""
    return max(1, BLOCK_BYTES // (itemsize * k * k))


def as_records(source: Any, name: str = "X") -> Records:
    """See a source as records in pieces.

    An array or memory map ``(n, k, k)``; a list of matrices; an iterator of blocks (read once); a function that returns such an
    iterator afresh; a Dask array; :class:`Records`, or a list of them.
    """
    if isinstance(source, Records):
        return source
    if isinstance(source, np.ndarray):
        return _from_array(source, name)
    if type(source).__module__.startswith("dask."):
        return _from_dask(source, name)
    if isinstance(source, Iterator):
        return _from_iterator(source, name)
    if callable(source):
        return _from_function(source, name)
    if isinstance(source, list | tuple) and source and all(isinstance(item, Records) for item in source):
        return chain(list(source))
    try:
        A = np.asarray(source)
    except ValueError:
        raise InvalidMatrixError(f"{name} is not a stack of matrices of one size") from None
    if A.dtype == object and isinstance(source, Iterable):
        raise InvalidMatrixError(f"{name} is not a stack of matrices of one size")
    return _from_array(A, name)


def chain(parts: list[Records]) -> Records:
    """Several sources one after the other."""
    sizes = {part.k for part in parts}
    if len(sizes) != 1:
        raise DataError(f"sources hold matrices of different sizes: {', '.join(f'{p.name} {p.k}×{p.k}' for p in parts)}")
    known = [part.n for part in parts]
    n = None if None in known else sum(int(m or 0) for m in known)
    name = f"{parts[0].name} and {len(parts) - 1} more" if len(parts) > 1 else parts[0].name
    return Records(lambda: (b for part in parts for b in part.blocks()), parts[0].k, n, name, all(part.again for part in parts))


def _from_array(A: NDArray[Any], name: str) -> Records:
    S = A if A.dtype in (np.float32, np.float64) else matrix_stack(A, name)
    if S.ndim != 3 or S.shape[1] != S.shape[2] or 0 in S.shape:
        raise InvalidMatrixError(f"{name} has shape {S.shape}; expected (n, k, k) with n >= 1")
    step = rows_per_block(S.shape[1], S.itemsize)
    return Records(lambda: (S[i : i + step] for i in range(0, len(S), step)), S.shape[1], len(S), name)


def _from_iterator(source: Iterator[Any], name: str) -> Records:
    try:
        first = matrix_stack(next(source), name)
    except StopIteration:
        raise DataError(f"{name} holds no records") from None

    def read() -> Iterator[NDArray[Any]]:
        yield first
        yield from source

    return Records(read, first.shape[-1], None, name, again=False)


def _from_function(source: Callable[[], Any], name: str) -> Records:
    try:
        first = matrix_stack(next(iter(source())), name)
    except StopIteration:
        raise DataError(f"{name} holds no records") from None
    return Records(lambda: iter(source()), first.shape[-1], None, name)


def _from_dask(source: Any, name: str) -> Records:
    """A Dask array (n, k, k): on its cluster if there is one, else block by block here."""
    if getattr(source, "ndim", 0) != 3 or source.shape[1] != source.shape[2]:
        raise InvalidMatrixError(f"{name} has shape {getattr(source, 'shape', None)}; expected a Dask array (n, k, k)")
    array = source.rechunk({1: -1, 2: -1})
    n = None if np.isnan(source.shape[0]) else int(source.shape[0])
    k = int(source.shape[1])
    chunks = list(array.to_delayed().ravel())
    try:
        from distributed import get_client

        client = get_client()
    except (ImportError, ValueError):  # no cluster
        return Records(lambda: (np.asarray(chunk.compute()) for chunk in chunks), k, n, name)
    return DaskRecords(chunks, k, n, name, client)
