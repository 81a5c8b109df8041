r"""A private search for where the data are, and the mean taken there.

A public domain is far wider than the data in it. Means of a flat metric are means in
R^d, so a few cheap private queries find centre, spread and shape, and the mean is taken
in an ellipsoid as small as the data:

0. *edge*: how many records lie at the domain's edge, which is where clipping puts those
   outside; it steers nothing, but tells of a wrong unit;
1. *rounds*: a noisy mean clipped to the current ball, shrunk toward its centre, is the
   next centre; a noisy mean distance to it sets the next, smaller ball;
2. *shape*: mean absolute values per coordinate, then the correlation matrix in those
   units, give principal axes and a unit along each (:mod:`.shape`);
3. *centre*: one more mean in that shape, so that clipping does not pull toward a poor
   centre;
4. *tail*: a histogram of distances; the radius balances noise against clipping
   (:mod:`.tail`);
5. *excess*: the mean distance by which the chosen ellipsoid clips. It makes the error
   bound (:mod:`spdp.privacy.bounds`), and where it says that clipping costs more than
   the whole domain would, the rest is spent there, shrunk toward the centre found;
6. *mean*: the clipped mean with all that is left.

Where the noise is too large to find a ball, all is spent on one mean over the domain,
shrunk toward its centre; where the data fill the domain, the first round and the rest
are combined. A public reference (:mod:`spdp.statistics.reference`) that fits replaces
steps 2 to 4.

All choices are functions of public numbers and of released ones. Each query's integers
and sensitivity are in :mod:`spdp.queries`; shares of μ² add up to at most 1 in the
account. Of very many records steps 0 to 2 look at a part, chosen by coins
(:mod:`spdp.engines.coins`): a record that is not looked at changes nothing.
"""

from dataclasses import replace
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from spdp.charts import Chart, Component
from spdp.engines import Held
from spdp.frame import Frame
from spdp.kernels import Region
from spdp.privacy.account import Account
from spdp.queries import RECORD_NORM, AbsoluteSum, CorrelationSum, EdgeCount, Histogram
from spdp.statistics.reference import Reference
from spdp.statistics.search.last import SETTLED, LastSteps
from spdp.statistics.search.shape import axis_frame, principal_frame, spreads
from spdp.statistics.search.shrink import shrink, shrink_best
from spdp.statistics.search.state import REACH_SHARE, Found, Outside, clip
from spdp.statistics.search.tail import Tail, tail_edges

__all__ = ["Search"]

Array = NDArray[np.float64]

# Resolutions n·μ/√d from which a step pays, and up to which a public reference does.
ROUNDS_FROM, TRACE_FROM, SHAPE_FROM, CORRELATE_FROM, REFERENCE_UP_TO = 4.0, 2.0, 18.0, 30.0, 15.0
CLEAR_ENOUGH = 800.0  # up to which a ball and the axes in it are looked for among all records
MANY = 20  # dimensions from which a trace or a ball in a full domain are worth their price
CORRELATE_UP_TO = 500  # dimensions: beyond, the matrix costs more time than it gains
# Looking at the edge: records looked at, share of μ² for a noise of 1/20, and how clear
# it must be.
EDGE_LOOKS, EDGE_FACTOR, EDGE_LEAST, EDGE_MOST, EDGE_SEEN = 4096, 20.0, 0.0005, 0.02, 4.0
# Rounds. A share (factor/resolution)² of μ² makes the ball shrink to about half its
# radius.
MAX_ROUNDS = 8
ROUND_FACTOR, ROUND_FACTOR_SHARP, SHARP = 3.6, 4.0, 15.0
ROUND_LEAST, ROUND_MOST = 0.015, 0.2
DISTANCE_PART, DISTANCE_FACTOR, DISTANCE_MOST = 0.2, 10.0, 0.05
BALL, BALL_WIDE = 0.8, 0.95  # next radius over the typical distance
SHRUNK = 0.85  # a ball above this share of the last one has stopped shrinking
WIDE, WIDE_CLEAR = 0.45, 2.0  # distance over the domain's radius, by so many sd of its noise,
WIDE_FROM = 8.0  # of data that nearly fill it; a ball in there pays from this resolution
KEPT = 0.23  # of μ², for the last mean at least
# Later steps: shares clip((factor/resolution)², least, most).
SPREAD_SHARES = (5.0, 0.01, 0.02)
CORRELATION_SHARES = (12.0, 0.04, 0.08)
CENTRE_SHARES = (9.0, 0.03, 0.10)
CORRELATION_BALL = 0.7  # radius over √d, in units of the spreads: noise grows with its square
CENTRE_BALL = 1.2  # radius over the typical distance
FRAME_FACTOR, FRAME_LEAST, FRAME_MOST = 25.0, 0.002, 0.03  # distance in the shape, over n·μ
FRAME_CAP = 2.5  # over the distance before
TAIL_SHARE = 0.04
# Reference: noise of the check, how well it must fit, next ball, rounds and last ball.
FIT_FACTOR, FIT_LEAST, FIT_MOST = 10.0, 0.02, 0.12
FIT, FIT_CLEAR, FIT_BALL, FIT_BLUR, FIT_ROUNDS, FIT_LAST = 0.6, 2.0, 0.9, 0.5, 3, 1.3


