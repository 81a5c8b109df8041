r"""Where a record may lie: public sets, chosen without looking at the data.

Records are FORCED into the domain one by one, so the sensitivity of their mean is
enforced, not assumed: with all vectors in a ball of radius r, replacing one of n
records moves the mean by at most 2r/n (theorem 3). A radius or bounds computed from the
data themselves leak the data; no function here offers that.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spdp.blocks import describe_fault, invalid_matrix, matrix_stack
from spdp.charts import LOGEUCLID, Chart, clip_to_ball
from spdp.choices import positive
from spdp.errors import ParameterError
from spdp.kernels import Region, kernels_for

__all__ = ["Ball", "Domain", "EigenvalueBounds", "check_domain", "domain_of"]

Array = NDArray[np.float64]

# relative slack with which `contains` forgives the rounding of a logarithm
LOOSE = 1e-9


class Domain(ABC):
    """What :class:`Ball` and :class:`EigenvalueBounds` share; see there."""

    _regions: dict[tuple[str, int], Region]

    @abstractmethod
    def _region(self, k: int, chart: Chart) -> Region:
        """The domain for k×k matrices in a chart."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Public description for certificates, JSON-ready."""

    def region(self, k: int, chart: Chart = LOGEUCLID) -> Region:
        """The domain for k×k matrices in a chart.

        Clip to an interval, then to a ball.
        """
        key = (chart.key, k)
        if key not in self._regions:
            self._regions[key] = self._region(k, chart)
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
        A = matrix_stack(X)
        F = A.reshape(-1, *A.shape[-2:])
        region = self.region(A.shape[-1], chart)
        Y, status = chart.vectors(F, region, kernels_for(F))
        bad = np.flatnonzero(status)
        if bad.size:
            first = int(bad[0])
            index = tuple(map(int, np.unravel_index(first, A.shape[:-2]))) if A.ndim > 2 else ()
            raise invalid_matrix(describe_fault(int(status[first]), F[first]), index)
        return chart.matrices(clip_to_ball(Y, region.center, region.radius)).reshape(A.shape)

    def contains(self, X: ArrayLike, chart: Chart = LOGEUCLID) -> Any:
        """Whether each matrix lies in the domain, up to the rounding of a logarithm."""
        Y = chart.vector(matrix_stack(X))
        region = self.region(chart.size(Y.shape[-1]), chart)
        gap = np.sqrt(((Y - chart.project(Y, region)) ** 2).sum(axis=-1))
        return gap <= LOOSE * max(1.0, region.radius)


@dataclass(frozen=True)
class Ball(Domain):
    """Ball of a given radius around a public centre (the identity by default).

    Parameters
    ----------
    radius : float
        r > 0, in the metric's distance.
    center : array (k, k), optional
        SPD matrix.
    """

    radius: float
    center: Any = None
    _regions: dict[tuple[str, int], Region] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        r = positive("radius", self.radius)
        if not 1e-100 <= r <= 1e100:
            raise ParameterError(f"radius must lie between 1e-100 and 1e100, got {r!r}")
        object.__setattr__(self, "radius", r)
        if self.center is not None:
            C = np.array(matrix_stack(self.center, "center"), dtype=np.float64)
            if C.ndim != 2:
                raise ParameterError(f"center has shape {C.shape}; expected one matrix (k, k)")
            C.setflags(write=False)
            object.__setattr__(self, "center", C)
            self.region(len(C))  # raises now if the centre is not SPD

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ball) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash(self.radius)

    def _region(self, k: int, chart: Chart) -> Region:
        if self.center is None:
            return chart.ball(None, self.radius, k)
        if len(self.center) != k:
            raise ParameterError(
                f"the domain's centre is {self.center.shape}, the records are ({k}, {k})"
            )
        return chart.ball(chart.vector(self.center), self.radius, k)

    def describe(self) -> dict[str, Any]:
        center = None if self.center is None else self.center.tolist()
        return {"type": "Ball", "radius": self.radius, "center": center}


@dataclass(frozen=True)
class EigenvalueBounds(Domain):
    """Matrices whose eigenvalues lie in [low, high].

    Records have their eigenvalues clipped; in a metric that is not one of eigenvalues,
    they are pulled into the smallest known ball that holds all such matrices
    (:meth:`spdp.charts.Chart.bounded`).

    Clipped log-eigenvalues lie within ln(high/low)/2 of ln√(low·high), so the
    log-Euclidean ball around √(low·high)·I of radius r = (√k/2)·ln(high/low) contains
    every record. (The paper centres at I, which is never better.)

    Parameters
    ----------
    low, high : float
        0 < low < high, finite.
    """

    low: float
    high: float
    _regions: dict[tuple[str, int], Region] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        low, high = positive("low", self.low), positive("high", self.high)
        if not np.log(low) < np.log(high):
            raise ParameterError(f"low must be smaller than high, got {low!r} and {high!r}")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def _region(self, k: int, chart: Chart) -> Region:
        return chart.bounded(self.low, self.high, k)

    def describe(self) -> dict[str, Any]:
        return {"type": "EigenvalueBounds", "low": self.low, "high": self.high}


KINDS: dict[str, type[Domain]] = {"Ball": Ball, "EigenvalueBounds": EigenvalueBounds}


def domain_of(description: Any) -> Domain:
    """The domain that :meth:`Domain.describe` described."""
    kind = description.get("type") if isinstance(description, dict) else None
    if kind not in KINDS:
        raise ParameterError(f"unknown kind of domain {kind!r}")
    options = {name: value for name, value in description.items() if name != "type"}
    try:
        return KINDS[kind](**options)
    except TypeError as error:
        raise ParameterError(f"not a description of a {kind}: {error}") from None


def check_domain(domain: object) -> Domain:
    """``domain`` if it is one, or why it cannot be left out."""
    if isinstance(domain, Domain):
        return domain
    if domain is None:
        raise ParameterError(
            "a domain is required: pass Ball(radius) or EigenvalueBounds(low, high), chosen "
            "from public knowledge. Bounds computed from the data would leak the data."
        )
    raise ParameterError(
        f"domain must be a Ball or EigenvalueBounds, got {type(domain).__name__}. It cannot be "
        "taken from the data: bounds computed from the data would leak the data."
    )
