"""A mean of clipped records, released together with second moments, and its bounds.

All of it is post-processing of an account's answers.
"""

from collections.abc import Iterator
from math import inf, isclose, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spdp.adaptive import Search, steps
from spdp.adaptive.mean import Looks, clipped_bound
from spdp.adaptive.preconditioner import units
from spdp.adaptive.steps import Kinds, Queries, asked_of, near_looks
from spdp.error.bound import Bound, Count, Free
from spdp.error.laws import Chi2
from spdp.geometry import distance_riemann, invvecd
from spdp.kernels.arrays import Array
from spdp.kernels.base import RECORD_NORM
from spdp.options import Unit
from spdp.privacy.account import Step
from spdp.queries.sums import COUNT_UNIT
from spdp.release.certificate import Facts
from spdp.release.declaration import MUST, Check
from spdp.release.verify import Arrays, at_edge, at_least, close, equal, same
from spdp.statistics.base import Outcome, Statistic

RESOLVED = 20.0  # log-condition numbers up to which distances are right to 1e-6


class MomentStep(Step):
    """The last answer: a mean with second moments, and a private number of records.

    ``width`` holds the units of the ellipsoid, if they are not all 1.
    """

    radius: steps.Length
    n_estimate: steps.Number | None = None
    count_sd: float | None = None
    width: list[float] | None = None


Look = steps.ClippingBiasStep | None


def clipped_mean_bound(
    last: MomentStep, d: int, sigma: float, look: Look, n: float, count: Count, *rest: Any
) -> Bound:
    """The bound on the mean's error (:func:`spdp.adaptive.mean.clipped_bound`)."""
    bias = (0.0, 0.0) if look is None else (look.bias[0], look.sd[0])
    return clipped_bound(last, d, sigma, bias, n, count, 1.0, *rest)


def grain_of(f: Facts) -> float:
    """Step of the lattice that persons' vectors were rounded to; 0 for records."""
    return f.space.region.radius / RECORD_NORM if f.unit == Unit.PERSON.value else 0.0


def unlikely(f: Facts) -> float:
    """Standard deviations of noise by which honest numbers do not disagree."""
    return 7.0 if f.budget.mu is not None else 20.0  # Laplace noise has longer tails


def clipped_mean(
    search: Search,
    last: MomentStep,
    v: Array,
    sigma: float,
    look: Look,
    count: Count,
    sampling: Array,
) -> Outcome:
    """The mean at offset v from the frame's centre, with the bound on its error.

    ``sampling`` holds variances of noise and sampling along their principal axes.
    """
    y = search.inside(search.frame.center + v)
    shift = count.shift(float(np.linalg.norm(v)), 2.0 * search.domain_radius)
    free = Free(shift, search.domain_radius + float(np.linalg.norm(y - search.domain_center)))
    rest = free, search.grain
    bound = clipped_mean_bound(last, search.d, sigma, look, search.n, count, *rest)
    reach = 0.0 if look is None else look.reach[0]
    return Outcome(
        search.n, {"mean": search.original(y)}, bound=bound, sampling=(sampling, reach, count)
    )


class ClippedMean(Statistic):
    """Base of statistics that release a clipped mean with second moments."""

    measured_from: ClassVar = "the released mean"
    bound_on: ClassVar = " on the mean"
    mean: ClassVar = "the {distance} Fréchet mean of {units}, each clipped to the domain"
    last: ClassVar[str]  # name of the last step
    shaped: ClassVar = False  # whether it clips to an ellipsoid
    population: ClassVar = MUST
    counts_moves: ClassVar = True
    bounds_means: ClassVar = True
    samples: ClassVar = True
    steps: ClassVar[Kinds] = steps.BALL | steps.SHAPE

    def queries(self, facts: Facts) -> Queries:
        asked = steps.ball_queries(facts.space) | steps.shape_queries(facts.space)
        if facts.public:
            del asked["count"]
        return asked

    def bounded(self, facts: Facts) -> str:
        return self.mean.format(distance=facts.chart.distance, units=self.units(facts))

    def expected_bound(self, facts: Facts) -> Bound | None:
        f, stated = facts, facts.bound
        assert stated is not None
        first, look = f.step("count"), f.step("clipping bias")
        n = f.count.value if first is None else float(first.n_estimate)
        free = Free(stated.shift, stated.max_distance)
        own = f.last, f.d, f.noise_scale
        return clipped_mean_bound(*own, look, n, f.count, free, grain_of(f))

    def check(self, facts: Facts) -> Iterator[Check]:
        f, last = facts, facts.last
        yield equal("last step", last.step, self.last)
        private = (last.n_estimate is None) == f.public == (last.count_sd is None)
        yield Check("number of records", private, "counted in the last answer where private")
        if last.count_sd is not None:
            weight = float(f.queries[self.last].weight)
            yield same("noise of the count", last.count_sd, last.scale / weight, "from σ")
        look = f.step("clipping bias")
        if look is None:
            yield same("radius", last.radius, float(f.space.region.radius), "nothing was clipped")
        yield from check_clipping_bias(f, True, power=2)
        if last.width is not None:
            yield from check_units(f, last.width)
        elif f.step("correlation") is not None and self.shaped:
            yield Check("units", look is None, "stated where records were clipped to an ellipsoid")


