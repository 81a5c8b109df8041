r"""Sums that a linear trend of vectors in covariates is solved from.

A record (y, x), x in [−1, 1]^p, becomes (f ⊗ u, α·x, β·S(xxᵀ)) for f = (1, x) and its
vector u in the unit ball; S takes a symmetric matrix to its diagonal and √2 times its
upper triangle. The sums give the cross moments Σ f uᵀ and the Gram matrix Σ f fᵀ.

*Lemma.* Two such vectors are at most 2√(1 + p) apart, as f ⊗ u alone may be, if
α² = β² = 1 (p = 1), or α² ≤ 1/p and α² + 2pβ² ≤ 1: the Gram matrix adds no sensitivity.
With a = |x|², b = |x'|² ≤ p, t = x·x', the squared distance is convex in u and in u',
so both have norm 1, and u·u' = −1 if 1 + t ≥ 0, else +1.

- t ≥ −1: it is g = 4 + (1 + α²)(a + b) + 2(1 − α²)t + β²(a² + b² − 2t²). For p = 1,
  t² = ab and α = β = 1: 4 + 2a + 2b + (a − b)², convex, 8 at a = b = 1 and 7 at (1, 0).
  Else it grows with t, as 2(1 − α²) − 4β²t ≥ 0 for t ≤ p; at t = √(ab) ≤ (a + b)/2 it
  is at most 4 + 2(a + b) + β²(a − b)², convex: 4 + 4p at (p, p), less at (p, 0).
- t < −1 (p ≥ 2): it is (1 + α²)(a + b − 2t) + β²(a² + b² − 2t²), which falls with t;
  at t = −√(ab) it is at most 2(1 + α²)(a + b) + β²(a − b)², convex: 4p(1 + α²) ≤ 4 + 4p
  at (p, p), less at (p, 0).

*On the lattice.* u is q/2³⁰, a lattice point; x is ξ/2¹⁵ for integers |ξ| ≤ 2¹⁵. All
products are exact, then rounded toward zero, which moves two records' D numbers apart
by less than 1 each; so a record replaced moves the total by at most
2√(1 + p)·2³⁰ + √D, one added or removed by at most √(1 + p + pα² + p²β²)·2³⁰. A person
is one row: the means of their vectors and of their covariates lie in the same sets.
"""

from dataclasses import dataclass
from math import isqrt
from typing import NamedTuple

import numpy as np

from spdp.kernels.arrays import Array, Ints
from spdp.kernels.base import RECORD_NORM, Kernels
from spdp.options import Adjacency
from spdp.queries import REPLACE, Estimate, Query, Rows, root_upward, toward_zero
from spdp.queries.sums import Distances, in_units

UNIT = 1 << 15  # of a covariate: products with 2³⁰ and two of them fit int64
ROWS = 1 << 14  # at a time, so that temporary arrays stay small


@dataclass(frozen=True, eq=False)
class CovariateSum(Query[Estimate]):
    """Another query, asked of the covariates (m, p) in place of the vectors."""

    asked: Query[Estimate]

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        return self.asked.total(Rows(np.ascontiguousarray(rows.x)), kernels)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return self.asked.sensitivity(adjacency)

    def estimate(self, answer: Array, sd: float, n: float) -> Estimate:
        """The estimate of the query asked."""
        return self.asked.estimate(answer, sd, n)


@dataclass(frozen=True, eq=False)
class Trend:
    """Released coefficients, and the released ranges that scale covariates.

    A covariate x counts as z = (x − middle)/half, clipped to [−1, 1]; the trend there
    is (1, z)·coefficients.
    """

    middle: Array  # (p,)
    half: Array  # (p,)
    coefficients: Array  # (1 + p, d)

    def seen(self, x: Array) -> Array:
        """Covariates z (m, p), scaled by the trend's ranges and clipped."""
        z = np.nan_to_num((x - self.middle) / self.half, nan=0.0)
        return np.asarray(np.clip(z, -1.0, 1.0))

    def residuals(self, Y: Array, z: Array) -> Array:
        """y less the trend at z, each row computed on its own."""
        R = Y - self.coefficients[0]
        for j in range(z.shape[1]):
            R = R - z[:, j : j + 1] * self.coefficients[1 + j]
        return np.ascontiguousarray(R)


