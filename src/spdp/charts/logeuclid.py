r"""The log-Euclidean metric: y = vecd Logm X, ρ(X, Y) = ‖Logm X − Logm Y‖_F."""

from math import isfinite, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.charts.base import EDGE, Chart, Component, at_center, clip_to_ball, diagonal_components
from spdp.charts.spectra import largest_eigenvalue, trace_ball
from spdp.geometry import logm, vecd
from spdp.kernels import Kernels, Region, dimension, kernels_for, size_of
from spdp.kernels.base import Array, Codes, Ints, compose, fused, invvecd, upper_triangle
from spdp.kernels.base import vecd as vecd_exact

__all__ = ["LogEuclidean", "clamped", "spread_of"]

LARGEST_LOG = 700.0  # log-eigenvalues beyond ±700 leave the range of float64
ALONE = 48  # size from which one matrix is faster by LAPACK than beside empty lanes
EPS = float(np.finfo(np.float64).eps)


class LogEuclidean(Chart):
    """SPD matrices with the log-Euclidean metric (Arsigny et al. 2007).

    Regions, projections and the Jacobian are written in terms of :meth:`fold`,
    :meth:`unfold`, :meth:`logarithms` and :meth:`log_vectors`: they hold for any
    matrices with real eigenvalues.
    """

    name = "logeuclid"
    distance = "log-Euclidean"
    pairs = 1  # coordinates of an entry above the diagonal

    def dimension(self, k: int) -> int:
        return dimension(k)

    def size(self, d: int) -> int:
        return size_of(d)

    def fold(self, S: NDArray[Any]) -> Array:
        """Vectors of logarithms, of the same norm."""
        return vecd_exact(S)

    def unfold(self, v: Array) -> NDArray[Any]:
        """Logarithms of vectors, the inverse of :meth:`fold`."""
        return invvecd(v)

    def logarithms(self, M: Any) -> NDArray[Any]:
        """Logm of matrices (..., k, k), or an error that names the invalid one."""
        return logm(M)

    def log_vectors(
        self, X: NDArray[Any], low: float, high: float, kernels: Kernels
    ) -> tuple[Array, Codes]:
        """Vectors (m, d) of a stack, log-eigenvalues clipped to [low, high]."""
        return kernels.log_vectors(X, low, high)

    def extremes(self, Y: Array, kernels: Kernels) -> tuple[Array, Array]:
        """Smallest and largest log-eigenvalue of each vector (m, d)."""
        w, _, _ = kernels.eigh(self.unfold(Y))
        return w[:, 0], w[:, -1]

    def coordinates(self, X: NDArray[Any], kernels: Kernels) -> tuple[Array, Codes]:
        return self.log_vectors(X, -np.inf, np.inf, kernels)

    def vectors(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Array, Codes]:
        Y, status = self.log_vectors(X, region.log_low, region.log_high, kernels)
        at_center(Y, status, region)
        if self.ball_binds(region):
            Y = clip_to_ball(Y, region.center, region.radius)
        return Y, status

    def encode(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Ints, Codes]:
        return kernels.encode(X, region)

    def lattice_sum(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Ints, Codes]:
        return kernels.lattice_sum(X, region)

    def vector(self, M: Any) -> Array:
        return vecd(logm(M))

    def representable(self, v: Array) -> Array:
        """Log-eigenvalues clamped to ±700, and to a spread that float64 resolves.

        A matrix of float64 numbers resolves eigenvalues down to about k·2⁻⁵² of the
        largest. Most vectors are far from both limits and are returned as they are.
        """
        if np.vdot(v, v) <= (0.5 * spread_of(self.size(v.shape[-1]))) ** 2:
            return v  # no eigenvalue exceeds the norm
        S = self.unfold(v)
        w = np.linalg.eigvalsh(S)
        if (clamped(w) == w).all():
            return v
        w, V = np.linalg.eigh(S)
        return self.fold(compose(V, clamped(w)))

    def matrices(self, v: Array) -> Array:
        """Expm(invvecd v), positive definite in float64 whatever v is."""
        if v.ndim == 1 and self.size(len(v)) >= ALONE:
            w, V = np.linalg.eigh(invvecd(v))
            return np.asarray(compose(V, np.exp(clamped(w))))
        S = invvecd(self.representable(v))
        E, _ = kernels_for(S).expm(S.reshape(-1, *S.shape[-2:]))
        return E.reshape(S.shape)

    def ball(self, center: Array | None, radius: float, k: int) -> Region:
        at = np.zeros(self.dimension(k)) if center is None else center
        return Region(-np.inf, np.inf, at, radius)

    def bounded(self, low: float, high: float, k: int) -> Region:
        """The ball around √(low·high)·I of radius (√k/2)·ln(high/low)."""
        log_low, log_high = float(np.log(low)), float(np.log(high))
        center = np.zeros(self.dimension(k))
        center[:k] = 0.5 * (log_low + log_high)
        radius = 0.5 * float(np.sqrt(k)) * (log_high - log_low)
        return Region(log_low, log_high, center, radius)

    def components(self, v: Array) -> list[Component]:
        """Trace, traceless diagonal, off-diagonal part."""
        return diagonal_components(v, self.size(v.shape[-1]))

    def log_jacobian(self, M: Any) -> Any:
        r"""ln J, J(X) = (1/det X)·Π_{i<j} (ln λ_i − ln λ_j)/(λ_i − λ_j).

        A factor counts once for each coordinate of the entry (i, j).

        Stable for coinciding eigenvalues: with l = ln λ and t = l_i − l_j, the
        logarithm of a factor is −(l_i + l_j)/2 − ln(sinh(t/2)/(t/2)), which is even and
        smooth in t.
        """
        return self.log_jacobian_at(self.logarithms(M))

    def log_jacobian_at(self, L: NDArray[Any]) -> Any:
        """Ln J at the matrices whose logarithms are L."""
        l = np.linalg.eigvalsh(L)
        i, j = upper_triangle(l.shape[-1])
        pairs = 0.5 * (l[..., i] + l[..., j]) + log_sinhc(0.5 * np.abs(l[..., i] - l[..., j]))
        return -l.sum(axis=-1) - self.pairs * pairs.sum(axis=-1)

    def traced(self, low: float, trace: float, k: int) -> Region:
        """Log-eigenvalues from ln low to ln(trace − (k − 1)·low), in their ball."""
        center = np.zeros(self.dimension(k))
        log_high = float(np.log(largest_eigenvalue(low, trace, k)))
        center[:k], radius = trace_ball(low, trace, k)
        return Region(float(np.log(low)), log_high, center, radius)

    def at_edge(self, Y: Array, region: Region, kernels: Kernels) -> NDArray[np.bool_]:
        """At the ball's surface, or with an eigenvalue at an end of the interval."""
        norms = kernels.vector_norms(Y, region.center, np.ones(Y.shape[1]))
        edge = norms >= region.radius * (1.0 - EDGE)
        if isfinite(region.log_low):
            slack = EDGE * (region.log_high - region.log_low)
            low, high = region.log_low + slack, region.log_high - slack
            # no eigenvalue is further from the centre's than the norm says (Weyl)
            least, most = self.extremes(region.center[None], kernels)
            room = min(float(least[0]) - low, high - float(most[0])) - slack
            near = np.flatnonzero(norms >= room)
            lowest, highest = self.extremes(Y[near], kernels)
            edge[near] |= (lowest <= low) | (highest >= high)
        return np.asarray(edge)

    def edge_count(self, Y: Array, region: Region, kernels: Kernels) -> int:
        if whole := fused(kernels, "edge_count"):
            return int(whole(Y, region, self.size(Y.shape[1]), EDGE))
        return super().edge_count(Y, region, kernels)

    def project(self, v: Array, region: Region) -> Array:
        """Log-eigenvalues clipped to the interval, then the vector to the ball.

        Each is the projection onto a convex set, which brings v no farther from any
        point of that set; one after the other, no farther from any point of both. The
        result lies in both: the centre has log-eigenvalues in the interval, and the
        second step moves straight toward it.
        """
        if isfinite(region.log_low):
            away = v - region.center  # no eigenvalue is further from the middle than its norm
            if np.vdot(away, away) <= (0.5 * (region.log_high - region.log_low)) ** 2:
                return v
            w, V = np.linalg.eigh(self.unfold(v))
            v = self.fold(compose(V, np.clip(w, region.log_low, region.log_high)))
        return clip_to_ball(v, region.center, region.radius) if self.ball_binds(region) else v

    def ball_binds(self, region: Region) -> bool:
        """Whether the ball leaves out some matrices whose log-eigenvalues are allowed.

        Around t·I, the centre of every region with an interval, the farthest of them
        have all k log-eigenvalues at the end of the interval that is farther from t.
        """
        t, k = float(region.center[0]), self.size(len(region.center))
        farthest = max(region.log_high - t, t - region.log_low)
        return k * farthest * farthest > (region.radius * (1.0 + 1e-12)) ** 2


def spread_of(k: int) -> float:
    """Of log-eigenvalues that a k×k matrix of float64 numbers resolves."""
    return -log(8.0 * k * EPS)


def clamped(w: Array) -> Array:
    """Ascending log-eigenvalues (..., k) brought into what float64 numbers can hold."""
    spread = spread_of(w.shape[-1])
    top = np.clip(w[..., -1:], -LARGEST_LOG + spread, LARGEST_LOG)
    return np.asarray(np.clip(w, top - spread, top))


def log_sinhc(u: Array) -> Array:
    """ln(sinh(u)/u) for u ≥ 0; u²/6 − u⁴/180 where u is small."""
    safe = np.where(u > 0, u, 1.0)
    large = u + np.log1p(-np.exp(-2.0 * safe)) - np.log(2.0 * safe)
    return np.where(u > 1e-2, large, u * u / 6.0 - u**4 / 180.0)
