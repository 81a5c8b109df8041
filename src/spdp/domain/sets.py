"""The kinds of domains, each with the proof that its ball holds it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spdp.charts import CHARTS, Chart
from spdp.data.batching import NUMBERS, check_kind, matrix_stack, wide
from spdp.domain.base import Domain
from spdp.errors import ParameterError, named
from spdp.kernels.arrays import array_of, plain
from spdp.kernels.base import Region
from spdp.options import positive, positive_int


@dataclass(frozen=True)
class Ball(Domain):
    """Ball of a given radius around a public centre (the identity by default).

    Parameters
    ----------
    radius : float
        r > 0, in the metric's distance.
    center : array (k, k), optional
        SPD matrix, or a Hermitian one where records are Hermitian.

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

    def __post_init__(self) -> None:
        r = positive("radius", self.radius)
        if not 1e-100 <= r <= 1e100:
            raise ParameterError(f"{named('radius')} must lie between 1e-100 and 1e100, got {r!r}")
        object.__setattr__(self, "radius", r)
        if self.center is not None:
            given = array_of(self.center) if isinstance(self.center, dict) else self.center
            C = wide(matrix_stack(given, "center", NUMBERS))
            if C.ndim != 2:
                raise ParameterError(f"{named('center')} has shape {C.shape}; expected (k, k)")
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
            raise ParameterError(f"the domain's center is {self.center.shape}, records ({k}, {k})")
        check_kind(self.center.dtype, chart.kinds, "the domain's centre")
        return chart.ball(chart.vector(self.center), self.radius, k)

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"center": None if self.center is None else plain(self.center)}


def _check_ascending(domain: Domain, low: str, high: str) -> None:
    """Make two positive numbers of a domain floats, or refuse them."""
    a, b = (positive(name, getattr(domain, name)) for name in (low, high))
    if not np.log(a) < np.log(b):
        raise ParameterError(f"{named(low)} must be smaller than {named(high)}, got {a!r}, {b!r}")
    object.__setattr__(domain, low, a)
    object.__setattr__(domain, high, b)


@dataclass(frozen=True)
class EigenvalueBounds(Domain):
    """Matrices whose eigenvalues lie in [low, high].

    In log-Euclidean metrics the eigenvalues of records are clipped, in the kernels
    (``log_vectors``); in other metrics records are clipped to the smallest known ball
    that holds all such matrices (:meth:`spdp.charts.Chart.bounded`).

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

    def __post_init__(self) -> None:
        _check_ascending(self, "low", "high")

    def _region(self, k: int, chart: Chart) -> Region:
        return chart.bounded(self.low, self.high, k)


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
    are left as they are; others are clipped to the ball, whatever their trace.

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

    def __post_init__(self) -> None:
        _check_ascending(self, "low", "trace")

    def _region(self, k: int, chart: Chart) -> Region:
        return chart.traced(self.low, self.trace, k)


@dataclass(frozen=True)
class CorrelationBounds(Domain):
    """Correlation matrices shrunk as C ← (1 − η)·C + η·I, 0 < η < 1.

    C has ones on its diagonal and no negative eigenvalue. So the shrunk matrix has
    trace k exactly and eigenvalues of at least η: it lies in TraceBounds(η, k). This
    domain is TraceBounds(η, k) for the k of the records.

    It does NOT shrink records: do that before, with a public η. A record that was not
    shrunk, or whose diagonal is not one, is clipped to the same ball as any other:
    privacy assumes neither.

    For correlation matrices. With ``metric="offlog"`` covariances count as their
    correlations and a mean's diagonal is 1; in other metrics neither holds.

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

    def __post_init__(self) -> None:
        eta = positive("shrinkage", self.shrinkage)
        if not eta < 1.0:
            raise ParameterError(f"{named('shrinkage')} must be smaller than 1, got {eta!r}")
        object.__setattr__(self, "shrinkage", eta)

    def _region(self, k: int, chart: Chart) -> Region:
        return chart.traced(self.shrinkage, float(k), k)


KINDS: dict[str, type[Domain]] = {
    kind.__name__: kind for kind in (Ball, EigenvalueBounds, TraceBounds, CorrelationBounds)
}