def check_clipping_bias(f: Facts, clipped: bool, power: int = 1) -> Iterator[Check]:
    """The stated noise of a measured bias is at least the noise of its step.

    The second number is the bias of a ``power`` of distances. If the last answer is
    ``clipped``, it is clipped to what the last look measured.
    """
    first = f.step("count")
    n = f.count.value if first is None else float(first.n_estimate)
    for look in (step for step in f.answers if step.step == "clipping bias"):
        yield from check_look(f, look, n, power)
        yield at_least("reach", look.reach[0], f.space.region.radius, "the domain's")
        yield at_least("reach", min(look.reach), look.shortest, "half axis of the ellipsoid")
    last_look = f.step("clipping bias")
    if clipped and last_look is not None:
        half_axis = f.last.radius * min(f.last.width or [1.0])
        yield same("half axis", last_look.shortest, half_axis, "that of the last answer")


def check_look(f: Facts, look: steps.ClippingBiasStep, n: float, power: int = 1) -> Iterator[Check]:
    """The noise of a measured bias is that of its step; it is not below 0 but by that.

    Two numbers share the sensitivity: (least/sd)² of each adds up to 1.
    """
    leasts = [look.least_sd(place, power if place else 1, n) for place in range(len(look.sd))]
    shares = [(least / sd) ** 2 if sd else inf for least, sd in zip(leasts, look.sd, strict=True)]
    ok = isclose(sum(shares), 1.0, rel_tol=1e-6)
    yield Check("noise of the bias", ok, f"from its step: {sum(shares):.9g} of its sensitivity")
    possible = all(bias >= -unlikely(f) * sd for bias, sd in zip(look.bias, look.sd, strict=True))
    yield Check("bias", possible, "not negative, but for noise")


def check_counts(f: Facts) -> Check:
    """Two noisy numbers of the same records differ by their noise alone."""
    first, count = f.step("count"), f.count
    sd = first.scale / COUNT_UNIT * (sqrt(2.0) if f.budget.mu is None else 1.0)
    most = unlikely(f) * (sd + count.sd) + 1.0
    ok = abs(first.n_estimate - count.value) <= most
    return Check("number of records", ok, f"counts differ by {most:.9g} at most")


def check_count(f: Facts, values: Arrays) -> Check:
    """The noise of the count moves a mean the more, the farther from the centre.

    The mean was projected to the domain, by a map under which no two points move apart:
    it was no nearer to the centre than it now is to the centre's own projection.
    """
    assert f.bound is not None
    (y,), count = values.vectors, f.count
    center = f.chart.project(np.asarray(f.last.center), f.space.region)
    length = float(np.linalg.norm(y - center))
    if f.bound.curvature is not None and f.last.point is not None:  # seen from there, at least
        away = float(np.linalg.norm(np.subtract(f.last.point, f.last.center)))
        length = abs(f.bound.curvature.step - away)
    share = min(count.sure * count.sd / count.least, 1.0) if count.seen else 1.0
    least = share * max(length - values.tolerance, 0.0)
    return at_least("shift", f.bound.shift, least, "what the noisy count adds")


def check_step(f: Facts, values: Arrays) -> Iterator[Check]:
    """In a curved metric, what is released lies where the stated step leads, or nearer.

    It was projected to the domain, which brings it no farther from any point of the
    domain, such as the last point's own projection. Not checked where float64 hardly
    resolves one of the matrices.
    """
    assert f.bound is not None
    if f.bound.curvature is None:
        return
    (y,) = values.vectors
    point = f.space.region.center if f.last.point is None else np.asarray(f.last.point)
    inside = f.chart.project(point, f.space.region)
    seen = np.stack([point, y, inside])
    if float(np.ptp(np.linalg.eigvalsh(invvecd(seen[:2])), axis=-1).sum()) > RESOLVED:
        return
    here, there, nearest = f.chart.matrices(seen)
    step, away = float(distance_riemann(here, there)), float(distance_riemann(here, nearest))
    slack = 1e-6 * (1.0 + step) + f.bound.shift  # which counts what float64 could not hold
    ok = step <= f.bound.curvature.step + slack + 2.0 * away
    if not at_edge(f, y):
        ok = ok and step >= f.bound.curvature.step - slack
    yield Check("step", ok, f"{step:.9g} from the last point")


