r"""The adaptive mean: a private search, a guard against bias, and a clipped mean.

After the steps of :class:`.Search`, the clipped mean is asked with the rest of the
budget. The *guard* comes before it: where the measured clipping bias makes clipping
worse than a mean over the whole domain, the rest is spent on that mean, which is then
shrunk toward the centre found. Where the noise is too large to find a ball, one mean
over the whole domain is asked and shrunk toward the domain's centre. Where the data
fill the domain, the means of the first round and of the rest are combined. A public
reference (:mod:`spdp.statistics.reference`) that fits replaces shape, centre and tail.

The error bound is that of :mod:`spdp.error.bound`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt
from typing import NamedTuple, Protocol

import numpy as np
from scipy import special

from spdp.adaptive.search import Search, clip
from spdp.adaptive.shrinkage import COVERED_FROM, ball_shrinkage, shrink, shrinkage
from spdp.adaptive.steps import ClippingBiasStep, MeanStep, mean_weight
from spdp.charts import Component
from spdp.error.bound import (
    ELLIPSOID_SHARE,
    NEAR_SHARES,
    RETREAT_SHARE,
    Bound,
    Count,
    Free,
    rounding,
)
from spdp.error.laws import clipped_mean_law
from spdp.error.shrinkage import Shrinkage
from spdp.kernels.arrays import Array
from spdp.kernels.base import RECORD_NORM, Region
from spdp.queries import Estimate
from spdp.queries.sums import Frame, VectorSum


class PublicReference(Protocol):
    """Where the data are expected to lie, from data that are already public."""

    @property
    def frame(self) -> Frame: ...


@dataclass(frozen=True, eq=False)
class FoundMean:
    """What a search found, in the records' own coordinates.

    ``bound`` bounds the error of ``y``. ``within`` is a sharper bound, on the distance
    to the mean of records clipped to within a reach of the last centre.
    """

    y: Array
    bound: Bound
    within: Bound | None = None


def risk_share(looks: int, width: list[float] | None) -> float:
    """Share of the risk for an outcome of the guard after ``looks`` bias queries."""
    if not looks:
        return 1.0
    return ELLIPSOID_SHARE if width is not None and looks == 1 else RETREAT_SHARE


class Clipped(Protocol):
    """The part of a last step that its bound depends on."""

    @property
    def epsilon(self) -> float | None: ...
    @property
    def radius(self) -> float: ...
    @property
    def width(self) -> list[float] | None: ...


def clipped_bound(
    last: Clipped,
    d: int,
    sigma: float,
    bias: tuple[float, float],
    n: float,
    count: Count,
    risk: float,
    free: Free,
    grain: float,
) -> Bound:
    """The bound on a clipped mean's error, from the steps in a certificate.

    ``sigma`` is the scale of its noise. The measured bias was divided by ``n``: if the
    number of records is private, an earlier and noisier estimate than ``count``.
    ``grain`` is the step of the lattice that persons' vectors were rounded to before.
    """
    width = np.ones(d) if last.width is None else np.asarray(last.width)
    stretch = count.stretch
    ratio = n / count.value * stretch
    law = clipped_mean_law(last.epsilon is not None, (width * sigma * stretch) ** 2, count.sd > 0)
    coarse = rounding(d, last.radius / RECORD_NORM * float(width.max())) + rounding(d, grain)
    measured = bias[0] * ratio, bias[1] * ratio
    return Bound.of_mean(law, coarse, measured, risk * count.risk_share, free)


def last_reach(last: MeanStep, region: Region, persons: bool) -> float:
    """Distance that no record, clipped in the last step, has from its point.

    Records of persons are not clipped, but their persons' vectors are.
    """
    point = region.center if last.point is None else np.asarray(last.point)
    if persons:
        return region.radius + float(np.linalg.norm(point - region.center))
    away = float(np.linalg.norm(point - np.asarray(last.center)))
    return last.radius * max(last.width or [1.0]) + away


class Looks(NamedTuple):
    """Measured clipping bias: of all records, and of those within twice the radius."""

    all: list[ClippingBiasStep]
    near: list[ClippingBiasStep]

    def of(self, last: MeanStep, within: bool) -> tuple[tuple[float, float], float]:
        """The last mean's bias with its sd, and the risk share of its outcome."""
        risk = risk_share(len(self.all), last.width)
        if last.width is None:
            return (0.0, 0.0), risk
        look, place = self.all[-1], int(within)
        if within and self.near:
            look, place, risk = self.near[-1], 0, NEAR_SHARES[len(self.near) - 1]
        return (look.bias[place], look.sd[place]), risk

    def reach(self, last: MeanStep) -> float | None:
        """Reach of the bound for clipped records; None where there is no such bound.

        A pure search has one if the last look found nothing beyond the ball in which
        the mean was taken at once.
        """
        if last.width is None:
            return None
        if not self.near:
            return self.all[-1].reach[1] if len(self.all[-1].reach) > 1 else None
        same = self.near[-1].shortest == self.all[-1].shortest and len(self.all) == 1
        return self.near[-1].reach[0] if same else None


