"""What is wrong with a matrix, in words: for the holder of the data."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.errors import InvalidMatrixError
from spdp.kernels import Status
from spdp.kernels.place import home
from spdp.stacks import wide

__all__ = ["check_status", "describe_fault", "invalid_matrix"]


def describe_fault(code: int, matrix: NDArray[Any], smallest: float | None = None) -> str:
    """What a kernel found wrong with a matrix, in words; for the holder of the data.

    Of several matrices, the one that is worst.
    """
    matrix = home(matrix)
    if matrix.ndim == 3:
        worst = int(np.argmax([_badness(code, one) for one in matrix]))
        return f"(part {worst}) {describe_fault(code, matrix[worst])}"
    if code == Status.NOT_FINITE:
        places = np.argwhere(~np.isfinite(matrix))
        if not len(places):
            return "leaves the range of its dtype, seen from the reference point"
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