def check_ball(f: Facts, values: Arrays) -> Check:
    """A clipped mean lies in its ball, but for noise and what it was moved by."""
    assert f.bound is not None
    (y,) = values.vectors
    off = float(np.linalg.norm(y - np.asarray(f.last.center)))
    noise = unlikely(f) * sqrt(f.bound.noise.mean())
    most = f.last.radius * max(f.last.width) + noise + f.bound.shift
    ok = off <= most + values.tolerance
    return Check("mean in its ball", ok, f"{off:.9g} from its centre, {most:.9g} at most")


def check_shrinkage(f: Facts, values: Arrays) -> Iterator[Check]:
    """The shrinkage of a mean follows from σ, its dimension and its length."""
    assert f.bound is not None
    shrunk, own_law = f.bound.shrinkage, f.bound.noise
    if shrunk is None:
        return
    dimensions = shrunk.unshrunk in (0, 1) and shrunk.dimension + shrunk.unshrunk == f.d
    yield Check("shrinkage", dimensions, "dimensions")
    yield Check("shrinkage", isinstance(own_law, Chi2), "where all units are equal")
    yield same("noise of what was shrunk", shrunk.sigma, sqrt(own_law.mean() / f.d), "σ")
    p, square = shrunk.dimension, shrunk.length**2
    factor = max(0.0, 1.0 - (p - 2) * shrunk.sigma**2 / square) if square else 1.0
    ok = isclose(shrunk.factor, factor, rel_tol=1e-6, abs_tol=1e-9)
    yield Check("factor of the shrinkage", ok, "James and Stein's")
    whole = f.last.width is None
    if whole and (f.step("center") is not None or f.reference is not None):
        return  # shrunk to a centre that no step states
    (y,) = values.vectors
    if at_edge(f, y):
        return  # brought back into the domain, it is shorter or longer
    rest = y - np.asarray(f.last.center)
    if shrunk.unshrunk:
        rest = rest - f.chart.components(rest)[0].v
    most = shrunk.factor * shrunk.length + values.tolerance
    length = float(np.linalg.norm(rest))
    yield Check("length of the shrinkage", length <= most, f"{length:.9g}, at most {most:.9g}")


def looks_of(f: Facts) -> Looks:
    """The measured clipping bias, from a certificate's steps."""
    found = [[s for s in f.answers if s.step == name] for name in ("clipping bias", "near bias")]
    return Looks(*found)


def check_search(f: Facts) -> Iterator[Check]:
    """Steps that only one of the two searches has."""
    pure, asked = f.budget.mu is None, {step.step for step in f.answers}
    own = {"deviation", "correlation", "tail"} if pure else {"near bias"}
    yield Check("steps", not asked & own, "those of a search with this noise")
    looks = [step for step in f.answers if step.step in ("clipping bias", "near bias")]
    yield Check("looks", all(len(step.bias) == 2 - pure for step in looks), "numbers asked")
    for step in (step for step in looks if step.step == "near bias"):
        yield from check_look(f, step, asked_of(f))
        yield same("reach", step.reach[0], 2.0 * step.shortest, "twice the radius")
    if f.last.width is None or not f.chart.flat:
        return
    center, longest = np.asarray(f.last.center), f.last.radius * max(f.last.width)
    far = max(f.chart.farthest(center, f.space.region), longest)
    yield same("reach", looks[-1].reach[0], far, "of the farthest record")
    looked = near_looks(asked_of(f), f.epsilon) if pure else f.reference is None
    wanted = "near bias" if pure else "tail"
    yield Check("steps", wanted in asked or not looked, f"{wanted} before a clipped mean")


def check_units(f: Facts, width: list[float]) -> Iterator[Check]:
    """Units have mean square 1, and follow from the released shape."""
    yield equal("units", len(width), f.d)
    yield same("units", float(np.mean(np.square(width))), 1.0, "of mean square 1")
    axes, seen = f.step("correlation"), f.step("deviation")
    if axes is not None:
        yield Check("units", close(width, axes.width), "those of the principal axes")
    elif seen is not None:
        expected = units(np.asarray(seen.deviation)).tolist()
        yield Check("units", close(width, expected), "from the deviations")


def variances_of(law: object) -> NDArray[np.float64]:
    """Variances of noise along the axes of its law."""
    weights = getattr(law, "weights", None)
    if weights is not None:
        return np.asarray(weights, float)
    return np.full(law.df, law.scale)  # type: ignore[attr-defined]
