"""Symmetric matrices and vectors of the same norm: vecd, its inverse, V·diag(w)·Vᴴ."""

from functools import lru_cache
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.kernels.arrays import Array

SQRT2 = float(np.sqrt(2.0))


def dimension(k: int) -> int:
    """d = k(k+1)/2, the dimension of the symmetric k×k matrices."""
    return k * (k + 1) // 2


@lru_cache(maxsize=1024)
def size_of(d: int) -> int:
    """The k with k(k+1)/2 = d; 0 where there is none."""
    k = (isqrt(8 * d + 1) - 1) // 2 if d > 0 else 0
    return k if dimension(k) == d else 0


@lru_cache(maxsize=64)
def upper_triangle(k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places of the strict upper triangle, row by row: the order of vecd."""
    return np.triu_indices(k, 1)


def vecd(S: Array) -> Array:
    """Isometry from symmetric matrices: diagonal, then √2 times the upper triangle."""
    i, j = upper_triangle(S.shape[-1])
    return np.concatenate([np.diagonal(S, axis1=-2, axis2=-1), SQRT2 * S[..., i, j]], axis=-1)


def invvecd(v: Array) -> Array:
    """Symmetric matrices of vectors ``(..., k(k+1)/2)``.

    The inverse of :func:`vecd`.
    """
    places, divisor = _unfolding(size_of(v.shape[-1]))
    return np.asarray((v / divisor)[..., places])


@lru_cache(maxsize=64)
def _unfolding(k: int) -> tuple[NDArray[np.intp], Array]:
    """Place in its vector of each entry of a matrix, and the divisors of the vector."""
    places, divisor = np.diag(np.arange(k)), np.full(dimension(k), SQRT2)
    i, j = upper_triangle(k)
    places[i, j] = places[j, i] = np.arange(k, dimension(k))
    divisor[:k] = 1.0
    return places, divisor


def compose(V: NDArray[Any], values: Array) -> Any:
    """V diag(values) Vᴴ, exactly symmetric; Hermitian where V is complex."""
    S = (V * values[..., None, :]) @ np.swapaxes(V, -1, -2).conj()
    return symmetric(S)


def symmetric(S: NDArray[Any]) -> Any:
    """½(S + Sᴴ), exactly symmetric; Hermitian where S is complex."""
    return np.asarray(0.5 * (S + np.swapaxes(S, -1, -2).conj()))
