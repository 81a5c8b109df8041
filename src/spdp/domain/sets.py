"""The kinds of domains, each with the proof that its ball holds it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spdp.blocks import NUMBERS, matrix_stack
from spdp.charts import CHARTS, Chart
from spdp.choices import positive
from spdp.domain.base import Domain
from spdp.errors import ParameterError, named
from spdp.kernels import Region
from spdp.plain import array_of, plain
from spdp.stacks import check_kind, wide

__all__ = ["Ball", "CorrelationBounds", "EigenvalueBounds", "TraceBounds"]


@dataclass(frozen=True)
class Ball(Domain):
    """Ball of a given radius around a public centre (the identity by default).

    Parameters
    ----------
    radius : float
        r > 0, in the metric's distance.
    center : array (k, k), optional
        SPD matrix, or a Hermitian one where records are.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import Ball
    >>> Ball(2.0).radius_for(3), bool(Ball(2.0).contains(np.diag([1.0, 2.0, 3.0])))
    (2.0, True)
    >>> Ball(1.0).clip(np.diag([1.0, np.e**2])).round(3)
    array([[1.   , 0.   ],
           [0.   , 2.718]])
    """

    radius: float
    center: Any = None
    _regions: dict[tuple[str, int], Region] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        r = positive("radius", self.radius)
        if not 1e-100 <= r <= 1e100:
            raise ParameterError(f"{named('radius')} must lie between 1e-100 and 1e100, got {r!r}")
        object.__setattr__(self, "radius", r)
        if self.center is not None:
            given = array_of(self.center) if isinstance(self.center, dict) else self.center
            C = wide(matrix_stack(given, "center", NUMBERS))
            if C.ndim != 2:
                raise ParameterError(
                    f"{named('center')} has shape {C.shape}; expected one matrix (k, k)"
                )
            C.setflags(write=False)
            object.__setattr__(self, "center", C)
            charts = (chart for chart in CHARTS.values() if C.dtype.kind in chart.kinds)
            self._region(len(C), next(charts))  # raises now if the centre is not SPD

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
        check_kind(self.center.dtype, chart.kinds, "the domain's centre")
        return chart.ball(chart.vector(self.center), self.radius, k)

    def describe(self) -> dict[str, Any]:
        center = None if self.center is None else plain(self.center)
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

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds
    >>> domain = EigenvalueBounds(0.1, 10.0)
    >>> round(domain.radius_for(4), 3)
    4.605
    >>> domain.clip(np.diag([0.01, 1.0, 20.0])).round(3)
    array([[ 0.1,  0. ,  0. ],
           [ 0. ,  1. ,  0. ],
           [ 0. ,  0. , 10. ]])
    """

    low: float
    high: float
    _regions: dict[tuple[str, int], Region] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        low, high = positive("low", self.low), positive("high", self.high)
        if not np.log(low) < np.log(high):
            raise ParameterError(
                f"{named('low')} must be smaller than {named('high')}, got {low!r} and {high!r}"
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def _region(self, k: int, chart: Chart) -> Region:
        return chart.bounded(self.low, self.high, k)

    def describe(self) -> dict[str, Any]:
        return {"type": "EigenvalueBounds", "low": self.low, "high": self.high}


@dataclass(frozen=True)
class TraceBounds(Domain):
    r"""Matrices with eigenvalues of at least ``low`` and a trace of at most ``trace``.

    Smaller than :class:`EigenvalueBounds`, because not all eigenvalues can be large at
    once: in the log-Euclidean metric the radius about e^t·I is

        r² = min over t, max over p = 0 … k, of p·(ln m_p − t)² + (k − p)·(ln low − t)²,

    m_p = (trace − (k − p)·low)/p. :mod:`spdp.charts.spectra` proves that no spectrum
    lies farther, and that rounding does not bring the radius below it.

    *Enforced.* Log-eigenvalues are clipped to [ln low, ln(trace − (k − 1)·low)], then
    the vector to the ball of radius r: that is what limits a record's influence, and
    what ``clip`` and ``contains`` speak of. *Therefore* matrices that keep both bounds
    are left as they are; others end in the ball, whatever their trace.

    Parameters
    ----------
    low, trace : float
        0 < k·low < trace, finite, in the unit of the records.

    Examples
    --------
    >>> from spdp import EigenvalueBounds, TraceBounds
    >>> round(TraceBounds(0.01, 1.0).radius_for(20), 3)
    5.486
    >>> round(EigenvalueBounds(0.01, 1.0).radius_for(20), 3)
    10.297
    """

    low: float
    trace: float
    _regions: dict[tuple[str, int], Region] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        low, trace = positive("low", self.low), positive("trace", self.trace)
        if not np.log(low) < np.log(trace):
            raise ParameterError(
                f"{named('low')} must be smaller than {named('trace')}, got {low!r} and {trace!r}"
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "trace", trace)

    def _region(self, k: int, chart: Chart) -> Region:
        return chart.traced(self.low, self.trace, k)

    def describe(self) -> dict[str, Any]:
        return {"type": "TraceBounds", "low": self.low, "trace": self.trace}


@dataclass(frozen=True)
class CorrelationBounds(Domain):
    """Correlation matrices shrunk as C ← (1 − η)·C + η·I, 0 < η < 1.

    C has ones on its diagonal and no negative eigenvalue. So the shrunk matrix has
    trace k exactly and eigenvalues of at least η: it lies in TraceBounds(η, k), which
    this is for whatever k the records have.

    It does NOT shrink records: do that before, with a public η. A record that was not
    shrunk, or whose diagonal is not one, is forced into the same ball as any other:
    privacy assumes neither.

    For correlation matrices. With ``metric="offlog"`` covariances count as their
    correlations and a mean's diagonal is 1; in other metrics neither holds, and this is
    TraceBounds(η, k) and no more.

    Parameters
    ----------
    shrinkage : float
        η, public.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import CorrelationBounds
    >>> C = np.array([[1.0, 0.9], [0.9, 1.0]])
    >>> bool(CorrelationBounds(0.2).contains(0.8 * C + 0.2 * np.eye(2)))
    True
    """

    shrinkage: float
    _regions: dict[tuple[str, int], Region] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        eta = positive("shrinkage", self.shrinkage)
        if not eta < 1.0:
            raise ParameterError(f"{named('shrinkage')} must be smaller than 1, got {eta!r}")
        object.__setattr__(self, "shrinkage", eta)

    def _region(self, k: int, chart: Chart) -> Region:
        return chart.traced(self.shrinkage, float(k), k)

    def describe(self) -> dict[str, Any]:
        return {"type": "CorrelationBounds", "shrinkage": self.shrinkage}
