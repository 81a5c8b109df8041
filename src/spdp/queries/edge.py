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

    Of each block every ``stride``-th record is looked at. A record is at the edge or
    not: replacing one moves the count by at most one, and so does adding or removing
    one where all are looked at.
    """

    chart: Chart
    region: Region
    stride: int = 1
    unit: int = 1 << 20

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        found = self.chart.edge_count(Y, self.region, kernels, self.stride)
        return np.array([self.unit * found], np.int64)

    def sensitivity(self, adjacency: Adjacency) -> int:
        return self.unit

    def stated(self) -> dict[str, Any]:
        return {"unit": self.unit}
