"""Correlation matrices and the vectors √2·Off(Logm C) that have their own."""

from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.kernels.base import SQRT2, Array, compose, symmetric, upper_triangle

__all__ = ["above", "correlation_of", "correlations", "hollow"]

EPS = float(np.finfo(np.float64).eps)
CLOSE = 1e-13  # ‖ln diag Expm(H + D)‖_∞ at which the iteration for D ends
MOST_STEPS = 2000  # several times what spectra that float64 resolves need
RESOLVED = 1e5  # smallest eigenvalue over its rounding: its logarithm is good to 1e-5
CLOSER = 0.8  # by which a vector shrinks whose matrix float64 does not resolve


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
    within CLOSE of one, or after so many steps; rows and columns are then divided so
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
