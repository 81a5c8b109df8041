"""What matrices are, and matrices as the rows that estimators make of them.

*Enforced.* A row becomes a matrix by a linear map that shape and options decide: what
becomes of a record depends on that record alone. What the matrices are is stated, by
name or by the estimator that made them, and never concluded from numbers.
"""

from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.batching import NUMBERS, check_kind
from spdp.data.formats.tables import FULL, UPPER
from spdp.data.source import Source, cut, rows_per_block
from spdp.errors import DataError, ParameterError, named
from spdp.options import MatrixKind, choose


def kind_of(measure: Any) -> MatrixKind | None:
    """What matrices are, as a name or the estimator that made them says.

    nilearn's ``ConnectivityMeasure`` has a ``kind``. Its "tangent" is refused: such
    vectors are no SPD matrices, and each depends on the mean of all records.
    """
    kind = measure if measure is None or isinstance(measure, str) else _kind_attribute(measure)
    if kind == "tangent":
        raise ParameterError(
            f"{named('kind', 'tangent')}: tangent vectors are no SPD matrices, and each of them "
            "depends on all records through their mean. Estimate kind='covariance' or "
            "'correlation'"
        )
    return None if kind is None else choose(MatrixKind, str(kind), "kind")


def _kind_attribute(measure: Any) -> Any:
    if not hasattr(measure, "kind"):
        raise ParameterError(
            f"{named('kind')} must be the name of a kind, or an estimator that has one, got "
            f"{type(measure).__name__}"
        )
    return measure.kind


def from_vectors(A: NDArray[Any], entries: str | None, name: str, measure: Any) -> Source:
    """Rows that are matrices: all entries, an upper triangle, or nilearn's vectors."""
    check_kind(A.dtype, NUMBERS, name)
    if entries not in (None, FULL, UPPER):
        raise ParameterError(f"{named('entries')} must be 'full' or 'upper', got {entries!r}")
    p = A.shape[1]
    if entries == FULL:
        k, where, scale = isqrt(p), np.arange(p), np.ones(p)
    elif entries == UPPER:
        k, where, scale = triangle(p, upper=True)
    else:
        k, where, scale = _nilearn(p, measure)
    if k == 0 or len(where) != k * k:
        raise DataError(f"{name} has rows of {p} numbers, which are no matrices of one size")
    filled = np.flatnonzero(where == p)  # a diagonal that was left out, of ones
    dtype = A.dtype if A.dtype.kind in "fc" else np.dtype(float)

    def matrices(rows: NDArray[Any]) -> NDArray[Any]:
        flat = np.ones((len(rows), k * k), dtype)
        kept = np.flatnonzero(where < p)
        flat[:, kept] = rows.take(where[kept], axis=1) * scale[kept].astype(dtype)
        assert len(kept) + len(filled) == k * k
        return flat.reshape(-1, k, k)

    step = rows_per_block(k, dtype.itemsize)
    rows = cut(A, step)
    return Source(lambda: map(matrices, rows()), k, len(A), name, dtype=dtype)


def triangle(p: int, upper: bool) -> tuple[int, NDArray[np.intp], NDArray[np.float64]]:
    """Size, and the place of each entry of the matrix in a triangle row by row."""
    k = (isqrt(8 * p + 1) - 1) // 2
    if k * (k + 1) // 2 != p:
        return 0, np.empty(0, np.intp), np.empty(0)
    where = np.zeros((k, k), np.intp)
    i, j = np.triu_indices(k) if upper else np.tril_indices(k)
    where[i, j] = where[j, i] = np.arange(p)
    return k, where.ravel(), np.ones(k * k)


def _nilearn(p: int, measure: Any) -> tuple[int, NDArray[np.intp], NDArray[np.float64]]:
    """nilearn's vectors: the lower triangle row by row, its diagonal divided by √2.

    Where the diagonal was left out, it is one of a correlation, and else lost.
    """
    if not getattr(measure, "discard_diagonal", False):
        k, where, _ = triangle(p, upper=False)
        return k, where, (1.0 + (np.sqrt(2.0) - 1.0) * np.eye(k)).ravel()
    if kind_of(measure) not in (MatrixKind.CORRELATION, MatrixKind.PARTIAL_CORRELATION):
        raise ParameterError(
            "discard_diagonal=True left out the diagonals of these matrices: estimate them with "
            "discard_diagonal=False"
        )
    k = (isqrt(8 * p + 1) + 1) // 2
    if k * (k - 1) // 2 != p:
        return 0, np.empty(0, np.intp), np.empty(0)
    where = np.full((k, k), p)
    i, j = np.tril_indices(k, -1)
    where[i, j] = where[j, i] = np.arange(p)
    return k, where.ravel(), np.ones(k * k)
