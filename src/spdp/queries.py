r"""Queries.

Sums over records of integer vectors of bounded norm, each with its sensitivity.

A query turns vectors (m, d) of records, each in the public domain, into the sum of one
integer vector per record. *Enforced* in every ``total``: the norm of each record's
integer vector is bounded in integer arithmetic, whatever the vector, and depends on
that record alone. *Therefore* the sum moves by at most ``sensitivity(adjacency)`` in ℓ2
norm between adjacent datasets; each class says why. Parameters (centres, widths, radii,
edges) are public or released. Queries are values: they travel to where the records are.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.choices import Adjacency
from spdp.kernels import RECORD_NORM, Kernels, Region

__all__ = [
    "RECORD_NORM",
    "AbsoluteSum",
    "DistanceSum",
    "Histogram",
    "Query",
    "Stated",
    "VectorSum",
    "whole_domain_sum",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def root_upward(square: int) -> int:
    """⌈√square⌉."""
    root = isqrt(square)
    return root + (root * root < square)


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
    """Σ of z = (y − center)/width in the ball ‖z‖ ≤ radius, in units of radius/2³⁰.

    With ``weight`` w > 0 one more coordinate counts the records, w for each: the number
    of records is then released like the rest. A record's integer vector has norm at
    most 2³⁰, √(2⁶⁰ + w²) with its count. Replacing one moves the sum by at most 2·2³⁰
    (the count does not change), adding or removing one by its norm.
    """

    center: Array
    width: Array
    radius: float
    weight: int = 0

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        return self.counted(kernels.vector_sum(Y, self.center, self.width, self.radius), len(Y))

    def counted(self, total: Ints, m: int) -> Ints:
        """A sum over m records with its count, where there is one."""
        return np.append(total, m * self.weight) if self.weight else total

    def sensitivity(self, adjacency: Adjacency) -> int:
        if adjacency is Adjacency.REPLACE_ONE:
            return 2 * RECORD_NORM
        return root_upward(RECORD_NORM**2 + self.weight**2)

    @property
    def step(self) -> float:
        """What one lattice unit is in units of ``width``."""
        return self.radius / RECORD_NORM

    def is_whole(self, region: Region) -> bool:
        """Whether this sums over the whole region: charts have kernels for it."""
        return (
            self.radius == region.radius
            and np.array_equal(self.center, region.center)
            and bool((self.width == 1.0).all())
        )


def whole_domain_sum(region: Region, weight: int = 0, name: str = "mean") -> VectorSum:
    """The sum of the records in their public domain."""
    ones = np.ones(len(region.center))
    return VectorSum(name, region.center, ones, region.radius, weight)


@dataclass(frozen=True, eq=False)
class AbsoluteSum(Query):
    """Σ of |z|, coordinate by coordinate, for z as in :class:`VectorSum`.

    Coordinates are non-negative, so ‖a − b‖² ≤ ‖a‖² + ‖b‖²: replacing a record moves
    the sum by at most √2·2³⁰.
    """

    center: Array
    width: Array
    radius: float

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        return kernels.vector_sum(Y, self.center, self.width, self.radius, absolute=True)

    def sensitivity(self, adjacency: Adjacency) -> int:
        times = 2 if adjacency is Adjacency.REPLACE_ONE else 1
        return root_upward(times * RECORD_NORM**2)


@dataclass(frozen=True, eq=False)
class DistanceSum(Query):
    """Σ of min(‖y − center‖, cap) in units of cap/2³⁰: one number.

    Each record adds an integer between 0 and 2³⁰, so replacing, adding or removing one
    moves the sum by at most 2³⁰.
    """

    center: Array
    cap: float

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        norms = kernels.vector_norms(Y, self.center, np.ones(len(self.center)))
        units = (np.minimum(norms / self.cap, 1.0) * RECORD_NORM).astype(np.int64)
        return np.array([np.clip(units, 0, RECORD_NORM).sum()], np.int64)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return RECORD_NORM


@dataclass(frozen=True, eq=False)
class Histogram(Query):
    """``unit`` times the number of records by ‖(y − center)/width‖, between edges.

    A record adds ``unit`` to exactly one of the counts, so replacing it moves two of
    them: √2·unit. The edges ascend; the last count is of what lies beyond them.
    """

    center: Array
    width: Array
    edges: Array
    unit: int = 1 << 20

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        norms = kernels.vector_norms(Y, self.center, self.width)
        below = [int(np.count_nonzero(norms < edge)) for edge in self.edges]
        return self.unit * np.diff([0, *below, len(norms)]).astype(np.int64)

    def sensitivity(self, adjacency: Adjacency) -> int:
        times = 2 if adjacency is Adjacency.REPLACE_ONE else 1
        return root_upward(times * self.unit**2)


@dataclass(frozen=True, eq=False)
class Stated(Query):
    """A summary that was computed elsewhere.

    Its sensitivity is stated, not enforced.
    """

    bound: int

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        raise TypeError("a stated summary is not computed from records")

    def sensitivity(self, adjacency: Adjacency) -> int:
        return self.bound


def describe(query: Query) -> dict[str, Any]:
    """What was asked, in plain numbers: for audits that compare two runs."""
    facts = {"kind": type(query).__name__}
    for name, value in vars(query).items():
        facts[name] = value.tolist() if isinstance(value, np.ndarray) else value
    return facts
