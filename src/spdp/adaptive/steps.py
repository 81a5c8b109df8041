"""Fields that the steps of a search release in certificates, and their queries."""

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

    share: float
    sd: float


class CenterStep(Step):
    """A noisy mean of records clipped to ``radius`` about ``center``."""

    center: Numbers
    radius: Length


class DistanceStep(Step):
    """A typical distance."""

    distance: float


class DeviationStep(Step):
    """Standard deviations of the coordinates, estimated."""

    deviation: Numbers


class CorrelationStep(Step):
    """Units along the principal axes."""

    width: Numbers


class TailStep(Step):
    """Numbers of records beyond each edge of a histogram of distances."""

    edges: Numbers
    beyond: Numbers


class ClippingBiasStep(Step):
    """Mean clipping bias at two reaches, with the standard deviations of its noise."""

    bias: Numbers
    sd: Numbers
    reach: Numbers


class MeanStep(CenterStep):
    """The last mean; ``width``: the ellipsoid's units, None for the whole domain."""

    width: Numbers | None = None


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
