"""Cholesky factors, correlation matrices and Hermitian ones, with vectors of their own.

(ln L_ii, L_ij for i > j) of a Cholesky factor L; √2·Off(Logm C) of a correlation matrix
C; logarithms of complex Hermitian matrices, by those of real ones.
"""

from math import log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spdp.data.batching import check_status
from spdp.errors import InvalidMatrixError, ParameterError
from spdp.kernels import kernels_for
from spdp.kernels.arrays import Array
from spdp.kernels.vecd import SQRT2, compose, size_of, symmetric, upper_triangle


def vector_of(L: Array) -> Array:
    """(ln L_ii, L_ij for i > j) of Cholesky factors (..., k, k)."""
    i, j = upper_triangle(L.shape[-1])
    diagonal = np.log(np.diagonal(L, axis1=-2, axis2=-1))
    return np.concatenate([diagonal, L[..., j, i]], axis=-1)


def factor_of(v: Array) -> Array:
    """The Cholesky factors of vectors, the inverse of :func:`vector_of`."""
    k = size_of(v.shape[-1])
    L = np.zeros((*v.shape[:-1], k, k))
    i, j = upper_triangle(k)
    L[..., np.arange(k), np.arange(k)] = np.exp(v[..., :k])
    L[..., j, i] = v[..., k:]
    return L


def square(L: Array) -> Array:
    """LLᵀ, exactly symmetric."""
    return np.asarray(symmetric(L @ np.swapaxes(L, -1, -2)))


def hermitian_logm(A: NDArray[Any]) -> NDArray[np.complex128]:
    """Matrix logarithm of Hermitian matrices, by way of :func:`doubled` matrices."""
    L, status, smallest = kernels_for(A).logm(doubled(A.reshape(-1, *A.shape[-2:])))
    check_status(status, A, smallest)
    k = A.shape[-1]
    return np.asarray(symmetric(L[:, :k, :k] + 1j * L[:, k:, :k]).reshape(A.shape))


def hermitian_expm(S: NDArray[Any]) -> NDArray[np.complex128]:
    """Matrix exponential of Hermitian matrices."""
    w, V = np.linalg.eigh(S)
    return np.asarray(compose(V, np.exp(w)))


def doubled(X: NDArray[Any]) -> NDArray[Any]:
    """The real matrices [[A, −B], [B, A]] (m, 2k, 2k) of A + iB (m, k, k)."""
    m, k = X.shape[:2]
    E = np.empty((m, 2 * k, 2 * k), X.real.dtype)
    E[:, :k, :k] = E[:, k:, k:] = X.real
    E[:, k:, :k] = X.imag
    np.negative(E[:, k:, :k], out=E[:, :k, k:])
    return E


def several(A: NDArray[Any]) -> NDArray[Any]:
    """A stack (..., n, k, k) of at least one matrix, or an error."""
    if A.ndim < 3 or A.shape[-3] == 0:
        raise InvalidMatrixError(f"X has shape {A.shape}; expected (..., n, k, k) with n >= 1")
    return A


def weights_of(sample_weight: ArrayLike | None, n: int) -> Array:
    """Weights (n,) that sum to 1, or an error."""
    if sample_weight is None:
        return np.full(n, 1.0 / n)
    w = np.asarray(sample_weight, dtype=np.float64)
    if w.shape != (n,):
        raise ParameterError(f"sample_weight has shape {w.shape}; expected ({n},)")
    if not (np.isfinite(w).all() and (w >= 0).all() and w.sum() > 0):
        raise ParameterError("sample_weight must be finite, non-negative and not all zero")
    return np.asarray(w / w.sum())


EPS = float(np.finfo(np.float64).eps)
CLOSE = 1e-13  # ‖ln diag Expm(H + D)‖_∞ at which the iteration for D ends
MOST_STEPS = 2000  # several times what spectra that float64 resolves need
RESOLVED = 1e5  # smallest eigenvalue over its rounding: its logarithm is good to 1e-5
CLOSER = 0.8  # factor on a vector whose matrix float64 does not resolve


def correlations(X: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """X_ij/√(X_ii·X_jj) in the dtype of X; and False where some X_ii is not positive.

    A matrix that cannot be divided is left as it is, for the kernels to judge.
    """
    k = X.shape[1]
    diagonal = np.diagonal(X, axis1=1, axis2=2).astype(np.float64)
    if (diagonal == 1.0).all():
        return X, np.ones(len(X), bool)
    finite = np.isfinite(diagonal).all(axis=1)
    positive: NDArray[np.bool_] = np.asarray((diagonal > 0).all(axis=1) | ~finite)
    usable = np.asarray(positive & finite)[:, None]
    with np.errstate(all="ignore"):
        inverse = np.where(usable, 1.0 / np.sqrt(diagonal), 1.0)
        C = (X.astype(np.float64) * inverse[:, :, None] * inverse[:, None, :]).astype(X.dtype)
    C[:, np.arange(k), np.arange(k)] = np.where(usable, 1.0, diagonal)
    return C, positive


def above(L: Array) -> Array:
    """√2 times the entries above the diagonal, row by row."""
    i, j = upper_triangle(L.shape[-1])
    return np.asarray(SQRT2 * L[..., i, j])


def hollow(v: Array, k: int) -> Array:
    """Symmetric matrices with zero diagonals, the inverse of :func:`above`."""
    H = np.zeros((*v.shape[:-1], k, k))
    i, j = upper_triangle(k)
    H[..., i, j] = H[..., j, i] = v / SQRT2
    return H


def correlation_of(v: Array, k: int) -> Array:
    """The k×k correlation matrices of vectors; ones on their diagonals are exact.

    Where an eigenvalue would be below what float64 resolves, the vector is shrunk
    toward zero, the identity's, until none is.
    """
    H = hollow(v, k)
    stack = H.reshape(-1, k, k)
    least = RESOLVED * k * EPS
    w = np.linalg.eigvalsh(stack)
    spread = (w[:, -1] - w[:, 0])[:, None, None]
    stack = stack * np.minimum(1.0, -log(least) / np.maximum(spread, 1e-300))
    C = unit_diagonal(stack)
    while (poor := np.linalg.eigvalsh(C)[:, 0] < least).any():
        stack[poor] *= CLOSER
        C[poor] = unit_diagonal(stack[poor])
    return C.reshape(H.shape)


def unit_diagonal(H: Array) -> Array:
    """Expm(H + D) of a stack (m, k, k), D by D ← D − ln diag Expm(H + D).

    The iteration is a contraction (Archakov and Hansen). It ends when every diagonal is
    within CLOSE of one, or after MOST_STEPS steps; rows and columns are then divided so
    that it is one exactly.
    """
    k = H.shape[-1]
    diagonal, one = np.zeros(H.shape[:-1]), np.eye(k)
    for _ in range(MOST_STEPS):
        w, V = np.linalg.eigh(H + diagonal[..., None] * one)
        gap = np.log(np.einsum("mij,mj->mi", V * V, np.exp(w)))
        if np.abs(gap).max(initial=0.0) <= CLOSE:
            break
        diagonal = diagonal - gap
    C, _ = correlations(compose(V, np.exp(w)))
    return np.asarray(symmetric(C))
