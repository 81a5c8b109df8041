"""Sums of clipped vectors, of distances and directions, counts, and clipping bias.

All are taken in the coordinates of a :class:`Frame`.
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil, isqrt, sqrt
from typing import Any

import numpy as np

from spdp.charts import Chart
from spdp.error.bound import Count
from spdp.kernels.arrays import Array, Ints
from spdp.kernels.base import RECORD_NORM, Kernels, Region
from spdp.options import Adjacency
from spdp.queries import REPLACE, WHOLE, Estimate, Query, Rows, root_upward, toward_zero

COUNT_UNIT = 1 << 20  # what one record adds to a count
POINT = 2.0**-30  # of ``near``: closer to the centre, a direction is shorter than 1
NEARNESS = 2 * RECORD_NORM // 5  # weight of how near a record is
SMALLEST_BIAS = 1e-9  # of a reach: nothing is clipped where the reach is the half axis


@lru_cache(maxsize=64)
def _ones(d: int) -> Array:
    units = np.ones(d)
    units.flags.writeable = False
    return units


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates z = Vᵀ(y − c)/w of a vector y; without axes, V is the identity.

    A frame is public or released, so what a record looks like in it depends on that
    record and on released numbers only.
    """

    center: Array
    width: Array
    axes: Array | None = field(default=None, repr=False)

    @staticmethod
    def plain(center: Array) -> "Frame":
        """Vectors less ``center``, as they are."""
        return Frame(center, _ones(len(center)))

    @property
    def is_plain(self) -> bool:
        """Whether lengths in it are those of vectors."""
        return self.axes is None and bool((self.width == 1.0).all())

    def moved(self, center: Array) -> "Frame":
        """The same axes and units around another centre."""
        return Frame(center, self.width, self.axes)

    def back(self, z: Array) -> Array:
        """The vector y of coordinates z."""
        step = self.width * z
        return np.asarray(self.center + (step if self.axes is None else self.axes @ step))

    def turned(self, Y: Array, kernels: Kernels) -> tuple[Array, Array]:
        """Rows Vᵀ(y − c), or y itself where there are no axes; and what to subtract."""
        if self.axes is None:
            return Y, self.center
        return kernels.rotate(Y, self.center, self.axes), np.zeros(len(self.center))

    def norms(self, Y: Array, kernels: Kernels) -> Array:
        """‖z‖ of each row."""
        Z, origin = self.turned(Y, kernels)
        return kernels.vector_norms(Z, origin, self.width)


@dataclass(frozen=True, eq=False)
class VectorSum(Query[Estimate]):
    """Σ of z in the ball ‖z‖ ≤ radius of a frame, in units of radius/2³⁰.

    With ``weight`` w > 0 one more coordinate counts the records, w for each: the number
    of records is then released like the rest. A record's integer vector has norm at
    most 2³⁰, √(2⁶⁰ + w²) with its count. Replacing one moves the sum by at most 2·2³⁰
    (the count does not change), adding or removing one by its norm.
    """

    works_on_device = True

    frame: Frame
    radius: float
    weight: int = 0

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        Z, origin = self.frame.turned(rows.Y, kernels)
        total = kernels.vector_sum(Z, origin, self.frame.width, self.radius)
        return self.counted(total, len(rows.Y)) if self.weight else total

    def counted(self, total: Ints, m: int) -> Ints:
        """A sum over m records with its count, where there is one."""
        return np.append(total, m * self.weight) if self.weight else total

    def sensitivity(self, adjacency: Adjacency) -> int:
        if adjacency is REPLACE:
            return 2 * RECORD_NORM
        return root_upward(RECORD_NORM**2 + self.weight**2)

    def estimate(self, answer: Array, sd: float, n: float) -> Estimate:
        """The mean of z, over n or over the noisy count."""
        count = Count(n)
        if self.weight:
            answer, number = answer[:-1], float(answer[-1])
            count = Count.noisy(number / self.weight, sd / self.weight)
        unit = self.radius / RECORD_NORM / count.value
        return Estimate(answer * unit, sd * unit, count)

    @property
    def step(self) -> float:
        """What one lattice unit is in units of the frame."""
        return self.radius / RECORD_NORM

    @property
    def stretch(self) -> float:
        """(2³⁰/weight)², by which a noisy count stretches the error; 0 without."""
        return (RECORD_NORM / self.weight) ** 2 if self.weight else 0.0


