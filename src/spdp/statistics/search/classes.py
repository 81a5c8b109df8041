r"""A private search for where each class is, and its moments taken there.

1. the ball of all records, without their classes (:mod:`.run`);
2. *classes*: counts and sums of the classes in that ball; each class's centre is its
   noisy mean, shrunk toward the ball's;
3. *within*, *spread*: typical distance to the class centres and spread along each
   coordinate, pooled over the classes;
4. *shape*, for full second moments that can be seen: moments around the class centres
   in a small ball of those units; better centres, principal axes;
5. *tail*: a histogram of distances; the radius balances noise against clipping
   (:mod:`.tail`);
6. *moments*: counts, sums and second moments with all that is left, in units of the
   spread along the axes for covariances, of its root for means.

Means of later steps are shrunk toward the centres that they are taken around, which
weighs each step's estimate by its noise; so is a covariance (:mod:`.covariance`).
Where no ball can be found, or where clipping would cost more than the whole domain,
the moments are those of the records in the whole domain.

All choices are functions of public numbers and of released ones, as in :mod:`.run`.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from spdp.charts import Chart, clip_to_ball
from spdp.engines import Held
from spdp.frame import Frame
from spdp.kernels import Region
from spdp.privacy.account import Account
from spdp.privacy.bounds import Bound
from spdp.privacy.joint import joint_bound, joint_law, least_count
from spdp.queries import (
    RECORD_NORM,
    WHOLE,
    CentredDistance,
    CentredHistogram,
    CentredSpread,
    Moments,
    MomentSum,
)
from spdp.statistics.search.covariance import cleared, raised
from spdp.statistics.search.joint import pulled_bound
from spdp.statistics.search.run import MAX_ROUNDS, ROUNDS_FROM, Search
from spdp.statistics.search.shape import axis_frame, spreads
from spdp.statistics.search.shrink import shrink
from spdp.statistics.search.state import Outside, clip
from spdp.statistics.search.tail import Tail, tail_edges

__all__ = ["ClassSearch", "FoundClasses"]

Array = NDArray[np.float64]

COARSE_SHARES = (13.0, 0.10, 0.20)  # share clip((factor/resolution)², least, most)
WITHIN_SHARE, SPREAD_SHARE, TAIL_SHARE, SHAPE_SHARE = 0.01, 0.03, 0.03, 0.25
COARSE_BALL = 1.25  # over the radius of the last ball of all records
WITHIN_CAP, SPREAD_BALL, SHAPE_BALL = 2.0, 1.5, 1.0  # over the typical distance
LAST_BALL = 0.8  # over the best radius for means, where second moments are wanted
SHAPE_FROM = 0.75  # n·μ/d^1.5 from which principal axes can be seen


@dataclass(frozen=True, eq=False)
class FoundClasses:
    """What was found of the classes, in a chart's coordinates.

    ``covariance`` is that within the classes, (d, d) or its diagonal (d,), or None.
    ``seen`` says which classes stand on records of their own. ``bound`` is that on the
    means' joint error, where nothing was clipped or shrunk; else ``pulled`` may be one
    for the means of the pulled records (:mod:`.joint`).
    """

    means: Array  # (C, d)
    counts: Array  # (C,)
    covariance: Array | None
    seen: NDArray[np.bool_]
    bound: Bound | None = None
    outside: Outside | None = None
    pulled: Bound | None = None


class Tally:
    """Noisy counts of the classes, seen several times: their mean by precision."""

    def __init__(self, classes: int) -> None:
        self.sum, self.weight = np.zeros(classes), 0.0

    def add(self, found: Moments) -> None:
        self.sum = self.sum + found.counts / found.count_sd**2
        self.weight += found.count_sd**-2

    @property
    def sd(self) -> float:
        return 1.0 / sqrt(self.weight)

    @property
    def seen(self) -> NDArray[np.bool_]:
        return np.asarray(self.sum / self.weight >= least_count(self.sd))

    @property
    def counts(self) -> Array:
        """Estimates, none of them too small to divide by."""
        return np.maximum(self.sum / self.weight, least_count(self.sd))


class Ball(Search):
    """The search for the ball of all records, which leaves enough for what follows."""

    def later_share(self) -> float:
        coarse = self.shares(COARSE_SHARES)
        return coarse + WITHIN_SHARE + SPREAD_SHARE + SHAPE_SHARE + TAIL_SHARE


class ClassSearch:
    """One run over labelled ``held``, on ``account``.

    Parameters
    ----------
    held : Held
        Vectors with the places of their labels in the public list of classes.
    account : Account
    region : Region
        The public domain.
    chart : Chart
    classes : int
        Their number.
    second : "none", "diagonal" or "full"
        The covariance within classes to look for.
    """

    def __init__(
        self,
        held: Held,
        account: Account,
        region: Region,
        chart: Chart,
        classes: int,
        second: str,
    ) -> None:
        self.held, self.account, self.region = held, account, region
        self.search = Ball(held.unlabelled(), account, region, chart)
        self.classes, self.second = classes, second
        self.n, self.m, self.d = self.search.n, self.search.m, self.search.d
        self.tally = Tally(classes)
        self.centers = np.tile(region.center, (classes, 1))
        self.distance = region.radius

    def run(self) -> FoundClasses:
        """The steps of this module's text."""
        outside = self.search.ask_outside()
        if self.search.resolution < ROUNDS_FROM or not self.search.find_ball(MAX_ROUNDS):
            return self.whole(outside)
        self.find_centers()
        frame = self.find_frame()
        if self.second == "full" and self.n * self.search.mu >= SHAPE_FROM * self.d**1.5:
            frame = self.find_axes(frame)
        radius, loss = self.find_radius(frame)
        if self.second == "none" and loss > self.d * (self.region.radius * self.noise()) ** 2:
            return self.whole(outside)
        ball = 1.0 if self.second == "none" else LAST_BALL
        return self.last(frame, ball * radius, outside)

    # --- steps

    def find_centers(self) -> None:
        """Centres of the classes in the ball of all records."""
        ball = COARSE_BALL * self.search.radius
        query = MomentSum("classes", self.search.frame, ball, self.classes)
        found = self.ask(query, self.search.shares(COARSE_SHARES))
        self.centers = np.tile(self.search.frame.center, (self.classes, 1))
        self.move(Frame.plain(self.search.frame.center), found)

    def find_frame(self) -> Frame:
        """Units along the coordinates, from spreads within the classes."""
        plain = Frame.plain(self.region.center)
        cap = WITHIN_CAP * self.search.distance
        within = CentredDistance("within", plain, self.centers, cap)
        answer = self.account.measure(within, self.held.total(within), WITHIN_SHARE)
        unit = cap / RECORD_NORM / self.m
        blur = answer.scale * unit
        distance = clip(float(answer.values[0]) * unit, max(blur, 1e-9 * cap), cap)
        self.account.note(distance=distance)
        radius = SPREAD_BALL * distance
        query = CentredSpread("spread", plain, self.centers, radius)
        answer = self.account.measure(query, self.held.total(query), SPREAD_SHARE)
        unit = radius / RECORD_NORM / self.m
        spread = spreads(answer.values * unit, answer.scale * unit)
        self.account.note(spread=spread.tolist())
        frame = axis_frame(plain.center, spread)
        if self.second != "none":
            frame = Frame(plain.center, spread)
        self.distance = float(np.linalg.norm(spread / frame.width))
        return frame

    def find_radius(self, frame: Frame) -> tuple[float, float]:
        """Radius for the class means in a frame, and their expected squared error."""
        longest = self.region.radius + float(
            np.linalg.norm(self.centers - self.region.center, axis=1).max()
        )
        edges = tail_edges(self.distance, longest / float(frame.width.min()))
        query = CentredHistogram("tail", frame, self.centers, edges)
        answer = self.account.measure(query, self.held.total(query), TAIL_SHARE)
        tail = Tail.of(edges, answer.values / WHOLE, answer.scale / WHOLE, self.m)
        self.account.note(edges=edges.tolist(), beyond=tail.beyond.tolist())
        return tail.radius(frame, self.distance, self.m, self.noise())

    def find_axes(self, frame: Frame) -> Frame:
        """Principal axes within the classes, and the spread along each.

        Noise grows with the square of the radius, so that a small one pays.
        """
        radius = SHAPE_BALL * self.distance
        query = MomentSum(
            "shape", frame, radius, self.classes, "full", True, np.array(self.centers)
        )
        found = self.ask(query, SHAPE_SHARE)
        clear = self.combined(found, self.move(frame, found))
        values, V = np.linalg.eigh(clear * np.outer(frame.width, frame.width))
        self.distance = sqrt(self.d)
        return Frame(frame.center, np.sqrt(values), V)

    def last(self, frame: Frame, radius: float, outside: Outside | None) -> FoundClasses:
        """The moments with all that is left."""
        query = MomentSum(
            "moments", frame, radius, self.classes, self.second, True, np.array(self.centers)
        )
        found = self.ask(query, 1.0)
        self.account.note(width=frame.width.tolist())
        offsets = self.move(frame, found)
        covariance = None
        if self.second != "none":
            covariance = self.turned_back(frame, self.combined(found, offsets))
        counts, seen = self.tally.counts, self.tally.seen
        pulled = None
        if seen.all():
            moved = offsets - found.sums / counts[:, None]
            pulled = pulled_bound(frame, radius, found, counts, self.tally.sd, moved, self.n)
        elif seen.any():
            self.centers[~seen] = np.average(self.centers[seen], axis=0, weights=counts[seen])
        return FoundClasses(self.centers, counts, covariance, seen, None, outside, pulled)

    def whole(self, outside: Outside | None) -> FoundClasses:
        """The moments over the whole domain, with all that is left."""
        frame = Frame.plain(self.region.center)
        query = MomentSum("moments", frame, self.region.radius, self.classes, self.second)
        answer = self.account.measure(query, self.held.total(query, True), 1.0)
        self.account.note(radius=query.radius)
        return whole_domain(query.moments(answer.values, answer.scale), self.region, outside)

    # --- what the steps share

    def ask(self, query: MomentSum, share: float) -> Moments:
        """Noisy moments of all rows; their counts join those seen before."""
        answer = self.account.measure(query, self.held.total(query, True), share)
        found = query.moments(answer.values, answer.scale)
        self.tally.add(found)
        self.account.note(radius=query.radius, counts=self.tally.counts.tolist())
        return found

    def move(self, frame: Frame, found: Moments) -> Array:
        """Move centres by noisy, shrunk means (C, d), which are given back, in z."""
        offsets = np.zeros_like(self.centers)
        counts = self.tally.counts
        for c in np.flatnonzero(self.tally.seen):
            offsets[c], _ = shrink(found.sums[c] / counts[c], found.sum_sd / counts[c])
        origin = frame.moved(np.zeros(self.d))
        for place, offset in enumerate(offsets):
            step = self.centers[place] + origin.back(offset)
            self.centers[place] = clip_to_ball(step, self.region.center, self.region.radius)
        return offsets

    def within(self, found: Moments, offsets: Array) -> Array:
        """Covariance within the classes, in units of the frame."""
        part = between(self.tally.counts / self.n, offsets, found.second.ndim)
        return np.asarray(found.second[0] / self.n - part)

    def combined(self, found: Moments, offsets: Array) -> Array:
        """The covariance within the classes, cleared of noise."""
        return cleared(self.within(found, offsets), found.second_sd / self.n)

    def turned_back(self, frame: Frame, C: Array) -> Array:
        """A covariance in z as one in the chart's coordinates."""
        if C.ndim == 1:
            return np.asarray(C * frame.width**2)
        B = (np.eye(self.d) if frame.axes is None else frame.axes) * frame.width
        return np.asarray(B @ C @ B.T)

    def noise(self) -> float:
        """Noise per coordinate of a class mean in a unit ball, with what is left."""
        share = sqrt(float(self.account.left))
        return 2.0 * self.classes / (self.n * self.search.mu * share)


