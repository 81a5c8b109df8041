"""Directions from a point to the records: what a geometric median balances."""

from dataclasses import dataclass

import numpy as np

from spdp.choices import Adjacency
from spdp.kernels import RECORD_NORM, Kernels
from spdp.queries.base import Array, Ints, Query, either, in_units, root_upward

__all__ = ["AVERAGED", "DirectionSum"]

POINT = 2.0**-30  # over ``near``: what is closer to the point than this has no direction
NEARNESS = 2 * RECORD_NORM // 5  # weight of how near a record is
AVERAGED = 7  # last steps of a median, whose places are averaged


@dataclass(frozen=True, eq=False)
class DirectionSum(Query):
    r"""Σ of (u, w·min(1, near/‖y − c‖)), u the unit vector from the centre c to y.

    Directions are in units of 1/2³⁰, w = ``NEARNESS``. A direction needs no radius: it
    is shorter than 1 only for records nearer to c than near/2³⁰, whose u is
    (y − c)·2³⁰/near.

    *Enforced.* u has integer norm at most N = 2³⁰ (the kernel checks it), the nearness
    is an integer between 0 and w. *Therefore* replacing a record moves the sum by at
    most √(4N² + w²), adding or removing one by √(N² + w²). A person is one row.
    """

    center: Array
    near: float

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        width = np.ones(len(self.center))
        directions = kernels.vector_sum(Y, self.center, width, POINT * self.near)
        return np.append(directions, self._nearness(Y, kernels).sum())

    def _nearness(self, Y: Array, kernels: Kernels) -> Ints:
        distance = kernels.vector_norms(Y, self.center, np.ones(len(self.center)))
        with np.errstate(divide="ignore", invalid="ignore"):
            return in_units(self.near / distance, NEARNESS)

    def sensitivity(self, adjacency: Adjacency) -> int:
        replaced = root_upward(4 * RECORD_NORM**2 + NEARNESS**2)
        return either(adjacency, replaced, root_upward(RECORD_NORM**2 + NEARNESS**2))
