r"""Covariances from noisy second moments.

A covariance is looked at in units in which an earlier estimate of it is s·I, so that
shrinking toward s·I weighs the two by their noise, as James and Stein do for a mean:
C ↦ sI + (1 − E‖noise‖²/‖C − sI‖²)₊·(C − sI). What is left of the noise has eigenvalues
up to its spectral edge, √(2d)·sd; a part of that is added to all of them, because an
eigenvalue that is too small does more harm to whoever inverts it than one too large.
A diagonal is kept above its noise for the same reason.
"""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from spdp.queries.triangle import OFF_NOISE

__all__ = ["cleared", "raised"]

Array = NDArray[np.float64]

FLOOR = 0.35  # of the noise's spectral edge, added to every eigenvalue
LEAST = 2.0  # a variance over its noise, at least


def cleared(C: Array, sd: float) -> Array:
    """A covariance (d, d), or a diagonal (d,), of noise ``sd`` on the diagonal."""
    d = len(C)
    middle = max(float(np.trace(C) if C.ndim == 2 else C.sum()) / d, sd)
    target = middle * (np.eye(d) if C.ndim == 2 else np.ones(d))
    expected = sd**2 * (d + (d * (d - 1) * OFF_NOISE**2 if C.ndim == 2 else 0.0))
    square = float(np.sum((C - target) ** 2))
    factor = max(0.0, 1.0 - expected / max(square, expected))
    return raised(target + factor * (C - target), factor * sd)


def raised(C: Array, sd: float) -> Array:
    """C without negative eigenvalues, each raised by a part of the noise's edge."""
    if C.ndim == 1:
        return np.maximum(C, LEAST * sd)
    edge = sqrt(2.0 * len(C)) * sd
    values, V = np.linalg.eigh(C)
    least = 1e-9 * max(float(values[-1]), edge)
    return np.asarray((V * np.maximum(np.maximum(values, 0.0) + FLOOR * edge, least)) @ V.T)
