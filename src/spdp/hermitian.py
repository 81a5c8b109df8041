"""Logarithms and exponentials of complex Hermitian matrices, by real ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.faults import check_status
from spdp.kernels import kernels_for
from spdp.kernels.base import compose, symmetric

__all__ = ["doubled", "hermitian_expm", "hermitian_logm"]


def hermitian_logm(A: NDArray[Any]) -> NDArray[np.complex128]:
    """Matrix logarithm of Hermitian matrices, by that of :func:`doubled` ones."""
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
