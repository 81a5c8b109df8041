r"""Adaptive clipping for class means: a private search, then moments by class.

1. the ball of all records, without their classes (:class:`.Search`);
2. *class centers*: counts and sums of the classes in that ball; each class's centre is
   its noisy mean, shrunk toward the ball's;
3. *class distance*, *class deviation*: typical distance to the class centres and
   deviation along each coordinate, pooled over the classes;
4. *class shape*, where full second moments stand out from noise: moments around the
   class centres in a small ball in those units, for better centres and principal axes;
5. *class tail*: a histogram of distances; the radius balances noise against clipping
   (:mod:`.clipping_radius`);
6. *moments*: counts, sums and second moments, with the rest of the budget. Units along
   the axes are the deviations where a covariance is wanted, their roots otherwise.

Means of later steps are shrunk toward the centres that they are taken around, which
weighs each step's estimate by its noise. Covariances are shrunk as well
(:mod:`.shrinkage`). Where no ball is found, or, for means alone, where clipping is
expected to err more than a mean over the whole domain, the moments are those of the
records in the whole domain.

All choices are functions of public numbers and of released ones, as in :mod:`.search`.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.adaptive import steps
from spdp.adaptive.clipping_radius import Tail, tail_edges
from spdp.adaptive.preconditioner import axis_frame, deviations
from spdp.adaptive.search import Search
from spdp.adaptive.shrinkage import floored, shrink, shrunk_covariance
from spdp.adaptive.steps import Kinds, Numbers, Queries, most_records
from spdp.adaptive.tuning import TUNING, Share
from spdp.charts import clip_to_ball
from spdp.domain.base import Space
from spdp.engines import VectorStore
from spdp.error import class_means
from spdp.error.bound import Bound
from spdp.kernels.arrays import Array
from spdp.kernels.base import RECORD_NORM
from spdp.privacy.account import Account, Answer, Step
from spdp.queries import moments
from spdp.queries.moments import Moments
from spdp.queries.sums import Frame

# Tuned like the numbers of :mod:`.tuning`, for the accuracy of classifiers on the same
# sets: shares of μ², and balls over the typical distance.
COARSE = Share(13.0, 0.10, 0.20)
WITHIN_SHARE, DEVIATION_SHARE, TAIL_SHARE, SHAPE_SHARE = 0.01, 0.03, 0.03, 0.25
COARSE_BALL = 1.25  # over the radius of the last ball of all records
WITHIN_CAP, DEVIATION_BALL, SHAPE_BALL = 2.0, 1.5, 1.0
LAST_BALL = 0.8  # over the best radius for means, where second moments are wanted
SHAPE_FROM = 0.75  # n·μ/d^1.5 from which principal axes can be seen
TALLIED = ("class centers", "class shape", "moments")  # steps whose counts are averaged


class CountsStep(Step):
    """Radius of the ball, and counts of the classes, averaged over answers so far."""

    radius: steps.Length
    counts: Numbers


class MomentsStep(CountsStep):
    """The last answer; ``width`` holds the frame's units, None for the whole domain."""

    classes: list[steps.Label]  # the public list
    unseen: list[steps.Label]  # those whose counts do not stand out from noise
    width: Numbers | None = None


CLASS_STEPS: Kinds = {
    **steps.BALL,
    "class centers": CountsStep,
    "class distance": steps.DistanceStep,
    "class deviation": steps.DeviationStep,
    "class shape": CountsStep,
    "class tail": steps.TailStep,
    "moments": MomentsStep,
}


def class_queries(space: Space, classes: int, second: str) -> Queries:
    """One query of each step's kind, for its sensitivity."""
    center = space.region.center
    frame, centers = Frame.plain(center), np.tile(center, (classes, 1))
    return steps.ball_queries(space) | {
        "class centers": moments.MomentSum("", frame, 1.0, classes),
        "class distance": moments.ClassDistance("", frame, centers, 1.0),
        "class deviation": moments.ClassDeviation("", frame, centers, 1.0),
        "class shape": moments.MomentSum("", frame, 1.0, classes, "full"),
        "class tail": moments.ClassHistogram("", frame, centers, center[:1]),
        "moments": moments.MomentSum("", frame, 1.0, classes, second),
    }