class MeanSearch:
    """One run of a search for a mean, from a public reference if there is one."""

    def __init__(self, search: Search, reference: PublicReference | None = None) -> None:
        self.search, self.reference = search, reference
        self.looks = Looks([], [])

    def run(self) -> FoundMean:
        """Run the steps of the module's docstring."""
        s, t = self.search, self.search.tuning
        s.subsample_to(t.clear_enough)
        s.ask_edge()
        if self.reference is not None and s.resolution < t.reference_up_to and self.fits():
            return self.near_reference()
        if s.resolution < t.rounds_from:
            return self.whole(self.scale_part if s.resolution >= t.trace_from else None)
        if not s.find_ball(t.max_rounds, s.reserve()):
            return self.filled()
        s.arrive()
        shaped = s.resolution >= t.shape_from and not s.wide
        if shaped:
            s.find_shape()
        s.subsample_to(inf)
        if shaped:
            s.find_center()
        tail = s.ask_tail(t.tail_share)
        return self.guarded(*tail.radius(s.frame, s.distance, s.m, s.noise()))

    def scale_part(self, v: Array) -> Component:
        """The component of v that is the overall scale, where it is left unshrunk."""
        s = self.search
        first = s.space.chart.components(v)[0]
        apart = first.dimension == 1 and s.d >= s.tuning.many
        return first if apart else Component(np.zeros(s.d), 0)

    # --- a public reference

    def fits(self) -> bool:
        """Whether the data lie near the public reference: the search then starts there.

        If not, a mean over the whole domain is still shrunk toward the reference's
        centre where the resolution allows no search.
        """
        assert self.reference is not None
        s, t = self.search, self.search.tuning
        frame = self.reference.frame.moved(s.inside(self.reference.frame.center))
        share = clip((t.fit_factor / (s.m * s.mu)) ** 2, t.fit_least, t.fit_most)
        distance, sd = s.ask_distance(frame, s.domain_radius, share)
        if distance + t.fit_clear * sd > t.fit * s.domain_radius:
            if s.resolution < t.rounds_from:
                s.frame = Frame.plain(frame.center)
            return False
        s.frame, s.distance = frame, distance
        s.radius = t.fit_ball * distance + t.fit_noise * sd
        return True

    def near_reference(self) -> FoundMean:
        """A few rounds in the reference's shape, if affordable; then the mean."""
        s, t = self.search, self.search.tuning
        if s.resolution >= t.rounds_from:
            s.find_ball(t.fit_rounds, s.reserve())
            s.radius *= t.fit_last
        loss = float(s.frame.width @ s.frame.width) * (s.noise() * s.radius) ** 2
        return self.guarded(s.radius, loss)

    # --- the guard

    def measure_bias(self, radius: float) -> ClippingBiasStep:
        """Measure the clipping bias of all records, and the bias within reach."""
        s, t = self.search, self.search.tuning
        near = t.reach * s.distance * s.scale()
        shares = (s.bound_share(), t.reach_share)
        self.looks.all.append(s.ask_clipping_bias(radius, shares, near))
        return self.looks.all[-1]

    def guarded(self, radius: float, loss: float) -> FoundMean:
        """The mean in the ellipsoid, or over the whole domain if that is to err less.

        A clipping bias that is large, but might be noise, is measured once more.
        """
        if loss > self.search.whole_loss():
            return self.whole()
        first = self.measure_bias(radius)
        limit, surely = self.limits(first.sd[0], loss)
        if first.bias[0] <= limit:
            return self.mean(radius)
        if first.bias[0] <= surely:
            again = self.measure_bias(radius)
            both = 0.5 * (first.bias[0] + again.bias[0])
            if both <= self.limits(again.sd[0] / sqrt(2.0), loss)[1]:
                return self.mean(radius)
        return self.whole()

    def limits(self, sd: float, loss: float) -> tuple[float, float]:
        """Bias above which to measure it again, and above which to retreat at once.

        A false alarm costs what a mean over the domain, shrunk toward the centre,
        loses; its probability is chosen such that this adds a given share to the
        expected ``loss``.
        """
        s, t = self.search, self.search.tuning
        whole = s.whole_loss()
        if s.prior is None:
            error = t.settled * s.distance**2
        else:
            error = s.prior[1] ** 2 * float(s.frame.width @ s.frame.width)
        retreat = whole * error / (whole + error) + 2.0 * whole / s.d
        least = sqrt(t.guard * whole)
        first, second = (
            max(least, sd * float(special.ndtri(1.0 - share / max(retreat / loss, 1.0))))
            for share in (t.look_again, t.false_alarm)
        )
        return first, second

    # --- the last mean

    def ask(self, frame: Frame, radius: float, over_domain: bool) -> tuple[MeanStep, Estimate]:
        """The mean of all records in a frame's ball, with the rest of the budget.

        Where their number is private, it is counted again in the same answer.
        """
        s = self.search
        center = s.space.region.center if over_domain else s.in_chart(frame.center)
        point = s.base_point()
        weight = 0 if s.public else mean_weight(s.d, over_domain)
        answer = s.account.ask(VectorSum("mean", frame, radius, weight), s.store)
        width, count = None if over_domain else frame.width.tolist(), answer.estimate.count
        told = {"center": center.tolist(), "radius": radius, "width": width}
        told |= {} if point is None else {"point": point.tolist()}
        step = answer.note(MeanStep, **told, n_estimate=None if s.public else count.value)
        return step, answer.estimate

    def ask_whole(self) -> tuple[MeanStep, Estimate]:
        """The mean of all records over the whole domain, with all budget left."""
        s = self.search
        return self.ask(Frame.plain(s.domain_center), s.domain_radius, over_domain=True)

    def found(
        self,
        step: MeanStep,
        estimate: Estimate,
        y: Array,
        shift: float,
        shrunk: Shrinkage | None = None,
    ) -> FoundMean:
        """A mean y, with the bounds on its error."""
        s, reach = self.search, self.reach_of(step)
        count = s.count(estimate.count.value, estimate.count.sd)
        value, curvature = s.released(s.inside(y), reach)
        far = s.domain_radius + float(np.linalg.norm(value - s.space.region.center))
        width = 1.0 if step.width is None else np.asarray(step.width)
        shift += count.shift(float(np.linalg.norm(width * estimate.value)), 2.0 * s.domain_radius)
        sigma = step.scale * step.radius / RECORD_NORM / count.value
        free = Free(shift, far, shrunk, curvature)

        def bound(within: bool) -> Bound:
            bias, risk = self.looks.of(step, within)
            return clipped_bound(step, s.d, sigma, bias, s.n, count, risk, free, s.grain)

        own = bound(within=False)
        within = None if self.looks.reach(step) is None else bound(within=True)
        if within is not None and within.at() >= own.at():
            within = None
        return FoundMean(value, own, within)

    def reach_of(self, step: MeanStep) -> float:
        """Distance that no record, clipped in the last step, has from its point."""
        return last_reach(step, self.search.space.region, self.search.grain > 0)

    def whole(self, apart: Callable[[Array], Component] | None = None) -> FoundMean:
        """A mean over the domain, with all budget left, shrunk toward the centre found.

        The component that ``apart`` returns is not shrunk.
        """
        s = self.search
        s.go_home()
        if s.worth_recentering():
            return self.twice()
        step, estimate = self.ask_whole()
        v, sigma = s.domain_center + estimate.value - s.frame.center, estimate.sd
        along, own = Component(np.zeros(s.d), 0) if apart is None else apart(v)
        rest, p = v - along, s.d - own
        factor = shrinkage(rest, sigma, p)
        if not self.covers(p):
            factor = min(factor, ball_shrinkage(s.domain_radius, sigma, p))
        shift = 0.0 if self.covers(p) else (1.0 - factor) * float(np.linalg.norm(rest))
        shrunk = self.shrunk(rest, sigma, p, factor, s.domain_radius)
        y = s.frame.center + along + factor * rest
        return self.found(step, estimate, y, shift, shrunk)

    def twice(self) -> FoundMean:
        """Two means over the domain, the second seen from the first (if curved)."""
        s = self.search
        first = s.recenter()
        step, estimate = self.ask_whole()
        v, sd = s.domain_center + estimate.value, estimate.sd
        both = v * (first**2 / (sd**2 + first**2))  # the first is where it is seen from
        offset, _ = shrink(both - s.domain_center, first * sd / sqrt(sd**2 + first**2))
        y = s.domain_center + offset
        return self.found(step, estimate, y, float(np.linalg.norm(y - v)))

    def covers(self, p: int) -> bool:
        """Whether a bound on p Gaussian coordinates covers them shrunk, too.

        The argument (:mod:`.shrinkage`) is for Gaussian noise about the very mean, not
        over a noisy count.
        """
        return p >= COVERED_FROM and self.search.mu > 0 and self.search.public

    def shrunk(
        self, v: Array, sigma: float, p: int, factor: float, radius: float
    ) -> Shrinkage | None:
        """How v was shrunk, where this sharpens the bound; None elsewhere."""
        t = self.search.tuning
        if not self.covers(p) or p < t.length_from or radius > t.length_up_to * sigma * sqrt(p):
            return None
        return Shrinkage(p, sigma, float(np.linalg.norm(v)), factor, self.search.d - p)

    def filled(self) -> FoundMean:
        """The data fill the domain: two means over it, shrunk toward its centre."""
        s = self.search
        if s.worth_recentering():
            s.subsample_to(inf)
            return self.twice()
        step, estimate = self.ask_whole()
        z, sigma, _ = estimate
        first, first_sigma = s.first
        weight = sigma**2 / (sigma**2 + first_sigma**2)
        both = (1 - weight) * z + weight * first
        sd = sigma * sqrt(1 - weight)
        factor = min(shrinkage(both, sd), ball_shrinkage(s.domain_radius, sd, s.d))
        offset = factor * both
        shift = float(np.linalg.norm(offset - z))
        return self.found(step, estimate, s.domain_center + offset, shift)

    def mean(self, radius: float) -> FoundMean:
        """The clipped mean, with the rest of the budget."""
        s = self.search
        step, estimate = self.ask(s.frame, radius, over_domain=False)
        z, sigma, _ = estimate
        y = last = s.frame.back(z)
        covered, shrunk = False, None
        if s.prior is None:
            factor = shrinkage(z, sigma)
            y = s.frame.back(factor * z)
            if float(np.ptp(s.frame.width)) == 0.0:
                covered, unit = self.covers(s.d), float(s.frame.width[0])
                shrunk = self.shrunk(unit * z, unit * sigma, s.d, factor, unit * radius)
        elif radius <= s.tuning.similar * s.prior[2]:
            weight = sigma**2 / (sigma**2 + s.prior[1] ** 2)
            y = (1 - weight) * last + weight * s.prior[0]
        shift = 0.0 if covered else float(np.linalg.norm(y - last))
        return self.found(step, estimate, y, shift, shrunk)
