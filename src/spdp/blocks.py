"""Blocks of records, whatever holds them: an array, a list, an iterator of such.

*Claim.* No record decides how others are read. *Enforced.* A record of a list keeps its
own dtype (:mod:`spdp.stacks`). The blocks of an iterator have one dtype, and a block
that has another is refused; blocks that hold no numbers as a whole, since one record
made objects or texts of all, are read record by record in that dtype. *Assumed.* That
dtype is public, as an array's is, and so is the shape of a record.
"""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError, InvalidMatrixError
from spdp.kernels.base import working_dtype
from spdp.kernels.place import as_array, home
from spdp.stacks import (
    Block,
    Shape,
    check_kind,
    is_list,
    records_of,
    refuse_masked,
    split,
    working,
)

__all__ = [
    "NUMBERS",
    "REAL",
    "blocks_of",
    "in_dtype",
    "matrix_stack",
    "record_marks",
    "record_stack",
    "shape_of_block",
    "shape_of_first",
    "steady",
]

REAL = "iufb"  # kinds of dtypes that hold real numbers
NUMBERS = REAL + "c"  # all that some chart takes


def matrix_stack(X: Any, name: str = "X", kinds: str = REAL) -> NDArray[Any]:
    """``X`` as one array (..., k, k) in its working dtype, or an error.

    ``kinds`` are those of the dtypes that are taken.
    """
    refuse_masked(X, name)
    A = as_array(X)
    check_kind(A.dtype, kinds, name)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2] or A.shape[-1] == 0:
        raise InvalidMatrixError(
            f"{name} has shape {A.shape}; expected square matrices (..., k, k)"
        )
    return working(A)


def record_stack(X: Any, name: str = "X", kinds: str = NUMBERS) -> NDArray[Any]:
    """``X`` as an array (n, k, k) or (n, p, k, k), in the dtype it is stored in."""
    refuse_masked(X, name)
    A: NDArray[Any] = as_array(X)
    check_kind(A.dtype, kinds, name)
    if A.ndim not in (3, 4) or not _is_record(A.shape[1:]):
        raise InvalidMatrixError(
            f"{name} has shape {A.shape}; expected (n, k, k), or (n, p, k, k) for p matrices each"
        )
    return A


def _is_record(shape: Shape) -> bool:
    return len(shape) in (2, 3) and shape[-1] == shape[-2] and min(shape) > 0


def shape_of_first(items: Sequence[Any], name: str = "X") -> Shape:
    """Shape of the records of a list: that of the first one of numbers."""
    for item in items:
        try:
            A = as_array(item)
        except Exception:  # not this one, then
            continue
        if A.dtype.kind in NUMBERS and _is_record(A.shape):
            return tuple(A.shape)
    raise InvalidMatrixError(f"{name} is not a stack of matrices of one size")


def blocks_of(X: Any, kinds: str = NUMBERS) -> Iterator[Any]:
    """Blocks of an array (n, k, k), a list of matrices, or an iterable of such.

    A function that returns such an iterable is called.
    """
    if callable(X):
        return steady(iter(X()))[1]
    if is_list(X):
        return iter([X])
    if isinstance(X, np.ndarray) or hasattr(X, "__array__"):
        return iter([record_stack(X, kinds=kinds)])
    return steady(iter(X))[1]


def shape_of_block(block: Any, name: str = "X") -> Shape:
    """Shape of the records of a block; a block of two dimensions is one record."""
    records = records_of(block)
    if is_list(records):
        return shape_of_first(records, name)
    A = matrix_stack(records, name, NUMBERS)
    shape: Shape = A.shape if A.ndim == 2 else record_stack(A, name).shape[1:]
    return shape


def steady(blocks: Iterator[Any], name: str = "X") -> tuple[Shape, Iterator[Any]]:
    """Shape of the records of an iterator, and its blocks: their dtype is one.

    It is that of the first array (m, *shape) of numbers; lists and single matrices have
    their own.
    """
    ahead: list[Any] = []
    for block in blocks:
        ahead.append(block)
        if _has_numbers(block):
            shape = shape_of_block(block, name)
            return shape, _steady(chain(ahead, blocks), shape, _stacked(block, shape), name)
    if not ahead:
        raise DataError(f"{name} holds no records")
    raise InvalidMatrixError(f"{name} holds no block of real or complex numbers")


def _has_numbers(block: Any) -> bool:
    records = records_of(block)
    if not is_list(records):
        return as_array(records).dtype.kind in NUMBERS
    try:
        return bool(shape_of_first(records))
    except InvalidMatrixError:
        return False


def _stacked(block: Any, shape: Shape) -> np.dtype[Any] | None:
    """Working dtype of a block that is an array of records and holds numbers."""
    if is_list(records_of(block)):
        return None
    A = as_array(records_of(block))
    stacked = A.dtype.kind in NUMBERS and A.ndim > len(shape)
    return working_dtype(A.dtype) if stacked else None


def _steady(
    blocks: Iterator[Any], shape: Shape, dtype: np.dtype[Any] | None, name: str
) -> Iterator[Any]:
    for block in blocks:
        own = _stacked(block, shape)
        dtype = dtype or own
        if own is not None and own != dtype:
            raise DataError(
                f"{name} has blocks of different dtypes, {dtype} and {own}: a record might decide "
                "how others are read; pass blocks of one dtype, or lists of records"
            )
        yield block if own is not None else in_dtype(block, shape, dtype)


def in_dtype(block: Any, shape: Shape, dtype: np.dtype[Any] | None) -> Any:
    """A block whose records have this dtype, or their own: one by one, if need be."""
    records = records_of(block)
    if is_list(records) or isinstance(records, np.ma.MaskedArray):
        return block
    A = as_array(records)
    if A.dtype == dtype or (A.dtype.kind in NUMBERS and A.ndim <= len(shape)):
        return block
    alone = A.ndim <= len(shape)
    read = [_read_as(record, dtype) for record in (A[None] if alone else A)]
    return Block(read, block.beside) if isinstance(block, Block) else read


def _read_as(record: Any, dtype: np.dtype[Any] | None) -> Any:
    """One record in a dtype; as it is, where it does not fit."""
    with np.errstate(all="ignore"):
        try:
            own = np.array(record.tolist()) if record.dtype.kind == "O" else record
            if own.dtype.kind == "c" and not own.imag.any():
                own = own.real
            wanted = working_dtype(own.dtype if dtype is None else dtype)
            fits = own.shape == record.shape and not own.dtype.kind == "c" != wanted.kind
            return own.astype(wanted) if fits else record
        except Exception:  # whatever an object's own conversion may raise
            return record


def record_marks(block: Any, shape: Shape, name: str, key: bytes) -> tuple[int, int]:
    """Keyed fingerprint of a block's records, in any order, and their number.

    The sum of BLAKE2b marks of the single records as float64 (complex128, where they
    are complex): blocks add up, here or on a cluster, to the same fingerprint.
    """
    total, m = 0, 0
    for part in split(block, shape, name, NUMBERS):
        stack = home(part.stack)
        dtype = "<c16" if stack.dtype.kind == "c" else "<f8"
        rows = np.ascontiguousarray(stack, dtype=dtype).reshape(len(stack), -1)
        for row in rows:
            mark = hashlib.blake2b(row.tobytes(), key=key[:64], digest_size=32, person=b"spdp")
            total += int.from_bytes(mark.digest(), "little")
        m += len(rows)
    return total % (1 << 256), m