@dataclass(frozen=True, eq=False)
class FoundClasses:
    """What was found of the classes, in a chart's coordinates.

    ``covariance`` is the covariance within the classes, (d, d), its diagonal (d,), or
    None. ``bound`` bounds the joint error of the means; it is None where records were
    clipped or means shrunk. Then ``clipped``, if not None, bounds their joint distance
    from the means of the clipped records.
    """

    means: Array  # (C, d)
    counts: Array  # (C,)
    covariance: Array | None
    bound: Bound | None = None
    clipped: Bound | None = None


class Tally:
    """Noisy counts of the classes from several answers, averaged by precision."""

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
        return np.asarray(self.sum / self.weight >= class_means.least_count(self.sd))

    @property
    def counts(self) -> Array:
        """Estimated counts, raised to the least count at which a class is seen."""
        return np.maximum(self.sum / self.weight, class_means.least_count(self.sd))

    def unseen(self, names: list[Any]) -> list[Any]:
        """Classes too small to be seen, by name."""
        return [name for name, seen in zip(names, self.seen, strict=True) if not seen]


class ClassSearch:
    """One run over labelled vectors.

    Parameters
    ----------
    store : VectorStore
        Vectors with the places of their labels in the public list of classes.
    account : Account
    space : Space
    names : list
        The public list of classes.
    second : "none", "diagonal" or "full"
        The covariance within classes to estimate.
    """

    def __init__(
        self, store: VectorStore, account: Account, space: Space, names: list[Any], second: str
    ) -> None:
        self.store, self.account, self.space = store, account, space
        self.search = Search(store.pooled(), account, space)
        self.names, self.classes, self.second = names, len(names), second
        self.n, self.m, self.d = self.search.n, self.search.m, self.search.d
        self.tally = Tally(self.classes)
        self.centers = np.tile(space.region.center, (self.classes, 1))
        self.distance = space.region.radius

    def run(self) -> FoundClasses:
        """Run the steps of the module's docstring."""
        s = self.search
        s.ask_edge()
        if s.resolution < TUNING.rounds_from or not s.find_ball(TUNING.max_rounds, self.reserve()):
            return whole_domain(self.store, self.account, self.space, self.names, self.second)
        self.find_centers()
        frame = self.find_frame()
        if self.second == "full" and self.n * s.mu >= SHAPE_FROM * self.d**1.5:
            frame = self.find_axes(frame)
        radius, loss = self.find_radius(frame)
        whole = self.d * (self.space.region.radius * self.noise()) ** 2
        if self.second == "none" and loss > whole:
            return whole_domain(self.store, self.account, self.space, self.names, self.second)
        return self.last(frame, radius if self.second == "none" else LAST_BALL * radius)

    def reserve(self) -> float:
        """Budget share of the steps between the rounds and the last answer, at most."""
        coarse = self.search.share(COARSE)
        return coarse + WITHIN_SHARE + DEVIATION_SHARE + SHAPE_SHARE + TAIL_SHARE

    # --- steps

    def find_centers(self) -> None:
        """Centres of the classes in the ball of all records."""
        s = self.search
        query = moments.MomentSum("class centers", s.frame, COARSE_BALL * s.radius, self.classes)
        found = self.ask_counts(query, s.share(COARSE))
        self.centers = np.tile(s.frame.center, (self.classes, 1))
        self.move(Frame.plain(s.frame.center), found)

    def find_frame(self) -> Frame:
        """Units along the coordinates, from deviations within the classes."""
        plain = Frame.plain(self.space.region.center)
        cap = WITHIN_CAP * self.search.distance
        within = moments.ClassDistance("class distance", plain, self.centers, cap)
        near = self.account.ask(within, self.store, WITHIN_SHARE, subsampled=True)
        distance = float(near.estimate.value[0])
        near.note(steps.DistanceStep, distance=distance)
        cap = DEVIATION_BALL * distance
        query = moments.ClassDeviation("class deviation", plain, self.centers, cap)
        answer = self.account.ask(query, self.store, DEVIATION_SHARE, subsampled=True)
        deviation = deviations(answer.estimate.value, answer.estimate.sd)
        answer.note(steps.DeviationStep, deviation=deviation.tolist())
        frame = axis_frame(plain.center, deviation)
        if self.second != "none":
            frame = Frame(plain.center, deviation)
        self.distance = float(np.linalg.norm(deviation / frame.width))
        return frame

    def find_radius(self, frame: Frame) -> tuple[float, float]:
        """Radius for the class means in a frame, and their expected squared error."""
        region = self.space.region
        offsets = np.linalg.norm(self.centers - region.center, axis=1)
        longest = region.radius + float(offsets.max())
        edges = tail_edges(self.distance, longest / float(frame.width.min()))
        query = moments.ClassHistogram("class tail", frame, self.centers, edges)
        answer = self.account.ask(query, self.store, TAIL_SHARE, subsampled=True)
        tail = Tail.of(edges, answer.estimate.value, answer.estimate.sd, self.m)
        answer.note(steps.TailStep, edges=edges.tolist(), beyond=tail.beyond.tolist())
        return tail.radius(frame, self.distance, self.m, self.noise())

    def find_axes(self, frame: Frame) -> Frame:
        """Principal axes within the classes, and the deviation along each.

        The noise grows with the square of the radius, so the radius is small.
        """
        radius, centers = SHAPE_BALL * self.distance, np.array(self.centers)
        query = moments.MomentSum("class shape", frame, radius, self.classes, "full", True, centers)
        found = self.ask_counts(query, SHAPE_SHARE)
        clear = self.covariance(found, self.move(frame, found))
        values, V = np.linalg.eigh(clear * np.outer(frame.width, frame.width))
        self.distance = sqrt(self.d)
        return Frame(frame.center, np.sqrt(values), V)

    def last(self, frame: Frame, radius: float) -> FoundClasses:
        """The moments, with the rest of the budget."""
        query = moments.MomentSum(
            "moments", frame, radius, self.classes, self.second, True, np.array(self.centers)
        )
        answer = self.account.ask(query, self.store)
        found, tally = answer.estimate, self.tally
        tally.add(found)
        offsets = self.move(frame, found)
        covariance = None
        if self.second != "none":
            covariance = turned_back(frame, self.covariance(found, offsets))
        note_moments(answer, radius, tally, self.names, frame.width)
        clipped = None
        if tally.seen.all():
            clipped = self.bound(frame, radius, found, offsets)
        elif tally.seen.any():
            seen, counts = tally.seen, tally.counts
            self.centers[~seen] = np.average(self.centers[seen], axis=0, weights=counts[seen])
        return FoundClasses(self.centers, tally.counts, covariance, None, clipped)

    def bound(self, frame: Frame, radius: float, found: Moments, offsets: Array) -> Bound | None:
        """The bound for means of clipped records (:mod:`spdp.error.class_means`)."""
        counts, sd = self.tally.counts, self.tally.sd
        raw = found.sums / counts[:, None]
        margin = class_means.count_margin(self.classes, sd)
        lengths, moved = (np.linalg.norm(v * frame.width, axis=1) for v in (raw, offsets - raw))
        shift = float(np.linalg.norm(margin * lengths / np.maximum(counts - margin, 1.0) + moved))
        step, most = radius / RECORD_NORM, most_records(self.account.steps[0], self.n)
        return class_means.clipped_bound(frame.width, step, found.sum_sd, counts, sd, most, shift)

    # --- what the steps share

    def ask_counts(self, query: moments.MomentSum, share: float) -> Moments:
        """Noisy moments of all rows; counts are averaged with earlier ones."""
        answer = self.account.ask(query, self.store, share)
        self.tally.add(answer.estimate)
        answer.note(CountsStep, radius=query.radius, counts=self.tally.counts.tolist())
        return answer.estimate

    def move(self, frame: Frame, found: Moments) -> Array:
        """Move the centres by noisy, shrunk means; returns these means (C, d), in z."""
        offsets, region = np.zeros_like(self.centers), self.space.region
        counts = self.tally.counts
        for c in np.flatnonzero(self.tally.seen):
            offsets[c], _ = shrink(found.sums[c] / counts[c], found.sum_sd / counts[c])
        origin = frame.moved(np.zeros(self.d))
        for place, offset in enumerate(offsets):
            step = self.centers[place] + origin.back(offset)
            self.centers[place] = clip_to_ball(step, region.center, region.radius)
        return offsets

    def covariance(self, found: Moments, offsets: Array) -> Array:
        """The covariance within the classes in units of the frame, denoised."""
        part = between(self.tally.counts / self.n, offsets, found.second.ndim)
        return shrunk_covariance(found.second[0] / self.n - part, found.second_sd / self.n)

    def noise(self) -> float:
        """Noise per coordinate of a class mean in a unit ball, with the budget left."""
        share = sqrt(self.account.left)
        return self.search.moves * self.classes / (self.n * self.search.mu * share)


