r"""James–Stein shrinkage of means and covariances under noise of known size.

*Means.* A chart's vectors have components of one kind
(:meth:`spdp.charts.Chart.components`), as log-vectors do: the trace, the traceless
diagonal and the off-diagonal part. A domain's centre is often wrong mostly in the
trace, so components are shrunk apart: what stands out in one is not shrunk by others.

*Coverage.* For x ~ N(θ, σ²·I_p) with p ≥ 4, the sphere of radius c·σ around the
positive-part James–Stein estimate covers θ at least as often as the one around x, for
every θ and c (Hwang and Casella 1982 for constants somewhat below p − 2; with p − 2
checked by quadrature for p from 4 to 465, at levels from 50 to 99.9 % and ‖θ‖ from 0 to
5c). In other words ‖δ(x) − θ‖ is stochastically no larger than ‖x − θ‖, so a bound on
the noise of x bounds the error of δ(x) as well and the shift need not be added.
Components that are not shrunk do no harm: given their error, what is left of the radius
is again a fixed c, for which the statement holds.

*A ball.* Below four dimensions, and with Laplace noise, that argument is not to be had,
and James and Stein's factor is close to 1 however large the noise. There a mean that is
known to lie in a ball of radius R about the point is shrunk by no less than
R²/(R² + pσ²): of all constant factors the one whose largest risk, R²·pσ²/(R² + pσ²), is
least. Bounds count the shift.

*Covariances.* A covariance is taken in units in which an earlier estimate of it is
s·I, so that shrinking toward s·I weighs the two by their noise, as James and Stein do
for a mean: C ↦ sI + (1 − E‖noise‖²/‖C − sI‖²)₊·(C − sI). What is left of the noise has
eigenvalues up to its spectral edge, √(2d)·sd. A part of that edge is added to all
eigenvalues, because in an inverse an eigenvalue that is too small does more harm than
one that is too large. A diagonal is kept above its noise for the same reason.
"""

from math import sqrt

import numpy as np

from spdp.charts import Component
from spdp.kernels.arrays import Array
from spdp.queries.moments import OFF_NOISE

COVERED_FROM = 4  # shrunk dimensions from which a bound on x covers δ(x)
DOUBT = 0.25  # share of the removed square that counts as error, at least


def shrinkage(v: Array, sigma: float, p: int | None = None) -> float:
    """James and Stein's factor (1 − (p − 2)σ²/‖v‖²)₊.

    ``p`` is the dimension of the space v varies in, that of v itself unless given.
    Below three dimensions nothing is shrunk.
    """
    p, square = len(v) if p is None else p, float(v @ v)
    if p < 3 or square == 0.0:
        return 1.0
    return max(0.0, 1.0 - (p - 2) * sigma**2 / square)


def ball_shrinkage(radius: float, sigma: float, p: int) -> float:
    """The minimax constant factor for a mean in a ball, R²/(R² + pσ²)."""
    return radius**2 / (radius**2 + p * sigma**2)


def shrink(v: Array, sigma: float, p: int | None = None) -> tuple[Array, float]:
    """James–Stein estimate of a mean and its likely squared error."""
    p, square = len(v) if p is None else p, float(v @ v)
    if p < 3 or square == 0.0:
        return v, p * sigma**2
    factor = shrinkage(v, sigma, p)
    error = max(factor * p * sigma**2, DOUBT * min(square, (p - 2) * sigma**2))
    return factor * v, error


def shrink_best(v: Array, sigma: float, components: list[Component]) -> tuple[Array, float]:
    """v shrunk as a whole or by components, whichever has less estimated risk."""
    apart = sum(_unbiased_risk(part, sigma, p) for part, p in components)
    if _unbiased_risk(v, sigma, len(v)) <= apart:
        return shrink(v, sigma)
    shrunk = [shrink(part, sigma, p) for part, p in components]
    return np.asarray(sum(part for part, _ in shrunk)), sum(error for _, error in shrunk)


def _unbiased_risk(v: Array, sigma: float, p: int) -> float:
    """Stein's unbiased estimate of the risk of :func:`shrink`."""
    square = float(v @ v)
    if p < 3 or square == 0.0:
        return p * sigma**2
    if square <= (p - 2) * sigma**2:
        return square - p * sigma**2
    return p * sigma**2 - (p - 2) ** 2 * sigma**4 / square


# --- covariances

FLOOR = 0.35  # of the noise's spectral edge, added to every eigenvalue
LEAST = 2.0  # a variance over its noise, at least


def shrunk_covariance(C: Array, sd: float) -> Array:
    """A covariance (d, d), or a diagonal (d,), of noise ``sd`` on the diagonal."""
    d = len(C)
    middle = max(float(np.trace(C) if C.ndim == 2 else C.sum()) / d, sd)
    target = middle * (np.eye(d) if C.ndim == 2 else np.ones(d))
    expected = sd**2 * (d + (d * (d - 1) * OFF_NOISE**2 if C.ndim == 2 else 0.0))
    square = float(np.sum((C - target) ** 2))
    factor = max(0.0, 1.0 - expected / max(square, expected))
    return floored(target + factor * (C - target), factor * sd)


def floored(C: Array, sd: float) -> Array:
    """C without negative eigenvalues, each raised by a part of the noise's edge."""
    if C.ndim == 1:
        return np.maximum(C, LEAST * sd)
    edge = sqrt(2.0 * len(C)) * sd
    values, V = np.linalg.eigh(C)
    least = 1e-9 * max(float(values[-1]), edge)
    return np.asarray((V * np.maximum(np.maximum(values, 0.0) + FLOOR * edge, least)) @ V.T)
