"""A line for each statistic: what it estimates, asks, releases and says.

A new statistic needs a line here, its queries in :mod:`.kinds`, its arrays in
:mod:`.arrays` and its statement in :mod:`.says`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from spdp.certificate import (
    COMPONENTS_TOO,
    SPREAD_TOO,
    class_estimand,
    estimand_of,
    mean_estimand,
)
from spdp.queries import Query
from spdp.queries.directions import AVERAGED
from spdp.statements import SUMMARY
from spdp.verification import arrays, kinds, says
from spdp.verification.base import Fields

__all__ = ["LAW", "MAY", "MUST", "NONE", "PARTS", "Known", "known"]

# Forms of an error: the law of its square, a bound made of parts, or nothing.
LAW, PARTS, NONE = "law", "parts", "none"
MAY, MUST = "may", "must"  # whether another bound stands beside
Form = Mapping[str | None, tuple[str, ...]]  # by method

SEARCHED: Form = {"adaptive": (PARTS,)}
UNKNOWN: Form = {"adaptive": (NONE,)}


@dataclass(frozen=True)
class Known:
    """What a certificate of a statistic may say."""

    estimand: Callable[[Fields], str]
    kinds: Callable[[Fields], dict[str, Query]]
    arrays: Callable[[Fields], arrays.Shapes]
    statement: Callable[[Fields], str]
    last: str  # the step whose answer is released
    forms: Form
    size: str = "radius"  # what there is 2³⁰ lattice steps
    averaged: int = 1  # last answers that are averaged
    beside: Mapping[str, str] = field(default_factory=dict)  # other bounds


def _estimand(c: Fields) -> str:
    covariates = c["arrays"]["at"][0] if "at" in c["arrays"] else 0
    return estimand_of(c["statistic"], c["distance"], c["unit"], covariates)


TABLE = {
    "mean": Known(
        lambda c: mean_estimand(c["distance"], c["unit"], c["max_records"]),
        kinds.mean_kinds,
        arrays.of_mean,
        says.of_mean,
        "mean",
        {"oneshot": (LAW, PARTS), **SEARCHED},
        beside={"within": MAY},
    ),
    "class-means": Known(
        lambda c: class_estimand(c["distance"], c["unit"]),
        kinds.class_kinds,
        arrays.of_classes,
        says.of_classes,
        "moments",
        {"oneshot": (PARTS,), "adaptive": (PARTS, NONE)},
        beside={"within": MAY},
    ),
    "dispersion": Known(
        lambda c: mean_estimand(c["distance"], c["unit"]) + SPREAD_TOO,
        kinds.spread_kinds,
        arrays.of_spread,
        says.of_spread,
        "spread moments",
        SEARCHED,
        beside={"population": MUST},
    ),
    "pca": Known(
        lambda c: mean_estimand(c["distance"], c["unit"]) + COMPONENTS_TOO,
        kinds.pca_kinds,
        arrays.of_pca,
        says.of_pca,
        "moments",
        SEARCHED,
        beside={"population": MUST},
    ),
    "median": Known(
        _estimand,
        kinds.median_kinds,
        arrays.of_median,
        says.of_median,
        "direction",
        UNKNOWN,
        size="size",
        averaged=AVERAGED,
    ),
    "regression": Known(
        _estimand,
        kinds.regression_kinds,
        arrays.of_regression,
        says.of_regression,
        "cross moments",
        UNKNOWN,
    ),
    "difference": Known(
        _estimand,
        kinds.difference_kinds,
        arrays.of_difference,
        says.of_difference,
        "class moments",
        SEARCHED,
        beside={"within": MUST},
    ),
}
# A summary computed elsewhere: its sensitivity is the caller's word.
STATED_SUMMARY = Known(
    lambda _: SUMMARY,
    lambda _: {},
    arrays.of_mean,
    says.of_summary,
    "",
    {None: (LAW, PARTS)},
)


def known(c: Fields) -> Known:
    """The line of a certificate's statistic."""
    return STATED_SUMMARY if c["method"] is None else TABLE[c["statistic"]]
