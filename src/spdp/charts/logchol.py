r"""The log-Cholesky metric: X = LLᵀ, y = (ln L_ii, L_ij for i > j).

The distance is that of the factors, with logarithms on their diagonals,

    ρ(X, Y)² = Σ_i (ln L_ii − ln K_ii)² + Σ_{i>j} (L_ij − K_ij)²,   X = LLᵀ, Y = KKᵀ,

and needs no eigenvalues. It depends on the order of rows and columns, and depends on
their units in another way than the log-Euclidean distance does.

References
----------
Z. Lin, "Riemannian geometry of symmetric positive definite matrices via Cholesky
decomposition", SIAM J. Matrix Anal. Appl. 40 (2019).
"""

from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.charts.base import Chart
from spdp.charts.spectra import largest_eigenvalue, trace_ball
from spdp.geometry import log_cholesky
from spdp.geometry.factors import factor_of, square, vector_of
from spdp.kernels.arrays import Array, Statuses
from spdp.kernels.base import Kernels, Region, Status, rank_tolerance, rounding, working_dtype
from spdp.kernels.reference import LN2, blocks, prepare
from spdp.kernels.vecd import dimension, size_of

LARGEST_LOG = 350.0  # ln L_ii beyond ±350 leave the range of float64 as squares
LARGEST_ENTRY = 1e150  # of L below its diagonal, likewise


class LogCholesky(Chart):
    """SPD matrices with the log-Cholesky metric (Lin 2019)."""

    name = "logchol"
    distance = "log-Cholesky"
    log_diagonal = True  # of the factor

    def coordinates(self, X: NDArray[Any], kernels: Kernels) -> tuple[Array, Statuses]:
        m, k = X.shape[:2]
        Y, status = np.empty((m, dimension(k))), np.empty(m, np.uint8)
        for s in blocks(m, k):
            Y[s], status[s] = factor_vectors(X[s])
        return Y, status

    def vector(self, M: Any) -> Array:
        return log_cholesky(M)

    def representable(self, v: Array) -> Array:
        """Entries clamped to what float64 can square; then eigenvalues it can resolve.

        A matrix of float64 numbers resolves eigenvalues down to about k·2⁻⁵² of the
        largest, λ. Where LLᵀ has a smaller one, 8k·2⁻⁵²·λ is added to its diagonal.
        Most vectors are far from both limits and are returned as they are.
        """
        k = size_of(v.shape[-1])
        logs = np.clip(v[..., :k], -LARGEST_LOG, LARGEST_LOG)
        z = np.concatenate([logs, np.clip(v[..., k:], -LARGEST_ENTRY, LARGEST_ENTRY)], axis=-1)
        X = square(factor_of(z))
        w = np.linalg.eigvalsh(X)
        fine = k * float(np.finfo(np.float64).eps) * w[..., -1]
        poor = w[..., 0] < 4.0 * fine
        if poor.any():
            X[poor] += 8.0 * fine[poor][..., None, None] * np.eye(k)
            z[poor] = log_cholesky(X[poor])
        return v if (z == v).all() else z

    def matrices(self, v: Array) -> Array:
        """LLᵀ, positive definite in float64 whatever v is."""
        return self.of_representable(self.representable(v))

    def of_representable(self, v: Array) -> Array:
        return square(factor_of(v))

    def bounded(self, low: float, high: float, k: int) -> Region:
        r"""The ball around √(low·high)·I of squared radius

            k·(ln(high/low)/4)² + (k − 1)(high − low).

        L_ii² is 1/(A⁻¹)_ii for the leading block A that ends in i, so it lies between
        A's eigenvalues, and those in [low, high] by interlacing: ln L_ii lies within
        ln(high/low)/4 of ln(low·high)/4. And Σ_{j<i} L_ij² = X_ii − L_ii² is at most
        high − low in each row but the first, where it is 0.
        """
        center = np.zeros(dimension(k))
        center[:k] = 0.25 * (log(low) + log(high))
        diagonal = k * (0.25 * (log(high) - log(low))) ** 2
        return Region(-np.inf, np.inf, center, sqrt(diagonal + (k - 1) * (high - low)))

    def traced(self, low: float, trace: float, k: int) -> Region:
        r"""The ball around e^t·I of squared radius (r/2)² + trace − k·low.

        The squares L_ii² are at least low, as above, and their sum is at most that of
        the X_ii: their logarithms lie within r of (t, …, t), t and r those of
        :func:`spdp.charts.spectra.trace_ball`. And Σ_{i>j} L_ij² = tr X − Σ L_ii² is at
        most trace − k·low.
        """
        largest_eigenvalue(low, trace, k)  # raises if there is no room
        t, r = trace_ball(low, trace, k)
        center = np.zeros(dimension(k))
        center[:k] = 0.5 * t
        return Region(-np.inf, np.inf, center, sqrt(0.25 * r * r + trace - k * low))

    def log_jacobian(self, M: Any) -> Any:
        r"""ln J, 1/J = 2^(k + k(k−1)/4)·Π_i L_ii^(k+2−i), i from 1.

        dX = 2^k·Π L_ii^(k+1−i) dL for the entries of a triangle, ln L_ii takes one more
        power of L_ii, and vecd counts k(k−1)/2 entries with √2.
        """
        logs = self.vector(M)[..., : np.shape(M)[-1]]
        k = logs.shape[-1]
        return -(k + 0.25 * k * (k - 1)) * log(2.0) - logs @ np.arange(k + 1.0, 1.0, -1.0)


def factor_vectors(X: NDArray[Any]) -> tuple[Array, Statuses]:
    """Vectors and status of one block: the readable kernel.

    A pivot that is zero up to the rounding of the stored entries counts as their eps
    times the largest entry, as the record is about to be clipped; one that is negative
    beyond :func:`rank_tolerance` makes the matrix invalid. Columns are eliminated
    entry by entry, so that no matrix is rounded by its place among the others.
    """
    k = X.shape[1]
    A, exponent, largest, status = prepare(X)
    odd = exponent % 2  # roots of even powers of two are exact
    A, largest, exponent = np.ldexp(A, odd[:, None, None]), np.ldexp(largest, odd), exponent - odd
    tolerance = rank_tolerance(X.dtype, largest, exponent, k)
    floor = rounding(X.dtype, largest, exponent)
    eps = float(np.finfo(working_dtype(X.dtype)).eps)
    own = np.diagonal(A, axis1=1, axis2=2).copy()
    positive = (own > 0).any(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        for j in range(k):
            pivot = A[:, j, j]
            positive &= pivot >= -tolerance
            L = np.sqrt(np.where(pivot > eps * own[:, j], pivot, floor))
            A[:, j + 1 :, j] /= L[:, None]
            A[:, j, j] = L
            column = A[:, j + 1 :, j]
            A[:, j + 1 :, j + 1 :] -= column[:, :, None] * column[:, None, :]
        status[(status == Status.OK) & ~positive] = Status.NOT_POSITIVE
        A[status != Status.OK] = np.eye(k)
        Y = vector_of(A)
        Y[:, :k] += 0.5 * LN2 * exponent[:, None]
        Y[:, k:] = np.ldexp(Y[:, k:], (exponent // 2)[:, None])
    Y[status != Status.OK] = 0.0
    return Y, status
