"""What pulling records to the last ellipsoid takes off distances, and off squares."""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from spdp.privacy.bounds import Bound, Number
from spdp.queries import RECORD_NORM, ExcessSum
from spdp.statistics.search.state import State, clip

__all__ = ["SQUARE_SHARE", "Taken", "ask_taken", "bounded"]

Array = NDArray[np.float64]

SQUARE_SHARE, SQUARE_REACH = 0.03, 2.0  # share of μ², and reach over the longest half axis


@dataclass(frozen=True)
class Taken:
    """Mean excess of distances of all records, and of squares within ``reach``.

    No record is farther than ``far`` from the centre; 0 where nothing was pulled.
    """

    distance: float = 0.0
    distance_sd: float = 0.0
    square: float = 0.0
    square_sd: float = 0.0
    reach: float = 0.0
    far: float = 0.0

    def times(self, ratio: float) -> "Taken":
        """The same sums over another number of records."""
        return replace(
            self,
            distance=self.distance * ratio,
            distance_sd=self.distance_sd * ratio,
            square=self.square * ratio,
            square_sd=self.square_sd * ratio,
        )


def ask_taken(search: State, radius: float) -> Taken:
    """One query of all records, two numbers; ``radius`` is in units of the frame."""
    longest = radius * float(search.frame.width.max())
    far = max(search.reach(), longest)
    near = clip(SQUARE_REACH * longest, longest, far)
    shares = search.excess_share(), SQUARE_SHARE
    weights = tuple(int(RECORD_NORM * sqrt(share / sum(shares))) for share in shares)
    query = ExcessSum("excess", search.frame, radius, (far, near), weights, (1, 2))
    answer = search.account.measure(query, search.held.total(query, True), sum(shares))
    units = np.array([far, near**2]) / weights / search.n
    (one, two), (sd, square_sd) = answer.values * units, answer.scale * units
    search.account.note(excess=[float(one), float(two)], reach=[far, near])
    search.account.note(excess_sd=[float(sd), float(square_sd)])
    return Taken(float(one), float(sd), float(two), float(square_sd), near, far)


def bounded(
    search: State, v: Array, variances: Array, radius: float, taken: Taken, number: Number
) -> tuple[Array, Bound]:
    """The mean, v away from the frame's centre, and the bound on its error.

    ``variances`` of its noise and ``taken`` are over ``number``, which may be noisy.
    """
    y, stretch = search.inside(search.frame.center + v), number.stretch
    shift = number.shift(float(np.linalg.norm(v)), 2.0 * search.far)
    excess, sd = taken.distance * stretch, taken.distance_sd * stretch
    return y, search.bound(y, variances * stretch**2, shift, radius, excess, sd, number.part)
