"""A query of each kind that a statistic may ask, by the name of its step.

Sensitivities depend on the kind of a query, on the number of coordinates, classes and
covariates, and on nothing else that a certificate would have to tell.
"""

import numpy as np

from spdp.choices import Adjacency, Method
from spdp.frame import Frame
from spdp.queries import (
    RECORD_NORM,
    AbsoluteSum,
    CentredDistance,
    CentredHistogram,
    CentredSpread,
    ClassExcess,
    CorrelationSum,
    CovariateSum,
    CrossSum,
    DirectionSum,
    DistanceSum,
    EdgeCount,
    ExcessSum,
    Histogram,
    MomentSum,
    Query,
    ResidualDistance,
    SpreadSum,
    Trend,
    VectorSum,
    count_weight,
    share_sum,
    whole_domain_sum,
)
from spdp.queries.spread import COUNTED
from spdp.verification.base import Fields, chart_in, is_public, region_in

__all__ = [
    "class_kinds",
    "difference_kinds",
    "mean_kinds",
    "median_kinds",
    "pca_kinds",
    "regression_kinds",
    "spread_kinds",
]

Kinds = dict[str, Query]


def ball_kinds(c: Fields) -> Kinds:
    """What finds the ball of all records, and their number where it is private."""
    region = region_in(c)
    frame = Frame.plain(region.center)
    return {
        "count": whole_domain_sum(region, RECORD_NORM),
        "edge": EdgeCount("", chart_in(c), region),
        "centre": VectorSum("", frame, 1.0),
        "distance": DistanceSum("", frame, 1.0),
    }


def search_kinds(c: Fields) -> Kinds:
    """What finds the shape of all records in their ball, too."""
    region = region_in(c)
    frame = Frame.plain(region.center)
    kinds = ball_kinds(c) | {
        "spread": AbsoluteSum("", frame, 1.0),
        "correlation": CorrelationSum("", frame, 1.0),
        "excess": ExcessSum("", frame, 1.0, (1.0,), (RECORD_NORM,)),
        "tail": Histogram("", frame, region.center[:1]),
    }
    if is_public(c):
        del kinds["count"]
    return kinds


def mean_kinds(c: Fields) -> Kinds:
    region = region_in(c)
    weight = 0 if is_public(c) else count_weight(len(region.center))
    mean: Query = whole_domain_sum(region, weight)
    if c["max_records"] is not None:
        mean = share_sum(region, Adjacency(c["adjacency"]))
    return {"mean": mean} | (search_kinds(c) if c["method"] == Method.ADAPTIVE else {})


def spread_kinds(c: Fields) -> Kinds:
    frame = Frame.plain(region_in(c).center)
    counted = 0 if is_public(c) else COUNTED
    return search_kinds(c) | {"spread moments": SpreadSum("", frame, 1.0, counted)}


def pca_kinds(c: Fields) -> Kinds:
    frame = Frame.plain(region_in(c).center)
    return search_kinds(c) | {"moments": MomentSum("", frame, 1.0, second="full")}


def class_kinds(c: Fields) -> Kinds:
    region = region_in(c)
    frame, C = Frame.plain(region.center), len(c["steps"][-1]["classes"])
    second = ("none", "diagonal", "full")[len(c["arrays"].get("covariance", ()))]
    kinds: Kinds = {"moments": MomentSum("", frame, 1.0, C, second)}
    if c["method"] == Method.ADAPTIVE:
        centers, ball = np.tile(region.center, (C, 1)), ball_kinds(c)
        kinds |= {name: ball[name] for name in ("edge", "centre", "distance")}
        kinds |= {
            "classes": MomentSum("", frame, 1.0, C),
            "shape": MomentSum("", frame, 1.0, C, "full"),
            "within": CentredDistance("", frame, centers, 1.0),
            "spread": CentredSpread("", frame, centers, 1.0),
            "tail": CentredHistogram("", frame, centers, region.center[:1]),
        }
    return kinds


def median_kinds(c: Fields) -> Kinds:
    return ball_kinds(c) | {"direction": DirectionSum("", region_in(c).center, 1.0)}


def regression_kinds(c: Fields) -> Kinds:
    p, d = c["arrays"]["at"][0], len(region_in(c).center)
    zero, one, frame = np.zeros(p), np.ones(p), Frame.plain(np.zeros(p))
    trend = Trend(zero, one, np.zeros((1 + p, d)))
    return ball_kinds(c) | {
        "covariates": CovariateSum("", VectorSum("", frame, 1.0)),
        "deviations": CovariateSum("", AbsoluteSum("", frame, 1.0)),
        "first fit": CrossSum("", trend, 1.0),
        "residual": ResidualDistance("", trend, 1.0),
        "cross moments": CrossSum("", trend, 1.0),
    }


def difference_kinds(c: Fields) -> Kinds:
    center = region_in(c).center
    return ball_kinds(c) | {
        "class excess": ClassExcess("", center, 1.0, 1.0),
        "class moments": MomentSum("", Frame.plain(center), 1.0, 2, "full", pooled=False),
    }
