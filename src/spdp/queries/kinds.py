"""A query of each kind that a statistic may ask, by the name of its step.

Sensitivities depend on the kind of a query, on the number of coordinates, classes and
covariates, and on nothing else that a certificate would have to tell.
"""

import numpy as np

from spdp.charts import Chart
from spdp.frame import Frame
from spdp.kernels import RECORD_NORM, Region
from spdp.queries.base import Query
from spdp.queries.directions import DirectionSum
from spdp.queries.edge import EdgeCount
from spdp.queries.excess import ClassExcess
from spdp.queries.moments import MomentSum
from spdp.queries.regression import CovariateSum, CrossSum, ResidualDistance, Trend
from spdp.queries.sums import AbsoluteSum, DistanceSum, VectorSum, whole_domain_sum

__all__ = ["ball_kinds", "difference_kinds", "median_kinds", "regression_kinds"]

Kinds = dict[str, Query]


def ball_kinds(chart: Chart, region: Region) -> Kinds:
    """What finds the ball of all records, and their number where it is private."""
    frame = Frame.plain(region.center)
    return {
        "count": whole_domain_sum(region, RECORD_NORM),
        "edge": EdgeCount("", chart, region),
        "centre": VectorSum("", frame, 1.0),
        "distance": DistanceSum("", frame, 1.0),
    }


def median_kinds(chart: Chart, region: Region) -> Kinds:
    return ball_kinds(chart, region) | {"direction": DirectionSum("", region.center, 1.0)}


def regression_kinds(chart: Chart, region: Region, p: int) -> Kinds:
    zero, one, frame = np.zeros(p), np.ones(p), Frame.plain(np.zeros(p))
    trend = Trend(zero, one, np.zeros((1 + p, len(region.center))))
    return ball_kinds(chart, region) | {
        "covariates": CovariateSum("", VectorSum("", frame, 1.0)),
        "deviations": CovariateSum("", AbsoluteSum("", frame, 1.0)),
        "first fit": CrossSum("", trend, 1.0),
        "residual": ResidualDistance("", trend, 1.0),
        "cross moments": CrossSum("", trend, 1.0),
    }


def difference_kinds(chart: Chart, region: Region) -> Kinds:
    frame = Frame.plain(region.center)
    return ball_kinds(chart, region) | {
        "class excess": ClassExcess("", region.center, 1.0, 1.0),
        "class moments": MomentSum("", frame, 1.0, 2, "full", pooled=False),
    }
