"""Distances, spreads and counts of rows around the centres of their classes, pooled.

Rows of all classes are added up together, each around the released centre of its own
class. A row of share a counts a·(its integers), toward zero; those of one person are
then, but for rounding, a convex combination of what records may add and of 0, and no
further apart than these. A row of no class (label −1) adds nothing. What becomes of a
row depends on that row and on released numbers alone.
"""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from spdp.choices import Adjacency
from spdp.frame import Frame
from spdp.kernels import RECORD_NORM, Kernels
from spdp.queries.base import WHOLE, Array, Ints, Query, Rows, either, in_units, root_upward
from spdp.queries.moments import centred, in_part

__all__ = ["CentredDistance", "CentredHistogram", "CentredSpread"]


@dataclass(frozen=True, eq=False)
class _Centred(Query):
    """A sum of integers of each row's coordinates around its class's centre."""

    frame: Frame  # its axes and units; its centre is not used
    centers: Array  # (C, d)

    @abstractmethod
    def units(self, Z: Array, kernels: Kernels) -> Ints:
        """Integers (m, D) of rows."""

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        return self.over(Rows(Y, np.zeros(len(Y), np.intp)), kernels)

    def over(self, rows: Rows, kernels: Kernels) -> Ints:
        assert rows.label is not None
        known = rows.take(rows.label >= 0)
        Z = centred(known, self.frame, self.centers, kernels)
        return np.asarray(in_part(self.units(Z, kernels), known.share).sum(axis=0))


@dataclass(frozen=True, eq=False)
class CentredDistance(_Centred):
    """Σ of min(‖z‖, cap), in units of cap/2³⁰: what one adds lies in [0, 2³⁰]."""

    cap: float

    def units(self, Z: Array, kernels: Kernels) -> Ints:
        return in_units(norms(Z) / self.cap)[:, None]

    def sensitivity(self, adjacency: Adjacency) -> int:
        return RECORD_NORM


@dataclass(frozen=True, eq=False)
class CentredSpread(_Centred):
    """Σ of |z| coordinate by coordinate, for z clipped to ``radius``.

    As for :class:`spdp.queries.AbsoluteSum`, two records are √2·2³⁰ apart at most.
    Rounding adds less than C to each of d numbers of a person.
    """

    radius: float

    def units(self, Z: Array, kernels: Kernels) -> Ints:
        return np.abs(kernels.encode_vectors(Z, np.zeros(Z.shape[1]), self.radius))

    def sensitivity(self, adjacency: Adjacency) -> int:
        C, d = (int(size) for size in self.centers.shape)
        apart = either(adjacency, root_upward(2 * RECORD_NORM**2), RECORD_NORM)
        return apart + 2 * C * root_upward(d)


@dataclass(frozen=True, eq=False)
class CentredHistogram(_Centred):
    """WHOLE times the number of rows by ‖z‖, between ascending edges and beyond.

    A record adds WHOLE to one of the counts, a person as much to several together,
    exactly: two of them are at most √2·WHOLE apart.
    """

    edges: Array

    def units(self, Z: Array, kernels: Kernels) -> Ints:
        place = np.searchsorted(self.edges, norms(Z), side="right")
        counts = np.arange(len(self.edges) + 1)
        return np.asarray(WHOLE * (place[:, None] == counts).astype(np.int64))

    def sensitivity(self, adjacency: Adjacency) -> int:
        return either(adjacency, root_upward(2 * WHOLE**2), WHOLE)


def norms(Z: Array) -> Array:
    """‖z‖ of each row."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", Z, Z)))
