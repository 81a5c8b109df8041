"""The preconditioner: axes and units of the ellipsoid that records are clipped to.

Axes are the principal axes of noisy moments. The noise of a clipped mean is best spread
as Σ^½, Σ the covariance of the data: along a principal axis with standard deviation s
the unit is w ∝ √s.
"""

from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from spdp.kernels.arrays import Array
from spdp.queries.sums import Frame

SEEN = 1.0  # eigenvalues above this multiple of the noise's spectral edge count as signal
ABSOLUTE = 1.25  # standard deviation of a Gaussian coordinate over its mean absolute value
NARROWEST = 0.02  # of the widest, so that no unit rests on noise alone
ALONE = 15  # size up to which LAPACK uses one thread anyway: a limit takes longer
CLEAR = 2.5  # a deviation is at least so many standard deviations of its noise


def deviations(means: Array, noise: float) -> Array:
    """Standard deviations of coordinates from noisy means of absolute values."""
    floor = max(CLEAR * noise, NARROWEST * float(means.max()))
    return np.asarray(ABSOLUTE * np.maximum(means, floor))


def axis_frame(center: Array, deviation: Array) -> Frame:
    """A frame whose units follow the standard deviations of the coordinates."""
    return Frame(center, units(deviation))


def principal_frame(center: Array, deviation: Array, C: Array, noise: float) -> Frame:
    """Principal axes of diag(s)·C·diag(s), s the deviations, and units along them.

    C has noise of standard deviation ``noise`` on its diagonal, about noise/√2 off it.
    """
    clear = denoised(C, sqrt(2.0 * len(center)) * noise)
    values, V = _eigh(clear * np.outer(deviation, deviation))
    return Frame(center, units(np.sqrt(np.maximum(values, NARROWEST**2 * values[-1]))), V)


def _eigh(C: Array) -> Any:
    """Eigenvalues and eigenvectors, on one thread.

    For small matrices more threads are slower: they wait for each other, and keep
    waiting for work for a while afterwards. LAPACK uses one for the smallest sizes.
    """
    if len(C) <= ALONE:
        return np.linalg.eigh(C)
    with _blas().limit(limits=1):
        return np.linalg.eigh(C)


@lru_cache(maxsize=1)
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")


def units(deviation: Array) -> Array:
    """w ∝ √s, of mean square 1."""
    return np.asarray(np.sqrt(deviation / deviation.mean()))


def denoised(C: Array, edge: float) -> Array:
    """A noisy correlation matrix with the noise in its spectrum undone.

    Symmetric noise has eigenvalues within ±edge and moves a true eigenvalue t to λ = t
    + edge²/4t, so t = (λ + √(λ² − edge²))/2 for those that stand out; what is left of
    the trace is spread evenly over the other directions.
    """
    values, V = _eigh(C)
    seen = values > SEEN * edge
    kept = 0.5 * (values + np.sqrt(np.maximum(values**2 - edge**2, 0.0)))
    hidden = int(np.count_nonzero(~seen))
    if hidden:
        trace = float(np.trace(C))
        rest = max((trace - float(kept[seen].sum())) / hidden, NARROWEST * abs(trace) / len(C))
        kept = np.where(seen, kept, rest)
    return np.asarray((V * kept) @ V.T)
