r"""A bound on the whole error of a mean found by a search: noise, clipping, shrinkage.

Let the last step see y = c + (1/n)·Σ g(y_i − c) + N, with g the clip to the last
ellipsoid and N noise of known covariance, and let m be the mean of the records (clipped
to the public domain only). By the triangle inequality

    ‖y − m‖ ≤ ‖N‖ + e,   e = (1/n)·Σ ‖(y_i − c) − g(y_i − c)‖.

The *excess* e is measured as ê = e + σ_e·Z after c and g are fixed and before N is
drawn. Given all that was released before, Z and N are of known law, so with q and z
chosen such that P(‖N‖ > q) + P(−Z > z) ≤ β the error is at most q + z·σ_e + ê with
probability 1 − β, whatever the data. Nothing is assumed of them. How β is split between
the two depends on σ_e and the law of N only, which are public.

*Retreat.* If ê is large, e is measured once more, or the whole domain is used instead,
where e = 0. The outcomes are (a) the ellipsoid after the first ê, (b) the ellipsoid
after a fresh second one, (c) the whole domain. P(miss) is at most the sum over these of
the probability above with each one's own numbers, so the risk is split among the three.

*Pull and shift.* What is released is y pulled toward a point that was fixed before it
was seen (shrinkage), which :mod:`spdp.privacy.shrunk` puts in the place of ‖N‖; or y
moved by a known amount (an earlier estimate mixed in), which is added; and then
projected onto the domain, a convex set that holds m, which brings it no further
from m.

*A noisy number.* Where the number n of records is private, the last step sees a noisy
sum S + N and a noisy number n̂ = n + η in one answer, and v = (S + N)/n̂ is released.
Then v − S/n = (N − η·v)/n, n = n̂ − η. With |η| ≤ E, but for a probability of 7·10⁻⁶,

    ‖v − S/n‖ ≤ (‖N‖ + E·‖v‖)/(n̂ − E),

so noise and excess, given over n̂, are stretched by n̂/(n̂ − E) (:class:`Number`).

*Within reach.* With records pulled to within x of c in place of y_i, e is the excess
within reach x, and the same bound holds for the distance to the mean of the pulled
records.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from spdp.privacy.laws import Spec, chi2_law, quantile, weighted_tails
from spdp.privacy.shrunk import pulled_reaches

__all__ = [
    "ELLIPSOID_PART",
    "POPULATION_FROM",
    "RETREAT_PART",
    "Bound",
    "Number",
    "along_one_axis",
    "sampled_sd",
]

Array = NDArray[np.float64]

# Of the risk: for the ellipsoid after one look at the excess, and for what a second
# look leads to (the ellipsoid, or the whole domain), each.
ELLIPSOID_PART, RETREAT_PART = 0.9, 0.05
# Standard deviations that the noise of a number stays below, but for 7·10⁻⁶, and the
# share of the risk that is left where that may fail: for confidences up to 0.998.
SURE, SURE_PART = 4.5, 0.99
UPPER = 2.0  # standard deviations by which an excess is taken to be larger than measured
# Confidence from which a bound for the population's mean covers, whatever the axes that
# records vary along (:mod:`spdp.statistics.population`).
POPULATION_FROM = 0.9
LARGEST = 1e300  # where nothing is known to limit the distance
GRID = np.geomspace(1.0, 1e-6, 100)  # of 1 − 2t·max w in Chernoff's bound
# Points of a tabulated law, its least tail, and the accuracy of that tail.
TABLE, SMALLEST_TABULATED, ACCURACY = 80, 1e-6, 0.01
# Shares of the risk that the noise may take, the rest being the excess's.
SPLITS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)


@dataclass(frozen=True)
class Number:
    """What sums are divided by: the public number of records, or a noisy one.

    This module's text says what ``stretch`` and :meth:`shift` do to a bound. A number
    that cannot be told from 0 leaves no bound but the largest distance there is.
    """

    value: float
    sd: float = 0.0  # of its noise

    @property
    def least(self) -> float:
        """The number is no smaller, almost surely."""
        return self.value - SURE * self.sd

    @property
    def seen(self) -> bool:
        return self.least >= 1.0

    @property
    def stretch(self) -> float:
        """By which noise and excess may be larger than they are over this number."""
        return self.value / self.least if self.seen else 1.0

    @property
    def part(self) -> float:
        """Share of the risk that is left."""
        return SURE_PART if self.sd else 1.0

    def shift(self, length: float, farthest: float) -> float:
        """What the number's noise adds for a mean of this length."""
        return SURE * self.sd * length / self.least if self.seen else farthest


