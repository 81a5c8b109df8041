r"""Hermitian positive definite matrices, log-Euclidean: cross-spectra, radar.

The vector of X = A + iB is (L_ii, √2·Re L_ij, √2·Im L_ij for i < j), L = Logm X: its
norm is ‖L‖_F, so ρ(X, Y) = ‖Logm X − Logm Y‖_F and d = k². The k eigenvalues of X are
real, and all that is proven of regions in :mod:`spdp.charts.logeuclid` is about
eigenvalues and norms alone: radii, projections and edges are the same.

*Records.* The kernels see the real symmetric matrix [[A, −B], [B, A]] of twice the
size, whose entries are those of X in its own precision. It is symmetric where X is
Hermitian, has the eigenvalues of X twice each, and its logarithm is [[Re L, −Im L],
[Im L, Re L]]; so what counts as rounding, as Hermitian and as positive is what it is
for real matrices, and what a record becomes depends on that record alone. A real
record is a complex one without imaginary part.
"""

from functools import lru_cache
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.charts.base import Chart, Component
from spdp.charts.logeuclid import LogEuclidean, clamped
from spdp.data.batching import NUMBERS, matrix_stack
from spdp.geometry.factors import doubled, hermitian_logm
from spdp.kernels.arrays import Array, Ints, Statuses
from spdp.kernels.base import Kernels, Region
from spdp.kernels.vecd import SQRT2, compose, dimension, invvecd, upper_triangle, vecd


class Hermitian(LogEuclidean):
    """Hermitian positive definite matrices with the log-Euclidean metric."""

    works_on_device = False
    name = "hermitian"
    distance = "log-Euclidean (Hermitian)"
    kinds = NUMBERS
    edge_kernel = None
    pairs = 2

    def dimension(self, k: int) -> int:
        return k * k

    def size(self, d: int) -> int:
        k = isqrt(d)
        return k if k * k == d else 0

    def fold(self, S: NDArray[Any]) -> Array:
        i, j = upper_triangle(S.shape[-1])
        return np.concatenate([vecd(S.real), SQRT2 * S.imag[..., i, j]], axis=-1)

    def unfold(self, v: Array) -> NDArray[np.complex128]:
        k = self.size(v.shape[-1])
        i, j = upper_triangle(k)
        S = invvecd(v[..., : dimension(k)]).astype(np.complex128)
        S.imag[..., i, j] = v[..., dimension(k) :] / SQRT2
        S.imag[..., j, i] = -S.imag[..., i, j]
        return S

    def logarithms(self, M: Any) -> NDArray[np.complex128]:
        return self.unfold(self.vector(M))

    def vector(self, M: Any) -> Array:
        return self.fold(hermitian_logm(matrix_stack(M, kinds=self.kinds)))

    def log_vectors(
        self, X: NDArray[Any], low: float, high: float, kernels: Kernels
    ) -> tuple[Array, Statuses]:
        Y, status = kernels.log_vectors(doubled(X), low, high)
        return np.take(Y, _places(X.shape[-1]), axis=1), status

    def encode(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Ints, Statuses]:
        return Chart.encode(self, X, region, kernels)

    def lattice_sum(
        self, X: NDArray[Any], region: Region, kernels: Kernels
    ) -> tuple[Ints, Statuses]:
        return Chart.lattice_sum(self, X, region, kernels)

    def matrices(self, v: Array) -> Any:
        """Expm of the logarithms: complex128, equal to its own conjugate transpose."""
        w, V = np.linalg.eigh(self.unfold(v))
        return compose(V, np.exp(clamped(w)))

    def extremes(self, Y: Array, kernels: Kernels) -> tuple[Array, Array]:
        w, _, _ = kernels.eigh(doubled(self.unfold(Y)))
        return w[:, 0], w[:, -1]

    def components(self, v: Array) -> list[Component]:
        """Trace, traceless diagonal, real and imaginary parts off the diagonal."""
        *first, rest = super().components(v)
        if not first:
            return [rest]
        half = rest.dimension // 2
        real, imaginary = rest.v.copy(), rest.v.copy()
        real[..., -half:] = imaginary[..., :-half] = 0.0
        return [*first, Component(real, half), Component(imaginary, half)]


@lru_cache(maxsize=64)
def _places(k: int) -> NDArray[np.intp]:
    """Where in vecd of [[Re L, −Im L], [Im L, Re L]] the coordinates of L stand."""
    i, j = upper_triangle(k)
    order = np.zeros((2 * k, 2 * k), np.intp)
    order[upper_triangle(2 * k)] = np.arange(2 * k, dimension(2 * k))
    # Im L_ij stands at (k + i, j), below the diagonal, and so at (j, k + i)
    return np.concatenate([np.arange(k), order[i, j], order[j, k + i]])
