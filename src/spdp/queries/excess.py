"""How far records of classes reach beyond a ball: what clipping to it takes away."""

from dataclasses import dataclass

import numpy as np

from spdp.choices import Adjacency
from spdp.kernels import RECORD_NORM, Kernels
from spdp.queries.base import WHOLE, Array, Ints, Query, Rows, in_units

__all__ = ["ClassExcess"]


@dataclass(frozen=True, eq=False)
class ClassExcess(Query):
    """Σ over rows of a class of share·min(‖y − c‖ − radius, cap)₊, in cap/2³⁰.

    A row adds an integer between 0 and share·2³⁰, so a person, whose shares add up to
    at most 1, and a record add one between 0 and 2³⁰: replacing, adding or removing one
    moves the sum by at most 2³⁰.
    """

    center: Array
    radius: float
    cap: float

    def over(self, rows: Rows, kernels: Kernels) -> Ints:
        distance = kernels.vector_norms(rows.Y, self.center, np.ones(len(self.center)))
        units = in_units((distance - self.radius) / self.cap)
        if rows.share is not None:
            units = units * rows.share // WHOLE
        if rows.label is not None:
            units = units[rows.label >= 0]
        return np.array([units.sum()], np.int64)

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        return self.over(Rows(Y), kernels)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return RECORD_NORM
