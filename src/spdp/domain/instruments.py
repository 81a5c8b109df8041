"""Domains from what is known of an instrument, with the unit of the data stated.

Data in V² with a domain in µV² are all outside it: every function here asks for units.
"""

from spdp.choices import positive
from spdp.domain.sets import EigenvalueBounds, TraceBounds
from spdp.errors import ParameterError

__all__ = ["amplitude_bounds", "tensor_bounds"]

DIFFUSIVITY = {  # how many of a unit make 1 mm²/s
    "mm2/s": 1.0,
    "um2/ms": 1e3,
    "um2/s": 1e6,
    "cm2/s": 1e-2,
    "m2/s": 1e-6,
}
LEAST, MOST = 1e-5, 5e-3  # mm²/s, of a diffusion tensor in the living body
VOLTAGE = {"V": 1.0, "mV": 1e3, "uV": 1e6, "nV": 1e9}  # how many of a unit make 1 V


def _unit(name: str, unit: str, table: dict[str, float]) -> float:
    """How many of a unit make the table's first; µ (two characters look so) is u."""
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
    return EigenvalueBounds(
        LEAST * scale if low is None else low, MOST * scale if high is None else high
    )


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

    *Enforced,* as in every domain: whatever a record is, it is forced into the ball.
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
    if isinstance(channels, bool) or not isinstance(channels, int) or channels < 1:
        raise ParameterError(f"channels must be a whole number of at least 1, got {channels!r}")
    scale = _unit("data_unit", data_unit, VOLTAGE) / _unit("unit", unit, VOLTAGE)
    a, A = positive("low", low) * scale, positive("high", high) * scale
    if not a < A:
        raise ParameterError(f"low must be smaller than high, got {low!r} and {high!r}")
    return TraceBounds(a * a, channels * (A * A + a * a))
