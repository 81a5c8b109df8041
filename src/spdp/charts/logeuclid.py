r"""The log-Euclidean metric: y = vecd Logm X, ρ(X, Y) = ‖Logm X − Logm Y‖_F."""

from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.charts.base import Chart, at_center, clip_to_ball
from spdp.geometry import expm, logm, vecd
from spdp.kernels import Kernels, Region, dimension, size_of
from spdp.kernels.base import Array, Codes, Ints, compose, invvecd
from spdp.kernels.base import vecd as vecd_exact

__all__ = ["LogEuclidean"]

LARGEST_LOG = 700.0  # log-eigenvalues beyond ±700 leave the range of float64
ALONE = 48  # size from which one matrix is faster by LAPACK than beside empty lanes
EPS = float(np.finfo(np.float64).eps)


class LogEuclidean(Chart):
    """SPD matrices with the log-Euclidean metric (Arsigny et al. 2007)."""

    name = "logeuclid"
    distance = "log-Euclidean"

    def dimension(self, k: int) -> int:
        return dimension(k)

    def size(self, d: int) -> int:
        return size_of(d)

    def vectors(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Array, Codes]:
        Y, status = kernels.log_vectors(X, region.log_low, region.log_high)
        at_center(Y, status, region)
        if not np.isfinite(region.log_low):  # an interval's ball holds all of it
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
        spread = -log(8.0 * size_of(v.shape[-1]) * EPS)
        if np.vdot(v, v) <= (0.5 * spread) ** 2:  # no eigenvalue exceeds the norm
            return v
        w, V = np.linalg.eigh(invvecd(v))
        top = np.clip(w[..., -1:], -LARGEST_LOG + spread, LARGEST_LOG)
        clamped = np.clip(w, top - spread, top)
        return v if (clamped == w).all() else vecd_exact(compose(V, clamped))

    def matrices(self, v: Array) -> Array:
        """Expm(invvecd v), positive definite in float64 whatever v is."""
        S = invvecd(self.representable(v))
        if S.ndim == 2 and len(S) >= ALONE:
            w, V = np.linalg.eigh(S)
            return compose(V, np.exp(w))
        return expm(S)

    def ball(self, center: Array | None, radius: float, k: int) -> Region:
        at = np.zeros(dimension(k)) if center is None else center
        return Region(-np.inf, np.inf, at, radius)

    def bounded(self, low: float, high: float, k: int) -> Region:
        """The ball around √(low·high)·I of radius (√k/2)·ln(high/low)."""
        log_low, log_high = float(np.log(low)), float(np.log(high))
        center = np.zeros(dimension(k))
        center[:k] = 0.5 * (log_low + log_high)
        radius = 0.5 * float(np.sqrt(k)) * (log_high - log_low)
        return Region(log_low, log_high, center, radius)

    def project(self, v: Array, region: Region) -> Array:
        """Eigenvalues clipped to the interval, then the vector to the ball.

        Each is the projection onto a convex set; a region has only one of them that
        binds, since its ball holds all of its interval.
        """
        if np.isfinite(region.log_low):
            away = v - region.center  # no eigenvalue is further from the middle than its norm
            if np.vdot(away, away) <= (0.5 * (region.log_high - region.log_low)) ** 2:
                return v
            w, V = np.linalg.eigh(invvecd(v))
            return vecd_exact(compose(V, np.clip(w, region.log_low, region.log_high)))
        return clip_to_ball(v, region.center, region.radius)
