"""The last steps of a search: the guard, the mean with all that is left, its bound."""

from collections.abc import Callable
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import special

from spdp.charts import Component
from spdp.engines import Held
from spdp.frame import Frame
from spdp.kernels import Region
from spdp.privacy.account import Account
from spdp.privacy.bounds import ELLIPSOID_PART, RETREAT_PART
from spdp.privacy.shrunk import pulled
from spdp.statistics.search.shrink import COVERED_FROM, shrink, shrinkage
from spdp.statistics.search.state import Excess, Found, State

__all__ = ["SETTLED", "LastSteps"]

Array = NDArray[np.float64]

SETTLED = 0.12  # squared error of the centre over squared distance that ends the rounds
# What false alarms of the guard may add to the loss, as a share of it: to measure the
# excess once more, and to retreat to the whole domain.
AGAIN, FALSE_ALARM = 0.06, 0.002
GUARD = 0.8  # squared excess over the whole domain's loss from which to retreat
SIMILAR = 1.3  # radii up to this ratio estimate the same clipped mean
# Dimensions from which a mean's own length sharpens its bound, in a ball up to so many
# times its noise.
LENGTH_FROM, LENGTH_UP_TO = 20, 4.0


class LastSteps(State):
    """What a search ends with, and what steps before leave for it."""

    def __init__(self, held: Held, account: Account, region: Region) -> None:
        super().__init__(held, account, region)
        # mean over the domain of the first round, and its noise
        self.first: tuple[Array, float] = (np.zeros(self.d), np.inf)
        # centre found in the last shape, its noise and radius
        self.prior: tuple[Array, float, float] | None = None

    def guarded(self, radius: float, loss: float) -> Found:
        """The mean in the ellipsoid, or over the whole domain if that promises less.

        An excess that is large but not surely so is measured once more.
        """
        if loss > self.whole_loss():
            return self.whole()
        excess = self.ask_excess(radius)
        limit, surely = self.limits(excess.sd, loss)
        if excess.value <= limit:
            return self.mean(radius, excess, ELLIPSOID_PART)
        if excess.value <= surely:
            again = self.ask_excess(radius)
            both = 0.5 * (excess.value + again.value)
            if both <= self.limits(again.sd / sqrt(2.0), loss)[1]:
                return self.mean(radius, again, RETREAT_PART)
        return self.whole(part=RETREAT_PART)

    def limits(self, sd: float, loss: float) -> tuple[float, float]:
        """Excess above which it is measured again, and above which to retreat at once.

        A false alarm costs what a mean over the domain, shrunk toward the centre,
        loses; its probability is chosen such that this adds a given share to the
        expected ``loss``.
        """
        whole = self.whole_loss()
        if self.prior is None:
            error = SETTLED * self.distance**2
        else:
            error = self.prior[1] ** 2 * float(self.frame.width @ self.frame.width)
        retreat = whole * error / (whole + error) + 2.0 * whole / self.d
        least = sqrt(GUARD * whole)
        first, second = (
            max(least, sd * float(special.ndtri(1.0 - share / max(retreat / loss, 1.0))))
            for share in (AGAIN, FALSE_ALARM)
        )
        return first, second

    def whole(self, apart: Callable[[Array], Component] | None = None, part: float = 1.0) -> Found:
        """A mean over the domain with all that is left, shrunk toward the centre found.

        The component that ``apart`` names is left as it is.
        """
        z, sigma = self.ask_mean("mean", Frame.plain(self.home), self.far, 1.0, whole=True)
        v = self.home + z - self.frame.center
        along, own = Component(np.zeros(self.d), 0) if apart is None else apart(v)
        rest, p = v - along, self.d - own
        factor = shrinkage(rest, sigma, p)
        y = self.inside(self.frame.center + along + factor * rest)
        pull = self.pull(rest, sigma, p, factor, self.far)
        shift = 0.0 if p >= COVERED_FROM else (1.0 - factor) * float(np.linalg.norm(rest))
        bound = self.bound(y, np.full(self.d, sigma**2), shift, self.far, part=part, pull=pull)
        return Found(y, bound)

    def pull(
        self, v: Array, sigma: float, p: int, factor: float, radius: float
    ) -> dict[str, float] | None:
        """How v was shrunk, where that sharpens the bound: by public numbers."""
        if p < LENGTH_FROM or radius > LENGTH_UP_TO * sigma * sqrt(p):
            return None
        return pulled(p, sigma, float(np.linalg.norm(v)), factor, self.d - p)

    def filled(self) -> Found:
        """The data fill the domain: two means over it, shrunk toward its centre."""
        z, sigma = self.ask_mean("mean", Frame.plain(self.home), self.far, 1.0, whole=True)
        first, first_sigma = self.first
        weight = sigma**2 / (sigma**2 + first_sigma**2)
        both = (1 - weight) * z + weight * first
        offset, _ = shrink(both, sigma * sqrt(1 - weight))
        y = self.inside(self.home + offset)
        shift = float(np.linalg.norm(offset - z))
        return Found(y, self.bound(y, np.full(self.d, sigma**2), shift, self.far))

    def mean(self, radius: float, excess: Excess, part: float) -> Found:
        """The clipped mean with all that is left."""
        z, sigma = self.ask_mean("mean", self.frame, radius, 1.0, whole=True)
        y = last = self.frame.back(z)
        covered, pull = False, None
        if self.prior is None:
            factor = shrinkage(z, sigma)
            y = self.frame.back(factor * z)
            if float(np.ptp(self.frame.width)) == 0.0:
                covered, unit = self.d >= COVERED_FROM, float(self.frame.width[0])
                pull = self.pull(unit * z, unit * sigma, self.d, factor, unit * radius)
        elif radius <= SIMILAR * self.prior[2]:
            weight = sigma**2 / (sigma**2 + self.prior[1] ** 2)
            y = (1 - weight) * last + weight * self.prior[0]
        shift = 0.0 if covered else float(np.linalg.norm(y - last))
        y = self.inside(y)
        bounds = [
            self.bound(y, (self.frame.width * sigma) ** 2, shift, radius, *pair, part, pull)
            for pair in ((excess.value, excess.sd), (excess.within, excess.within_sd))
        ]
        return Found(y, bounds[0], bounds[1], self.frame.center, excess.reach)
