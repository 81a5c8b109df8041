r"""A private search for where the data are: centre, ball, shape, clipping bias.

A public domain is far wider than the data in it. Means of a flat metric are means in
R^d, so a few cheap private queries find their centre, dispersion and shape:

- *edge*: how many records lie at the domain's edge, which is where clipping puts those
  outside; no later step depends on the answer, which reveals a wrong unit;
- *rounds*: a noisy mean clipped to the current ball, shrunk toward its centre, is the
  next centre; a noisy mean distance to it sets the next, smaller ball;
- *shape*: mean absolute deviations per coordinate, then the correlation matrix in those
  units, give principal axes and a unit along each (:mod:`.shrinkage`);
- *center*: one more mean in that shape, as clipping toward a poor centre is biased;
- *tail*: a histogram of distances, from which a radius is chosen (:mod:`.radius`);
- *clipping bias*: the mean distance by which the chosen ellipsoid clips.

Statistics compose these steps (:mod:`.mean` those of a mean). All choices are functions
of public numbers and of released ones, so the next query may depend on them. Each
query's integers and sensitivity are in :mod:`spdp.queries`; shares of μ² add up to at
most 1 in the account. With very many records the first steps query a secret random
subsample (:mod:`spdp.engines.store`): a record outside it changes no answer.
"""

from math import sqrt
from typing import TypeVar

import numpy as np

from spdp.adaptive import steps
from spdp.adaptive.radius import Tail, tail_edges
from spdp.adaptive.shrinkage import axis_frame, deviations, principal_frame, shrink, shrink_best
from spdp.adaptive.tuning import TUNING, Share, Tuning
from spdp.domain.base import Space, check_between
from spdp.engines import VectorStore
from spdp.engines.store import CountedStore
from spdp.error.bound import Count
from spdp.kernels.arrays import Array
from spdp.kernels.base import RECORD_NORM, Region
from spdp.options import Adjacency
from spdp.privacy.account import Account
from spdp.queries import Estimate, moments, sums
from spdp.queries.sums import Frame

T = TypeVar("T")

SHORTEST, LONGEST = 1e-50, 1e50  # radii whose fourth powers, noise included, are numbers
COUNT_SHARE = 0.01  # of μ², for a private number of records that a search depends on


def resolution(n: float, d: int, mu: float) -> float:
    """n·μ/√d: twice a ball's radius over the rms noise of a mean in it."""
    return n * mu / sqrt(d)


def check_radius(region: Region) -> None:
    """Refuse, before budget is spent, a radius whose powers float64 cannot hold."""
    check_between(region.radius, SHORTEST, LONGEST)


def counted(store: VectorStore, account: Account, region: Region) -> VectorStore:
    """The store, with a noisy number of records where their number is private.

    Under add-remove adjacency the number of records is private. It is the first query
    of a search, and all later steps use the noisy answer.
    """
    if account.adjacency is Adjacency.REPLACE_ONE:
        return store
    query = sums.whole_domain_sum(region, RECORD_NORM, "count")
    answer = account.ask(query, store, COUNT_SHARE)
    n = max(1, round(answer.estimate.count.value))
    answer.note(steps.CountStep, n_estimate=n)
    return CountedStore(store, n)


def clip(value: float, least: float, most: float) -> float:
    """``value`` kept between ``least`` and ``most``."""
    return min(max(value, least), most)