def between(shares: Array, offsets: Array, ndim: int) -> Array:
    """Σ share·δδᵀ of the classes' offsets, or its diagonal where moments are (1, d)."""
    part = shares[:, None] * offsets
    return np.asarray((part * offsets).sum(axis=0) if ndim == 2 else part.T @ offsets)


def whole_domain(found: Moments, region: Region, outside: Outside | None = None) -> FoundClasses:
    """What moments over the whole domain say of the classes; nothing is shrunk."""
    tally = Tally(len(found.counts))
    tally.add(found)
    counts, seen = tally.counts, tally.seen
    total = max(float(counts.sum()), 1.0)
    offsets = found.sums / counts[:, None]
    offsets[~seen] = found.sums.sum(axis=0) / total
    means = np.array(
        [clip_to_ball(region.center + z, region.center, region.radius) for z in offsets]
    )
    covariance = None
    if found.second.size:
        second = found.second[0] / total - between(counts / total, offsets, found.second.ndim)
        covariance = raised(second, found.second_sd / total)
    law = joint_law(counts, means.shape[1], found.sum_sd, found.count_sd, region.radius)
    # rows that count in part are rounded each: so many of them to one that counts fully
    rounding = 2.0 * region.radius / RECORD_NORM * max(1.0, total / float(counts.min()))
    bound = joint_bound(law, means - region.center, seen, region.radius, rounding)
    return FoundClasses(means, counts, covariance, seen, bound, outside)
