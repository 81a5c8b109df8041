"""How many records lie at the edge of their domain, where clipping puts them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spdp.charts import Chart
from spdp.choices import Adjacency
from spdp.kernels import Kernels, Region
from spdp.queries.base import Array, Ints, Query

__all__ = ["EdgeCount"]


@dataclass(frozen=True, eq=False)
class EdgeCount(Query):
    """``unit`` times the number of records at the edge of the domain.

    A record is at the edge or not: replacing, adding or removing one moves the count by
    at most one.
    """

    chart: Chart
    region: Region
    unit: int = 1 << 20

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        found = self.chart.edge_count(Y, self.region, kernels)
        return np.array([self.unit * found], np.int64)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return self.unit

    def stated(self) -> dict[str, Any]:
        return {"unit": self.unit}
