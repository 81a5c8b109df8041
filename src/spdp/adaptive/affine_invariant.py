r"""A search in the affine-invariant metric: its chart moves to the points it releases.

The steps are those of any search (:mod:`.search`); between them the chart moves to the
centre just released, so that the last clipped sum is the gradient of the mean squared
distance at a point near the mean. Moving is post-processing and asks nothing. Two steps
are asked that a flat search does not have. One more round, in the chart at the first
centre: for records of large condition numbers, the error that the rounds end with is
several times larger in this metric than in the flat one. And where noise allows it, two
means over the domain in place of one: the second is taken in the chart at the first.

*Steps.* After the rounds: move to the centre; one more round there. After shape and
centre: a Newton step and a move; axes and units stay, transported in parallel. The last
vector ŷ becomes w = Ĥ⁻¹ŷ, Ĥ the Hessian of normal stand-ins of the released shape, and
the point at w is released. Before a mean over the whole domain the chart goes back to
the domain's centre: from a wrong point steps overshoot. Where noise allows it, such a
mean is asked twice, the second time seen from the first.

*Enforced.* The point is a function of released numbers; queries are those of the flat
search, their sensitivities too. *Assumed.* What :mod:`spdp.charts.riemann` and the
account assume. *Therefore* privacy is that of any search. The bound is
that of :mod:`spdp.error.curvature`: the Newton step enters it, but not its validity.
"""

from math import sqrt

import numpy as np

from spdp.adaptive.mean import FoundMean, MeanSearch
from spdp.adaptive.search import Search
from spdp.adaptive.shrinkage import shrink
from spdp.adaptive.tuning import MOVING_TUNING, MovingTuning
from spdp.charts.riemann import Point
from spdp.error.curvature import Curvature, carried_rounding
from spdp.geometry.curvature import Hessian
from spdp.kernels.arrays import Array
from spdp.queries.sums import Frame


