r"""A bound on the error of a noisy mean that was pulled toward a point fixed before.

Let x = θ + N with N ~ N(0, σ²·I_p), let 0 ≤ f ≤ 1 be any function of x, and a = ‖x‖.
The pulled mean f·x satisfies, whatever θ is,

    ‖f·x − θ‖² = (1 − f)·‖θ‖² − f(1 − f)·a² + f·‖N‖².

*Therefore* it is bounded by what bounds ‖N‖ and ‖θ‖. ‖N‖ ≤ q but with probability β₁,
by its law. ‖θ‖ ≤ T but with probability β₂, where T is the largest t at which a mean of
length t is seen no longer than a with probability β₂ or more: a²/σ² is noncentral χ²,
whose distribution function falls in t. And ‖θ‖ ≤ a + q where ‖N‖ ≤ q. Coordinates of x
that are left alone add their own noise, bounded but with probability β₃. How a risk is
split among the three is fixed, so the bound fails with probability β₁ + β₂ + β₃ at
most. Where x is as short as noise alone would be, it is far below q.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import special

__all__ = ["pulled", "pulled_reaches"]

Array = NDArray[np.float64]

NOISE_PART, LENGTH_PART, ALONE_PART = 0.7, 0.2, 0.1  # of the risk; without the last, 0.8
CLOSE = 50.0  # lengths over σ from which T is taken to be a + q
SURE = 1.0 + 1e-6  # for the numerical inverse of the noncentral law


def pulled(p: int, sigma: float, length: float, factor: float, alone: int = 0) -> dict[str, float]:
    """What is known of a pulled mean, for a certificate: released and public."""
    return {"p": p, "sigma": sigma, "length": length, "factor": factor, "alone": alone}


def pulled_reaches(pull: dict[str, float], risks: Array) -> Array:
    """Distances that the error exceeds with probability at most ``risks``."""
    p, alone, f = pull["p"], pull["alone"], pull["factor"]
    a = pull["length"] / pull["sigma"]
    noise = _square(p, risks * (NOISE_PART if alone else NOISE_PART + ALONE_PART))
    square = (1.0 - f) * _longest(p, a, noise, LENGTH_PART * risks) - f * (1.0 - f) * a**2
    own = _square(alone, risks * ALONE_PART) if alone else 0.0
    return np.asarray(pull["sigma"] * np.sqrt(own + np.maximum(square, 0.0) + f * noise))


def _square(p: float, risks: Array) -> Array:
    """Squares that χ²_p exceeds with these probabilities."""
    return np.asarray(2.0 * special.gammainccinv(0.5 * p, risks))


def _longest(p: float, a: float, noise: Array, risks: Array) -> Array:
    """T² over σ²: the noncentrality at which χ²_p ≤ a² is as unlikely as the risk."""
    surely = (a + np.sqrt(noise)) ** 2
    if a > CLOSE:
        return surely
    found = np.where(special.chndtr(a**2, p, 0.0) > risks, special.chndtrinc(a**2, p, risks), 0.0)
    return np.asarray(np.where(np.isfinite(found), np.minimum(SURE * found, surely), surely))
