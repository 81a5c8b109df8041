"""Flat metrics, one file each; CHARTS is the table of them."""

from spdp.charts.base import Chart, clip_to_ball
from spdp.charts.logeuclid import LogEuclidean
from spdp.charts.product import Product
from spdp.errors import ParameterError

__all__ = ["CHARTS", "LOGEUCLID", "Chart", "Product", "chart_of", "clip_to_ball"]

CHARTS: dict[str, Chart] = {chart.name: chart for chart in (LogEuclidean(),)}
LOGEUCLID = CHARTS["logeuclid"]  # what is meant where nobody names a metric


def chart_of(metric: str, parts: int | None = None) -> Chart:
    """The chart of a metric, or an error that lists the metrics there are.

    With ``parts``, of records that are so many matrices each.
    """
    if metric not in CHARTS:
        names = ", ".join(map(repr, CHARTS))
        raise ParameterError(f"metric must be one of {names}, got {metric!r}")
    return CHARTS[metric] if parts is None else Product(CHARTS[metric], parts)
