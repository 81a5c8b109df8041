"""Data in pieces: whatever holds the records is seen as blocks ``(m, k, k)``, read one at a time."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError, InvalidMatrixError
from spdp.geometry import matrix_stack

__all__ = ["BLOCK_BYTES", "Records", "as_records"]

BLOCK_BYTES = 16 << 20


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
            B = matrix_stack(block, self.name)
            if B.ndim == 2:
                B = B[None]
            if B.ndim != 3 or B.shape[-1] != self.k:
                raise InvalidMatrixError(f"{self.name} has a block of shape {B.shape}; expected (m, {self.k}, {self.k})")
            yield B


def rows_per_block(k: int, itemsize: int = 8) -> int:
    """Records in a block of about ``BLOCK_BYTES``."""
    return max(1, BLOCK_BYTES // (itemsize * k * k))


def as_records(source: Any, name: str = "X") -> Records:
    """See an array, a memory map, a sequence or iterator of blocks, or :class:`Records`, as records in pieces."""
    if isinstance(source, Records):
        return source
    if isinstance(source, np.ndarray):
        return _from_array(source, name)
    if isinstance(source, Iterator):
        return _from_iterator(source, name)
    try:
        A = np.asarray(source)
    except ValueError:
        raise InvalidMatrixError(f"{name} is not a stack of matrices of one size") from None
    if A.dtype == object and isinstance(source, Iterable):
        raise InvalidMatrixError(f"{name} is not a stack of matrices of one size")
    return _from_array(A, name)


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
