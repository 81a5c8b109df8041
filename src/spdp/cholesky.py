"""Cholesky factors and the vectors (ln L_ii, L_ij for i > j) that have their own."""

import numpy as np

from spdp.kernels.base import Array, size_of, symmetric, upper_triangle

__all__ = ["factor_of", "square", "vector_of"]


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
