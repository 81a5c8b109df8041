"""Blocks of records as stacks the kernels take: a record's dtype is its own affair.

*Claim.* What becomes of a record depends on that record alone. *Enforced.* Records are
grouped by their own dtype, never converted to a common one: a float64 record among
float32 ones changes no tolerance but its own, and byte order changes none. A record
that does not hold numbers of the kinds its chart takes (real ones; complex ones too,
for Hermitian matrices) is one unusable record, not an error of the block.
*Assumed.* The shape of a record, (k, k) or (p, k, k), and the dtype of an array as a
whole, are public. So is that of the blocks of an iterator: they have one, and a block
that has another is refused. Blocks that hold no numbers as a whole, since one record
made objects or texts of all, are read record by record in that dtype.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError, InvalidMatrixError
from spdp.kernels.base import working_dtype
from spdp.kernels.place import as_array, home

__all__ = [
    "Block",
    "Part",
    "blocks_of",
    "check_kind",
    "in_dtype",
    "is_list",
    "matrix_stack",
    "record_marks",
    "record_stack",
    "records_of",
    "shape_of_block",
    "shape_of_first",
    "split",
    "steady",
    "wide",
]


REAL = "iufb"  # kinds of dtypes that hold real numbers
NUMBERS = REAL + "c"  # all that some chart takes


Shape = tuple[int, ...]  # of a record: (k, k), or (p, k, k) for p matrices each


@dataclass(frozen=True)
class Block:
    """Records with what stands beside each of them: arrays of one entry per record."""

    records: Any
    beside: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.records)

    def part(self, some: slice) -> "Block":
        """Some of the records, with what stands beside them."""
        columns = {name: column[some] for name, column in self.beside.items()}
        return Block(self.records[some], columns)


def records_of(block: Any) -> Any:
    """The records of a block, whatever stands beside them."""
    return block.records if isinstance(block, Block) else block


def is_list(X: Any) -> bool:
    """Whether NumPy would join entries into one array: a sequence that is no array."""
    if isinstance(X, np.ndarray | str | bytes | bytearray | memoryview | Mapping):
        return False
    array = any(hasattr(X, name) for name in ("__array__", "__array_interface__"))
    return hasattr(X, "__len__") and hasattr(X, "__getitem__") and not array


class Part(NamedTuple):
    """Records of one dtype within a block."""

    places: NDArray[np.intp] | None  # in the block; None where they are all of it
    stack: NDArray[Any]  # (m, *shape), float32 or float64; or complex, where taken
    fault: str | None = None  # why none of them can be used

    def place(self, i: int) -> int:
        """Place in the block of the i-th of these records."""
        return i if self.places is None else int(self.places[i])


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
    return _working(A)


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


def check_kind(dtype: np.dtype[Any], kinds: str, name: str) -> None:
    """Refuse an array, or a file, that as a whole holds what is not taken."""
    if dtype.kind not in kinds:
        raise InvalidMatrixError(f"{name} {_not_taken(dtype, kinds)}")


def refuse_masked(X: Any, name: str) -> None:
    """A masked record would be read as if it were not masked."""
    if isinstance(X, np.ma.MaskedArray):
        raise DataError(f"{name} is a masked array: drop or fill its masked records first")


def split(block: Any, shape: Shape, name: str, kinds: str = REAL) -> Iterator[Part]:
    """A block, array (m, *shape) or list of records, as stacks of one dtype each.

    ``kinds`` are those of the dtypes that are taken.
    """
    records = records_of(block)
    if is_list(records):
        yield from _split_list(records, shape, name, kinds)
        return
    refuse_masked(records, name)
    B = as_array(records)
    if B.ndim == len(shape):
        B = B[None]
    if B.shape[1:] != shape:
        expected = ", ".join(["m", *map(str, shape)])
        raise InvalidMatrixError(f"{name} has a block of shape {B.shape}; expected ({expected})")
    if B.dtype.kind in kinds:
        yield Part(None, _working(B))
    else:
        yield Part(None, np.full(B.shape, np.nan), _not_taken(B.dtype, kinds))


def _split_list(items: Sequence[Any], shape: Shape, name: str, kinds: str) -> Iterator[Part]:
    groups: dict[tuple[np.dtype[Any], str | None], list[int]] = {}
    matrices = []
    for i, item in enumerate(items):
        A, fault = _record(item, shape, f"{name}: matrix {i}", kinds)
        matrices.append(A)
        groups.setdefault((A.dtype, fault), []).append(i)
    for (_, fault), places in groups.items():
        where = None if len(places) == len(items) else np.array(places)
        yield Part(where, np.stack([matrices[i] for i in places]), fault)


def _record(item: Any, shape: Shape, name: str, kinds: str) -> tuple[NDArray[Any], str | None]:
    """One record of a list in its own dtype.

    NaN, and why, where it holds no numbers of the kinds that are taken, or is masked.
    """
    if isinstance(item, np.ma.MaskedArray):
        return np.full(shape, np.nan), "is a masked array"
    try:
        A = home(as_array(item))
    except ValueError:
        raise InvalidMatrixError(f"{name} is not a matrix of one size with the others") from None
    except Exception as error:  # whatever an object's own conversion may raise
        return np.full(shape, np.nan), f"cannot be read as a matrix ({type(error).__name__})"
    if A.dtype.kind not in kinds:
        return np.full(shape, np.nan), _not_taken(A.dtype, kinds)
    if A.shape != shape:
        raise InvalidMatrixError(
            f"{name} has shape {A.shape}, not of one size with the others; expected {shape}"
        )
    return _working(A), None


def _working(A: NDArray[Any]) -> NDArray[Any]:
    """An array in its working dtype; what does not fit becomes infinite."""
    if A.dtype in (np.float64, np.complex128):
        return A
    with np.errstate(all="ignore"):
        return A.astype(working_dtype(A.dtype), copy=False)


def _not_taken(dtype: np.dtype[Any], kinds: str) -> str:
    if dtype.kind == "c":
        return f"has dtype {dtype}; expected real numbers: metric='hermitian' takes complex ones"
    return f"has dtype {dtype}; expected real {'or complex ' if 'c' in kinds else ''}numbers"


def wide(A: NDArray[Any]) -> NDArray[Any]:
    """An array in float64, or complex128 where it is complex."""
    return A.astype(np.result_type(A.dtype, np.float64))


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
