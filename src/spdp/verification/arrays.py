"""Names and shapes of what a statistic releases, the value first.

Numbers that a certificate is free to choose are read off the shapes themselves (of
components and covariates), or off the last step (of classes).
"""

from spdp.statements import DISTANCES
from spdp.verification.base import Fields, dimension

__all__ = [
    "of_classes",
    "of_difference",
    "of_mean",
    "of_median",
    "of_pca",
    "of_regression",
    "of_spread",
]

Shapes = list[tuple[str, list[int]]]


def _record(c: Fields) -> list[int]:
    """A matrix, or so many of them as a record has."""
    return [*([] if c["parts"] is None else [c["parts"]]), c["k"], c["k"]]


def of_mean(c: Fields) -> Shapes:
    return [("mean", _record(c))]


def of_median(c: Fields) -> Shapes:
    return [("median", _record(c))]


def of_spread(c: Fields) -> Shapes:
    rest = [("variance", []), ("deviations", [dimension(c)]), ("distances", [len(DISTANCES)])]
    return [("mean", _record(c)), *rest]


def of_pca(c: Fields) -> Shapes:
    d = dimension(c)
    p = min(max(c["arrays"]["components"][0], 1), d)
    rest = [("components", [p, d]), ("explained_variance", [p]), ("covariance", [d, d])]
    return [("mean", _record(c)), *rest]


def of_classes(c: Fields) -> Shapes:
    d, C = dimension(c), len(c["steps"][-1]["classes"])
    second = [d] * min(len(c["arrays"].get("covariance", ())), 2)
    covariance = [("covariance", second)] if "covariance" in c["arrays"] else []
    return [("means", [C, *_record(c)]), ("counts", [C]), *covariance]


def of_regression(c: Fields) -> Shapes:
    p = max(c["arrays"]["at"][0], 1)
    rest = [("slopes", [p, dimension(c)]), ("at", [p]), ("noise", [1 + p, 1 + p])]
    return [("fitted", _record(c)), *rest]


def of_difference(c: Fields) -> Shapes:
    rest = [("means", [2, *_record(c)]), ("counts", [2]), ("p_value", [])]
    return [("difference", [dimension(c)]), *rest]
