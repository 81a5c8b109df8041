"""What a certificate must say of its error in words, given its other fields."""

from math import sqrt

from spdp.choices import Method
from spdp.statements import (
    DIFFERENCE,
    EXACT_LAW,
    JOINT,
    MEDIAN,
    MOVED,
    PCA,
    PULLED,
    REGRESSION,
    SPREAD,
    TAKEN,
    TOO_FEW,
    UNSEEN,
    UPPER_LAW,
    WHOLE_ERROR,
)
from spdp.verification.base import Fields, dimension, is_public, step_named

__all__ = [
    "of_classes",
    "of_difference",
    "of_mean",
    "of_median",
    "of_pca",
    "of_regression",
    "of_spread",
    "of_summary",
]


def of_summary(c: Fields) -> str:
    return EXACT_LAW if c["error_bound_parts"] is None else MOVED


def of_mean(c: Fields) -> str:
    if c["method"] == Method.ADAPTIVE:
        return WHOLE_ERROR
    return UPPER_LAW if c["error_bound_parts"] is None else MOVED


def of_classes(c: Fields) -> str:
    if c["error_bound_parts"] is not None:
        return JOINT
    if c["steps"][-1]["unseen"]:
        return UNSEEN
    return TOO_FEW if c["error_bound_within"] is None else PULLED


def of_spread(c: Fields) -> str:
    last, taken = c["steps"][-1], step_named(c, "excess")
    text = SPREAD.format(unit=c["unit"], radius=last["radius"], sd=last["variance_sd"])
    if taken is None:
        return text
    ratio = 1.0
    if not is_public(c):  # it was measured when the number was known less well
        ratio = c["steps"][0]["n_estimate"] / last["n_estimate"]
    (_, square), (_, sd) = taken["excess"], taken["excess_sd"]
    numbers = {"taken": square * ratio, "taken_sd": sd * ratio, "reach": taken["reach"][1]}
    return text + TAKEN.format(unit=c["unit"], **numbers)


def of_pca(c: Fields) -> str:
    return PCA.format(unit=c["unit"], trusted=c["steps"][-1]["trusted"])


def of_median(c: Fields) -> str:
    return MEDIAN.format(rms=c["sigma"] * sqrt(dimension(c)))


def of_regression(c: Fields) -> str:
    return REGRESSION.format(d=dimension(c))


def of_difference(c: Fields) -> str:
    return DIFFERENCE