@dataclass(frozen=True)
class Bound:
    """What an error bound is made of: public and released numbers only.

    Attributes
    ----------
    noise : dict
        Law of ‖N‖², the last noise.
    excess, excess_sd : float
        Noisy mean excess beyond the last ellipsoid and the standard deviation of its
        noise; 0 where nothing was clipped.
    shift : float
        How far the last noisy mean was moved.
    slack : float
        What rounding to the lattice can add.
    farthest : float
        A distance to the mean that cannot be exceeded.
    part : float
        Share of the risk that this outcome of the search may use.
    pull : dict, optional
        How the last noisy mean was pulled toward a point fixed before it was seen
        (:func:`spdp.privacy.shrunk.pulled`); ``shift`` does not count that.
    """

    noise: Spec
    excess: float
    excess_sd: float
    shift: float
    slack: float
    farthest: float
    part: float
    pull: dict[str, float] | None = None

    @classmethod
    def shifted(cls, law: Spec, shift: float) -> "Bound":
        """Of a value that was moved by ``shift`` after noise of this law was added."""
        return cls(law, 0.0, 0.0, shift, 0.0, LARGEST, 1.0)

    @classmethod
    def certain(cls, d: int, distance: float) -> "Bound":
        """A distance that is not exceeded, whatever the noise: there is none in it."""
        return cls(chi2_law(d, 0.0), 0.0, 0.0, 0.0, distance, distance, 1.0)

    def moved(self, shift: float) -> "Bound":
        """The bound after the value was moved once more.

        It may be that much farther away than anything was.
        """
        if not shift:
            return self
        return replace(self, shift=self.shift + shift, farthest=self.farthest + shift)

    def at(self, confidence: float = 0.95) -> float:
        """Distance below which the error lies with at least this probability."""
        risk = self.part * (1.0 - confidence)
        risks = risk * np.array([1.0, *SPLITS])
        if self.pull is None:
            alone, *shared = noise_reaches(self.noise, risks)
        else:
            alone, *shared = pulled_reaches(self.pull, risks)
        reach = float(alone)
        if self.excess_sd > 0:  # an excess is never negative: no less than noise alone
            rest = special.ndtri(1.0 - risk * (1.0 - np.array(SPLITS)))
            best = float(np.min(np.array(shared) + self.excess_sd * rest))
            reach = max(reach, best + self.excess)
        return min(reach + self.shift + self.slack, self.farthest)

    def describe(self) -> dict[str, Any]:
        """JSON-ready parts, from which :meth:`at` can be computed again."""
        return dict(vars(self))


def sampled_sd(excess: float, sd: float, reach: float, n: float) -> float:
    r"""Standard deviation of a measured mean excess about the population's.

    The excess h ≥ 0 of a record is at most ``reach``, so Var h ≤ E h² ≤ reach·E h: over
    n records drawn independently, noise and sampling together have a variance of at
    most sd² + reach·e/n, for e = E h. As e itself is not known, it is taken to be two
    standard deviations of its noise above ``excess``.
    """
    e = min(max(excess + UPPER * sd, 0.0), reach)
    return sqrt(sd**2 + reach * e / n)


def along_one_axis(d: int, noise: float, sampling: float) -> Array:
    """Variances of noise in all d directions, and of sampling, known by its trace only.

    As if all of it lay along one axis: of all covariances of one trace, that one puts
    most beyond any distance that few exceed (:mod:`spdp.statistics.population`).
    """
    variances = np.full(d, noise)
    variances[0] += sampling
    return variances


def noise_reaches(law: Spec, risks: Array) -> Array:
    """Distances that ‖N‖ exceeds with probability at most ``risks``.

    Quantiles; where variances differ, the next larger point of a grid on which the law
    was tabulated, or Chernoff's bound for risks below its accuracy.
    """
    if law["family"] != "weighted-chi2":
        return np.asarray(np.sqrt(quantile(law, 1.0 - risks)))
    squares, tails = _table(tuple(law["weights"]))
    place = np.searchsorted(-tails, -risks)  # the first whose tail is at most the risk
    reaches = np.append(squares, np.inf)[place]
    for i in np.flatnonzero(risks <= SMALLEST_TABULATED):
        reaches[i] = _chernoff(np.asarray(law["weights"]), float(risks[i]))
    return np.asarray(np.sqrt(reaches))


@lru_cache(maxsize=32)
def _table(weights: tuple[float, ...]) -> tuple[Array, Array]:
    """Points of ‖N‖², from its mean on, and the probability beyond each."""
    w = np.asarray(weights)
    squares = np.linspace(w.sum(), _chernoff(w, SMALLEST_TABULATED), TABLE)
    tails = weighted_tails(w, squares, ACCURACY * SMALLEST_TABULATED)
    return squares, np.minimum.accumulate(tails)


def _chernoff(w: Array, risk: float) -> float:
    """x(t) with P(‖N‖² > x(t)) ≤ exp(−t·x(t) − ½Σ ln(1 − 2tw)) ≤ risk.

    x(t) = Σ w/(1 − 2tw), at the first t of a grid that is good enough.
    """
    t = (1.0 - GRID) / (2.0 * float(w.max()))
    room = 1.0 - 2.0 * t[:, None] * w
    x = (w / room).sum(axis=1)
    exponent = t * x + 0.5 * np.log(room).sum(axis=1)
    return float(np.append(x, np.inf)[np.searchsorted(exponent, -np.log(risk))])
