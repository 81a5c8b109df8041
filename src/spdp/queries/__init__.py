"""Queries: sums over records of integer vectors of bounded norm (:mod:`.base`)."""

from spdp.kernels import RECORD_NORM
from spdp.queries.base import WHOLE, Query, Rows, Stated, describe, stated_step
from spdp.queries.centred import CentredDistance, CentredHistogram, CentredSpread
from spdp.queries.directions import DirectionSum
from spdp.queries.edge import EdgeCount
from spdp.queries.excess import ClassExcess
from spdp.queries.moments import Moments, MomentSum
from spdp.queries.regression import CovariateSum, CrossSum, ResidualDistance, Trend
from spdp.queries.shapes import CorrelationSum, ExcessSum
from spdp.queries.spread import SpreadSum
from spdp.queries.sums import (
    AbsoluteSum,
    DistanceSum,
    Histogram,
    ShareSum,
    VectorSum,
    count_weight,
    share_sum,
    whole_domain_sum,
)

__all__ = [
    "RECORD_NORM",
    "WHOLE",
    "AbsoluteSum",
    "CentredDistance",
    "CentredHistogram",
    "CentredSpread",
    "ClassExcess",
    "CorrelationSum",
    "CovariateSum",
    "CrossSum",
    "DirectionSum",
    "DistanceSum",
    "EdgeCount",
    "ExcessSum",
    "Histogram",
    "MomentSum",
    "Moments",
    "Query",
    "ResidualDistance",
    "Rows",
    "ShareSum",
    "SpreadSum",
    "Stated",
    "Trend",
    "VectorSum",
    "count_weight",
    "describe",
    "share_sum",
    "stated_step",
    "whole_domain_sum",
]