def domain_of(description: Any) -> Domain:
    """The domain that :meth:`Domain.describe` described."""
    kind = description.get("type") if isinstance(description, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise ParameterError(f"unknown kind of domain {kind!r}")
    options = {name: value for name, value in description.items() if name != "type"}
    try:
        return KINDS[kind](**options)
    except TypeError as error:
        raise ParameterError(f"not a description of a {kind}: {error}") from None


# --- from what is known of an instrument, with the unit of the data stated: data in V²
# with a domain in µV² are all outside it

# how many of a unit make 1 mm²/s
DIFFUSIVITY = {"mm2/s": 1.0, "um2/ms": 1e3, "um2/s": 1e6, "cm2/s": 1e-2, "m2/s": 1e-6}
LEAST, MOST = 1e-5, 5e-3  # mm²/s, of a diffusion tensor in the living body
VOLTAGE = {"V": 1.0, "mV": 1e3, "uV": 1e6, "nV": 1e9}  # how many of a unit make 1 V


def _unit(name: str, unit: str, table: dict[str, float]) -> float:
    """How many of a unit make the table's first; both Unicode signs for µ mean u."""
    plain = unit.replace("\u00b5", "u").replace("\u03bc", "u").replace("²", "2")
    if plain not in table:
        known = ", ".join(map(repr, table))
        raise ParameterError(f"{name} must be one of {known}, got {unit!r}")
    return table[plain]


def tensor_bounds(
    unit: str, low: float | None = None, high: float | None = None
) -> EigenvalueBounds:
    """Domain of diffusion tensors in the living body, from physics.

    Eigenvalues of a diffusion tensor are diffusivities along its axes. Water hindered
    by tissue moves no faster than free water, about 3.0e-3 mm²/s at 37 °C; fits of
    fluid scatter around that, and the largest of three eigenvalues scatters upward, so
    ``high`` is 5e-3 mm²/s unless stated. Across tightly packed fibres water still moves
    at some 1e-4 mm²/s, and fits below 1e-5 mm²/s, ``low``, are noise. The margin above
    free water is a judgement, made after a look at one public volume (968 voxels, 15 %
    of them outside at 3.2e-3): if yours is that volume, state ``high`` yourself. The
    log-Euclidean radius is (√3/2)·ln(high/low) = 5.38.

    Voxels of flow or of a fit that failed may lie outside: they are clipped.

    Parameters
    ----------
    unit : "mm2/s", "um2/ms", "um2/s", "cm2/s" or "m2/s"
        Of the tensors' entries. MRtrix, FSL and DIPY write mm²/s for b-values in s/mm².
    low, high : float, optional
        In ``unit``.

    Examples
    --------
    >>> from spdp import tensor_bounds
    >>> tensor_bounds("um2/ms")
    EigenvalueBounds(low=0.01, high=5.0)
    """
    scale = _unit("unit", unit, DIFFUSIVITY)
    least, most = LEAST * scale if low is None else low, MOST * scale if high is None else high
    return EigenvalueBounds(least, most)


def amplitude_bounds(
    channels: int, low: float, high: float, unit: str, data_unit: str
) -> TraceBounds:
    """Domain of covariance matrices of signals (EEG, EMG, MEG-like), from amplitudes.

    *Assumed, for records to be left as they are:* in every window each of k channels
    has a root mean square of at most A = ``high``, and the floor a²·I, a = ``low``, was
    added to each covariance matrix: C ← C + a²·I. A covariance has no negative
    eigenvalue, so those of the sum are at least a². The variance of a channel is at
    most its mean square, so the trace is at most k·(A² + a²): the domain is
    TraceBounds(a², k·(A² + a²)).

    *Enforced,* as in every domain: whatever a record is, it is clipped to the ball.
    The floor matters: windows shorter than k samples, an average reference or an
    interpolated channel make C singular; the logarithm of a rounding error is noise.

    Parameters
    ----------
    channels : int
        k, the number of channels.
    low, high : float
        Noise floor and largest root mean square amplitude of a channel, in ``unit``;
        from the amplifier's data sheet and its artefact threshold, not from the data.
    unit : "V", "mV", "uV" or "nV"
        Of ``low`` and ``high``.
    data_unit : "V", "mV", "uV" or "nV"
        Of the SIGNALS the matrices were computed from; their entries are its square.
        MNE keeps signals in V, so its covariances are in V²: 10⁻¹² of those in µV².

    Examples
    --------
    >>> from spdp import amplitude_bounds
    >>> amplitude_bounds(22, 0.5, 50.0, unit="uV", data_unit="uV")
    TraceBounds(low=0.25, trace=55005.5)
    """
    positive_int("channels", channels)
    scale = _unit("data_unit", data_unit, VOLTAGE) / _unit("unit", unit, VOLTAGE)
    a, A = positive("low", low) * scale, positive("high", high) * scale
    if not a < A:
        raise ParameterError(f"low must be smaller than high, got {low!r} and {high!r}")
    return TraceBounds(a * a, channels * (A * A + a * a))
