"""What all domains share: a record is forced into a region, and where it lies then."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spdp.blocks import matrix_stack
from spdp.charts import LOGEUCLID, Chart, clip_to_ball
from spdp.errors import InvalidMatrixError, ParameterError
from spdp.faults import check_status
from spdp.kernels import Region, kernels_for

__all__ = ["Domain"]

Array = NDArray[np.float64]

# relative slack with which `contains` forgives the rounding of a logarithm
LOOSE = 1e-9
SHORTEST, LONGEST = 1e-110, 1e110  # radii whose squares, and the noise's, are numbers
EPS = float(np.finfo(np.float64).eps)
HELD = 0.5  # of the radius: how far float64 numbers may be from holding the centre


class Domain(ABC):
    """A public set of matrices; :mod:`spdp.domain.sets` has the kinds."""

    _regions: dict[tuple[str, int], Region]

    @abstractmethod
    def _region(self, k: int, chart: Chart) -> Region:
        """The domain for k×k matrices in a chart."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Public description for certificates, JSON-ready."""

    def region(self, k: int, chart: Chart = LOGEUCLID) -> Region:
        """The domain for k×k matrices in a chart.

        Clip to an interval, then to a ball. A region that float64 numbers cannot hold
        is refused here, before anybody pays for what could not be released.
        """
        key = (chart.key, k)
        if key not in self._regions:
            self._regions[key] = _held(self._region(k, chart), chart)
        return self._regions[key]

    def radius_for(self, k: int, chart: Chart = LOGEUCLID) -> float:
        """Radius r of a ball of the metric that contains the domain."""
        return self.region(k, chart).radius

    def sensitivity(self, n: int, k: int, chart: Chart = LOGEUCLID) -> float:
        """2r/n.

        How far replacing one of n clipped records can move their mean (theorem 3).
        """
        if n < 1:
            raise ParameterError(f"n must be at least 1, got {n}")
        return 2.0 * self.radius_for(k, chart) / n

    def clip(self, X: ArrayLike, chart: Chart = LOGEUCLID) -> Array:
        """Each record forced into the domain.

        Those inside it are returned as they are.
        """
        A = matrix_stack(X, kinds=chart.kinds)
        F = A.reshape(-1, *A.shape[-2:])
        region = self.region(A.shape[-1], chart)
        Y, status = chart.vectors(F, region, kernels_for(F))
        check_status(status, A)
        return chart.matrices(clip_to_ball(Y, region.center, region.radius)).reshape(A.shape)

    def contains(self, X: ArrayLike, chart: Chart = LOGEUCLID) -> Any:
        """Whether each matrix lies in the domain, up to the rounding of a logarithm."""
        Y = chart.vector(matrix_stack(X, kinds=chart.kinds))
        region = self.region(chart.size(Y.shape[-1]), chart)
        gap = np.sqrt(((Y - chart.project(Y, region)) ** 2).sum(axis=-1))
        return gap <= LOOSE * max(1.0, region.radius)


def _held(region: Region, chart: Chart) -> Region:
    """The region, if float64 holds a matrix near its centre; else an error."""
    if not SHORTEST <= region.radius <= LONGEST:
        raise ParameterError(
            f"the domain's radius in this metric is {region.radius:.3g}; it must lie between "
            f"{SHORTEST:g} and {LONGEST:g}"
        )
    if not _gap(chart, region.center) <= HELD * region.radius:
        raise ParameterError(
            "float64 numbers do not hold the domain's centre in this metric to within half of "
            f"the domain's radius, {region.radius:.3g}: take a larger domain, or another unit "
            "for records and domain"
        )
    return region


def _gap(chart: Chart, v: Array) -> float:
    """How far a vector may be from that of its own matrix."""
    if not np.isfinite(v).all():
        return np.inf
    try:
        back = chart.vector(chart.matrices(v))
    except InvalidMatrixError:
        return np.inf
    return float(np.linalg.norm(back - v) + EPS * np.linalg.norm(v))
