r"""Each statistic's noise, and how many records it needs, from public numbers.

Noise follows from the budget: a query of sensitivity Δ answered with a share ρ of μ²
has noise of standard deviation Δ/(μ√ρ). How much of μ² a search leaves for the last
query, and how large its ball is beside the records' spread, is not known beforehand;
:data:`TYPICAL` has what was seen on made-up Gaussian records, equally wide in all
directions.

*Power.* For two classes of n/2 records with spread s about means that are δ apart,
noise σ in each coordinate of a mean, and v = 4s²/(nd) + 2σ², the squared distance of
the released means is v times a non-central χ² of d degrees of freedom and of
non-centrality δ²/v: the test's power is its probability beyond the central 95 % point.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy import optimize, stats

from spdp.choices import Adjacency
from spdp.frame import Frame
from spdp.lattice import MAX_RECORDS
from spdp.privacy.joint import least_count
from spdp.queries import RECORD_NORM, CrossSum, DirectionSum, MomentSum, Query, SpreadSum, Trend
from spdp.queries.spread import COUNTED, OF, WEIGHT
from spdp.queries.triangle import ON_DIAGONAL
from spdp.statistics import pca, regression, trend
from spdp.statistics.planner import Planner
from spdp.statistics.search.run import ROUNDS_FROM
from spdp.statistics.search.state import resolution

__all__ = ["STATISTICS", "Numbers", "Public"]

LEVEL, POWER = 0.95, 0.8  # of the test, and of the effect it is asked about
HALF = 0.5  # effect over the spread, where nobody says which effect
ACCURATE = 0.1  # relative noise of a variance that a number of records is told for
SEEN_ABOVE = 2.0  # standard deviations by which a class that is seen exceeds the least count
NORMAL_MAD = sqrt(2.0 / np.pi)  # mean absolute deviation of a normal law, over its sd

Numbers = dict[str, float]


class Last(NamedTuple):
    """A statistic's last query: its share of μ², and its ball over the spread."""

    share: float
    ball: float


TYPICAL = {
    "class-means": Last(0.75, 1.3),
    "class-means with covariance": Last(0.52, 1.0),
    "dispersion": Last(0.72, 3.3),
    "pca": Last(0.77, 1.4),
    "median": Last(0.66, 0.95),
    "regression": Last(0.69, 1.45),
    "difference": Last(0.90, 1.25),
}


@dataclass(frozen=True)
class Public:
    """Public numbers, and the noise that follows from them."""

    planner: Planner
    mu: float
    d: int
    classes: int
    second: str
    covariates: int
    effect: float | None

    @property
    def n(self) -> int:
        return self.planner.n

    def of(self, n: int) -> "Public":
        """The same for another number of records."""
        return replace(self, planner=replace(self.planner, n=n))

    @property
    def frame(self) -> Frame:
        return Frame.plain(np.zeros(self.d))

    @property
    def adjacency(self) -> Adjacency:
        return Adjacency(self.planner.adjacency)

    @property
    def finds(self) -> bool:
        """Whether the records' ball can be found."""
        return resolution(self.n, self.d, self.mu) >= ROUNDS_FROM

    @property
    def findable(self) -> float:
        """Number of records from which it can."""
        return ROUNDS_FROM * sqrt(self.d) / self.mu

    def ball(self, name: str, spread: float) -> float:
        """Radius that the last query clips to."""
        radius = self.planner.radius
        return min(TYPICAL[name].ball * spread, radius) if self.finds else radius

    def scale(self, name: str, query: Query) -> float:
        """Standard deviation of the noise, in units of a record's norm."""
        share = TYPICAL[name].share if self.finds else 1.0
        return query.sensitivity(self.adjacency) / RECORD_NORM / (self.mu * sqrt(share))


def _class_means(p: Public, spread: float) -> Numbers:
    name = "class-means" + (" with covariance" if p.second != "none" else "")
    whole = p.adjacency is Adjacency.ADD_REMOVE or p.d < 3  # one shot
    query = MomentSum("", p.frame, 1.0, p.classes, p.second)
    noise = query.sensitivity(p.adjacency) / RECORD_NORM / p.mu if whole else p.scale(name, query)
    ball = p.planner.radius if whole else p.ball(name, spread)
    return {"rms noise of a class mean": sqrt(p.d) * noise * ball * p.classes / p.n}


def _classes_needed(p: Public) -> Numbers:
    name = "class-means" + (" with covariance" if p.second != "none" else "")
    query = MomentSum("", p.frame, 1.0, p.classes, p.second)
    sd = p.scale(name, query) * RECORD_NORM / query.weight
    return {"to see every class": p.classes * (least_count(sd) + SEEN_ABOVE * sd)}


