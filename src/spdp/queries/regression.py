r"""Sums that a regression of vectors on covariates is solved from.

A record (y, x), x in [−1, 1]^p, becomes (f ⊗ u, α·x, β·S(xxᵀ)) for f = (1, x) and its
vector u in the unit ball; S takes a symmetric matrix to its diagonal and √2 times its
upper triangle. The sums give the cross moments Σ f uᵀ and the Gram matrix Σ f fᵀ.

*Lemma.* Two such vectors are at most 2√(1 + p) apart, as f ⊗ u alone may be, if
α² = β² = 1 (p = 1), or α² ≤ 1/p and α² + 2pβ² ≤ 1. So the Gram matrix costs nothing.
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

import numpy as np

from spdp.choices import Adjacency
from spdp.kernels import RECORD_NORM, Kernels
from spdp.queries.base import Array, Ints, Query, Rows, either, in_units, root_upward

__all__ = ["CovariateSum", "CrossSum", "ResidualDistance", "Trend"]

UNIT = 1 << 15  # of a covariate: products with 2³⁰ and two of them fit int64
ROWS = 1 << 14  # at a time, so that temporary arrays stay small


@dataclass(frozen=True, eq=False)
class CovariateSum(Query):
    """Another query, asked of the covariates (m, p) in place of the vectors."""

    asked: Query

    def over(self, rows: Rows, kernels: Kernels) -> Ints:
        assert rows.x is not None
        return self.total(rows.x, kernels)

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        return self.asked.total(np.ascontiguousarray(Y), kernels)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return self.asked.sensitivity(adjacency)


@dataclass(frozen=True, eq=False)
class Trend:
    """Released coefficients, and the released ranges that covariates are seen in.

    A covariate x counts as z = (x − middle)/half, kept between −1 and 1; the trend at
    it is (1, z)·coefficients.
    """

    middle: Array  # (p,)
    half: Array  # (p,)
    coefficients: Array  # (1 + p, d)

    def seen(self, x: Array) -> Array:
        """Covariates in the trend's ranges, (m, p)."""
        z = np.nan_to_num((x - self.middle) / self.half, nan=0.0)
        return np.asarray(np.clip(z, -1.0, 1.0))

    def residuals(self, Y: Array, z: Array) -> Array:
        """y less the trend at z, each row computed on its own."""
        R = Y - self.coefficients[0]
        for j in range(z.shape[1]):
            R = R - z[:, j : j + 1] * self.coefficients[1 + j]
        return np.ascontiguousarray(R)


@dataclass(frozen=True, eq=False)
class ResidualDistance(Query):
    """Σ of min(‖y less the trend‖, cap) in units of cap/2³⁰: one number.

    Each record adds an integer between 0 and 2³⁰, so replacing, adding or removing one
    moves the sum by at most 2³⁰.
    """

    trend: Trend
    cap: float

    def over(self, rows: Rows, kernels: Kernels) -> Ints:
        assert rows.x is not None
        R = self.trend.residuals(rows.Y, self.trend.seen(rows.x))
        d = R.shape[1]
        distance = kernels.vector_norms(R, np.zeros(d), np.ones(d))
        return np.array([in_units(distance / self.cap).sum()], np.int64)

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        raise TypeError("residuals need covariates beside the vectors")

    def sensitivity(self, adjacency: Adjacency) -> int:
        return RECORD_NORM


@dataclass(frozen=True, eq=False)
class CrossSum(Query):
    """Σ of (f ⊗ u, α·z, β·S(zzᵀ)), u the residual within ``radius`` of the trend.

    The total holds u, then z_j·u for each covariate, then α·z and β·S(zzᵀ), the
    diagonal and the upper triangle row by row. This module's text says why it moves by
    no more than :meth:`sensitivity`.
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

    def over(self, rows: Rows, kernels: Kernels) -> Ints:
        assert rows.x is not None
        starts = range(0, len(rows.Y), ROWS)
        parts = (self._part(rows.Y[s : s + ROWS], rows.x[s : s + ROWS], kernels) for s in starts)
        return np.asarray(sum(parts, start=np.zeros(self.size, np.int64)))

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        raise TypeError("a regression needs covariates beside the vectors")

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
        pieces = [q, *(_toward_zero(q * xi[:, c : c + 1], UNIT) for c in range(self.p))]
        pieces += [_toward_zero(first * xi, UNIT), square * xi * xi // UNIT**2]
        pieces += [_toward_zero(mixed * xi[:, i] * xi[:, j], UNIT**2)]
        return np.concatenate([piece.sum(axis=0) for piece in pieces])

    def sensitivity(self, adjacency: Adjacency) -> int:
        first, square, mixed = self.weights
        norm, p = RECORD_NORM**2, self.p
        replaced = root_upward(4 * (1 + p) * norm) + root_upward(self.size)
        alone = (1 + p) * norm + p * (first**2 + square**2) + p * (p - 1) // 2 * mixed**2
        return either(adjacency, replaced, root_upward(alone))

    def gram(self, values: Array, n: float) -> Array:
        """Mean of f fᵀ that (noisy) totals of n records stand for, (1 + p, 1 + p)."""
        p, d = self.p, self.trend.coefficients.shape[1]
        first, square, mixed = self.weights
        last = values[(1 + p) * d :] / n
        G = np.eye(1 + p)
        G[0, 1:] = G[1:, 0] = last[:p] / first
        G[np.arange(1, 1 + p), np.arange(1, 1 + p)] = last[p : 2 * p] / square
        if p > 1:
            i, j = np.triu_indices(p, 1)
            G[1 + i, 1 + j] = G[1 + j, 1 + i] = last[2 * p :] / mixed
        return G

    def cross(self, values: Array, n: float) -> Array:
        """Mean of f uᵀ, in the metric's distance, (1 + p, d)."""
        p, d = self.p, self.trend.coefficients.shape[1]
        return values[: (1 + p) * d].reshape(1 + p, d) * (self.radius / RECORD_NORM / n)


def _toward_zero(a: Ints, b: int) -> Ints:
    """a/b, rounded toward zero."""
    return np.asarray(np.sign(a) * (np.abs(a) // b))
