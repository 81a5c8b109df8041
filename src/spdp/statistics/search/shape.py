r"""The shape of data from noisy moments: principal axes, and a unit along each.

The noise of a clipped mean is best spread as Σ^½, Σ the covariance of the data: along a
principal axis with standard deviation s the unit is w ∝ √s.
"""

from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from spdp.frame import Frame

__all__ = ["axis_frame", "cleaned", "principal_frame", "spreads"]

Array = NDArray[np.float64]

SEEN = 1.0  # eigenvalues above this multiple of the noise's spectral edge are believed
ABSOLUTE = 1.25  # standard deviation of a Gaussian coordinate over its mean absolute value
NARROWEST = 0.02  # of the widest, so that no unit rests on noise alone
ALONE = 15  # size up to which one thread works anyway: asking for it takes longer
CLEAR = 2.5  # standard deviations of noise below which a spread is not believed


def spreads(means: Array, noise: float) -> Array:
    """Standard deviations of coordinates from noisy means of absolute values."""
    floor = max(CLEAR * noise, NARROWEST * float(means.max()))
    return np.asarray(ABSOLUTE * np.maximum(means, floor))


def axis_frame(center: Array, spread: Array) -> Frame:
    """Units per coordinate."""
    return Frame(center, _units(spread))


def principal_frame(center: Array, spread: Array, C: Array, noise: float) -> Frame:
    """Principal axes of diag(spread)·C·diag(spread), and units along them.

    C is seen with standard deviation ``noise`` on its diagonal and noise/√2 elsewhere.
    """
    clear = cleaned(C, sqrt(2.0 * len(center)) * noise)
    values, V = _eigh(clear * np.outer(spread, spread))
    return Frame(center, _units(np.sqrt(np.maximum(values, NARROWEST**2 * values[-1]))), V)


def _eigh(C: Array) -> Any:
    """Eigenvalues and eigenvectors, on one thread.

    Of so small a matrix, others only get in the way: they wait for each other, and for
    a while after they go on waiting for work. Of the smallest LAPACK uses but one.
    """
    if len(C) <= ALONE:
        return np.linalg.eigh(C)
    with _blas().limit(limits=1):
        return np.linalg.eigh(C)


@lru_cache(maxsize=1)
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")


def _units(spread: Array) -> Array:
    return np.asarray(np.sqrt(spread / spread.mean()))


def cleaned(C: Array, edge: float) -> Array:
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
