"""Fields that the steps of a search release in certificates, and their queries."""

from math import inf, sqrt
from typing import Annotated, Any

from msgspec import Meta

from spdp.adaptive.tuning import PURE_TUNING, PureTuning
from spdp.domain.base import Space
from spdp.error.bound import SURE
from spdp.kernels.base import RECORD_NORM
from spdp.privacy.account import Step
from spdp.queries import Query, moments, sums
from spdp.queries.sums import Frame

Kinds = dict[str, type[Step]]
Queries = dict[str, Query[Any]]
Numbers = list[float]
Length = Annotated[float, Meta(ge=0)]
Number = Annotated[float, Meta(ge=1)]  # of records, noisy
Label = bool | int | float | str


class CountStep(Step):
    """A private number of records."""

    n_estimate: Annotated[int, Meta(ge=1)]


class EdgeStep(Step):
    """Share of the records at the domain's edge, and its standard deviation."""

    share: Annotated[float, Meta(ge=0, le=1)]
    sd: Length

    def fits(self, facts: Any) -> bool:
        """A subsample is no larger than all records, its noise no smaller."""
        return bool(self.sd >= (1.0 - 1e-9) * self.scale / sums.COUNT_UNIT / asked_of(facts))


class CenterStep(Step):
    """A noisy mean of records clipped to ``radius`` about ``center``."""

    center: Numbers
    radius: Length

    def fits(self, facts: Any) -> bool:
        return bool(len(self.center) == facts.d)


class DistanceStep(Step):
    """A typical distance."""

    distance: Length


class DeviationStep(Step):
    """Standard deviations of the coordinates, estimated."""

    deviation: Numbers

    def fits(self, facts: Any) -> bool:
        return len(self.deviation) == facts.d and min(self.deviation) >= 0


class CorrelationStep(Step):
    """Units along the principal axes."""

    width: Numbers

    def fits(self, facts: Any) -> bool:
        return len(self.width) == facts.d and min(self.width) >= 0


class TailStep(Step):
    """Numbers of records beyond each edge of a histogram of distances."""

    edges: Numbers
    beyond: Numbers

    def fits(self, facts: Any) -> bool:
        """Edges ascend from 0; no more records than there are lie beyond, but noise."""
        pairs = zip([0.0, *self.edges], self.edges, strict=False)
        rising = bool(self.edges) and all(a <= b for a, b in pairs)
        noise = 10.0 * sqrt(len(self.edges) + 1) * self.scale / sums.COUNT_UNIT
        most = max(map(abs, self.beyond), default=inf)
        same = len(self.edges) == len(self.beyond)
        return rising and same and most <= asked_of(facts) + noise


class ClippingBiasStep(Step):
    """Mean clipping bias at one or two reaches, with the sd of its noise.

    ``shortest`` is the shortest half axis of what records are clipped to.
    """

    bias: Numbers
    sd: list[Length]
    reach: list[Length]
    shortest: Length

    def fits(self, facts: Any) -> bool:
        return len(self.bias) == len(self.sd) == len(self.reach) in (1, 2)

    def least_sd(self, place: int, power: int, n: float) -> float:
        """The sd of the noise, from its scale, over n records."""
        unit = sums.largest_bias(self.reach[place], self.shortest, power) / RECORD_NORM / n
        return unit * self.scale * (1.0 if self.epsilon is None else sqrt(len(self.bias) + 1.0))


class MeanStep(CenterStep):
    """The last mean; ``width``: the ellipsoid's units, None for the whole domain.

    ``n_estimate`` is the number of records where it is private, ``point`` the released
    point from which a curved metric saw them.
    """

    width: Numbers | None = None
    n_estimate: Number | None = None
    point: Numbers | None = None

    def weight(self, d: int) -> int:
        """Weight of the count in this answer, where there is one."""
        return mean_weight(d, self.width is None)


def mean_weight(d: int, whole: bool) -> int:
    """Weight of the count in a mean over the whole domain, or over a ball.

    In a ball found by a search the mean is near the centre, where the count's noise
    moves it little. A weight of half a record's norm is enough there: sum and count
    together change by √1.25 = 1.118 norms when a record comes or goes.
    """
    return sums.count_weight(d) if whole else RECORD_NORM // 2


def near_looks(n: float, epsilon: float, tuning: PureTuning = PURE_TUNING) -> bool:
    """Whether the bias just beyond the radius can be seen, of n records."""
    return n * epsilon * tuning.near_share > tuning.near_from


def asked_of(facts: Any) -> float:
    """The number of records that early steps went by: public, or counted first."""
    first = facts.step("count")
    return float(facts.count.value if first is None else first.n_estimate)


def most_records(first: Step, n: float) -> float:
    """An upper bound on the number of records, where the first step counted n of them.

    But for a probability of 7·10⁻⁶; a public number is what it is.
    """
    return n + SURE * first.scale / sums.COUNT_UNIT if first.step == "count" else n


# Regular expressions of the steps' names, each followed by a semicolon: what may come
# first, the rounds that find a ball, and its shape.
START_ORDER, ROUNDS_ORDER = "(count;)?(edge;)?", "(center;distance;){1,9}"
NEAR_ORDER = "(near bias;){0,4}"
SHAPE_ORDER = "(deviation;(correlation;)?distance;center;)?"

BALL: Kinds = {"count": CountStep, "edge": EdgeStep, "center": CenterStep, "distance": DistanceStep}
SHAPE: Kinds = {
    "deviation": DeviationStep,
    "correlation": CorrelationStep,
    "tail": TailStep,
    "near bias": ClippingBiasStep,
    "clipping bias": ClippingBiasStep,
}


def ball_queries(space: Space) -> Queries:
    """Queries that find the ball of all records, and their number where it is private.

    They serve for sensitivities, which do not depend on radii: the radii here are not
    those of any release.
    """
    frame = Frame.plain(space.region.center)
    return {
        "count": sums.RecordCount(""),
        "edge": sums.EdgeCount("", space.chart, space.region),
        "center": sums.VectorSum("", frame, 1.0),
        "distance": sums.DistanceSum("", frame, 1.0),
    }


def shape_queries(space: Space) -> Queries:
    """Queries that find the shape of all records in their ball."""
    frame = Frame.plain(space.region.center)
    return {
        "deviation": sums.AbsoluteSum("", frame, 1.0),
        "correlation": moments.CorrelationSum("", frame, 1.0),
        "tail": sums.Histogram("", frame, space.region.center[:1]),
        "near bias": sums.ClippingBias("", frame, 1.0, (1.0,), (RECORD_NORM,)),
        "clipping bias": sums.ClippingBias("", frame, 1.0, (1.0,), (RECORD_NORM,)),
    }
