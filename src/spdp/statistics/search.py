r"""Private centre and radius: most of the budget goes into a ball as small as the data.

A public domain is far wider than the data in it. Since means in a flat metric are means
in R^d, a few cheap private queries find out where the records are and how far they
spread, and the final mean is clipped to that ball:

1. *centre*: noisy mean of the records clipped to the current ball, shrunk toward the
   ball's centre (James–Stein);
2. *distance*: noisy mean of the records' distances to it. While the centre's own error
   dominates that distance, the ball shrinks around the new centre and both are
   repeated;
3. *shape*: noisy mean of |y − c| coordinate by coordinate; coordinate j is then
   measured in units w_j = √(its spread), which spends noise where the data are wide (as
   in PLAN, Aumüller et al. 2023; the optimum for independent coordinates);
4. *tail*: noisy histogram of the distances. The radius minimises known noise plus the
   clipping bias that the histogram's tail allows;
5. *mean*: the clipped mean in that ellipsoid, with all the budget that is left,
   combined with the last noisy centre by precision.

If the first round finds that the data fill the domain, or no radius promises less than
the whole domain, the rest is spent there. Below a resolution of 8 nothing can be found:
all is spent on one mean, shrunk toward the domain's centre.

The search looks at the records that the engine holds (all of them, or a part that
depends on the sizes of blocks only); the last step reads all records.

Limit. A minority too small to be counted privately at the given budget, but far away,
is clipped: the result then describes the majority.

*Enforced.* Every number comes from :meth:`~spdp.privacy.account.Account.measure`.
*Assumed.* All choices here (rounds, radii, shapes, shares) are functions of public
numbers and of earlier answers; the replay audit checks it. *Therefore* the search costs
what its account says.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from spdp.charts import clip_to_ball
from spdp.engines import Held
from spdp.kernels import Region
from spdp.privacy.account import Account
from spdp.queries import AbsoluteSum, DistanceSum, Histogram, VectorSum

__all__ = ["KEEP_BYTES", "Found", "Search", "predict", "resolution", "shrink"]

Array = NDArray[np.float64]

# vectors kept for the search; of more records it looks at every 2nd, 4th, … block
KEEP_BYTES = 160 << 20
MAX_ROUNDS = 6
# Shares of μ². A round's share makes the ball shrink to about 0.4 of its radius.
ROUND_FACTOR, ROUND_LEAST, ROUND_MOST = 5.0, 0.015, 0.15
DISTANCE_SHARE = 0.2  # of a round's
SHAPE_SHARE, TAIL_SHARE, FINAL_SHARE = 0.03, 0.08, 0.5  # the last one at least
# Resolutions n·μ/√d from which the ball can shrink, and the shape can be seen.
SHRINK_FROM, SHAPE_FROM = 8.0, 25.0
# Next radius, in units of the typical distance: clipping half of the records costs less
# than noise on a wider ball.
BALL = 0.95
# Squared error of the centre over squared distance below which a round would not pay.
SETTLED = 0.12
# A ball that does not shrink below this share of the domain: the data fill the domain.
FULL = 0.85
FAR = 2.0  # growth of the histogram's outer intervals
# Standard deviations by which a noisy tail must stand out: few near the bulk, many far
# out,
# where believing in noise costs most.
CAUTION_NEAR, CAUTION_SLOPE, CAUTION_FAR = 1.0, 2.0, 3.5
TAIL_FACTORS = np.array([0.45, 0.55, 0.65, 0.75, 0.85, 0.95, 1.1, 1.25, 1.45, 1.7, 2.1, 2.7])


def resolution(n: float, d: int, mu: float) -> float:
    """n·μ/√d: twice a ball's radius over the rms noise of a mean in it.

    The one public number all choices here start from.
    """
    return n * mu / sqrt(d)


def predict(n: float, d: int, mu: float, radius: float, spread: float) -> float:
    """Expected squared noise for data that spread over ``spread``.

    A rule of thumb from public numbers, without shape and clipping bias, which pull in
    opposite directions.
    """
    whole = d * (2.0 * radius / (n * mu)) ** 2
    if resolution(n, d, mu) < SHRINK_FROM:
        return min(whole, radius**2)
    return min(whole, d * (2.0 * 1.2 * spread / (n * mu)) ** 2 / 0.75)


def shrink(v: Array, sigma: float) -> tuple[Array, float]:
    """Positive-part James–Stein estimate of a mean seen as v under noise σ²·I.

    Gives it with an estimate of its squared error. Post-processing, and in three
    dimensions or more never worse in expectation than v itself.
    """
    d, square = len(v), float(v @ v)
    if d < 3 or square == 0.0:
        return v, d * sigma**2
    factor = max(0.0, 1.0 - (d - 2) * sigma**2 / square)
    return factor * v, max(factor * d * sigma**2, min(square, (d - 2) * sigma**2) * 0.25)


@dataclass(frozen=True)
class Found:
    """What a search released.

    Estimate, variances of its noise, radius of the last ball.
    """

    y: Array
    variances: Array
    radius: float


class Search:
    """One run of the method.

    Its state is the current ball, released or the public domain.
    """

    def __init__(self, held: Held, region: Region, account: Account) -> None:
        self.held, self.region, self.account = held, region, account
        self.n, self.m, self.d = held.n, held.m, held.d
        self.ones = np.ones(self.d)
        self.center, self.radius = region.center, region.radius
        self.resolution = resolution(self.m, self.d, account.mu)
        self.fills_domain = False

    def noisy_mean(
        self, name: str, width: Array, radius: float, share: float, whole: bool = True
    ) -> tuple[Array, float]:
        """Clipped mean around the current centre, in units of ``width``, and its noise.

        Relative to the centre; of all records, or of those that the search looks at.
        """
        query = VectorSum(name, self.center, width, radius)
        exact = self.held.total(query, whole)
        noisy, scale = self.account.measure(
            query, exact, share, center=self.center.tolist(), radius=radius
        )
        unit = query.step / (self.n if whole else self.m)
        return noisy * unit, scale * unit

    def run(self) -> Found:
        """All steps of this module's text."""
        if self.resolution < SHRINK_FROM:
            v, sigma = self.noisy_mean("mean", self.ones, self.radius, 1.0)
            y, variances = self.center + shrink(v, sigma)[0], np.full(self.d, sigma**2)
            return Found(y, variances, self.radius)
        prior, prior_sigma, distance = self.find_ball()
        width, radius = self.ones, self.radius
        if not self.fills_domain:
            width, distance = self.find_shape(distance)
            radius = self.find_radius(width, distance)
        if self.fills_domain:  # spend the rest on one more mean over all of it
            self.center, width = self.region.center, self.ones
            radius = self.region.radius
        z, sigma = self.noisy_mean("mean", width, radius, 1.0)
        if width is self.ones and not self.fills_domain:
            z = shrink(z, sigma)[0]
        self.account.note(width=width.tolist())
        y, variance = self.center + width * z, (width * sigma) ** 2
        return Found(*self.combine(y, variance, prior, prior_sigma), radius)

    def combine(
        self, y: Array, variance: Array, prior: Array, prior_sigma: float
    ) -> tuple[Array, Array]:
        """Weigh the last noisy centre, an independent estimate, and y."""
        weight = variance / (variance + prior_sigma**2)
        return (1 - weight) * y + weight * prior, variance * (1 - weight)

    def find_ball(self) -> tuple[Array, float, float]:
        """Shrink the ball round by round.

        Gives the last noisy centre, its noise, and the typical distance to the new one.
        """
        share = float(np.clip((ROUND_FACTOR / self.resolution) ** 2, ROUND_LEAST, ROUND_MOST))
        reserved = (1 + DISTANCE_SHARE) * share + FINAL_SHARE + SHAPE_SHARE + TAIL_SHARE
        for turn in range(MAX_ROUNDS):
            v, sigma = self.noisy_mean("centre", self.ones, self.radius, share, whole=False)
            prior, (offset, error) = self.center + v, shrink(v, sigma)
            self.center = clip_to_ball(self.center + offset, self.region.center, self.region.radius)
            distance, blur = self.typical_distance(DISTANCE_SHARE * share)
            radius = min(BALL * distance + blur, self.radius)
            if turn == 0 and radius > FULL * self.radius:
                self.fills_domain = True
                break
            settled = error < SETTLED * distance**2 or radius > FULL * self.radius
            self.radius = radius
            if settled or self.account.left < reserved:
                break
        return prior, sigma, distance

    def typical_distance(self, share: float) -> tuple[float, float]:
        """Noisy mean distance of the records to the centre, and the noise in it."""
        cap = self.radius
        query = DistanceSum("distance", self.center, cap)
        noisy, scale = self.account.measure(query, self.held.total(query), share)
        unit = cap / query.sensitivity(self.account.adjacency) / self.m
        blur = scale * unit
        distance = float(np.clip(noisy[0] * unit, max(blur, 1e-9 * self.radius), cap))
        self.account.note(center=self.center.tolist(), distance=distance)
        return distance, blur

    def find_shape(self, distance: float) -> tuple[Array, float]:
        """Units of each coordinate, of mean square 1, and the distance in them."""
        if self.resolution < SHAPE_FROM or self.d < 2:
            return self.ones, distance
        query = AbsoluteSum("shape", self.center, self.ones, self.radius)
        noisy, scale = self.account.measure(query, self.held.total(query), SHAPE_SHARE)
        unit = VectorSum("", self.center, self.ones, self.radius).step / self.m
        # of a Gaussian coordinate with this mean absolute value
        spread = 1.25 * noisy * unit
        floor = max(2.5 * scale * unit, 0.02 * float(spread.max()), 1e-12 * self.radius)
        spread = np.maximum(spread, floor)
        width = np.sqrt(spread / spread.mean())
        self.account.note(spread=spread.tolist())
        return width, float(np.sqrt(((spread / width) ** 2).sum()))

    def find_radius(self, width: Array, distance: float) -> float:
        """Radius, in units of ``width``, that balances noise against clipping bias.

        The noise of a mean clipped at r is known. Its bias is at most
        B(r) = ∫_r^∞ (share of records beyond x) dx, which is read off the noisy
        histogram, as far as its tail stands out from the noise. If nothing beats the
        whole domain, the data are taken to fill it.
        """
        edges = self.tail_edges(width, distance)
        query = Histogram("tail", self.center, width, edges)
        noisy, scale = self.account.measure(query, self.held.total(query), TAIL_SHARE)
        beyond = np.cumsum(noisy[::-1])[::-1][1:] / query.unit
        error = scale / query.unit * np.sqrt(np.arange(len(edges), 0, -1))
        caution = CAUTION_NEAR + CAUTION_SLOPE * np.log(edges / distance)
        doubt = np.clip(caution, 0.5, CAUTION_FAR) * error
        seen = np.maximum.accumulate(np.clip(beyond - doubt, 0.0, self.m)[::-1])[::-1]
        self.account.note(edges=edges.tolist(), beyond=beyond.tolist())
        return self.best_radius(width, edges, seen)

    def tail_edges(self, width: Array, distance: float) -> Array:
        """Edges of the histogram: dense around the typical distance, then doubling."""
        farthest = 2.0 * self.region.radius / float(width.min())
        grow = FAR ** np.arange(1, 40)
        edges = distance * np.concatenate([TAIL_FACTORS, TAIL_FACTORS[-1] * grow])
        return np.append(edges[edges < farthest], farthest)

    def best_radius(self, width: Array, edges: Array, seen: Array) -> float:
        """The radius of least noise and bias, for ``seen`` records beyond each edge."""
        x = np.concatenate([np.linspace(a, b, 9)[:-1] for a, b in pairwise(edges)] + [edges[-1:]])
        tail = np.interp(x, edges, seen) / self.m
        pieces = 0.5 * (tail[1:] + tail[:-1]) * np.diff(x)
        bias = np.append(np.cumsum(pieces[::-1])[::-1], 0.0)
        left = self.n * self.account.mu * sqrt(self.account.left)
        noise = 2.0 * x / left
        # a bias lies mostly along wide coordinates: between the mean square and the
        # largest
        square = float(width @ width)
        reach = 0.5 * (float(width.max()) ** 2 + square / self.d)
        loss = square * noise**2 + reach * bias**2
        best = int(np.argmin(loss))
        whole = self.d * (2.0 * self.region.radius / left) ** 2
        self.fills_domain = bool(loss[best] > whole)
        return float(x[best])