def _dispersion(p: Public, spread: float) -> Numbers:
    weight = 0 if p.adjacency is Adjacency.REPLACE_ONE else COUNTED
    noise = p.scale("dispersion", SpreadSum("", p.frame, 1.0, weight)) / p.n
    ball = p.ball("dispersion", spread)
    sd = sqrt((noise * ball**2 * OF / WEIGHT) ** 2 + 2.0 * p.d * (noise * ball) ** 4)
    return {"relative noise of the variance": sd / spread**2}


def _dispersion_needed(p: Public) -> Numbers:
    """Noise of a mean of squares falls as 1/n."""
    last = TYPICAL["dispersion"]
    noise = p.scale("dispersion", SpreadSum("", p.frame, 1.0)) * last.ball**2 * OF / WEIGHT
    return {f"for a variance to {ACCURATE:.0%}": noise / ACCURATE}


def _pca(p: Public, spread: float) -> Numbers:
    query = MomentSum("", p.frame, 1.0, 1, "full")
    factor = (RECORD_NORM / query.factor**2) / ON_DIAGONAL  # of a unit ball's second moments
    noise = p.scale("pca", query) * factor * p.ball("pca", spread) ** 2 / p.n
    return {
        "records, over those that need no warning": p.n * p.mu / (pca.ENOUGH * p.d**1.5),
        "noise of a covariance's largest eigenvalue, over the variance of a coordinate": (
            sqrt(2.0 * p.d) * noise / (spread**2 / p.d)
        ),
    }


def _pca_needed(p: Public) -> Numbers:
    return {
        "to release components": pca.LEAST * p.d**1.5 / p.mu,
        "to release them without a warning": pca.ENOUGH * p.d**1.5 / p.mu,
    }


def _median(p: Public, spread: float) -> Numbers:
    noise = p.scale("median", DirectionSum("", np.zeros(p.d), 1.0))
    return {"rms noise of the median": sqrt(p.d) * noise * p.ball("median", spread) / p.n}


def _regression(p: Public, spread: float) -> Numbers:
    zero = np.zeros(p.covariates)
    query = CrossSum("", Trend(zero, zero + 1.0, np.zeros((1 + p.covariates, p.d))), 1.0)
    noise = p.scale("regression", query) * p.ball("regression", spread) / p.n
    return {
        "rms noise of a prediction at the covariates' mean": sqrt(p.d) * noise,
        "rms noise of a slope, for one standard deviation": (
            sqrt(p.d) * noise * trend.WIDTH * NORMAL_MAD
        ),
    }


def _regression_needed(p: Public) -> Numbers:
    fewest = regression.FEWEST * sqrt(p.d * (1 + p.covariates)) / p.mu
    return {"to release a regression": fewest}


def _difference(p: Public, spread: float) -> Numbers:
    noise, v = _chance(p, spread)
    beyond = partial(_power, p.d, v)
    most = optimize.brentq(lambda x: beyond(x) - POWER, 0.0, 1e3 * sqrt(v * p.d))
    found = {"rms noise": sqrt(2.0 * p.d) * noise, f"effect of power {POWER:.0%}": float(most)}
    return found if p.effect is None else {**found, "power": beyond(p.effect)}


def _chance(p: Public, spread: float) -> tuple[float, float]:
    """Noise of a coordinate of a class mean, and v of this module's text."""
    query = MomentSum("", p.frame, 1.0, 2, "full", pooled=False)
    noise = p.scale("difference", query) * p.ball("difference", spread) * 2.0 / p.n
    return noise, 4.0 * spread**2 / (p.n * p.d) + 2.0 * noise**2


def _difference_needed(p: Public) -> Numbers:
    """For the effect that was asked about, else for one of half the spread.

    MAX_RECORDS + 1 where no number up to that is enough.
    """
    what = f"{HALF:g} times the spread" if p.effect is None else f"{p.effect:g}"

    def enough(n: int) -> bool:
        made = p.of(n)
        effects = [(s, p.effect or HALF * s) for s in p.planner.spreads]
        return all(_power(p.d, _chance(made, s)[1], effect) >= POWER for s, effect in effects)

    n = bisect_left(range(MAX_RECORDS + 1), True, lo=1, key=enough)
    return {f"to find a difference of {what} with power {POWER:.0%}": n}


def _power(d: int, v: float, effect: float) -> float:
    """Probability that the test finds a difference of this length."""
    return float(stats.ncx2.sf(stats.chi2.ppf(LEVEL, d), d, effect**2 / v))


def _nothing(p: Public) -> Numbers:
    return {}


STATISTICS: dict[str, tuple[Callable[[Public, float], Numbers], Callable[[Public], Numbers]]] = {
    "class-means": (_class_means, _classes_needed),
    "dispersion": (_dispersion, _dispersion_needed),
    "pca": (_pca, _pca_needed),
    "median": (_median, _nothing),
    "regression": (_regression, _regression_needed),
    "difference": (_difference, _difference_needed),
}
