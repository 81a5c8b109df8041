r"""The off-log metric of full-rank correlation matrices: y = √2·Off(Logm C).

Off takes the entries above the diagonal, row by row: (1,2), …, (1,k), (2,3), …;
ρ(C, C') = ‖Off⁰(Logm C − Logm C')‖_F with the diagonal set to zero. For every symmetric
H with zero diagonal there is exactly one diagonal D such that Expm(H + D) has ones on
its diagonal (Archakov and Hansen 2021), so the chart is onto R^d, d = k(k−1)/2, and
every vector is a correlation matrix.

*Records.* Each is divided by its own standard deviations first, X_ij/√(X_ii·X_jj), so a
covariance matrix counts as its correlation matrix, and a diagonal that is one up to
rounding is made one. That depends on the record alone. A record with a diagonal
entry that is not positive has no correlations and is invalid. From a precision matrix
this makes partial correlations with the wrong sign, and no number in a record tells:
such matrices are refused where their kind is stated (:class:`spdp.options.MatrixKind`),
and are taken for covariances where it is not.

References
----------
I. Archakov, P. R. Hansen, "A new parametrization of correlation matrices", Econometrica
89 (2021). Y. Thanwerdas, X. Pennec, "Theoretically and computationally convenient
geometries on full-rank correlation matrices", SIAM J. Matrix Anal. Appl. 43 (2022).
"""

from math import isqrt, log, sqrt
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.charts.base import Chart, Component
from spdp.charts.spectra import trace_ball
from spdp.data.batching import matrix_stack
from spdp.errors import ParameterError, named
from spdp.geometry import logm, off_log
from spdp.geometry.factors import above, correlation_of, correlations, hollow
from spdp.kernels.arrays import Array, Statuses
from spdp.kernels.base import Kernels, Region, Status
from spdp.kernels.vecd import SQRT2, upper_triangle
from spdp.options import MatrixKind

NOT_CORRELATIONS = (
    f"{named('metric', 'offlog')} is for correlations. Pass {named('metric', 'logeuclid')}, or "
    f"state {named('kind', 'covariance')} if they are to be scaled to ones on the diagonal"
)
AGREES = 1e-9  # distance of a matrix from its vector that is rounding, over its size


class OffLog(Chart):
    """Full-rank correlation matrices with the off-log metric."""

    name = "offlog"
    distance = "off-log"
    refuses = MappingProxyType(
        dict.fromkeys((MatrixKind.PRECISION, MatrixKind.PARTIAL_CORRELATION), NOT_CORRELATIONS)
    )

    def dimension(self, k: int) -> int:
        return k * (k - 1) // 2

    def size(self, d: int) -> int:
        k = (isqrt(8 * d + 1) + 1) // 2
        return k if self.dimension(k) == d else 0

    def coordinates(self, X: NDArray[Any], kernels: Kernels) -> tuple[Array, Statuses]:
        C, positive = correlations(X)
        Y, status = kernels.log_vectors(C, -np.inf, np.inf)
        status[(status == Status.OK) & ~positive] = Status.NOT_POSITIVE
        return np.ascontiguousarray(Y[:, X.shape[1] :]), status

    def vector(self, M: Any) -> Array:
        return off_log(M)

    def representable(self, v: Array) -> Array:
        """The vector itself, unless no matrix of float64 numbers has it.

        *Certified.* :meth:`matrices` makes a correlation matrix of v, whether or not
        its iteration converged, and the vector of that matrix is computed here. Where
        it is farther from v than rounding, it is returned in place of v.
        """
        own = above(logm(self.matrices(v)))
        gap = np.sqrt(((own - v) ** 2).sum(axis=-1, keepdims=True))
        size = np.maximum(1.0, np.sqrt((own * own).sum(axis=-1, keepdims=True)))
        return np.where(gap <= AGREES * size, v, own)

    def matrices(self, v: Array) -> Array:
        """Matrices by :func:`~spdp.geometry.factors.correlation_of`, for every v."""
        return correlation_of(np.asarray(v, dtype=np.float64), self.size(v.shape[-1]))

    def ball(self, center: Array | None, radius: float, k: int) -> Region:
        if k < 2:
            raise ParameterError("a correlation matrix has at least 2 rows: the records are 1×1")
        return super().ball(center, radius, k)

    def bounded(self, low: float, high: float, k: int) -> Region:
        """The smaller of (√k/2)·ln(high/low) and the radius of :meth:`traced`."""
        region = self.traced(low, float(k), k)
        return self.ball(None, min(region.radius, 0.5 * sqrt(k) * (log(high) - log(low))), k)

    def traced(self, low: float, trace: float, k: int) -> Region:
        r"""The ball around I of the radius r of the spectra with trace k.

        Off⁰ is an orthogonal projection that takes t·I to zero, so ‖Off⁰ Logm C‖ =
        ‖Off⁰(Logm C − t·I)‖ ≤ ‖Logm C − t·I‖, which is at most r for the t of
        :func:`spdp.charts.spectra.trace_ball`: the trace of C is k, no more.
        """
        if trace < k:
            raise ParameterError(f"{k}×{k} correlations have trace {k}, not at most {trace:g}")
        return self.ball(None, trace_ball(low, float(k), k)[1], k)

    def components(self, v: Array) -> list[Component]:
        """The mean of all entries, the rows' effects (H_ij = a_i + a_j), and the rest.

        A permutation of rows and columns maps each of these subspaces to itself.
        """
        d = v.shape[-1]
        k = self.size(d)
        shared = np.broadcast_to(v.mean(axis=-1, keepdims=True), v.shape) if d else v
        if k < 3:
            return [Component(shared, d)]
        i, j = upper_triangle(k)
        # as the a_i sum to zero, row i sums to (k − 2)·a_i
        a = hollow(SQRT2 * (v - shared), k).sum(axis=-1) / (k - 2)
        rows = a[..., i] + a[..., j]
        parts = (shared, 1), (rows, k - 1), (v - shared - rows, d - k)
        return [Component(part, size) for part, size in parts if size]

    def log_jacobian(self, M: Any) -> Any:
        r"""ln J of the map √2·Off C ↦ √2·Off Logm C.

        The derivative of Logm at C = V diag(λ) Vᵀ has the divided differences of ln as
        its eigenvalues on the matrices Vᵀ·E·V; J is its determinant on those E that
        have zeros on their diagonals.
        """
        A = matrix_stack(M)
        stack = A.reshape(-1, *A.shape[-2:]).astype(np.float64)
        found = [_log_jacobian(C) for C in stack]
        return np.reshape(found, A.shape[:-2]) if A.ndim > 2 else found[0]


def _log_jacobian(C: Array) -> float:
    w, V = np.linalg.eigh(C)
    i, j = upper_triangle(len(C))
    gap = w[:, None] - w
    close = np.abs(gap) <= 1e-7 * (w[:, None] + w)
    ratio = (np.log(w)[:, None] - np.log(w)) / np.where(close, 1.0, gap)
    slopes = np.where(close, 2.0 / (w[:, None] + w), ratio)
    # Vᵀ·E·V for the unit matrices E = (e_i e_jᵀ + e_j e_iᵀ)/√2
    half = V[i][:, :, None] * V[j][:, None, :]
    turned = (half + np.swapaxes(half, 1, 2)) / SQRT2
    G = np.einsum("aij,ij,bij->ab", turned, slopes, turned, optimize=True)
    return float(np.linalg.slogdet(G)[1])
