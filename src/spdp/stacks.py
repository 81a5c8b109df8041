"""A block of records as stacks the kernels take: a record's dtype is its own affair.

*Claim.* What becomes of a record depends on that record alone. *Enforced.* Records are
grouped by their own dtype, never converted to a common one: a float64 record among
float32 ones changes no tolerance but its own, and byte order changes none. A record
that does not hold numbers of the kinds its chart takes (real ones; complex ones too,
for Hermitian matrices) is one unusable record, not an error of the block.
*Assumed.* The shape of a record, (k, k) or (p, k, k), and the dtype of an array as a
whole, are public; :mod:`spdp.blocks` keeps to one where blocks come one by one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError, InvalidMatrixError
from spdp.kernels.base import working_dtype
from spdp.kernels.place import as_array, home

__all__ = [
    "Block",
    "Part",
    "Shape",
    "check_kind",
    "is_list",
    "records_of",
    "refuse_masked",
    "split",
    "wide",
    "working",
]

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


def split(block: Any, shape: Shape, name: str, kinds: str) -> Iterator[Part]:
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
        yield Part(None, working(B))
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
    return working(A), None


def working(A: NDArray[Any]) -> NDArray[Any]:
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


def check_kind(dtype: np.dtype[Any], kinds: str, name: str) -> None:
    """Refuse an array, or a file, that as a whole holds what is not taken."""
    if dtype.kind not in kinds:
        raise InvalidMatrixError(f"{name} {_not_taken(dtype, kinds)}")


def refuse_masked(X: Any, name: str) -> None:
    """A masked record would be read as if it were not masked."""
    if isinstance(X, np.ma.MaskedArray):
        raise DataError(f"{name} is a masked array: drop or fill its masked records first")
