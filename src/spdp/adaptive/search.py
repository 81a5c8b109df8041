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
- *tail*: a histogram of distances, by which a radius is chosen
  (:mod:`.clipping_radius`);
- *clipping bias*: the mean distance by which the chosen ellipsoid clips.

Statistics compose these steps (:mod:`.mean` those of a mean). All choices are functions
of public numbers and of released ones, so the next query may depend on them. Each
query's integers and sensitivity are in :mod:`spdp.queries`; shares of μ² add up to at
most 1 in the account. With very many records the first steps query a secret random
subsample (:mod:`spdp.engines.subsampling`): a record outside it changes no answer.
"""

from math import sqrt
from typing import TypeVar

import numpy as np

from spdp.adaptive import steps
from spdp.adaptive.clipping_radius import Tail, tail_edges
from spdp.adaptive.preconditioner import axis_frame, deviations, principal_frame
from spdp.adaptive.shrinkage import shrink, shrink_best
from spdp.adaptive.tuning import PURE_TUNING, TUNING, Share, Tuning
from spdp.domain.base import Space
from spdp.engines import VectorStore
from spdp.engines.store import CountedStore
from spdp.error.bound import SURE, Count, laplace_margin
from spdp.error.curvature import Curvature
from spdp.kernels.arrays import Array
from spdp.kernels.base import RECORD_NORM
from spdp.options import Adjacency, Unit
from spdp.privacy.account import Account
from spdp.privacy.budget import Budget
from spdp.queries import Estimate, moments, sums
from spdp.queries.sums import Frame

T = TypeVar("T")

RADII = 1e-50, 1e50  # radii whose fourth powers, noise included, are numbers


def counted(store: VectorStore, account: Account) -> VectorStore:
    """The store, with a noisy number of records where their number is private.

    Under add-remove adjacency the number of records is private. It is the first query
    of a search, and all later steps use the noisy answer.
    """
    if account.adjacency is Adjacency.REPLACE_ONE:
        return store
    tuning = PURE_TUNING if account.budget.mu is None else TUNING
    answer = account.ask(sums.RecordCount("count"), store, tuning.count_share)
    n = max(1, round(float(answer.estimate.value[0])))
    answer.note(steps.CountStep, n_estimate=n)
    return CountedStore(store, n)


def sure_of(budget: Budget, d: int) -> float:
    """Standard deviations that the count in an answer of d + 1 numbers stays below."""
    return SURE if budget.mu is not None else laplace_margin(d + 1)


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
    enough : float
        Resolution above which records are subsampled.
    """

    tuning: Tuning = TUNING

    def __init__(
        self,
        store: VectorStore,
        account: Account,
        space: Space,
        enough: float = TUNING.sharp_enough,
    ) -> None:
        self.store, self.account, self.space = store, account, space
        self.budget, self.mu = account.budget, account.budget.mu or 0.0
        self.n, self.kept, self.d = int(store.n), int(store.m), int(store.d)
        # how far one record moves a sum over a ball, over the radius; and what noise
        # the whole budget then adds to each coordinate
        self.public = account.adjacency is Adjacency.REPLACE_ONE  # whether n is public
        self.moves = 2.0 if self.public else 1.0
        self.whole_noise = self.moves * self.budget.sd(1.0, self.d)
        self.one_in, self.m = 1, self.kept
        self.subsample_to(enough)
        self.domain_center = np.asarray(space.region.center)
        self.domain_radius = float(space.region.radius)
        # step of the lattice that persons' vectors were rounded to
        self.grain = self.domain_radius / RECORD_NORM if account.unit is Unit.PERSON else 0.0
        self.frame, self.radius = Frame.plain(self.domain_center), self.domain_radius
        self.distance = self.domain_radius
        self._farthest: tuple[Frame | None, float] = None, 0.0  # a frame, and max_distance()
        self.axes: Array | None = None  # of the current coordinates; None: the records' own
        self.wide = False  # whether the data nearly fill the domain
        self.rounds: tuple[float, float] | None = None  # shares of a round, where they are set
        self.center_error = np.inf  # likely squared error of the centre of the last round
        # mean over the domain of the first round, and its noise
        self.first: tuple[Array, float] = (np.zeros(self.d), np.inf)
        # centre found in the last shape, its noise and radius
        self.prior: tuple[Array, float, float] | None = None

    # --- subsampling and coordinates

    def subsample_to(self, enough: float) -> None:
        """Subsample records as long as the resolution stays above ``enough``.

        The rate is a function of public numbers; which records are drawn is secret.
        """
        self._subsample_one_in(int(self.resolution_of(self.kept) / enough))

    def _subsample_one_in(self, many: int) -> None:
        if max(1, many) != self.one_in:
            self.one_in = max(1, many)
            self.store.subsample(self.one_in)
            self.m = int(self.store.m)
        self.resolution = self.resolution_of(self.m)

    def resolution_of(self, m: int) -> float:
        """Twice a ball's radius over the rms noise of a mean of m records in it.

        n·μ/√d for Gaussian noise, n·ε/√(d(d + 1)) for Laplace noise; twice that where
        neighbours have one record more.
        """
        return 2.0 * m / (self.whole_noise * sqrt(self.d))

    def rotate(self, frame: Frame) -> Frame:
        """Change to coordinates along a frame's axes; returns the frame in them."""
        if frame.axes is None:
            return frame
        self.axes = axes = self.store.axes_for(frame.axes)
        self.store = self.store.rotated(axes)
        self.domain_center = axes.T @ self.domain_center
        return Frame(axes.T @ frame.center, frame.width)

    def original(self, y: Array) -> Array:
        """A vector in the records' own coordinates."""
        return y if self.axes is None else np.asarray(self.axes @ y)

    def in_chart(self, y: Array) -> Array:
        """A vector as certificates state it, seen from the chart's own point."""
        return self.original(y)

    # --- in a curved metric (:mod:`.affine_invariant`) the chart moves; not here

    def base_point(self) -> Array | None:
        """The point from which records are seen, if it is not the chart's own."""
        return None

    def arrive(self) -> None:
        """See records from the centre that the rounds found."""

    def go_home(self) -> None:
        """See records from the chart's own point again."""

    def worth_recentering(self) -> bool:
        """Whether a first mean over the domain is worth looking from."""
        return False

    def recenter(self) -> float:
        """Ask a mean over the domain and see records from it; returns its noise."""
        raise NotImplementedError

    def released(self, y: Array, reach: float) -> tuple[Array, Curvature | None]:
        """The vector of what is released, and what curvature adds to its bound.

        ``reach`` is a distance from the chart's point that no clipped record exceeds.
        """
        del reach
        return self.original(y), None

    def inside(self, y: Array) -> Array:
        """y, or the point of the domain's ball nearest to it."""
        offset = y - self.domain_center
        norm = float(np.sqrt(offset @ offset))
        if norm <= self.domain_radius:
            return y
        return np.asarray(self.domain_center + offset * (self.domain_radius / norm))

    # --- budget shares and distances

    def count(self, noisy: float, sd: float) -> Count:
        """The public number, or the noisy one of the last answer."""
        if self.public:
            return Count(float(self.n))
        return Count.noisy(float(noisy), sd, sure_of(self.budget, self.d))

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
        left = self.account.left
        return self.account.spread * self.whole_noise / (self.n * (sqrt(left) if self.mu else left))

    def whole_loss(self) -> float:
        """Expected squared noise of a mean over the domain, with all budget left."""
        return self.d * (self.domain_radius * self.noise()) ** 2

    def scale(self) -> float:
        """Root mean square of the frame's units, in the metric's distance."""
        return float(np.sqrt(np.mean(self.frame.width**2)))

    def max_distance(self) -> float:
        """Distance from the frame's centre that no record exceeds."""
        if self._farthest[0] is not self.frame:
            center = self.original(self.frame.center)
            far = self.space.chart.farthest(center, self.space.region)
            self._farthest = self.frame, far
        return self._farthest[1]

    # --- queries

    def ask_center(self, radius: float, share: float) -> Estimate:
        """Noisy mean z in the frame, of records clipped to ``radius``."""
        center = self.in_chart(self.frame.center).tolist()
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
        most = t.edge_most if self.mu else PURE_TUNING.edge_most
        if self.mu == 0 or not t.edge_looks <= self.m <= t.edge_most_looks:  # else that will do
            self._subsample_one_in(self.kept // t.edge_looks if self.mu else 1)
        try:
            if self.budget.sd(most, 1) * t.edge_seen <= self.m:
                asked = self.budget.share(self.m / t.edge_factor, 1)
                query = sums.EdgeCount("edge", self.space.chart, self.space.region)
                asked = clip(asked, t.edge_least, most)
                answer = self.account.ask(query, self.store, asked, subsampled=True)
                share = float(answer.estimate.value[0])
                answer.note(steps.EdgeStep, share=share, sd=answer.estimate.sd)
        finally:
            self._subsample_one_in(before)

    def ask_tail(self, share: float) -> Tail:
        """Histogram of the distances to the centre, in the frame."""
        edges = tail_edges(self.distance, self.max_distance() / float(self.frame.width.min()))
        query = sums.Histogram("tail", self.frame, edges)
        answer = self.account.ask(query, self.store, share, subsampled=True)
        tail = Tail.of(edges, answer.estimate.value, answer.estimate.sd, self.m)
        answer.note(steps.TailStep, edges=edges.tolist(), beyond=tail.beyond.tolist())
        return tail

    def ask_clipping_bias(
        self, radius: float, shares: tuple[float, ...], near: float = 0.0, squares: bool = False
    ) -> steps.ClippingBiasStep:
        """Mean clipping bias at ``radius``, in units of the frame: one or two numbers.

        The first is that of all records. The second, if a share is given for it, is
        that of records clipped to within ``near`` of the centre or, with ``squares``,
        of their squared distances.
        """
        longest = radius * float(self.frame.width.max())
        far = max(self.max_distance(), longest)
        reaches = (far, clip(near, longest, far))[: len(shares)]
        weights = tuple(int(RECORD_NORM * sqrt(share / sum(shares))) for share in shares)
        powers = (1, 2) if squares else None
        return self.ask_bias("clipping bias", radius, reaches, weights, sum(shares), powers)

    def ask_bias(
        self,
        name: str,
        radius: float,
        reaches: tuple[float, ...],
        weights: tuple[int, ...],
        share: float,
        powers: tuple[int, ...] | None = None,
    ) -> steps.ClippingBiasStep:
        """Mean clipping bias at ``radius``, by reach."""
        query = sums.ClippingBias(name, self.frame, radius, reaches, weights, powers)
        answer = self.account.ask(query, self.store, share)
        bias, sd = answer.estimate.value.tolist(), answer.estimate.sd.tolist()
        told = {"bias": bias, "sd": sd, "reach": list(reaches), "shortest": query.shortest}
        return answer.note(steps.ClippingBiasStep, **told)

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
        share, distance_share = self.round_shares()
        kept = t.kept + reserve + share + distance_share
        for turn in range(rounds):
            self.step_center(share)
            self.distance, sd = self.ask_distance(self.frame, self.radius, distance_share)
            if turn == 0 and self.radius == self.domain_radius and self._fills(sd):
                return False
            ball = t.ball_wide if self.wide else t.ball
            radius = min(ball * self.distance + sd, self.radius)
            still = radius > t.shrunk * self.radius
            settled = self.center_error < t.settled * self.distance**2 or still
            self.radius = radius
            if settled or self.account.left < kept:
                break
        return True

    def round_shares(self) -> tuple[float, float]:
        """Budget shares of a round: of its centre, and of its distance."""
        if self.rounds is not None:
            return self.rounds
        t = self.tuning
        factor = t.round_factor if self.resolution < t.sharp else t.round_factor_sharp
        share = self.share(Share(factor, t.round_least, t.round_most))
        least = min((t.distance_factor / (self.m * self.mu)) ** 2, t.distance_most)
        return share, max(t.distance_part * share, least)

    def step_center(self, share: float) -> float:
        """Set the centre to a noisy, shrunk mean; returns its likely squared error."""
        v, sigma, _ = self.ask_center(self.radius, share)
        if self.radius == self.domain_radius:
            self.first = v, sigma
        if self.frame.axes is None:
            offset, error = shrink_best(v, sigma, self.space.chart.components(v))
        else:
            offset, error = shrink(v, sigma)
        center = self.inside(self.frame.back(offset))
        self.frame = Frame(center, self.frame.width, self.frame.axes)
        self.center_error = error
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
