"""Queries of the search: second moments along the axes, and what clipping takes off."""

from dataclasses import dataclass

import numpy as np

from spdp.choices import Adjacency
from spdp.frame import Frame
from spdp.kernels import PRODUCT_NORM, RECORD_NORM, Kernels
from spdp.kernels.base import fused
from spdp.queries.base import Array, Ints, Query, either, root_upward
from spdp.queries.triangle import ON_DIAGONAL, packed, unpacked

__all__ = ["CorrelationSum", "ExcessSum"]

# Norm of a record's vector before it is multiplied with itself, and rows multiplied at
# once: QᵀQ is then exact even in floating point (2¹²·2²⁸ < 2⁵³), in whatever order.
FACTOR_NORM = PRODUCT_NORM
DIVISOR = RECORD_NORM // FACTOR_NORM
EXACT_ROWS = 1 << 12
DEVICE_ROWS = 1 << 20  # a device's cache is of no use to it, and 2²⁰·2²⁸ < 2⁵³ as well


@dataclass(frozen=True, eq=False)
class CorrelationSum(Query):
    """Σ of the products q_i·q_j of z clipped to ``radius``, on a lattice of norm 2¹⁴.

    The total holds 5·Σ q_i² for every i, then 7·Σ q_i·q_j for i < j, row by row. A
    lattice point p of norm ≤ 2³⁰, divided by 2¹⁶ toward zero, has norm ≤ 2¹⁴.
    Sensitivity √2·5·2²⁸ (5·2²⁸ for one record alone): with M = qqᵀ − ppᵀ the total
    moves by v, ‖v‖² = 25·Σ M_ii² + 49·Σ_{i<j} M_ij² ≤ 25·‖M‖_F², and
    ‖M‖_F² = ‖q‖⁴ + ‖p‖⁴ − 2(q·p)² ≤ 2·(2¹⁴)⁴. No entry exceeds 5·2²⁸, so 2³² records
    fit into 64 bits.
    """

    frame: Frame
    radius: float

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        d = len(self.frame.center)
        products = np.zeros((d, d), np.int64)
        whole = fused(kernels, "products")
        rows = EXACT_ROWS if whole is None else DEVICE_ROWS
        for start in range(0, len(Y), rows):
            Z, origin = self.frame.turned(Y[start : start + rows], kernels)
            if whole is not None:
                part = whole(Z, origin, self.frame.width, self.radius, DIVISOR)
            else:
                z = (Z - origin) / self.frame.width
                q = np.trunc(kernels.encode_vectors(z, np.zeros(d), self.radius) / DIVISOR)
                part = q.T @ q
            products += part.astype(np.int64)
        return packed(products)

    def sensitivity(self, adjacency: Adjacency) -> int:
        one = ON_DIAGONAL * FACTOR_NORM**2
        return either(adjacency, root_upward(2 * one**2), one)

    def matrix(self, values: Array, m: int) -> Array:
        """The mean of zzᵀ/radius² that (noisy) totals over m records stand for."""
        return unpacked(values, len(self.frame.center)) / FACTOR_NORM**2 / m

    def noise(self, scale: float, m: int) -> float:
        """Standard deviation of a diagonal entry of :meth:`matrix`."""
        return scale / ON_DIAGONAL / FACTOR_NORM**2 / m


@dataclass(frozen=True, eq=False)
class ExcessSum(Query):
    """How much clipping to the frame's ball of ``radius`` takes off, at some reaches.

    With ρ = ‖y − c‖ and f = min(1, radius/‖z‖), clipping in the frame moves y by
    (1 − f)ρ toward c. For each reach x the sum of min(ρ, x) − fρ is taken, which is how
    far the clip moves records that were first pulled to within x of c (x is at least
    the longest half axis, so the difference is never negative). With a power of 2 it is
    the sum of min(ρ, x)² − (fρ)², what clipping takes off their squares. Steps are
    x/weight, or x²/weight, rounded up. Coordinate j of a record's integers lies in
    [0, weight_j], so two records differ by at most √Σ weight_j² ≤ 2³⁰.
    """

    frame: Frame
    radius: float
    reaches: tuple[float, ...]
    weights: tuple[int, ...]
    powers: tuple[int, ...] | None = None  # 1 each, unless given

    def __post_init__(self) -> None:
        if sum(w * w for w in self.weights) > RECORD_NORM**2:
            raise ValueError("the weights of an excess query exceed a record's norm")

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        powers = self.powers or (1,) * len(self.reaches)
        steps = list(zip(self.reaches, self.weights, powers, strict=True))
        if whole := fused(kernels, "excess_sum"):
            Z, origin = self.frame.turned(Y, kernels)
            return np.asarray(whole(Z, origin, self.frame.width, self.radius, steps))
        norms = self.frame.norms(Y, kernels)
        clipped = np.flatnonzero(norms > self.radius)  # all others add nothing
        rho = Frame.plain(self.frame.center).norms(Y[clipped], kernels)
        inside = rho * (self.radius / norms[clipped])
        sums = []
        for reach, weight, power in steps:
            before, after = np.minimum(rho, reach) / reach, inside / reach
            share = np.clip(before**power - after**power, 0.0, 1.0)
            units = np.ceil(share * weight).astype(np.int64)
            sums.append(int(np.clip(units, 0, weight).sum()))
        return np.array(sums, np.int64)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return RECORD_NORM
