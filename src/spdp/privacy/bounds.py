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

*Shift.* What is released is y moved by a known amount (shrinkage, or an earlier
estimate mixed in), which is added unless the move keeps coverage (:mod:`.shrink`); and
then projected onto the domain, a convex set that holds m, which brings it no further
from m.

*Within reach.* With records pulled to within x of c in place of y_i, e is the excess
within reach x, and the same bound holds for the distance to the mean of the pulled
records.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from spdp.privacy.laws import Spec, law_of

__all__ = ["ELLIPSOID_PART", "RETREAT_PART", "Bound"]

Array = NDArray[np.float64]

# Of the risk: for the ellipsoid after one look at the excess, and for what a second
# look leads to (the ellipsoid, or the whole domain), each.
ELLIPSOID_PART, RETREAT_PART = 0.9, 0.05
LARGEST = 1e300  # where nothing is known to limit the distance
# Shares of the risk that the noise may take, the rest being the excess's.
SPLITS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)


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
        How far the last noisy mean was moved, unless the move keeps coverage.
    slack : float
        What rounding to the lattice can add.
    farthest : float
        A distance to the mean that cannot be exceeded.
    part : float
        Share of the risk that this outcome of the search may use.
    """

    noise: Spec
    excess: float
    excess_sd: float
    shift: float
    slack: float
    farthest: float
    part: float

    @classmethod
    def shifted(cls, law: Spec, shift: float) -> "Bound":
        """Of a value that was moved by ``shift`` after noise of this law was added."""
        return cls(law, 0.0, 0.0, shift, 0.0, LARGEST, 1.0)

    def moved(self, shift: float) -> "Bound":
        """The bound after the value was moved once more."""
        return replace(self, shift=self.shift + shift) if shift else self

    def at(self, confidence: float = 0.95) -> float:
        """Distance below which the error lies with at least this probability."""
        risk = self.part * (1.0 - confidence)
        reach = noise_reach(self.noise, risk)
        if self.excess_sd > 0:  # an excess is never negative: no less than noise alone
            reach = max(reach, self._with_excess(risk))
        return min(reach + self.shift + self.slack, self.farthest)

    def _with_excess(self, risk: float) -> float:
        """q + z·σ_e + ê for the best of some ways to split the risk between q and z."""
        sums = [
            noise_reach(self.noise, split * risk)
            + self.excess_sd * float(special.ndtri(1.0 - (1.0 - split) * risk))
            for split in SPLITS
        ]
        return min(sums) + self.excess

    def describe(self) -> dict[str, Any]:
        """JSON-ready parts, from which :meth:`at` can be computed again."""
        return asdict(self)


def noise_reach(law: Spec, risk: float) -> float:
    """A distance that ‖N‖ exceeds with probability at most ``risk``.

    The quantile itself where all variances are equal. Otherwise the smaller of two
    upper bounds that cost nothing: the quantile with all variances at their largest,
    and Laurent and Massart's (2000, lemma 1), P(‖N‖² > Σw + 2√(xΣw²) + 2x·max w) ≤
    e^−x.
    """
    if law["family"] == "chi2":
        return float(np.sqrt(_chi2_quantile(law["df"], risk) * law["scale"]))
    if law["family"] != "weighted-chi2":
        return float(np.sqrt(law_of(law).ppf(1.0 - risk)))
    w, x = np.asarray(law["weights"]), -float(np.log(risk))
    widest = float(w.max())
    mixed = float(w.sum() + 2.0 * np.sqrt(x * (w @ w)) + 2.0 * x * widest)
    return float(np.sqrt(min(mixed, widest * _chi2_quantile(len(w), risk))))


def _chi2_quantile(d: int, risk: float) -> float:
    return 2.0 * float(special.gammainccinv(0.5 * d, risk))
