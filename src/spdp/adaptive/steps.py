"""Fields that the steps of a search release in certificates, and their queries."""

from math import inf, sqrt
from typing import Annotated, Any

from msgspec import Meta

from spdp.domain.base import Space
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
    """Mean clipping bias at two reaches, with the standard deviations of its noise."""

    bias: Numbers
    sd: list[Length]
    reach: list[Length]

    def fits(self, facts: Any) -> bool:
        return len(self.bias) == len(self.sd) == len(self.reach) == 2


class MeanStep(CenterStep):
    """The last mean; ``width``: the ellipsoid's units, None for the whole domain."""

    width: Numbers | None = None


def asked_of(facts: Any) -> float:
    """The number of records that early steps went by: public, or counted first."""
    first = facts.step("count")
    return float(facts.count.value if first is None else first.n_estimate)


# Regular expressions of the steps' names, each followed by a semicolon: what may come
# first, the rounds that find a ball, and its shape.
START_ORDER, ROUNDS_ORDER = "(count;)?(edge;)?", "(center;distance;){1,8}"
SHAPE_ORDER = "(deviation;(correlation;)?distance;center;)?"

BALL: Kinds = {"count": CountStep, "edge": EdgeStep, "center": CenterStep, "distance": DistanceStep}
SHAPE: Kinds = {
    "deviation": DeviationStep,
    "correlation": CorrelationStep,
    "tail": TailStep,
    "clipping bias": ClippingBiasStep,
}


def ball_queries(space: Space) -> Queries:
    """Queries that find the ball of all records, and their number where it is private.

    They serve for sensitivities, which do not depend on radii: the radii here are not
    those of any release.
    """
    frame = Frame.plain(space.region.center)
    return {
        "count": sums.whole_domain_sum(space.region, RECORD_NORM),
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
        "clipping bias": sums.ClippingBias("", frame, 1.0, (1.0,), (RECORD_NORM,)),
    }
