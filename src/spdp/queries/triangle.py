r"""Second moments as integers: a symmetric matrix as its diagonal and upper triangle.

Entries are weighted, 5·C_ii and 7·C_ij for i < j, row by row. A matrix has the latter
twice, so that the length of such a vector is at most 5·‖C‖_F, for 7² ≤ 2·5². Noise in
an entry off the diagonal is then 5/7 of that in one on it.
"""

import numpy as np
from numpy.typing import NDArray

from spdp.queries.base import Array, Ints

__all__ = ["OFF_DIAGONAL", "OFF_NOISE", "ON_DIAGONAL", "packed", "unpacked"]

ON_DIAGONAL, OFF_DIAGONAL = 5, 7
OFF_NOISE = ON_DIAGONAL / OFF_DIAGONAL  # of an entry off the diagonal, over one on it


def packed(C: NDArray[np.int64]) -> Ints:
    """Weighted entries (d(d+1)/2,) of a symmetric matrix (d, d) of integers."""
    upper = C[np.triu_indices(len(C), 1)]
    return np.concatenate([ON_DIAGONAL * np.diagonal(C), OFF_DIAGONAL * upper])


def unpacked(values: Array, d: int) -> Array:
    """Matrices (..., d, d) that weighted entries (..., d(d+1)/2) stand for."""
    C = np.zeros((*values.shape[:-1], d, d))
    i, j = np.triu_indices(d, 1)
    C[..., i, j] = C[..., j, i] = values[..., d:] / OFF_DIAGONAL
    C[..., np.arange(d), np.arange(d)] = values[..., :d] / ON_DIAGONAL
    return C