class Search:
    """A frame, a ball and a typical distance, all of them public or released.

    Parameters
    ----------
    store : VectorStore
        Vectors inside the domain.
    account : Account
        Draws the noise and keeps Σ μᵢ² ≤ μ².
    space : Space
        Chart and public domain.
    tuning : Tuning
    """

    def __init__(
        self, store: VectorStore, account: Account, space: Space, tuning: Tuning = TUNING
    ) -> None:
        self.store, self.account, self.space, self.tuning = store, account, space, tuning
        self.mu = account.mu
        self.n, self.kept, self.d = int(store.n), int(store.m), int(store.d)
        self.one_in, self.m = 1, self.kept
        self.look(tuning.sharp_enough)
        self.domain_center = np.asarray(space.region.center)
        self.domain_radius = float(space.region.radius)
        self.frame, self.radius = Frame.plain(self.domain_center), self.domain_radius
        self.distance = self.domain_radius
        self.axes: Array | None = None  # of the current coordinates; None: the records' own
        self.wide = False  # whether the data nearly fill the domain
        # mean over the domain of the first round, and its noise
        self.first: tuple[Array, float] = (np.zeros(self.d), np.inf)
        # centre found in the last shape, its noise and radius
        self.prior: tuple[Array, float, float] | None = None

    # --- subsampling and coordinates

    def look(self, enough: float) -> None:
        """Subsample records as long as the resolution stays above ``enough``.

        The rate is a function of public numbers; which records are drawn is secret.
        """
        self._look_at_one_in(int(resolution(self.kept, self.d, self.mu) / enough))

    def _look_at_one_in(self, many: int) -> None:
        if max(1, many) != self.one_in:
            self.one_in = max(1, many)
            self.store.subsample(self.one_in)
            self.m = int(self.store.m)
        self.resolution = resolution(self.m, self.d, self.mu)

    def rotate(self, frame: Frame) -> Frame:
        """Change to coordinates along a frame's axes; returns the frame in them."""
        if frame.axes is None:
            return frame
        self.axes = frame.axes
        self.store = self.store.rotated(frame.axes)
        self.domain_center = frame.axes.T @ self.domain_center
        return Frame(frame.axes.T @ frame.center, frame.width)

    def original(self, y: Array) -> Array:
        """A vector in the records' own coordinates."""
        return y if self.axes is None else np.asarray(self.axes @ y)

    def inside(self, y: Array) -> Array:
        """y, or the point of the domain's ball nearest to it."""
        offset = y - self.domain_center
        norm = float(np.sqrt(offset @ offset))
        if norm <= self.domain_radius:
            return y
        return np.asarray(self.domain_center + offset * (self.domain_radius / norm))

    # --- budget shares and distances

    @property
    def public(self) -> bool:
        """Whether the number of records is public."""
        return self.account.adjacency is Adjacency.REPLACE_ONE

    def count(self, noisy: float, sd: float) -> Count:
        """The public number, or the noisy one of the last answer."""
        return Count(float(self.n)) if self.public else Count.noisy(float(noisy), sd)

    def share(self, share: Share) -> float:
        """clip((factor/resolution)², least, most)."""
        return clip((share.factor / self.resolution) ** 2, share.least, share.most)

    def bias_share(self) -> float:
        """Budget share for the clipping bias; its noise is 1/√d of a mean's."""
        t = self.tuning
        return clip(t.bias_factor / self.d, t.bias_least, t.bias_most)

    def bound_share(self) -> float:
        """Budget share for the clipping bias where the error bound uses it."""
        t = self.tuning
        if self.resolution >= t.low or self.d < t.low_from:
            return self.bias_share()
        return clip(t.low_factor / self.d, t.bias_least, t.low_most)

    def reserve(self) -> float:
        """Budget share of shape, centre, tail and clipping bias, after the rounds."""
        t = self.tuning
        share = t.tail_share + self.bound_share() + t.reach_share
        if self.resolution >= t.shape_from:
            share += t.frame_least + self.share(t.deviation) + self.share(t.center)
        if self.resolution >= t.correlate_from:
            share += self.share(t.correlation)
        return share

    def noise(self) -> float:
        """Noise per coordinate of a mean in a unit ball, with all budget left."""
        return 2.0 / (self.n * self.mu * sqrt(self.account.left))

    def whole_loss(self) -> float:
        """Expected squared noise of a mean over the domain, with all budget left."""
        return self.d * (self.domain_radius * self.noise()) ** 2

    def scale(self) -> float:
        """Root mean square of the frame's units, in the metric's distance."""
        return float(np.sqrt(np.mean(self.frame.width**2)))

    def max_distance(self) -> float:
        """Distance from the frame's centre that no record exceeds."""
        offset = float(np.linalg.norm(self.frame.center - self.domain_center))
        return self.domain_radius + offset

    # --- queries

    def ask_center(self, radius: float, share: float) -> Estimate:
        """Noisy mean z in the frame, of records clipped to ``radius``."""
        center = self.original(self.frame.center).tolist()
        query = sums.VectorSum("center", self.frame, radius)
        answer = self.account.ask(query, self.store, share, subsampled=True)
        answer.note(steps.CenterStep, center=center, radius=radius)
        return answer.estimate

    def ask_distance(self, frame: Frame, cap: float, share: float) -> tuple[float, float]:
        """Noisy mean of min(‖z‖, cap) and its noise."""
        query = sums.DistanceSum("distance", frame, cap)
        answer = self.account.ask(query, self.store, share, subsampled=True)
        distance = float(answer.estimate.value[0])
        answer.note(steps.DistanceStep, distance=distance)
        return distance, answer.estimate.sd

    def ask_edge(self) -> None:
        """Share of the records at the domain's edge, if it stands out from noise."""
        before, t = self.one_in, self.tuning
        self._look_at_one_in(self.kept // t.edge_looks)
        try:
            if self.m * self.mu * sqrt(t.edge_most) >= t.edge_seen:
                asked = (t.edge_factor / (self.m * self.mu)) ** 2
                query = sums.EdgeCount("edge", self.space.chart, self.space.region)
                asked = clip(asked, t.edge_least, t.edge_most)
                answer = self.account.ask(query, self.store, asked, subsampled=True)
                share = float(answer.estimate.value[0])
                answer.note(steps.EdgeStep, share=share, sd=answer.estimate.sd)
        finally:
            self._look_at_one_in(before)

    def ask_tail(self, share: float) -> Tail:
        """Histogram of the distances to the centre, in the frame."""
        edges = tail_edges(self.distance, self.max_distance() / float(self.frame.width.min()))
        query = sums.Histogram("tail", self.frame, edges)
        answer = self.account.ask(query, self.store, share, subsampled=True)
        tail = Tail.of(edges, answer.estimate.value, answer.estimate.sd, self.m)
        answer.note(steps.TailStep, edges=edges.tolist(), beyond=tail.beyond.tolist())
        return tail

    def ask_clipping_bias(
        self, radius: float, shares: tuple[float, float], near: float, squares: bool = False
    ) -> steps.ClippingBiasStep:
        """Mean clipping bias at ``radius``, in units of the frame: two numbers.

        The first is that of all records. The second is that of records clipped to
        within ``near`` of the centre or, with ``squares``, of their squared distances.
        """
        longest = radius * float(self.frame.width.max())
        far = max(self.max_distance(), longest)
        reaches = (far, clip(near, longest, far))
        weights = tuple(int(RECORD_NORM * sqrt(share / sum(shares))) for share in shares)
        powers = (1, 2) if squares else None
        query = sums.ClippingBias("clipping bias", self.frame, radius, reaches, weights, powers)
        answer = self.account.ask(query, self.store, sum(shares))
        bias, sd = answer.estimate.value.tolist(), answer.estimate.sd.tolist()
        return answer.note(steps.ClippingBiasStep, bias=bias, sd=sd, reach=list(reaches))

    def ask_square_bias(self, radius: float) -> steps.ClippingBiasStep:
        """Clipping bias of all records, and of squared distances up to a reach."""
        t = self.tuning
        near = t.square_reach * radius * float(self.frame.width.max())
        shares = self.bias_share(), t.square_share
        return self.ask_clipping_bias(radius, shares, near, squares=True)

    # --- steps

    def find_ball(self, rounds: int, reserve: float) -> bool:
        """Shrink the ball round by round; False if the data fill the domain.

        ``reserve`` is the budget share of the steps between rounds and last answer.
        """
        t = self.tuning
        factor = t.round_factor if self.resolution < t.sharp else t.round_factor_sharp
        share = self.share(Share(factor, t.round_least, t.round_most))
        least = min((t.distance_factor / (self.m * self.mu)) ** 2, t.distance_most)
        distance_share = max(t.distance_part * share, least)
        kept = t.kept + reserve + share + distance_share
        for turn in range(rounds):
            error = self._step_center(share)
            self.distance, sd = self.ask_distance(self.frame, self.radius, distance_share)
            if turn == 0 and self.radius == self.domain_radius and self._fills(sd):
                return False
            ball = t.ball_wide if self.wide else t.ball
            radius = min(ball * self.distance + sd, self.radius)
            settled = error < t.settled * self.distance**2 or radius > t.shrunk * self.radius
            self.radius = radius
            if settled or self.account.left < kept:
                break
        return True

    def _step_center(self, share: float) -> float:
        """Move the centre to a noisy, shrunk mean; returns its likely squared error."""
        v, sigma, _ = self.ask_center(self.radius, share)
        if self.radius == self.domain_radius:
            self.first = v, sigma
        if self.frame.axes is None:
            offset, error = shrink_best(v, sigma, self.space.chart.components(v))
        else:
            offset, error = shrink(v, sigma)
        center = self.inside(self.frame.back(offset))
        self.frame = Frame(center, self.frame.width, self.frame.axes)
        return error

    def _fills(self, sd: float) -> bool:
        """Whether no ball is worth its budget, by the first round; sets ``wide``."""
        t = self.tuning
        self.wide = self.distance - t.wide_clear * sd > t.wide * self.domain_radius
        if self.wide and (self.resolution < t.wide_from or self.d < t.many):
            return True
        ball = t.ball_wide if self.wide else t.ball
        return ball * self.distance + sd > t.shrunk * self.domain_radius

    def find_shape(self) -> None:
        """Units along the coordinates, or along principal axes if they can be seen."""
        t = self.tuning
        query = sums.AbsoluteSum("deviation", self.frame, self.radius)
        share = self.share(t.deviation)
        answer = self.account.ask(query, self.store, share, subsampled=True)
        deviation = deviations(answer.estimate.value, answer.estimate.sd)
        answer.note(steps.DeviationStep, deviation=deviation.tolist())
        self.frame = axis_frame(self.frame.center, deviation)
        if self.resolution >= t.correlate_from and 2 < self.d <= t.correlate_up_to:
            self.frame = self._find_axes(deviation)
        share = clip((t.frame_factor / (self.m * self.mu)) ** 2, t.frame_least, t.frame_most)
        self.distance, _ = self.ask_distance(self.frame, t.frame_cap * self.distance, share)

    def _find_axes(self, deviation: Array) -> Frame:
        """Principal axes from the correlation matrix in units of the deviations."""
        radius = self.tuning.correlation_ball * sqrt(self.d)
        query = moments.CorrelationSum("correlation", Frame(self.frame.center, deviation), radius)
        share = self.share(self.tuning.correlation)
        answer = self.account.ask(query, self.store, share, subsampled=True)
        C, sd, _ = answer.estimate
        frame = principal_frame(self.frame.center, deviation, C, sd)
        answer.note(steps.CorrelationStep, width=frame.width.tolist())
        return self.rotate(frame)

    def find_center(self) -> None:
        """A better centre, in the final shape."""
        radius = self.tuning.center_ball * self.distance
        z, sigma, _ = self.ask_center(radius, self.share(self.tuning.center))
        center = self.frame.back(z)
        self.prior = center, sigma, radius
        self.frame = Frame(self.inside(center), self.frame.width, self.frame.axes)