class MovingSearch(Search):
    """A search whose vectors are seen from a released point."""

    moving: MovingTuning = MOVING_TUNING
    point: Point | None = None  # None: the chart's own, from which the domain is centred
    rounding = 0.0  # how far float64 may have moved records that were carried
    newton = False  # whether a shape was released that the Hessian follows from

    # --- coordinates

    def move(self, y: Array) -> None:
        """See records from y; the frame's axes and units go along, its centre is y.

        Or from a point near y, where float64 could not carry records back from y.
        """
        before = self.point or Point.start(self.d)
        self.point = before.moved(self.original(y)).held()
        self.rounding += carried_rounding(self.space.region, before.factor, self.point.factor)
        self._carry(self.point.to_here(before), self.axes)
        self.domain_center = self.turned(self.point.seen(self.space.region.center))
        self.frame = self.frame.moved(np.zeros(self.d))

    def go_home(self) -> None:
        if self.point is None:
            return
        center = self.in_chart(self.frame.center)
        home = Point.start(self.d).factor
        self.rounding += carried_rounding(self.space.region, self.point.factor, home)
        self._carry(self.point.factor, None)
        self.point, self.axes, self.newton = None, None, False
        self.domain_center = np.asarray(self.space.region.center)
        self.frame = Frame.plain(center)

    def _carry(self, W: Array, axes: Array | None) -> None:
        """Carry records, from coordinates along the present axes to those given."""
        store = self.store if self.axes is None else self.store.rotated(self.axes.T)
        store = store.carried(W)
        self.store = store if axes is None else store.rotated(axes)
        self.first = np.zeros(self.d), np.inf  # seen from elsewhere

    def turned(self, y: Array) -> Array:
        """A vector of the records' own coordinates, along the present axes."""
        return y if self.axes is None else np.asarray(self.axes.T @ y)

    def in_chart(self, y: Array) -> Array:
        w = self.original(y)
        return w if self.point is None else self.point.at(w)

    def base_point(self) -> Array | None:
        return None if self.point is None else self.point.at(np.zeros(self.d))

    @property
    def origin(self) -> Array:
        """The vector of the point that the gradient is taken at."""
        return self.domain_center if self.point is None else np.zeros(self.d)

    def max_distance(self) -> float:
        if self.point is None:
            return super().max_distance()
        away = float(np.linalg.norm(self.frame.center - self.domain_center))
        if self.frame.center.any():  # only lengths are distances of the metric
            return self.domain_radius + away
        far = self.space.chart.farthest(self.in_chart(self.frame.center), self.space.region)
        return min(self.domain_radius + away, far)

    # --- steps

    @property
    def worth_another_round(self) -> bool:
        """Whether another round, seen from the centre found, is worth its budget."""
        many, t = self.d >= self.tuning.many, self.moving
        if self.mu == 0:
            return self.resolution >= t.again_from_pure
        return self.resolution >= (t.again_from if many else t.again_from_few)

    def arrive(self) -> None:
        few = self.d < self.tuning.many
        if few and self.center_error > self.moving.near**2:
            return
        self.move(self.frame.center)
        self.newton = self.mu == 0 and self.resolution >= self.moving.newton_from
        if not self.worth_another_round:
            return
        share, distance_share = self.round_shares()
        self.radius *= self.moving.wider
        self.step_center(share)
        self.move(self.frame.center)
        cap = self.moving.again_cap * self.radius
        self.distance, sd = self.ask_distance(self.frame, cap, distance_share)
        self.radius = min(self.tuning.ball * self.distance + sd, cap)

    def find_center(self) -> None:
        super().find_center()
        assert self.prior is not None
        _, sigma, radius = self.prior
        if self.point is None:
            return
        self.newton = self.resolution >= self.moving.newton_from
        self.move(self.turned(self.newton_step(self.original(self.frame.center))))
        self.prior = np.zeros(self.d), sigma, radius

    def newton_step(self, v: Array) -> Array:
        """Ĥ⁻¹v where a shape is known, in the records' own coordinates; else v."""
        if not self.newton:
            return v
        sd = self.distance / sqrt(self.d) * self.frame.width**2
        return Hessian.of_normal(sd, self.axes, self.moving.stand_ins).solve(v)

    # --- the end

    def released(self, y: Array, reach: float) -> tuple[Array, Curvature | None]:
        u = self.original(y - self.origin)
        w = self.newton_step(u)
        at = self.space.region.center + w if self.point is None else self.point.at(w)
        return at, Curvature.of(u, w, reach, self.rounding)

    def worth_recentering(self) -> bool:
        share = self.moving.part * self.account.left
        noise = sqrt(self.d) * self.moves / self.n * self.budget.sd(share, self.d)
        return noise <= min(self.moving.clear, self.moving.near / self.domain_radius)

    def over_domain(self, share: float) -> tuple[Array, float]:
        """A mean over the whole domain, for where to look from; and its noise."""
        self.frame, self.radius = Frame.plain(self.domain_center), self.domain_radius
        value, sd, _ = self.ask_center(self.radius, share)
        return value, sd

    def recenter(self) -> float:
        offset, sd = self.over_domain(self.moving.part * self.account.left)
        self.move(self.inside(self.domain_center + shrink(offset, sd)[0]))
        return sd


class TwoMeans(MeanSearch):
    """One shot in a curved metric: a mean over the domain, and one seen from there.

    The second step is asked only where the first, by public numbers, is near enough to
    be worth looking from.
    """

    def run(self) -> FoundMean:
        s = self.search
        assert isinstance(s, MovingSearch)
        t, pure = s.moving, s.budget.mu is None
        share = t.first_pure if pure else t.first
        noise = sqrt(s.d) * s.domain_radius * s.moves / s.n * s.budget.sd(share, s.d)
        s.subsample_to(np.inf)
        if noise <= t.first_most:
            value, _ = s.over_domain(share)
            s.move(s.inside(s.domain_center + value))
        step, estimate = self.ask_whole()
        return self.found(step, estimate, s.domain_center + estimate.value, 0.0)
