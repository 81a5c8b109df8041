"""Records in blocks, and blocks as stacks of one dtype for the kernels.

*Claim.* What becomes of a record depends on that record alone; none decides how others
are read. *Enforced.* Records are batched by their own dtype and never cast because of
another: a float64 record among float32 ones changes no tolerance but its own, and byte
order changes none. A record that does not hold numbers of the kinds its chart accepts
(real ones; complex ones too, for Hermitian matrices) is one invalid record, not an
error of the block. The blocks of an iterator have one dtype, and a block that has
another is refused. A block without a numeric dtype, because one record turned all into
objects or text, is read record by record in that dtype. *Assumed.* The shape of a
record, (k, k) or (p, k, k), and the dtype of an array as a whole, are public.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError, InvalidMatrixError
from spdp.kernels.arrays import as_array, to_host
from spdp.kernels.base import Status, working_dtype

Shape = tuple[int, ...]  # of a record: (k, k), or (p, k, k) for p matrices each


@dataclass(frozen=True)
class Block:
    """Records with their columns: arrays of one entry per record."""

    records: Any
    columns: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.records)

    def part(self, some: slice) -> "Block":
        """Some of the records, with their columns."""
        columns = {name: column[some] for name, column in self.columns.items()}
        return Block(self.records[some], columns)


def records_of(block: Any) -> Any:
    """The records of a block, without their columns."""
    return block.records if isinstance(block, Block) else block


def is_list(X: Any) -> bool:
    """Whether X is a sequence that is no array: NumPy would join its entries."""
    if isinstance(X, np.ndarray | str | bytes | bytearray | memoryview | Mapping):
        return False
    array = any(hasattr(X, name) for name in ("__array__", "__array_interface__"))
    return hasattr(X, "__len__") and hasattr(X, "__getitem__") and not array


class Part(NamedTuple):
    """Records of one dtype within a block."""

    places: NDArray[np.intp] | None  # in the block; None where they are all of it
    stack: NDArray[Any]  # (m, *shape), float32 or float64; or complex, where accepted
    fault: str | None = None  # why none of them can be used

    def place(self, i: int) -> int:
        """Place in the block of the i-th of these records."""
        return i if self.places is None else int(self.places[i])


def split(block: Any, shape: Shape, name: str, kinds: str) -> Iterable[Part]:
    """A block, array (m, *shape) or list of records, as stacks of one dtype each.

    ``kinds`` are the accepted kinds of dtypes.
    """
    records = block.records if isinstance(block, Block) else block
    if type(records) is not np.ndarray:
        if is_list(records):
            return _split_list(records, shape, name, kinds)
        refuse_masked(records, name)
        records = as_array(records)
    B = records[None] if records.ndim == len(shape) else records
    if B.shape[1:] != shape:
        expected = ", ".join(["m", *map(str, shape)])
        raise InvalidMatrixError(f"{name} has a block of shape {B.shape}; expected ({expected})")
    if B.dtype.kind in kinds:
        return (Part(None, working(B)),)
    return (Part(None, np.full(B.shape, np.nan), _not_taken(B.dtype, kinds)),)


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

    NaN, and the reason, where it does not hold accepted numbers, or is masked.
    """
    if isinstance(item, np.ma.MaskedArray):
        return np.full(shape, np.nan), "is a masked array"
    try:
        A = to_host(as_array(item))
    except ValueError:
        raise InvalidMatrixError(f"{name} is not a matrix of one size with the others") from None
    except Exception as error:  # an object's own conversion may raise anything
        return np.full(shape, np.nan), f"cannot be read as a matrix ({type(error).__name__})"
    if A.dtype.kind not in kinds:
        return np.full(shape, np.nan), _not_taken(A.dtype, kinds)
    if A.shape != shape:
        raise InvalidMatrixError(f"{name} has shape {A.shape}, the others {shape}")
    return working(A), None


def working(A: NDArray[Any]) -> NDArray[Any]:
    """An array in its working dtype; numbers out of its range become infinite."""
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


