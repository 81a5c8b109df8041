r"""The off-log metric of full-rank correlation matrices: y = √2·Off(Logm C).

Off takes the entries above the diagonal; ρ(C, C') = ‖Off⁰(Logm C − Logm C')‖_F with the
diagonal set to zero. For every symmetric H with zero diagonal there is exactly one
diagonal D such that Expm(H + D) has ones on its diagonal (Archakov and Hansen 2021), so
the chart is onto R^d, d = k(k−1)/2, and every vector is a correlation matrix.

*Records.* Each is divided by its own standard deviations first, X_ij/√(X_ii·X_jj), so a
covariance matrix counts as its correlation matrix, and a diagonal that is one up to
rounding is made one. That depends on the record alone. A record with a diagonal
entry that is not positive has no correlations and is unusable.

References
----------
I. Archakov, P. R. Hansen, "A new parametrization of correlation matrices", Econometrica
89 (2021). Y. Thanwerdas, X. Pennec, "Theoretically and computationally convenient
geometries on full-rank correlation matrices", SIAM J. Matrix Anal. Appl. 43 (2022).
"""

from math import isqrt, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.blocks import matrix_stack
from spdp.charts.base import Chart
from spdp.charts.spectra import trace_ball
from spdp.errors import ParameterError
from spdp.geometry import logm
from spdp.kernels import Kernels, Region, Status
from spdp.kernels.base import SQRT2, Array, Codes, compose, upper_triangle

__all__ = ["OffLog"]

EPS = float(np.finfo(np.float64).eps)
CLOSE = 1e-13  # ‖ln diag Expm(H + D)‖_∞ at which the iteration for D ends
MOST_STEPS = 2000  # several times what spectra that float64 resolves need
AGREES = 1e-9  # distance of a matrix from its vector that is rounding, over its size
RESOLVED = 1e5  # smallest eigenvalue over its rounding: its logarithm is good to 1e-5
CLOSER = 0.8  # by which a vector shrinks whose matrix float64 does not resolve


class OffLog(Chart):
    """Full-rank correlation matrices with the off-log metric."""

    name = "offlog"
    distance = "off-log"

    def dimension(self, k: int) -> int:
        return k * (k - 1) // 2

    def size(self, d: int) -> int:
        k = (isqrt(8 * d + 1) + 1) // 2
        return k if self.dimension(k) == d else 0

    def coordinates(self, X: NDArray[Any], kernels: Kernels) -> tuple[Array, Codes]:
        C, positive = correlations(X)
        Y, status = kernels.log_vectors(C, -np.inf, np.inf)
        status[(status == Status.OK) & ~positive] = Status.NOT_POSITIVE
        return np.ascontiguousarray(Y[:, X.shape[1] :]), status

    def vector(self, M: Any) -> Array:
        A = matrix_stack(M)
        C, _ = correlations(A.reshape(-1, *A.shape[-2:]))
        return off_log(logm(C.reshape(A.shape)))

    def representable(self, v: Array) -> Array:
        """The vector itself, unless no matrix of float64 numbers has it.

        *Certified.* What :meth:`matrices` makes of v is a correlation matrix, whatever
        became of the iteration, and its own vector is known: where that is farther from
        v than rounding, it is what is returned.
        """
        own = off_log(logm(self.matrices(v)))
        gap = np.sqrt(((own - v) ** 2).sum(axis=-1, keepdims=True))
        size = np.maximum(1.0, np.sqrt((own * own).sum(axis=-1, keepdims=True)))
        return np.where(gap <= AGREES * size, v, own)

    def matrices(self, v: Array) -> Array:
        """The correlation matrices of vectors; ones on their diagonals are exact.

        Where an eigenvalue would be below what float64 resolves, the vector is shrunk
        toward zero, the identity's, until none is.
        """
        H = hollow(np.asarray(v, dtype=np.float64), self.size(v.shape[-1]))
        k = H.shape[-1]
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

    def ball(self, center: Array | None, radius: float, k: int) -> Region:
        if k < 2:
            raise ParameterError("a correlation matrix has at least 2 rows: the records are 1×1")
        at = np.zeros(self.dimension(k)) if center is None else center
        return Region(-np.inf, np.inf, at, radius)

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
            raise ParameterError(
                f"{k}×{k} correlation matrices have trace {k}; none has at most {trace:g}"
            )
        return self.ball(None, trace_ball(low, float(k), k)[1], k)

    def blocks(self, k: int) -> list[Array]:
        """What all entries share, what the rows add (H_ij = a_i + a_j), and the rest.

        These are the parts that a permutation of rows and columns keeps apart.
        """
        if k < 2:
            return [np.eye(0)]
        i, j = upper_triangle(k)
        rows = np.eye(k)[i] + np.eye(k)[j]  # (d, k); the sum of its columns is constant
        shared = np.ones((len(i), 1)) / sqrt(len(i))
        rows = rows - shared * (shared.T @ rows)
        U, values, _ = np.linalg.svd(rows)
        rank = int(np.count_nonzero(values > 0.5))
        away = np.linalg.svd(np.hstack([shared, U[:, :rank]]))[0][:, rank + 1 :]
        return [block for block in (shared, U[:, :rank], away) if block.shape[1]]

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


def off_log(L: Array) -> Array:
    """√2 times the entries above the diagonal."""
    i, j = upper_triangle(L.shape[-1])
    return np.asarray(SQRT2 * L[..., i, j])


def hollow(v: Array, k: int) -> Array:
    """Symmetric matrices with zero diagonals, the inverse of :func:`off_log`."""
    H = np.zeros((*v.shape[:-1], k, k))
    i, j = upper_triangle(k)
    H[..., i, j] = H[..., j, i] = v / SQRT2
    return H


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
    return np.asarray(0.5 * (C + np.swapaxes(C, -1, -2)))


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