@dataclass(frozen=True, eq=False)
class ResidualDistance(Distances):
    """Σ of min(‖y less the trend‖, cap): one number."""

    trend: Trend
    cap: float

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        R = self.trend.residuals(rows.Y, self.trend.seen(rows.x))
        d = R.shape[1]
        distance = kernels.vector_norms(R, np.zeros(d), np.ones(d))
        return np.array([in_units(distance / self.cap).sum()], np.int64)


@dataclass(frozen=True, eq=False)
class CrossSum(Query["CrossMoments"]):
    """Σ of (f ⊗ u, α·z, β·S(zzᵀ)), u the residual within ``radius`` of the trend.

    The total holds u, then z_j·u for each covariate, then α·z and β·S(zzᵀ), the
    diagonal and the upper triangle row by row. The module's docstring says why it moves
    by no more than :meth:`sensitivity`.
    """

    trend: Trend
    radius: float

    @property
    def p(self) -> int:
        return len(self.trend.middle)

    @property
    def weights(self) -> tuple[int, int, int]:
        """α, β and √2·β, in units of 1/2³⁰, rounded down."""
        p, N = self.p, RECORD_NORM
        if p == 1:
            return N, N, 0
        square = N * N * (p - 1)
        return isqrt(N * N // p), isqrt(square // (2 * p * p)), isqrt(square // (p * p))

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        starts = range(0, len(rows.Y), ROWS)
        parts = (self._part(rows.Y[s : s + ROWS], rows.x[s : s + ROWS], kernels) for s in starts)
        return np.asarray(sum(parts, start=np.zeros(self.size, np.int64)))

    @property
    def size(self) -> int:
        """Numbers in the total."""
        d = int(self.trend.coefficients.shape[1])
        return (1 + self.p) * d + self.p + self.p * (self.p + 1) // 2

    def _part(self, Y: Array, x: Array, kernels: Kernels) -> Ints:
        xi = np.rint(self.trend.seen(x) * UNIT).astype(np.int64)
        R = self.trend.residuals(Y, xi / UNIT)
        q = kernels.encode_vectors(R, np.zeros(R.shape[1]), self.radius)
        first, square, mixed = self.weights
        i, j = np.triu_indices(self.p, 1)
        pieces = [q, *(toward_zero(q * xi[:, c : c + 1], UNIT) for c in range(self.p))]
        pieces += [toward_zero(first * xi, UNIT), square * xi * xi // UNIT**2]
        pieces += [toward_zero(mixed * xi[:, i] * xi[:, j], UNIT**2)]
        return np.concatenate([piece.sum(axis=0) for piece in pieces])

    def sensitivity(self, adjacency: Adjacency) -> int:
        first, square, mixed = self.weights
        norm, p = RECORD_NORM**2, self.p
        replaced = root_upward(4 * (1 + p) * norm) + root_upward(self.size)
        alone = (1 + p) * norm + p * (first**2 + square**2) + p * (p - 1) // 2 * mixed**2
        return replaced if adjacency is REPLACE else root_upward(alone)

    def estimate(self, answer: Array, sd: float, n: float) -> "CrossMoments":
        """Means of f fᵀ and of f uᵀ, the latter in the metric's distance."""
        p, d = self.p, self.trend.coefficients.shape[1]
        first, square, mixed = self.weights
        unit, last = self.radius / RECORD_NORM / n, answer[(1 + p) * d :] / n
        G = np.eye(1 + p)
        G[0, 1:] = G[1:, 0] = last[:p] / first
        G[np.arange(1, 1 + p), np.arange(1, 1 + p)] = last[p : 2 * p] / square
        if p > 1:
            i, j = np.triu_indices(p, 1)
            G[1 + i, 1 + j] = G[1 + j, 1 + i] = last[2 * p :] / mixed
        cross = answer[: (1 + p) * d].reshape(1 + p, d) * unit
        return CrossMoments(G, cross, sd / (square * n), sd * unit)


class CrossMoments(NamedTuple):
    """Means of f fᵀ (1 + p, 1 + p) and of f uᵀ (1 + p, d), and sds of their noise.

    ``gram_sd`` is the sd of a mean of squares.
    """

    gram: Array
    cross: Array
    gram_sd: float
    cross_sd: float
