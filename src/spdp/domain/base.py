"""What all domains share: records are clipped to them, noisy results projected."""

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spdp.charts import LOGEUCLID, Chart, clip_to_ball
from spdp.data.batching import check_status, matrix_stack
from spdp.errors import InvalidMatrixError, ParameterError
from spdp.kernels import kernels_for
from spdp.kernels.arrays import Array
from spdp.kernels.base import Region

# relative slack with which `contains` forgives the rounding of a logarithm
LOOSE = 1e-9
SHORTEST, LONGEST = 1e-110, 1e110  # radii whose squares, noise included, are numbers
EPS = float(np.finfo(np.float64).eps)
KINDS = "Ball, EigenvalueBounds, TraceBounds, CorrelationBounds"
HELD = 0.5  # of the radius: how far float64 numbers may be from holding the centre


class Domain(ABC):
    """A public set of matrices; :mod:`spdp.domain.sets` has the kinds."""

    @abstractmethod
    def _region(self, k: int, chart: Chart) -> Region:
        """The domain for k×k matrices in a chart."""

    def describe(self) -> dict[str, Any]:
        """Public description for certificates, JSON-ready."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"type": type(self).__name__, **own}

    def region(self, k: int, chart: Chart = LOGEUCLID) -> Region:
        """The domain for k×k matrices in a chart.

        Records are clipped to an interval, then to a ball. A region whose centre
        float64 numbers cannot hold is refused here, before any budget is spent.
        """
        known, key = self.__dict__.setdefault("_regions", {}), (chart.key, k)
        if key not in known:
            known[key] = _held(self._region(k, chart), chart)
        region: Region = known[key]
        return region

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
        """Each record clipped to the domain.

        Records inside it are returned as they are, up to rounding.
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


def check_between(radius: float, least: float, most: float) -> None:
    """Refuse a domain too small, or too large, to compute with."""
    if not least <= radius <= most:
        where = f"must lie between {least:g} and {most:g}"
        raise ParameterError(f"the domain's radius in this metric is {radius:.3g}; it {where}")


def _held(region: Region, chart: Chart) -> Region:
    """The region, if float64 holds a matrix near its centre; else an error."""
    check_between(region.radius, SHORTEST, LONGEST)
    if not _gap(chart, region.center) <= HELD * region.radius:
        raise ParameterError(
            "float64 numbers do not hold the domain's centre in this metric to within half of "
            f"the domain's radius, {region.radius:.3g}: take a larger domain, or another unit "
            "for records and domain"
        )
    return region


def _gap(chart: Chart, v: Array) -> float:
    """How far a vector may be from the vector of its matrix in float64."""
    if not np.isfinite(v).all():
        return np.inf
    try:
        back = chart.vector(chart.matrices(v))
    except InvalidMatrixError:
        return np.inf
    return float(np.linalg.norm(back - v) + EPS * np.linalg.norm(v))


class Landed(NamedTuple):
    """A noisy vector brought into the domain, as a matrix.

    ``moved`` is how far it was moved for float64 numbers to hold it, after projection
    to the domain; ``off`` how far in all.
    """

    matrix: NDArray[Any]
    vector: Array
    moved: float
    off: float


def chart_about(chart: Chart, domain: Domain) -> Chart:
    """The chart that sees the records of a domain: from the centre that it may have."""
    center = getattr(domain, "center", None)
    return chart if center is None else chart.about(center)


class Space(NamedTuple):
    """Where k×k records lie: a metric's chart, a public domain, its region there."""

    chart: Chart
    domain: Domain
    k: int
    region: Region

    @classmethod
    def of(cls, chart: Chart, domain: Domain, k: int) -> "Space":
        """The space of k×k matrices in a domain, as a chart sees it."""
        chart = chart_about(chart, check_domain(domain))
        return cls(chart, domain, k, domain.region(k, chart))

    def land(self, v: Array) -> Landed:
        """Project (d,) or (C, d) to the domain, and to what float64 can hold."""
        if v.ndim == 2:
            each = [self.land(one) for one in v]
            matrices, vectors = (np.array([one[i] for one in each]) for i in (0, 1))
            moved, off = (float(np.linalg.norm([float(one[i]) for one in each])) for i in (2, 3))
            return Landed(matrices, vectors, moved, off)
        y = self.chart.project(v, self.region)
        z = self.chart.representable(y)
        moved = 0.0 if z is y else float(np.linalg.norm(z - y))
        off = 0.0 if z is v else float(np.linalg.norm(z - v))
        return Landed(self.chart.of_representable(z), z, moved, off)


def check_domain(domain: object) -> Domain:
    """``domain`` if it is a Domain, or an error that says why one is needed."""
    if isinstance(domain, Domain):
        return domain
    if domain is None:
        raise ParameterError(
            "a domain is required: pass Ball(radius), EigenvalueBounds(low, high), "
            "TraceBounds(low, trace) or CorrelationBounds(shrinkage), chosen from public "
            "knowledge. Bounds computed from the data would leak the data."
        )
    raise ParameterError(
        f"domain must be one of {KINDS}, got {type(domain).__name__}. It cannot be "
        "taken from the data: bounds computed from the data would leak the data."
    )
