"""What a release warns of, told from its certificate and its values alone.

*Enforced.* Nothing but what is released, and public numbers, is an argument here: a
warning says no more than the release does.
"""

from collections.abc import Mapping
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.charts import Chart, chart_of
from spdp.choices import counted
from spdp.domain import domain_of
from spdp.kernels import Region, kernels_for

__all__ = ["clearly_outside", "hopeless", "outside", "reach"]

Array = NDArray[np.float64]
Certificate = dict[str, Any]
Values = Mapping[str, NDArray[Any]]

MEANS = ("mean", "dispersion", "pca", "class-means")  # whose bound is on means
MANY, CLEAR = 0.1, 3.0  # share from which to warn, by so many sd of its noise
FAR, SHARP = 0.9, 0.3  # over the radius: distance of a mean at the edge, and its error


def clearly_outside(share: float, sd: float) -> bool:
    """Whether many records lie at the domain's edge beyond doubt."""
    return share - CLEAR * sd > MANY


def outside(values: Values, c: Certificate, vector: Array | None = None) -> str | None:
    """That the domain does not fit the records (or persons), where that is plain.

    ``vector`` is that of a released mean, for those who know it.
    """
    found, many = c["outside"], "nearly all"
    if found is not None and clearly_outside(found["share"], found["sd"]):
        many = f"about {found['share']:.0%} of the"
    elif not _at_far_edge(values, c, vector):
        return None
    return (
        f"{many} {c['unit']}s lie outside the domain or at its edge, and were moved to it. Is the "
        "domain in the unit of the data?"
    )


def _at_far_edge(values: Values, c: Certificate, vector: Array | None) -> bool:
    """Whether a released mean lies at the ball's surface, its error aside.

    A mean is there only if nearly all records are.
    """
    if c["statistic"] != "mean" or c["domain"] is None or c["error_bound"] is None:
        return False
    square = c["expected_squared_error"]
    error = c["error_bound"]["95%"] if square is None else sqrt(square)
    (chart, region), value = _place(c), next(iter(values.values()))
    if error >= SHARP * region.radius:
        return False
    if vector is None:  # what is no matrix of this chart lies nowhere: verification says so
        if value.shape[-2:] != (c["k"], c["k"]) or value.dtype.kind not in chart.kinds:
            return False
        (vector,), _ = chart.vectors(value[None], region, kernels_for(value))
    return float(np.linalg.norm(vector - region.center)) > FAR * region.radius


def _place(c: Certificate) -> tuple[Chart, Region]:
    """The chart of a certificate and its domain there; usual ones are kept."""
    domain, point = c["domain"], c["reference_point"]
    if point is None and not any(isinstance(value, list | dict) for value in domain.values()):
        return _usual_place(tuple(domain.items()), c["k"], c["metric"], c["parts"])
    chart = chart_of(c["metric"], point, c["parts"])
    return chart, domain_of(domain).region(c["k"], chart)


@lru_cache(maxsize=64)
def _usual_place(
    domain: tuple[tuple[str, Any], ...], k: int, metric: str, parts: int | None
) -> tuple[Chart, Region]:
    chart = chart_of(metric, parts=parts)
    return chart, domain_of(dict(domain)).region(k, chart)


def reach(c: Certificate) -> float | None:
    """How far the domain's centre is from what is bounded at most.

    That is any mean; of several classes, the root of the sum of squares.
    """
    if c["domain"] is None or c["statistic"] not in MEANS:
        return None
    means = c["arrays"]["means"][0] if c["statistic"] == "class-means" else 1
    return sqrt(means) * float(_place(c)[1].radius)


def hopeless(c: Certificate) -> str | None:
    """That the domain's centre, which is free, is within the bound as well."""
    radius, bound = reach(c), c["error_bound"] or c["error_bound_within"]
    if radius is None or bound is None or bound["95%"] < radius:
        return None
    of = "all class means together" if c["statistic"] == "class-means" else "any mean"
    return (
        f"HOPELESS: the domain's centre is within {radius:.4g} of {of}, at no cost. More "
        f"{counted(c['unit'])} or a larger ε are needed (spdp plan)"
    )