def check_kind(dtype: np.dtype[Any], kinds: str, name: str) -> None:
    """Refuse an array or a file whose dtype is not accepted."""
    if dtype.kind not in kinds:
        raise InvalidMatrixError(f"{name} {_not_taken(dtype, kinds)}")


def refuse_masked(X: Any, name: str) -> None:
    """Refuse masked arrays: a masked record would be read as if it were not masked."""
    if isinstance(X, np.ma.MaskedArray):
        raise DataError(f"{name} is a masked array: drop or fill its masked records first")


REAL = "iufb"  # kinds of dtypes that hold real numbers
NUMBERS = REAL + "c"  # all that some chart accepts


def matrix_stack(X: Any, name: str = "X", kinds: str = REAL) -> NDArray[Any]:
    """``X`` as one array (..., k, k) in its working dtype, or an error.

    ``kinds`` are the accepted kinds of dtypes.
    """
    refuse_masked(X, name)
    A = as_array(X)
    check_kind(A.dtype, kinds, name)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2] or A.shape[-1] == 0:
        raise InvalidMatrixError(f"{name} has shape {A.shape}; expected matrices (..., k, k)")
    return working(A)


def record_stack(X: Any, name: str = "X", kinds: str = NUMBERS) -> NDArray[Any]:
    """``X`` as an array (n, k, k) or (n, p, k, k), in the dtype it is stored in."""
    if type(X) is np.ndarray and X.dtype.kind in kinds:  # as most are
        A: NDArray[Any] = X
    else:
        refuse_masked(X, name)
        A = as_array(X)
        check_kind(A.dtype, kinds, name)
    if A.ndim not in (3, 4) or not _is_record(A.shape[1:]):
        raise InvalidMatrixError(
            f"{name} has shape {A.shape}; expected (n, k, k), or (n, p, k, k) for p matrices each"
            + _hint(A.shape)
        )
    return A


def _hint(shape: Shape) -> str:
    """What an array of another shape may be, and the call that reads it as that."""
    if len(shape) > 4 and shape[-1] == shape[-2]:
        return ". Is it a grid of voxels? Pass open_records(X, mask=...)"
    if len(shape) == 4 and shape[-1] == 6:
        return ". Are they tensor components? Pass open_records(X, order='fsl', mask=...)"
    if len(shape) == 2 and shape[0] == shape[1]:
        return ". One matrix is one record: a stack of it is X[None]"
    if len(shape) == 2 and any(isqrt(p) ** 2 == p for p in (shape[1], 8 * shape[1] + 1)):
        return (
            ". Are its rows vectorised matrices? Pass open_records(X, kind=measure) with nilearn's "
            "ConnectivityMeasure, or entries='full' or 'upper'"
        )
    if len(shape) == 3:
        return ". Are they signals? Pass their covariances, such as X @ X.mT / X.shape[-1]"
    return ""


def _is_record(shape: Shape) -> bool:
    return len(shape) in (2, 3) and shape[-1] == shape[-2] and min(shape) > 0


