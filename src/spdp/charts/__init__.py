"""Metrics, one file each; CHARTS is the table of them."""

from typing import Any

from spdp.charts.base import Chart, Component, clip_to_ball
from spdp.charts.hermitian import Hermitian
from spdp.charts.logchol import LogCholesky
from spdp.charts.logeuclid import LogEuclidean
from spdp.charts.offlog import OffLog
from spdp.charts.product import Product
from spdp.charts.riemann import AffineInvariant, AffineInvariantAt
from spdp.charts.whitened import Whitened
from spdp.errors import ParameterError, named

__all__ = ["CHARTS", "LOGEUCLID", "Chart", "Component", "Product", "chart_of", "clip_to_ball"]

TABLE = (LogEuclidean(), LogCholesky(), OffLog(), Hermitian(), AffineInvariant())
CHARTS: dict[str, Chart] = {chart.name: chart for chart in TABLE}
LOGEUCLID = CHARTS["logeuclid"]  # the default metric
SEEN_FROM: dict[str, type[Whitened]] = {"logeuclid": Whitened, "riemann": AffineInvariantAt}


def chart_of(
    metric: str, reference_point: Any = None, parts: int | None = None, curved: bool = False
) -> Chart:
    """The chart of a metric, or an error that lists all metrics.

    ``reference_point`` is a public SPD matrix by which records are whitened, for the
    log-Euclidean and the affine-invariant metric. ``parts`` is the number of matrices
    in each record. A metric that is not flat is refused, unless ``curved``: what is
    made of vectors in R^d does not hold for it.

    Examples
    --------
    >>> from spdp.charts import chart_of
    >>> chart_of("offlog").name
    'offlog'
    """
    if not isinstance(metric, str) or metric not in CHARTS:
        names = ", ".join(map(repr, CHARTS))
        raise ParameterError(f"{named('metric')} must be one of {names}, got {metric!r}")
    chart = CHARTS[metric]
    if not (chart.flat or curved):
        raise ParameterError(
            f"{named('metric', metric)} is curved, and this needs a flat metric: pass "
            f"{named('metric', LOGEUCLID.name)}, and to see records as {metric!r} does near a "
            f"public or released matrix, pass that matrix as {named('reference_point')}, with a "
            "domain for whitened records"
        )
    if reference_point is not None:
        if metric not in SEEN_FROM:
            metrics = " or ".join(named("metric", name) for name in SEEN_FROM)
            raise ParameterError(f"{named('reference_point')} needs {metrics}")
        chart = SEEN_FROM[metric](reference_point)
    return chart if parts is None else Product(chart, parts)
