"""What pulling records to the last ellipsoid takes off distances, and off squares."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from spdp.queries import RECORD_NORM, ExcessSum
from spdp.statistics.search.state import State, clip

__all__ = ["SQUARE_SHARE", "Taken", "ask_taken"]

SQUARE_SHARE, SQUARE_REACH = 0.03, 2.0  # share of μ², and reach over the longest half axis


@dataclass(frozen=True)
class Taken:
    """Mean excess of distances of all records, and of squares within ``reach``."""

    distance: float = 0.0
    distance_sd: float = 0.0
    square: float = 0.0
    square_sd: float = 0.0
    reach: float = 0.0


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
    return Taken(float(one), float(sd), float(two), float(square_sd), near)