@dataclass(frozen=True, eq=False)
class WholeSum(VectorSum):
    """The sum of the records in their whole public domain: charts have kernels for it.

    Made by :func:`whole_domain_sum`, which takes frame and radius from the region.
    """


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

    works_on_device = False

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        Z, origin = self.frame.turned(rows.Y, kernels)
        d = len(self.frame.center)
        q = kernels.encode_vectors((Z - origin) / self.frame.width, np.zeros(d), self.radius)
        share = np.full(len(q), WHOLE) if rows.share is None else rows.share
        vectors = toward_zero(q * share[:, None], WHOLE)
        return np.append(vectors.sum(axis=0), (self.weight * share // WHOLE).sum())

    def sensitivity(self, adjacency: Adjacency) -> int:
        alone = RECORD_NORM**2 + self.weight**2
        replaced = max(4 * RECORD_NORM**2, alone) + 2 * self.weight + 1
        return root_upward(replaced) if adjacency is REPLACE else root_upward(alone)


def in_units(share: Array, whole: int = RECORD_NORM) -> Ints:
    """⌊share·whole⌋, in integers between 0 and ``whole`` whatever the share; 0 for NaN.

    *Enforced* in integer arithmetic: floating point only says where in between.
    """
    kept = np.fmin(np.fmax(share, 0.0), 1.0)  # of NaN and a number: the number
    units: Ints = (kept * whole).astype(np.int64)
    return np.minimum(np.maximum(units, 0), whole)


def count_weight(d: int) -> int:
    """Weight of the count with the least worst-case error of noisy sum/noisy count."""
    return ceil(RECORD_NORM / sqrt(sqrt(d)))


def share_sum(region: Region, adjacency: Adjacency) -> ShareSum:
    """The sum over rows that count in part, with the best weight of its count.

    Under replace-one a weight of √3·2³⁰ adds no sensitivity; under add-remove it does.
    """
    free = isqrt(3 * RECORD_NORM**2)
    weight = free if adjacency is REPLACE else count_weight(len(region.center))
    return ShareSum("mean", Frame.plain(region.center), region.radius, weight)


def whole_domain_sum(region: Region, weight: int = 0, name: str = "mean") -> WholeSum:
    """The sum of the records in their public domain."""
    return WholeSum(name, Frame.plain(region.center), region.radius, weight)


@dataclass(frozen=True, eq=False)
class Scaled(Query[Estimate]):
    """A query whose estimate is its answer in other units."""

    @abstractmethod
    def unit(self, n: float) -> Any:
        """The estimate's change per unit of the total, over n records."""

    def estimate(self, answer: Array, sd: float, n: float) -> Estimate:
        """The answer in its units."""
        unit = self.unit(n)
        return Estimate(answer * unit, sd * unit, Count(n))


@dataclass(frozen=True, eq=False)
class AbsoluteSum(Scaled):
    """Σ of |z|, coordinate by coordinate, for z as in :class:`VectorSum`.

    Coordinates are non-negative, so ‖a − b‖² ≤ ‖a‖² + ‖b‖²: replacing a record moves
    the sum by at most √2·2³⁰.
    """

    works_on_device = True

    frame: Frame
    radius: float

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        Z, origin = self.frame.turned(rows.Y, kernels)
        return kernels.vector_sum(Z, origin, self.frame.width, self.radius, absolute=True)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return root_upward(2 * RECORD_NORM**2) if adjacency is REPLACE else RECORD_NORM

    def unit(self, n: float) -> float:
        return self.radius / RECORD_NORM / n


class Distances(Query[Estimate]):
    """Σ of distances up to ``cap``, in units of cap/2³⁰: one number.

    Each record adds an integer between 0 and 2³⁰, so replacing, adding or removing one
    moves the sum by at most 2³⁰.
    """

    cap: float

    def sensitivity(self, adjacency: Adjacency) -> int:
        return RECORD_NORM

    def estimate(self, answer: Array, sd: float, n: float) -> Estimate:
        """The mean distance, at least the sd of its noise and at most the cap."""
        unit = self.cap / RECORD_NORM / n
        least = max(sd * unit, 1e-9 * self.cap)
        distance = min(max(float(answer[0]) * unit, least), self.cap)
        return Estimate(np.array([distance]), sd * unit, Count(n))


@dataclass(frozen=True, eq=False)
class DistanceSum(Distances):
    """Σ of min(‖z‖, cap)."""

    works_on_device = True

    frame: Frame
    cap: float

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        if whole := kernels.FUSED.get("distance_sum"):
            Z, origin = self.frame.turned(rows.Y, kernels)
            return np.asarray(whole(Z, origin, self.frame.width, self.cap))
        units = in_units(self.frame.norms(rows.Y, kernels) / self.cap)
        return np.array([int(units.sum())], np.int64)


@dataclass(frozen=True, eq=False)
class Histogram(Scaled):
    """The number of records by ‖z‖, between ascending edges and beyond.

    A record adds a unit of 2²⁰ to exactly one of the counts, so replacing it moves two
    of them: √2·2²⁰.
    """

    works_on_device = True

    frame: Frame
    edges: Array

    def __post_init__(self) -> None:
        rising = (self.edges[1:] >= self.edges[:-1]).all()
        if not (rising and np.isfinite(self.edges).all()):  # else a record might add to several
            raise ValueError("the edges of a histogram ascend")

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        if whole := kernels.FUSED.get("histogram"):
            Z, origin = self.frame.turned(rows.Y, kernels)
            return np.asarray(COUNT_UNIT * whole(Z, origin, self.frame.width, self.edges))
        place = np.searchsorted(self.edges, self.frame.norms(rows.Y, kernels), side="right")
        counts = np.bincount(place, minlength=len(self.edges) + 1)
        return COUNT_UNIT * counts.astype(np.int64)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return root_upward(2 * COUNT_UNIT**2) if adjacency is REPLACE else COUNT_UNIT

    def unit(self, n: float) -> float:
        return 1.0 / COUNT_UNIT


@dataclass(frozen=True, eq=False)
class RecordCount(Scaled):
    """The number of records, or of persons, where it is private.

    A row adds its share of a unit of 2²⁰, and a person's shares add up to at most one:
    adding or removing a person moves the count by at most a unit, and so does replacing
    one, whose shares may be rounded down differently.
    """

    works_on_device = True

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        if rows.share is None:
            return np.array([COUNT_UNIT * len(rows.Y)], np.int64)
        return np.array([(rows.share * (COUNT_UNIT // WHOLE)).sum()], np.int64)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return COUNT_UNIT

    def unit(self, n: float) -> float:
        return 1.0 / COUNT_UNIT


@dataclass(frozen=True, eq=False)
class EdgeCount(Query[Estimate]):
    """The number of records at the edge of the domain, where clipping puts them.

    A record is at the edge or not: replacing, adding or removing one moves the count by
    at most one, a unit of 2²⁰.
    """

    works_on_device = True

    chart: Chart
    region: Region

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        found = self.chart.edge_count(rows.Y, self.region, kernels)
        return np.array([COUNT_UNIT * found], np.int64)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return COUNT_UNIT

    def estimate(self, answer: Array, sd: float, n: float) -> Estimate:
        """Their share of n records."""
        share = np.clip(answer / (COUNT_UNIT * n), 0.0, 1.0)
        return Estimate(share, sd / COUNT_UNIT / n, Count(n))


@dataclass(frozen=True, eq=False)
class DirectionSum(Scaled):
    r"""Σ of (u, w·min(1, near/‖y − c‖)), u the unit vector from the centre c to y.

    Directions are in units of 1/2³⁰, w = ``NEARNESS``. A direction needs no radius: it
    is shorter than 1 only for records nearer to c than near/2³⁰, whose u is
    (y − c)·2³⁰/near.

    *Enforced.* u has integer norm at most N = 2³⁰ (the kernel checks it), the nearness
    is an integer between 0 and w. *Therefore* replacing a record moves the sum by at
    most √(4N² + w²), adding or removing one by √(N² + w²). A person is one row.
    """

    works_on_device = True

    center: Array
    near: float

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        width = np.ones(len(self.center))
        directions = kernels.vector_sum(rows.Y, self.center, width, POINT * self.near)
        distance = kernels.vector_norms(rows.Y, self.center, width)
        with np.errstate(divide="ignore", invalid="ignore"):
            nearness = in_units(self.near / distance, NEARNESS)
        return np.append(directions, int(nearness.sum()))

    def sensitivity(self, adjacency: Adjacency) -> int:
        replaced = root_upward(4 * RECORD_NORM**2 + NEARNESS**2)
        return replaced if adjacency is REPLACE else root_upward(RECORD_NORM**2 + NEARNESS**2)

    def unit(self, n: float) -> Array:
        return np.append(np.full(len(self.center), 1.0 / RECORD_NORM), 1.0 / NEARNESS) / n


# --- clipping bias


@dataclass(frozen=True, eq=False)
class ClippingBias(Scaled):
    """How far clipping to the frame's ball of ``radius`` moves records, by reach.

    With ρ = ‖y − c‖ and f = min(1, radius/‖z‖), clipping in the frame moves y by
    (1 − f)ρ toward c. For each reach x the sum of min(ρ, x) − fρ is taken, which is how
    far the clip moves records that were first clipped to within x of c (x is at least
    the longest half axis, so it is never negative). A clipped record ends on the
    ellipsoid, so fρ is at least its shortest half axis a, and the term at most x − a.
    With a power of 2 it is the sum of min(ρ, x)² − (fρ)², what clipping takes off their
    squares, at most x² − a². One lattice step is that maximum over the weight, rounded
    up.

    *Enforced.* Coordinate j of a record's integers lies in [0, weight_j], whatever the
    record. *Therefore* two records differ by at most √Σ weight_j² ≤ 2³⁰.
    """

    works_on_device = True

    frame: Frame
    radius: float
    reaches: tuple[float, ...]
    weights: tuple[int, ...]
    powers: tuple[int, ...] | None = None  # 1 each, unless given

    def __post_init__(self) -> None:
        if sum(w * w for w in self.weights) > RECORD_NORM**2:
            raise ValueError("the weights of a clipping bias exceed a record's norm")

    @property
    def shortest(self) -> float:
        """The ellipsoid's shortest half axis."""
        return self.radius * float(self.frame.width.min())

    def _steps(self) -> list[tuple[float, int, int, float]]:
        """Reach, weight, power, and the largest value over reach^power."""
        powers = self.powers or (1,) * len(self.reaches)
        return [
            (x, weight, power, largest_bias(x, self.shortest, power) / x**power)
            for x, weight, power in zip(self.reaches, self.weights, powers, strict=True)
        ]

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        if whole := kernels.FUSED.get("clipping_bias"):
            Z, origin = self.frame.turned(rows.Y, kernels)
            return np.asarray(whole(Z, origin, self.frame.width, self.radius, self._steps()))
        norms = self.frame.norms(rows.Y, kernels)
        clipped = np.flatnonzero(norms > self.radius)  # all others add nothing
        rho = norms[clipped]
        if not self.frame.is_plain:
            rho = Frame.plain(self.frame.center).norms(rows.Y[clipped], kernels)
        inside = rho * (self.radius / norms[clipped])
        sums = []
        for reach, weight, power, most in self._steps():
            before, after = np.minimum(rho, reach) / reach, inside / reach
            share = np.clip((before**power - after**power) / most, 0.0, 1.0)
            units = np.ceil(share * weight).astype(np.int64)
            sums.append(int(np.clip(units, 0, weight).sum()))
        return np.array(sums, np.int64)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return RECORD_NORM

    def unit(self, n: float) -> Array:
        return np.array([x**power * most / weight / n for x, weight, power, most in self._steps()])


def largest_bias(reach: float, shortest: float, power: int) -> float:
    """What clipping can take off one record (:class:`ClippingBias`); above 0."""
    return max(reach**power - min(shortest, reach) ** power, SMALLEST_BIAS * reach**power)


@dataclass(frozen=True, eq=False)
class ClassClippingBias(Scaled):
    """Σ over rows with a class of share·min(‖y − c‖ − r, cap)₊, in cap/2³⁰.

    r is the radius of the row's class. A row adds an integer between 0 and share·2³⁰,
    so a person, whose shares add up to at most 1, and a record add one between 0 and
    2³⁰: replacing, adding or removing one moves the sum by at most 2³⁰.
    """

    center: Array
    radii: Array  # (C,)
    cap: float

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        known = rows.take(rows.label >= 0)
        distance = kernels.vector_norms(known.Y, self.center, np.ones(len(self.center)))
        units = in_units((distance - self.radii[known.label]) / self.cap)
        if known.share is not None:
            units = units * known.share // WHOLE
        return np.array([units.sum()], np.int64)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return RECORD_NORM

    def unit(self, n: float) -> float:
        return self.cap / RECORD_NORM  # of a sum: it is divided by a class's count elsewhere