def shape_of_first(items: Sequence[Any], name: str = "X") -> Shape:
    """Shape of the records of a list: the shape of the first record of numbers."""
    for item in items:
        try:
            A = as_array(item)
        except Exception:  # try the next one
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
    """Shape of the records of an iterator, and its blocks, all of one dtype.

    It is the dtype of the first array (m, *shape) of numbers; records in lists and
    single matrices keep their own.
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
    """A block with records in this dtype; lists and single matrices keep their own."""
    records = records_of(block)
    if is_list(records) or isinstance(records, np.ma.MaskedArray):
        return block
    A = as_array(records)
    if A.dtype == dtype or (A.dtype.kind in NUMBERS and A.ndim <= len(shape)):
        return block
    alone = A.ndim <= len(shape)
    read = [_read_as(record, dtype) for record in (A[None] if alone else A)]
    return Block(read, block.columns) if isinstance(block, Block) else read


def _read_as(record: Any, dtype: np.dtype[Any] | None) -> Any:
    """One record in a dtype; unchanged where it cannot be converted."""
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
    """Keyed fingerprint of a block's records, the same in any order, and their number.

    The sum of BLAKE2b marks of the single records as float64 (complex128, where they
    are complex): sums over any blocks, here or on a cluster, give the same fingerprint.
    """
    total, m = 0, 0
    for part in split(block, shape, name, NUMBERS):
        stack = to_host(part.stack)
        dtype = "<c16" if stack.dtype.kind == "c" else "<f8"
        rows = np.ascontiguousarray(stack, dtype=dtype).reshape(len(stack), -1)
        for row in rows:
            mark = hashlib.blake2b(row.tobytes(), key=key[:64], digest_size=32, person=b"spdp")
            total += int.from_bytes(mark.digest(), "little")
        m += len(rows)
    return total % (1 << 256), m


# --- what is wrong with a matrix, for the holder of the data


def describe_fault(code: int, matrix: NDArray[Any], smallest: float | None = None) -> str:
    """What a kernel found wrong with a matrix, in words; for the holder of the data.

    Of a record of several matrices, the worst one.
    """
    matrix = to_host(matrix)
    if matrix.ndim == 3:
        worst = int(np.argmax([_badness(code, one) for one in matrix]))
        return f"(part {worst}) {describe_fault(code, matrix[worst])}"
    if code == Status.NOT_FINITE:
        places = np.argwhere(~np.isfinite(matrix))
        if not len(places):
            return "leaves the range of its dtype when whitened by the reference point"
        row, column = places[0]
        return f"is not finite: entry ({row}, {column}) is {matrix[row, column]}"
    if code == Status.NOT_SYMMETRIC:
        return _asymmetry(matrix)
    if smallest is None:
        smallest = float(np.linalg.eigvalsh(wide(matrix))[0])
    return f"is not positive definite: smallest eigenvalue {smallest:.3g}"


def _asymmetry(matrix: NDArray[Any]) -> str:
    A = wide(matrix)
    with np.errstate(over="ignore"):
        gap = np.abs(A - A.conj().T)
    row, column = map(int, np.unravel_index(np.argmax(gap), gap.shape))
    if row == column:
        return f"is not Hermitian: entry ({row}, {row}) is {matrix[row, row]:.3g}, not real"
    kind, other = ("Hermitian", "conjugate ") if A.dtype.kind == "c" else ("symmetric", "")
    return (
        f"is not {kind}: entries ({row}, {column}) and {other}({column}, {row}) "
        f"differ by {gap.max():.3g}"
    )


def _badness(code: int, matrix: NDArray[Any]) -> float:
    if not np.isfinite(matrix).all():
        return np.inf
    A = wide(matrix)
    if code == Status.NOT_SYMMETRIC:
        return float(np.abs(A - A.conj().T).max() / max(np.abs(A).max(), 1e-300))
    return -float(np.linalg.eigvalsh(A)[0])


def check_status(
    status: NDArray[np.uint8], A: NDArray[Any], smallest: NDArray[np.float64] | None = None
) -> None:
    """Raise for the first matrix of ``A`` (..., k, k) that is not OK.

    ``status`` is flat.
    """
    bad = np.flatnonzero(status)
    if bad.size:
        first = int(bad[0])
        index = tuple(int(i) for i in np.unravel_index(first, A.shape[:-2])) if A.ndim > 2 else ()
        low = None if smallest is None else float(smallest[first])
        raise invalid_matrix(describe_fault(int(status[first]), A[index], low), index)


def invalid_matrix(fault: str, index: tuple[int, ...]) -> InvalidMatrixError:
    """The error for a matrix, named by its index."""
    place = f" {index[0]}" if len(index) == 1 else f" {index}" if index else ""
    return InvalidMatrixError(f"{'' if index else 'the '}matrix{place} {fault}", index)
