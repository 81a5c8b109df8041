r"""The steps of a private regression: a trend, and what it leaves.

1. *ball*: a few rounds of the search (:meth:`.Search.find_ball`) find where the records
   are, all of them together;
2. *covariates*: their noisy mean and mean absolute deviations give a range in which
   they are seen, as small as the data: the error of a slope grows with the range's
   width over theirs;
3. *first fit*: cross moments and Gram matrix (:class:`.CrossSum`) in the ball;
4. *residual*: the mean distance of records from that trend, a smaller ball;
5. *cross moments* of the residuals in it, with all that is left, correct the trend.

Slopes are shrunk toward zero as far as their known noise asks for (James and Stein), so
that a trend that cannot be seen is not made up.

*Enforced*, *assumed*, *therefore*: as in :mod:`spdp.statistics.regression`.
"""

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.frame import Frame
from spdp.kernels.base import symmetric
from spdp.queries import (
    RECORD_NORM,
    AbsoluteSum,
    CovariateSum,
    CrossSum,
    ResidualDistance,
    Trend,
    VectorSum,
)
from spdp.statistics.search import Search

__all__ = ["Fit", "Solved"]

Array = NDArray[np.float64]

ROUNDS = 8  # of the search, at most
# Shares of μ². Chosen, like the radii, on the regression of MNIST's class 3 on ink.
MIDDLE_SHARE, WIDTH_SHARE, FIRST_SHARE, RESIDUAL_SHARE = 0.02, 0.02, 0.2, 0.02
WIDTH = 3.5  # half width of the covariates' range over their mean absolute deviation
CLEAR = 1.0  # noise that is added to the deviation, in standard deviations
FIRST_BALL, LAST_BALL = 1.3, 1.5  # radius over the typical distance
# Covariances of the covariates, over their squared ranges, are at least this, and at
# least so many standard deviations of their noise: smaller ones cannot be told from 0.
LEAST_SPREAD, RIDGE = 0.01, 3.0


@dataclass(frozen=True, eq=False)
class Solved:
    """A trend about the covariates' mean, in the ranges they are seen in."""

    at: Array  # (p,)
    base: Array  # (d,), the trend there
    slopes: Array  # (p, d)
    cover: Array  # (1 + p, 1 + p): variance of a prediction's coordinates

    def shrunk(self, d: int) -> "Solved":
        """Slopes shrunk toward zero, each by what its noise explains of it."""
        if d < 3:
            return self
        noise = np.diagonal(self.cover)[1:] * (d - 2)
        square = np.maximum((self.slopes**2).sum(axis=1), 1e-300)
        return replace(self, slopes=self.slopes * np.maximum(0.0, 1.0 - noise / square)[:, None])

    def coefficients(self) -> Array:
        """Trend at zero, and its slopes."""
        return np.vstack([self.base - self.at @ self.slopes, self.slopes])


class Fit:
    """The steps of this module's text."""

    def __init__(self, search: Search, p: int) -> None:
        self.search, self.account, self.p = search, search.account, p
        self.outside = search.ask_outside()
        search.find_ball(ROUNDS)
        start = np.vstack([search.frame.center, np.zeros((p, search.d))])
        trend = Trend(*self.ask_ranges(), start)
        first = self.ask_fit("first fit", trend, FIRST_BALL * search.distance, FIRST_SHARE)
        trend = replace(trend, coefficients=first.shrunk(search.d).coefficients())
        distance = self.ask_residual(trend, FIRST_BALL * search.distance)
        self.radius = LAST_BALL * distance
        self.solved = self.ask_fit("cross moments", trend, self.radius, 1.0).shrunk(search.d)
        self.trend = trend

    def ask_ranges(self) -> tuple[Array, Array]:
        """Middle and half width of the ranges in which covariates are seen."""
        p, n, far = self.p, self.search.n, sqrt(self.p)
        frame = Frame.plain(np.zeros(p))
        query = CovariateSum("covariates", VectorSum("", frame, far))
        answer = self.account.measure(query, self._total(query), MIDDLE_SHARE)
        middle = np.clip(answer.values * (far / RECORD_NORM / n), -1.0, 1.0)
        self.account.note(middle=middle.tolist())
        around = CovariateSum("deviations", AbsoluteSum("", frame.moved(middle), 2.0 * far))
        answer = self.account.measure(around, self._total(around), WIDTH_SHARE)
        unit = 2.0 * far / RECORD_NORM / n
        width = np.maximum(answer.values * unit, 0.0) + CLEAR * answer.scale * unit
        low = np.maximum(middle - WIDTH * width, -1.0)
        high = np.minimum(middle + WIDTH * width, 1.0)
        self.account.note(low=low.tolist(), high=high.tolist())
        return 0.5 * (low + high), 0.5 * (high - low)

    def ask_fit(self, name: str, trend: Trend, radius: float, share: float) -> Solved:
        """Solve for the trend that residuals leave, and add it."""
        query = CrossSum(name, trend, radius)
        answer = self.account.measure(query, self._total(query), share)
        n = self.search.n
        G = query.gram(answer.values, n)
        at = np.clip(G[0, 1:], -1.0, 1.0)
        least = max(LEAST_SPREAD, RIDGE * answer.scale / (query.weights[1] * n))
        S = _positive(G[1:, 1:] - np.outer(at, at), least)
        C = query.cross(answer.values, n)
        # about the mean: cross moments (1, z − at)·u, whose Gram matrix is diag(1, S)
        T = np.eye(1 + self.p)
        T[1:, 0] = -at
        solve = np.eye(1 + self.p)
        solve[1:, 1:] = np.linalg.inv(S)
        A = solve @ T
        cover = (answer.scale * radius / RECORD_NORM / n) ** 2 * (A @ A.T)
        old, new = trend.coefficients, A @ C
        self.account.note(radius=radius, at=at.tolist(), gram=S.tolist())
        return Solved(at, old[0] + at @ old[1:] + new[0], old[1:] + new[1:], cover)

    def ask_residual(self, trend: Trend, cap: float) -> float:
        """Noisy mean distance of records from a trend."""
        query = ResidualDistance("residual", trend, cap)
        answer = self.account.measure(query, self._total(query), RESIDUAL_SHARE)
        unit = cap / RECORD_NORM / self.search.n
        distance = min(max(float(answer.values[0]) * unit, answer.scale * unit), cap)
        self.account.note(distance=distance)
        return distance

    def _total(self, query: Any) -> NDArray[np.int64]:
        return self.search.held.total(query, True)


def _positive(S: Array, least: float) -> Array:
    """The nearest matrix whose eigenvalues are no smaller than ``least``."""
    values, V = np.linalg.eigh(symmetric(S))
    return np.asarray((V * np.maximum(values, least)) @ V.T)
