"""A mean of clipped records, released together with second moments, and its bounds.

All of it is post-processing of an account's answers.
"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spdp.adaptive import Search, steps
from spdp.adaptive.shrinkage import units
from spdp.adaptive.steps import Kinds, Queries
from spdp.error.bound import Bound, Count, Free
from spdp.kernels.arrays import Array
from spdp.kernels.base import RECORD_NORM
from spdp.privacy.account import Step
from spdp.release.certificate import Facts
from spdp.release.declaration import MUST, Check
from spdp.release.verify import at_least, close, equal, same
from spdp.statistics.base import Outcome, Statistic


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
    last: MomentStep, d: int, sigma: float, look: Look, n: float, count: Count, free: Free
) -> Bound:
    """The bound on a clipped mean's error, from the steps in a certificate.

    The measured bias was divided by ``n``: if the number of records is private, an
    earlier and noisier estimate than ``count``.
    """
    width = np.ones(d) if last.width is None else np.asarray(last.width)
    stretch = count.stretch
    ratio = n / count.value * stretch
    bias = (0.0, 0.0) if look is None else (look.bias[0] * ratio, look.sd[0] * ratio)
    step = last.radius / RECORD_NORM * float(width.max())
    variances = (width * sigma * stretch) ** 2
    return Bound.of_mean(variances, step, bias, count.risk_share, free)


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
    bound = clipped_mean_bound(last, search.d, sigma, look, search.n, count, free)
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
        return clipped_mean_bound(f.last, f.d, f.noise_scale, look, n, f.count, free)

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
        yield from check_clipping_bias(f, power=2)
        if last.width is not None:
            yield from check_units(f, last.width)
        elif f.step("correlation") is not None and self.shaped:
            yield Check("units", look is None, "stated where records were clipped to an ellipsoid")


def check_clipping_bias(f: Facts, power: int = 1) -> Iterator[Check]:
    """The stated noise of a measured bias is at least the noise of its step.

    The second number is the bias of a ``power`` of distances.
    """
    first = f.step("count")
    n = f.count.value if first is None else float(first.n_estimate)
    for look in (step for step in f.answers if step.step == "clipping bias"):
        for sd, size in ((look.sd[0], look.reach[0]), (look.sd[1], look.reach[1] ** power)):
            yield at_least("noise of the bias", sd, look.scale * size / RECORD_NORM / n, "step")
        yield at_least("reach", look.reach[0], f.space.region.radius, "the domain's")


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
