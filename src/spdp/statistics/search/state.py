r"""What a search knows, and how it asks: every query of the search goes through here.

The state is a frame, a ball and a typical distance, all of them public or released, so
that whatever is computed from it may steer the next query.
"""

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.charts import clip_to_ball
from spdp.choices import Adjacency
from spdp.engines import Held
from spdp.errors import ParameterError
from spdp.frame import Frame
from spdp.kernels import Region
from spdp.privacy.account import Account
from spdp.privacy.bounds import Bound, Number
from spdp.privacy.laws import weighted_chi2_law
from spdp.queries import RECORD_NORM, DistanceSum, ExcessSum, VectorSum

__all__ = ["Excess", "Found", "Outside", "State", "check_reach", "clip", "resolution"]

Array = NDArray[np.float64]

# Resolution beyond which a search need not look at all records to find its way.
SHARP_ENOUGH = 1500.0
EXCESS_FACTOR, EXCESS_LEAST, EXCESS_MOST = 3.0, 0.03, 0.07  # share of μ²: factor/d
# The same below a resolution at which the bound would else be mostly its noise.
LOW, LOW_FROM, LOW_FACTOR, LOW_MOST = 8.0, 20, 8.0, 0.12  # up to it, from d dimensions on
SHORTEST, LONGEST = 1e-50, 1e50  # radii whose fourth powers, noise included, are numbers
REACH_SHARE, REACH = 0.008, 3.0  # share and reach (over the distance) of the second excess


def resolution(n: float, d: int, mu: float) -> float:
    """n·μ/√d: twice a ball's radius over the rms noise of a mean in it."""
    return n * mu / sqrt(d)


def check_reach(region: Region) -> None:
    """Refuse, before anything is paid, a domain in which squares are no numbers."""
    if not SHORTEST <= region.radius <= LONGEST:
        raise ParameterError(
            f"the domain's radius in this metric is {region.radius:.3g}; it must lie between "
            f"{SHORTEST:g} and {LONGEST:g}"
        )


def clip(value: float, least: float, most: float) -> float:
    """``value`` kept between ``least`` and ``most``."""
    return min(max(value, least), most)


@dataclass(frozen=True)
class Excess:
    """Released excess beyond the ellipsoid: of all records, and within a reach."""

    value: float
    sd: float
    within: float
    within_sd: float
    reach: float


@dataclass(frozen=True)
class Outside:
    """Private estimate of the share of records at the domain's edge, and its noise."""

    share: float
    sd: float

    def describe(self) -> dict[str, Any]:
        """For the certificate."""
        return {"share": self.share, "sd": self.sd}


@dataclass(frozen=True, eq=False)
class Found:
    """A mean and the bounds on its error.

    ``bound`` holds for the mean of all records, ``within`` for the mean of the records
    pulled to within ``reach`` of ``center``; it is None where nothing was clipped.
    """

    y: Array
    bound: Bound
    within: Bound | None = None
    center: Array | None = None
    reach: float | None = None
    outside: Outside | None = None


