"""Sums of clipped vectors, of distances, and counts by distance."""

from dataclasses import dataclass
from math import ceil, isqrt, sqrt

import numpy as np

from spdp.choices import Adjacency
from spdp.frame import Frame
from spdp.kernels import RECORD_NORM, Kernels, Region
from spdp.kernels.base import fused
from spdp.queries.base import WHOLE, Array, Ints, Query, Rows, either, in_units, root_upward

__all__ = [
    "AbsoluteSum",
    "DistanceSum",
    "Histogram",
    "ShareSum",
    "VectorSum",
    "count_weight",
    "share_sum",
    "whole_domain_sum",
]


@dataclass(frozen=True, eq=False)
class VectorSum(Query):
    """Σ of z in the ball ‖z‖ ≤ radius of a frame, in units of radius/2³⁰.

    With ``weight`` w > 0 one more coordinate counts the records, w for each: the number
    of records is then released like the rest. A record's integer vector has norm at
    most 2³⁰, √(2⁶⁰ + w²) with its count. Replacing one moves the sum by at most 2·2³⁰
    (the count does not change), adding or removing one by its norm.
    """

    frame: Frame
    radius: float
    weight: int = 0

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        Z, origin = self.frame.turned(Y, kernels)
        return self.counted(kernels.vector_sum(Z, origin, self.frame.width, self.radius), len(Y))

    def counted(self, total: Ints, m: int) -> Ints:
        """A sum over m records with its count, where there is one."""
        return np.append(total, m * self.weight) if self.weight else total

    def sensitivity(self, adjacency: Adjacency) -> int:
        alone = root_upward(RECORD_NORM**2 + self.weight**2)
        return either(adjacency, 2 * RECORD_NORM, alone)

    @property
    def step(self) -> float:
        """What one lattice unit is in units of the frame."""
        return self.radius / RECORD_NORM

    @property
    def stretch(self) -> float:
        """(2³⁰/weight)², by which a noisy count stretches the error; 0 without."""
        return (RECORD_NORM / self.weight) ** 2 if self.weight else 0.0

    def is_whole(self, region: Region) -> bool:
        """Whether this sums over the whole region: charts have kernels for it."""
        center = self.frame.center
        same = center is region.center or np.array_equal(center, region.center)
        return same and self.radius == region.radius and self.frame.is_plain


@dataclass(frozen=True, eq=False)
class ShareSum(VectorSum):
    """Σ of share·(weight, z): rows that count in part, and what they count in all.

    A row of share a = s/WHOLE adds the integers s·q/WHOLE and s·weight/WHOLE, rounded
    toward zero, for its lattice point q of norm ≤ N = 2³⁰ and 0 ≤ a ≤ 1. *Therefore*,
    for rows of shares a and b, vectors differ by at most (a + b)·N and counts by at
    most |a − b|·weight + 1. (a + b)²N² + (a − b)²·weight² is convex in (a, b), so it is
    largest at (1, 1) or (1, 0): Δ² ≤ max(4N², N² + weight²) + 2·weight + 1. Rows of one
    person, whose shares add up to at most 1, are a row in the same convex set.
    """

    def over(self, rows: Rows, kernels: Kernels) -> Ints:
        Z, origin = self.frame.turned(rows.Y, kernels)
        d = len(self.frame.center)
        q = kernels.encode_vectors((Z - origin) / self.frame.width, np.zeros(d), self.radius)
        share = np.full(len(q), WHOLE) if rows.share is None else rows.share
        vectors = np.sign(q) * (np.abs(q) * share[:, None] // WHOLE)
        return np.append(vectors.sum(axis=0), (self.weight * share // WHOLE).sum())

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        return self.over(Rows(Y), kernels)

    def sensitivity(self, adjacency: Adjacency) -> int:
        alone = RECORD_NORM**2 + self.weight**2
        replaced = max(4 * RECORD_NORM**2, alone) + 2 * self.weight + 1
        return either(adjacency, root_upward(replaced), root_upward(alone))

    def is_whole(self, region: Region) -> bool:
        return False


def count_weight(d: int) -> int:
    """Weight of the count with the least worst error of noisy sum over noisy count."""
    return ceil(RECORD_NORM / sqrt(sqrt(d)))


def share_sum(region: Region, adjacency: Adjacency) -> ShareSum:
    """The sum over rows that count in part, with the weight that costs least.

    A replaced row pays for a weight of √3·2³⁰ already; one added or removed does not.
    """
    free = isqrt(3 * RECORD_NORM**2)
    weight = either(adjacency, free, count_weight(len(region.center)))
    return ShareSum("mean", Frame.plain(region.center), region.radius, weight)


def whole_domain_sum(region: Region, weight: int = 0, name: str = "mean") -> VectorSum:
    """The sum of the records in their public domain."""
    return VectorSum(name, Frame.plain(region.center), region.radius, weight)


@dataclass(frozen=True, eq=False)
class AbsoluteSum(Query):
    """Σ of |z|, coordinate by coordinate, for z as in :class:`VectorSum`.

    Coordinates are non-negative, so ‖a − b‖² ≤ ‖a‖² + ‖b‖²: replacing a record moves
    the sum by at most √2·2³⁰.
    """

    frame: Frame
    radius: float

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        Z, origin = self.frame.turned(Y, kernels)
        return kernels.vector_sum(Z, origin, self.frame.width, self.radius, absolute=True)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return either(adjacency, root_upward(2 * RECORD_NORM**2), RECORD_NORM)


@dataclass(frozen=True, eq=False)
class DistanceSum(Query):
    """Σ of min(‖z‖, cap) in units of cap/2³⁰: one number.

    Each record adds an integer between 0 and 2³⁰, so replacing, adding or removing one
    moves the sum by at most 2³⁰.
    """

    frame: Frame
    cap: float

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        if whole := fused(kernels, "distance_sum"):
            Z, origin = self.frame.turned(Y, kernels)
            return np.asarray(whole(Z, origin, self.frame.width, self.cap))
        units = in_units(self.frame.norms(Y, kernels) / self.cap)
        return np.array([int(units.sum())], np.int64)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return RECORD_NORM


@dataclass(frozen=True, eq=False)
class Histogram(Query):
    """``unit`` times the number of records by ‖z‖, between ascending edges and beyond.

    A record adds ``unit`` to exactly one of the counts, so replacing it moves two of
    them: √2·unit.
    """

    frame: Frame
    edges: Array
    unit: int = 1 << 20

    def __post_init__(self) -> None:
        if not (np.diff(self.edges) >= 0).all():  # else a record might add to several
            raise ValueError("the edges of a histogram ascend")

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        if whole := fused(kernels, "histogram"):
            Z, origin = self.frame.turned(Y, kernels)
            return np.asarray(self.unit * whole(Z, origin, self.frame.width, self.edges))
        place = np.searchsorted(self.edges, self.frame.norms(Y, kernels), side="right")
        counts = np.bincount(place, minlength=len(self.edges) + 1)
        return self.unit * counts.astype(np.int64)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return either(adjacency, root_upward(2 * self.unit**2), self.unit)
