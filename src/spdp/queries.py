r"""Queries: sums of one integer vector of bounded norm per record.

A query turns vectors (m, d) of records, each in the public domain, into the sum of one
integer vector per record. *Enforced* in every ``total``: the norm of each record's
integer vector is bounded in integer arithmetic, whatever the vector, and depends on
that record alone. *Therefore* the sum moves by at most ``sensitivity(adjacency)`` in ℓ2
norm between adjacent datasets; each class says why. Parameters (frames, radii, edges)
are public or released. Queries are values: they travel to where the records are.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, is_dataclass
from math import ceil, isqrt, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.choices import Adjacency
from spdp.frame import Frame
from spdp.kernels import RECORD_NORM, Kernels, Region
from spdp.kernels.place import beside, home, on_device

__all__ = [
    "RECORD_NORM",
    "AbsoluteSum",
    "CorrelationSum",
    "DistanceSum",
    "ExcessSum",
    "Histogram",
    "Query",
    "Stated",
    "VectorSum",
    "count_weight",
    "whole_domain_sum",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

# Norm of a record's vector before it is multiplied with itself, and rows multiplied at
# once: QᵀQ is then exact even in floating point (2¹²·2²⁸ < 2⁵³), in whatever order.
FACTOR_NORM = 1 << 14
EXACT_ROWS = 1 << 12
DEVICE_ROWS = 1 << 20  # a device's cache is of no use to it, and 2²⁰·2²⁸ < 2⁵³ as well
# Weights of diagonal and off-diagonal products; 7² ≤ 2·5² is what the proof needs.
ON_DIAGONAL, OFF_DIAGONAL = 5, 7


def root_upward(square: int) -> int:
    """⌈√square⌉."""
    root = isqrt(square)
    return root + (root * root < square)


def either(adjacency: Adjacency, replaced: int, added: int) -> int:
    """The bound for a record replaced, or for one added or removed."""
    return replaced if adjacency is Adjacency.REPLACE_ONE else added


@dataclass(frozen=True, eq=False)
class Query(ABC):
    """A sum over records. ``name`` is what the certificate's list of steps calls it."""

    name: str

    @abstractmethod
    def total(self, Y: Array, kernels: Kernels) -> Ints:
        """Sum over the rows of ``Y`` (m, d), exact in int64."""

    @abstractmethod
    def sensitivity(self, adjacency: Adjacency) -> int:
        """Bound on the ℓ2 change of the total between adjacent datasets."""


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
        return (
            self.radius == region.radius
            and self.frame.axes is None
            and np.array_equal(self.frame.center, region.center)
            and bool((self.frame.width == 1.0).all())
        )


def count_weight(d: int) -> int:
    """Weight of the count with the least worst error of noisy sum over noisy count."""
    return ceil(RECORD_NORM / sqrt(sqrt(d)))


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
        share = np.minimum(self.frame.norms(Y, kernels) / self.cap, 1.0)
        units = (share * RECORD_NORM).astype(np.int64)
        return np.array([int(np.clip(units, 0, RECORD_NORM).sum())], np.int64)

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

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        norms = self.frame.norms(Y, kernels)
        place = np.searchsorted(beside(self.edges, norms), norms, side="right")
        counts: Ints = home(np.bincount(place, minlength=len(self.edges) + 1))
        return self.unit * counts.astype(np.int64)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return either(adjacency, root_upward(2 * self.unit**2), self.unit)


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
        rows = DEVICE_ROWS if on_device(Y) else EXACT_ROWS
        for start in range(0, len(Y), rows):
            Z, origin = self.frame.turned(Y[start : start + rows], kernels)
            z = (Z - beside(origin, Z)) / beside(self.frame.width, Z)
            p = kernels.encode_vectors(z, np.zeros(d), self.radius)
            q = np.trunc(p / (RECORD_NORM // FACTOR_NORM))
            products += home(q.T @ q).astype(np.int64)
        upper = products[np.triu_indices(d, 1)]
        return np.concatenate([ON_DIAGONAL * np.diagonal(products), OFF_DIAGONAL * upper])

    def sensitivity(self, adjacency: Adjacency) -> int:
        one = ON_DIAGONAL * FACTOR_NORM**2
        return either(adjacency, root_upward(2 * one**2), one)

    def matrix(self, values: Array, m: int) -> Array:
        """The mean of zzᵀ/radius² that (noisy) totals over m records stand for."""
        d = len(self.frame.center)
        C = np.zeros((d, d))
        i, j = np.triu_indices(d, 1)
        C[i, j] = C[j, i] = values[d:] / OFF_DIAGONAL
        C[np.arange(d), np.arange(d)] = values[:d] / ON_DIAGONAL
        return C / FACTOR_NORM**2 / m

    def noise(self, scale: float, m: int) -> float:
        """Standard deviation of a diagonal entry of :meth:`matrix`."""
        return scale / ON_DIAGONAL / FACTOR_NORM**2 / m


@dataclass(frozen=True, eq=False)
class ExcessSum(Query):
    """How much clipping to the frame's ball of ``radius`` takes off, at some reaches.

    With ρ = ‖y − c‖ and f = min(1, radius/‖z‖), clipping in the frame moves y by
    (1 − f)ρ toward c. For each reach x the sum of min(ρ, x) − fρ is taken, which is how
    far the clip moves records that were first pulled to within x of c (x is at least
    the longest half axis, so the difference is never negative). Steps are x/weight,
    rounded up. Coordinate j of a record's integers lies in [0, weight_j], so two
    records differ by at most √Σ weight_j² ≤ 2³⁰.
    """

    frame: Frame
    radius: float
    reaches: tuple[float, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if sum(w * w for w in self.weights) > RECORD_NORM**2:
            raise ValueError("the weights of an excess query exceed a record's norm")

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        rho = Frame.plain(self.frame.center).norms(Y, kernels)
        norms = np.maximum(self.frame.norms(Y, kernels), self.radius)
        inside = rho * (self.radius / norms)
        sums = []
        for reach, weight in zip(self.reaches, self.weights, strict=True):
            share = np.clip((np.minimum(rho, reach) - inside) / reach, 0.0, 1.0)
            units = np.ceil(share * weight).astype(np.int64)
            sums.append(int(np.clip(units, 0, weight).sum()))
        return np.array(sums, np.int64)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return RECORD_NORM


@dataclass(frozen=True, eq=False)
class Stated(Query):
    """A summary computed elsewhere: its sensitivity is stated, not enforced."""

    bound: int

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        raise TypeError("a stated summary is not computed from records")

    def sensitivity(self, adjacency: Adjacency) -> int:
        return self.bound


def describe(query: Any) -> dict[str, Any]:
    """What was asked, in plain numbers: for audits that compare two runs."""
    facts: dict[str, Any] = {"kind": type(query).__name__}
    for field in fields(query):
        value = getattr(query, field.name)
        if is_dataclass(value):
            value = describe(value)
        facts[field.name] = value.tolist() if isinstance(value, np.ndarray) else value
    return facts