class State:
    """A search's centre, shape and ball, and its noisy questions.

    Parameters
    ----------
    held : Held
        Vectors inside the region; ``held.total(query, whole)`` gives exact
        integers.
    account : Account
        Draws the noise and keeps Σ μ_i² ≤ μ².
    region : Region
        The public domain: ``center`` and ``radius``.
    """

    def __init__(self, held: Held, account: Account, region: Region) -> None:
        self.held, self.account, self.region = held, account, region
        self.mu = float(account.mu)
        held.look_at(1)
        self.n, self.kept, self.d = int(held.n), int(held.m), int(held.d)
        self.look(SHARP_ENOUGH)
        self.home, self.far = np.asarray(region.center), float(region.radius)
        self.frame, self.radius, self.distance = Frame.plain(self.home), self.far, self.far
        self.axes: Array | None = None  # of the coordinates that all of this is given in

    def look(self, enough: float) -> None:
        """Look at no more records than keep the resolution above ``enough``.

        Which ones is left to coins, how many to public numbers.
        """
        self.look_at_one_in(int(resolution(self.kept, self.d, self.mu) / enough))

    def look_at_one_in(self, many: int) -> None:
        """Look at one in so many records."""
        self.one_in = max(1, many)
        self.held.look_at(self.one_in)
        self.m = int(self.held.m)
        self.resolution = resolution(self.m, self.d, self.mu)

    def turn(self, frame: Frame) -> Frame:
        """Go over to coordinates along a frame's axes; the frame as seen in them."""
        if frame.axes is None:
            return frame
        self.axes = frame.axes
        self.held = self.held.turned(frame.axes)
        self.home = frame.axes.T @ self.home
        return Frame(frame.axes.T @ frame.center, frame.width)

    def original(self, y: Array) -> Array:
        """A vector in the records' own coordinates."""
        return y if self.axes is None else np.asarray(self.axes @ y)

    def back(self, found: Found) -> Found:
        """What was found, in the records' own coordinates."""
        center = None if found.center is None else self.original(found.center)
        return replace(found, y=self.original(found.y), center=center)

    def ask_mean(
        self, name: str, frame: Frame, radius: float, share: float, whole: bool = False
    ) -> tuple[Array, float]:
        """Noisy clipped mean z in ``frame`` and its noise per coordinate."""
        query = VectorSum(name, frame, radius)
        answer = self.account.measure(query, self.held.total(query, whole), share)
        unit = query.step / (self.n if whole else self.m)
        self.account.note(center=self.original(frame.center).tolist(), radius=radius)
        return answer.values * unit, answer.scale * unit

    def ask_distance(self, frame: Frame, cap: float, share: float) -> tuple[float, float]:
        """Noisy mean of min(‖z‖, cap) and its noise."""
        query = DistanceSum("distance", frame, cap)
        answer = self.account.measure(query, self.held.total(query), share)
        unit = cap / RECORD_NORM / self.m
        blur = answer.scale * unit
        distance = clip(float(answer.values[0]) * unit, max(blur, 1e-9 * cap), cap)
        self.account.note(distance=distance)
        return distance, blur

    def ask_excess(self, radius: float) -> Excess:
        """Mean excess of all records beyond ``radius``: one query, two numbers."""
        shares = (self.bound_share(), REACH_SHARE)
        weights = tuple(int(RECORD_NORM * sqrt(share / sum(shares))) for share in shares)
        longest = radius * float(self.frame.width.max())
        far = max(self.reach(), longest)
        near = clip(REACH * self.distance * self.scale(), longest, far)
        query = ExcessSum("excess", self.frame, radius, (far, near), weights)
        answer = self.account.measure(query, self.held.total(query, True), sum(shares))
        units = np.array([far, near]) / weights / self.n
        values, sds = answer.values * units, answer.scale * units
        self.account.note(excess=values.tolist(), reach=[far, near])
        return Excess(float(values[0]), float(sds[0]), float(values[1]), float(sds[1]), near)

    def shares(self, shares: tuple[float, float, float]) -> float:
        """clip((factor/resolution)², least, most)."""
        factor, least, most = shares
        return clip((factor / self.resolution) ** 2, least, most)

    def excess_share(self) -> float:
        """Share of the excess of all records: what a mean's noise is √d times of."""
        return clip(EXCESS_FACTOR / self.d, EXCESS_LEAST, EXCESS_MOST)

    def bound_share(self) -> float:
        """Share of the excess where it makes the error bound, too."""
        if self.resolution >= LOW or self.d < LOW_FROM:
            return self.excess_share()
        return clip(LOW_FACTOR / self.d, EXCESS_LEAST, LOW_MOST)

    def noise(self) -> float:
        """Noise per coordinate of a mean in a unit ball, with all that is left."""
        return 2.0 / (self.n * self.mu * sqrt(float(self.account.left)))

    def whole_loss(self) -> float:
        """Expected squared noise of a mean over the domain, with all that is left."""
        return self.d * (self.far * self.noise()) ** 2

    def scale(self) -> float:
        """Root mean square unit of the frame, in the metric's distance."""
        return float(np.sqrt(np.mean(self.frame.width**2)))

    def reach(self) -> float:
        """Distance from the centre that no record exceeds."""
        return self.far + float(np.linalg.norm(self.frame.center - self.home))

    def inside(self, y: Array) -> Array:
        """y, or the point of the domain's ball nearest to it."""
        return clip_to_ball(y, self.home, self.far)

    @property
    def public(self) -> bool:
        """Whether the number of records is."""
        return self.account.adjacency is Adjacency.REPLACE_ONE

    def number(self, noisy: float, sd: float) -> Number:
        """The public number, or the noisy one of the last answer."""
        if self.public:
            return Number(float(self.n))
        number = Number(max(float(noisy), 1.0), sd)
        self.account.note(n_estimate=number.value, count_sd=sd)
        return number

    def bound(
        self,
        y: Array,
        variances: Array,
        shift: float,
        radius: float,
        excess: float = 0.0,
        sd: float = 0.0,
        part: float = 1.0,
        pull: dict[str, float] | None = None,
    ) -> Bound:
        """The bound on the error of y; rounding loses a step per coordinate."""
        step = radius * float(self.frame.width.max()) / RECORD_NORM
        farthest = self.far + float(np.linalg.norm(y - self.home))
        slack = 2.0 * sqrt(self.d) * step
        law = weighted_chi2_law(variances)
        return Bound(law, excess, sd, shift, slack, farthest, part, pull)