def note_moments(
    answer: Answer[Moments], radius: float, tally: Tally, names: list[Any], width: Array | None
) -> None:
    """Record the last answer's step: counts, and classes too small to be seen."""
    answer.note(
        MomentsStep,
        radius=radius,
        counts=tally.counts.tolist(),
        classes=names,
        unseen=tally.unseen(names),
        width=None if width is None else width.tolist(),
    )


def turned_back(frame: Frame, C: Array) -> Array:
    """The covariance in the chart's coordinates of a covariance in z."""
    if C.ndim == 1:
        return np.asarray(C * frame.width**2)
    B = (np.eye(len(C)) if frame.axes is None else frame.axes) * frame.width
    return np.asarray(B @ C @ B.T)


def between(shares: Array, offsets: Array, ndim: int) -> Array:
    """Σ share·δδᵀ over the classes' offsets δ; its diagonal where ``ndim`` is 2."""
    part = shares[:, None] * offsets
    return np.asarray((part * offsets).sum(axis=0) if ndim == 2 else part.T @ offsets)


def whole_domain(
    store: VectorStore, account: Account, space: Space, names: list[Any], second: str
) -> FoundClasses:
    """The moments over the whole domain, with all budget left; no mean is shrunk."""
    region, C = space.region, len(names)
    frame, step = Frame.plain(region.center), region.radius / RECORD_NORM
    query = moments.MomentSum("moments", frame, region.radius, C, second)
    answer = account.ask(query, store)
    found, tally = answer.estimate, Tally(C)
    tally.add(found)
    note_moments(answer, region.radius, tally, names, None)
    counts, seen = tally.counts, tally.seen
    total = max(float(counts.sum()), 1.0)
    offsets = found.sums / counts[:, None]
    offsets[~seen] = found.sums.sum(axis=0) / total
    means = np.array(
        [clip_to_ball(region.center + z, region.center, region.radius) for z in offsets]
    )
    covariance = None
    if found.second.size:
        inner = found.second[0] / total - between(counts / total, offsets, found.second.ndim)
        covariance = floored(inner, found.second_sd / total)
    d = means.shape[1]
    law = class_means.joint_law(counts, d, found.sum_sd, found.count_sd, region.radius)
    far = np.linalg.norm(means - region.center, axis=1) + region.radius
    shift, farthest = float(np.linalg.norm(far[~seen])), float(np.linalg.norm(far))
    bound = class_means.joint_bound(law, counts, d, step, shift, farthest)
    return FoundClasses(means, counts, covariance, bound)