class Search(LastSteps):
    """One run over ``held``, on ``account``; see :class:`.State` for both.

    Parameters
    ----------
    chart : Chart
        The metric, for its groups of coordinates and its domain's edge.
    reference : Reference, optional
        Where the data are expected to lie, from data that are already public.
    """

    def __init__(
        self,
        held: Held,
        account: Account,
        region: Region,
        chart: Chart,
        reference: Reference | None = None,
    ) -> None:
        super().__init__(held, account, region)
        self.reference = reference
        self.chart = chart
        self.wide = False  # whether the data nearly fill the domain

    def run(self) -> Found:
        """The steps of this module's text."""
        self.look(CLEAR_ENOUGH)
        outside = self.ask_outside()
        return replace(self.back(self.steps()), outside=outside)

    def steps(self) -> Found:
        """The steps, in the coordinates in which the last of them was taken."""
        if self.reference is not None and self.resolution < REFERENCE_UP_TO and self.fits():
            return self.near_reference()
        if self.resolution < ROUNDS_FROM:
            return self.whole(self.scale_part if self.resolution >= TRACE_FROM else None)
        if not self.find_ball(MAX_ROUNDS):
            return self.filled()
        shaped = self.resolution >= SHAPE_FROM and not self.wide
        if shaped:
            self.find_shape()
        self.look(inf)
        if shaped:
            self.find_centre()
        radius, loss = self.find_radius()
        return self.guarded(radius, loss)

    def scale_part(self, v: Array) -> Component:
        """What of v is the scale of all, where that is worth being kept apart."""
        first = self.chart.components(v)[0]
        return first if first.dimension == 1 and self.d >= MANY else Component(np.zeros(self.d), 0)

    def later_share(self) -> float:
        """What the steps after the rounds will spend before the last one."""
        share = TAIL_SHARE + self.bound_share() + REACH_SHARE
        if self.resolution >= SHAPE_FROM:
            share += FRAME_LEAST + self.shares(SPREAD_SHARES) + self.shares(CENTRE_SHARES)
        if self.resolution >= CORRELATE_FROM:
            share += self.shares(CORRELATION_SHARES)
        return share

    # --- steps

    def ask_outside(self) -> Outside | None:
        """Share of the records at the domain's edge, if it can be seen."""
        before = self.one_in
        self.look_at_one_in(self.kept // EDGE_LOOKS)
        try:
            return self.ask_edge()
        finally:
            self.look_at_one_in(before)

    def ask_edge(self) -> Outside | None:
        """That share among the records looked at."""
        if self.m * self.mu * sqrt(EDGE_MOST) < EDGE_SEEN:
            return None
        share = clip((EDGE_FACTOR / (self.m * self.mu)) ** 2, EDGE_LEAST, EDGE_MOST)
        query = EdgeCount("edge", self.chart, self.region)
        answer = self.account.measure(query, self.held.total(query), share)
        unit = 1.0 / query.unit / self.m
        outside = Outside(clip(float(answer.values[0]) * unit, 0.0, 1.0), answer.scale * unit)
        self.account.note(**outside.describe())
        return outside

    def find_ball(self, rounds: int) -> bool:
        """Shrink the ball round by round; False if the data fill the domain."""
        factor = ROUND_FACTOR if self.resolution < SHARP else ROUND_FACTOR_SHARP
        share = self.shares((factor, ROUND_LEAST, ROUND_MOST))
        least = min((DISTANCE_FACTOR / (self.m * self.mu)) ** 2, DISTANCE_MOST)
        distance_share = max(DISTANCE_PART * share, least)
        kept = KEPT + self.later_share() + share + distance_share
        for turn in range(rounds):
            error = self.step_centre(share)
            self.distance, blur = self.ask_distance(self.frame, self.radius, distance_share)
            if turn == 0 and self.radius == self.far and self.fills(blur):
                return False
            ball = BALL_WIDE if self.wide else BALL
            radius = min(ball * self.distance + blur, self.radius)
            settled = error < SETTLED * self.distance**2 or radius > SHRUNK * self.radius
            self.radius = radius
            if settled or self.account.left < kept:
                break
        return True

    def step_centre(self, share: float) -> float:
        """Move the centre to a noisy, shrunk mean; its likely squared error."""
        v, sigma = self.ask_mean("centre", self.frame, self.radius, share)
        if self.radius == self.far:
            self.first = v, sigma
        plain = self.frame.axes is None
        parts = self.chart.components(v) if plain else []
        offset, error = shrink_best(v, sigma, parts) if plain else shrink(v, sigma)
        self.frame = self.frame.moved(self.inside(self.frame.back(offset)))
        return error

    def fills(self, blur: float) -> bool:
        """Whether the first round says that no ball pays; notes data nearly so wide."""
        self.wide = self.distance - WIDE_CLEAR * blur > WIDE * self.far
        if self.wide and (self.resolution < WIDE_FROM or self.d < MANY):
            return True
        ball = BALL_WIDE if self.wide else BALL
        return ball * self.distance + blur > SHRUNK * self.far

    def find_shape(self) -> None:
        """Units along the coordinates, or along principal axes if they can be seen."""
        query = AbsoluteSum("spread", self.frame, self.radius)
        answer = self.account.measure(query, self.held.total(query), self.shares(SPREAD_SHARES))
        unit = self.radius / RECORD_NORM / self.m
        spread = spreads(answer.values * unit, answer.scale * unit)
        self.account.note(spread=spread.tolist())
        self.frame = axis_frame(self.frame.center, spread)
        if self.resolution >= CORRELATE_FROM and 2 < self.d <= CORRELATE_UP_TO:
            self.frame = self.find_axes(spread)
        share = clip((FRAME_FACTOR / (self.m * self.mu)) ** 2, FRAME_LEAST, FRAME_MOST)
        self.distance, _ = self.ask_distance(self.frame, FRAME_CAP * self.distance, share)

    def find_axes(self, spread: Array) -> Frame:
        """Principal axes from the correlation matrix in units of ``spread``."""
        radius = CORRELATION_BALL * sqrt(self.d)
        query = CorrelationSum("correlation", Frame(self.frame.center, spread), radius)
        share = self.shares(CORRELATION_SHARES)
        answer = self.account.measure(query, self.held.total(query), share)
        C = radius**2 * query.matrix(answer.values, self.m)
        noise = radius**2 * query.noise(answer.scale, self.m)
        frame = principal_frame(self.frame.center, spread, C, noise)
        self.account.note(width=frame.width.tolist())
        return self.turn(frame)

    def find_centre(self) -> None:
        """A better centre, in the final shape."""
        radius = CENTRE_BALL * self.distance
        z, sigma = self.ask_mean("centre", self.frame, radius, self.shares(CENTRE_SHARES))
        center = self.frame.back(z)
        self.prior = center, sigma, radius
        self.frame = self.frame.moved(self.inside(center))

    def find_radius(self) -> tuple[float, float]:
        """Radius of the last ellipsoid and its expected squared error."""
        tail = self.ask_tail(TAIL_SHARE)
        return tail.radius(self.frame, self.distance, self.m, self.noise())

    def ask_tail(self, share: float) -> Tail:
        """Histogram of the distances to the centre, in the frame."""
        edges = tail_edges(self.distance, self.reach() / float(self.frame.width.min()))
        query = Histogram("tail", self.frame, edges)
        answer = self.account.measure(query, self.held.total(query), share)
        noise = answer.scale / query.unit
        tail = Tail.of(edges, answer.values / query.unit, noise, self.m)
        self.account.note(edges=edges.tolist(), beyond=tail.beyond.tolist())
        return tail

    def fits(self) -> bool:
        """Whether the data lie near the public reference: the search then starts there.

        If not, a mean over the whole domain is still shrunk toward the reference's
        centre where the resolution allows no search.
        """
        assert self.reference is not None
        frame = self.reference.frame.moved(self.inside(self.reference.frame.center))
        share = clip((FIT_FACTOR / (self.m * self.mu)) ** 2, FIT_LEAST, FIT_MOST)
        distance, blur = self.ask_distance(frame, self.far, share)
        if distance + FIT_CLEAR * blur > FIT * self.far:
            if self.resolution < ROUNDS_FROM:
                self.frame = Frame.plain(frame.center)
            return False
        self.frame, self.distance = frame, distance
        self.radius = FIT_BALL * distance + FIT_BLUR * blur
        return True

    def near_reference(self) -> Found:
        """A few rounds in the reference's shape, if affordable; then the mean."""
        if self.resolution >= ROUNDS_FROM:
            self.find_ball(FIT_ROUNDS)
            self.radius *= FIT_LAST
        loss = float(self.frame.width @ self.frame.width) * (self.noise() * self.radius) ** 2
        return self.guarded(self.radius, loss)
