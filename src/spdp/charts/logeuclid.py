r"""The log-Euclidean metric: y = vecd Logm X, ρ(X, Y) = ‖Logm X − Logm Y‖_F."""

from functools import lru_cache
from math import isfinite, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.charts.base import EDGE, Chart, at_center, clip_to_ball
from spdp.charts.spectra import largest_eigenvalue, trace_ball
from spdp.geometry import logm
from spdp.kernels import kernels_for
from spdp.kernels.arrays import Array, Ints, Statuses
from spdp.kernels.base import Kernels, Region
from spdp.kernels.vecd import compose, invvecd, upper_triangle, vecd

LARGEST_LOG = 700.0  # log-eigenvalues beyond ±700 leave the range of float64
ALONE = 1176  # d of 48×48: from here LAPACK is faster for one matrix than SIMD lanes
EPS = float(np.finfo(np.float64).eps)


class LogEuclidean(Chart):
    """SPD matrices with the log-Euclidean metric (Arsigny et al. 2007).

    Regions, projections and the Jacobian are written in terms of :meth:`fold`,
    :meth:`unfold`, :meth:`logarithms` and :meth:`log_vectors`: they hold for any
    matrices with real eigenvalues.
    """

    works_on_device = True
    name = "logeuclid"
    distance = "log-Euclidean"
    edge_kernel: str | None = "edge_count"
    log_diagonal = True
    pairs = 1  # coordinates of an entry above the diagonal

    def fold(self, S: NDArray[Any]) -> Array:
        """Vectors of logarithms, of the same norm."""
        return vecd(S)

    def unfold(self, v: Array) -> NDArray[Any]:
        """Logarithms of vectors, the inverse of :meth:`fold`."""
        return invvecd(v)

    def logarithms(self, M: Any) -> NDArray[Any]:
        """Logm of matrices (..., k, k), or an error that names the invalid one."""
        return logm(M)

    def log_vectors(
        self, X: NDArray[Any], low: float, high: float, kernels: Kernels
    ) -> tuple[Array, Statuses]:
        """Vectors (m, d) of a stack, log-eigenvalues clipped to [low, high]."""
        return kernels.log_vectors(X, low, high)

    def extremes(self, Y: Array, kernels: Kernels) -> tuple[Array, Array]:
        """Smallest and largest log-eigenvalue of each vector (m, d)."""
        w, _, _ = kernels.eigh(self.unfold(Y))
        return w[:, 0], w[:, -1]

    def coordinates(self, X: NDArray[Any], kernels: Kernels) -> tuple[Array, Statuses]:
        return self.log_vectors(X, -np.inf, np.inf, kernels)

    def vectors(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Array, Statuses]:
        Y, status = self.log_vectors(X, region.log_low, region.log_high, kernels)
        at_center(Y, status, region)
        if self.ball_binds(region, X.shape[-1]):
            Y = clip_to_ball(Y, region.center, region.radius)
        return Y, status

    def encode(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Ints, Statuses]:
        return kernels.encode(X, region)

    def lattice_sum(
        self, X: NDArray[Any], region: Region, kernels: Kernels
    ) -> tuple[Ints, Statuses]:
        return kernels.lattice_sum(X, region)

    def vector(self, M: Any) -> Array:
        return self.fold(logm(M))

    def representable(self, v: Array) -> Array:
        """Log-eigenvalues clamped to ±700, and to a spread that float64 resolves.

        A matrix of float64 numbers resolves eigenvalues down to about k·2⁻⁵² of the
        largest. Most vectors are far from both limits and are returned as they are.
        """
        if np.vdot(v, v) <= _surely(self, v.shape[-1]):
            return v  # no eigenvalue exceeds the norm
        S = self.unfold(v)
        w = np.linalg.eigvalsh(S)
        if (clamped(w) == w).all():
            return v
        w, V = np.linalg.eigh(S)
        return self.fold(compose(V, clamped(w)))

    def matrices(self, v: Array) -> Array:
        """Expm(invvecd v), positive definite in float64 whatever v is."""
        if v.ndim == 1 and len(v) >= ALONE:
            w, V = np.linalg.eigh(invvecd(v))
            return np.asarray(compose(V, np.exp(clamped(w))))
        return _exponential(self.representable(v))

    def of_representable(self, v: Array) -> Array:
        small = type(self) is LogEuclidean and v.ndim == 1 and len(v) < ALONE
        return _exponential(v) if small else self.matrices(v)

    def bounded(self, low: float, high: float, k: int) -> Region:
        """The ball around √(low·high)·I of radius (√k/2)·ln(high/low)."""
        log_low, log_high = float(np.log(low)), float(np.log(high))
        center = np.zeros(self.dimension(k))
        center[:k] = 0.5 * (log_low + log_high)
        radius = 0.5 * float(np.sqrt(k)) * (log_high - log_low)
        return Region(log_low, log_high, center, radius)

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
            middle = float(region.center[0])  # the centre of an interval is a multiple of I
            room = min(middle - low, high - middle) - slack
            near = np.flatnonzero(norms >= room)
            lowest, highest = self.extremes(Y[near], kernels)
            edge[near] |= (lowest <= low) | (highest >= high)
        return np.asarray(edge)

    def farthest(self, y: Array, region: Region) -> float:
        r"""A distance from y that no point of the region exceeds.

        Let y have log-eigenvalues γ_i, and a record s_i between a and b. By von
        Neumann's trace inequality their logarithms are at most √Σ (s_i − γ_j(i))² apart
        for some order j, hence √Σ max(γ_i − a, b − γ_i)². No record leaves the ball.
        """
        within = super().farthest(y, region)
        if not isfinite(region.log_low):
            return within
        w = np.linalg.eigvalsh(self.unfold(y))
        return min(
            within, float(np.linalg.norm(np.maximum(w - region.log_low, region.log_high - w)))
        )

    def project(self, v: Array, region: Region) -> Array:
        """Log-eigenvalues clipped to the interval, then the vector to the ball.

        Each is the projection onto a convex set, which brings v no farther from any
        point of that set; one after the other, no farther from any point of both. The
        result lies in both: the centre has log-eigenvalues in the interval, and the
        second step moves straight toward it.
        """
        if isfinite(region.log_low):
            away = v - region.center  # no eigenvalue is further from the centre's than its norm
            middle = float(region.center[0])
            room = min(middle - region.log_low, region.log_high - middle, region.radius)
            if np.vdot(away, away) <= room * room:
                return v
            w, V = np.linalg.eigh(self.unfold(v))
            v = self.fold(compose(V, np.clip(w, region.log_low, region.log_high)))
        binds = self.ball_binds(region, self.size(v.shape[-1]))
        return clip_to_ball(v, region.center, region.radius) if binds else v

    def ball_binds(self, region: Region, k: int) -> bool:
        """Whether the ball leaves out some matrices whose log-eigenvalues are allowed.

        Around t·I, the centre of every region with an interval, the farthest of them
        have all k log-eigenvalues at the end of the interval that is farther from t.
        """
        if not isfinite(region.log_low):
            return True
        t = float(region.center[0])
        farthest = max(region.log_high - t, t - region.log_low)
        return k * farthest * farthest > (region.radius * (1.0 + 1e-12)) ** 2


def _exponential(v: Array) -> Array:
    S = invvecd(v)
    E, _ = kernels_for(S).expm(S.reshape(-1, *S.shape[-2:]))
    return E.reshape(S.shape)


@lru_cache(maxsize=256)
def _surely(chart: LogEuclidean, d: int) -> float:
    """Squared length up to which every vector is representable."""
    return (0.5 * spread_of(chart.size(d))) ** 2


def spread_of(k: int) -> float:
    """Spread of log-eigenvalues that a k×k matrix of float64 numbers resolves."""
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
