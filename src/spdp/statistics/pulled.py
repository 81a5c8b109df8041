"""The mean of pulled records that spread and principal components are released with.

All of it is post-processing of what an account answered.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.privacy.bounds import Bound, Number
from spdp.publishing import publish
from spdp.release import Release
from spdp.statistics.population import population_bound
from spdp.statistics.search.state import Outside
from spdp.statistics.search.taken import Taken
from spdp.statistics.setting import Setting

__all__ = ["Pulled", "publish_with_mean"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pulled:
    """A mean of records pulled to an ellipsoid, in their own coordinates."""

    y: Array
    radius: float
    bound: Bound
    taken: Taken
    sampling: Array  # variances of noise and sampling, along their principal axes
    number: Number  # of records


def publish_with_mean(
    setting: Setting,
    found: Pulled,
    outside: Outside | None,
    values: Mapping[str, Array],
    **said: Any,
) -> Release:
    """A release of the mean, first, and of ``values``, with bounds on the mean's error.

    ``said`` are the statistic's own entries of the certificate.
    """
    chart = setting.chart
    y = chart.project(found.y, setting.region)
    z = chart.representable(y)
    bound = found.bound.moved(float(np.linalg.norm(z - y)))
    population = population_bound(
        bound, found.sampling, found.taken.far, found.number, chart.distance, setting.source.unit
    )
    return publish(
        setting.account,
        {"mean": chart.matrices(z), **values},
        bound,
        method="adaptive",
        error_bound_population=population,
        **said,
        **setting.facts(outside, found.number.value, found.radius),
    )
