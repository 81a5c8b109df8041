r"""A bound on the error of a noisy mean that was shrunk toward a point fixed before.

Let x = θ + N with N ~ N(0, σ²·I_p), let 0 ≤ f ≤ 1 be any function of x, and a = ‖x‖.
The shrunk mean f·x satisfies, whatever θ is,

    ‖f·x − θ‖² = (1 − f)·‖θ‖² − f(1 − f)·a² + f·‖N‖².

*Therefore* it is bounded by what bounds ‖N‖ and ‖θ‖:

- ‖N‖ ≤ q, except with probability β₁, by its law.
- ‖θ‖ ≤ T, except with probability β₂. T is the largest t at which a mean of length t is
  seen no longer than a with probability β₂ or more: a²/σ² is noncentral χ², whose
  distribution function falls in t. Where ‖N‖ ≤ q, also ‖θ‖ ≤ a + q.
- Coordinates of x that are not shrunk add their own noise, which is within its bound,
  except with probability β₃.

How a risk is split among the three is fixed, so the bound fails with probability at
most β₁ + β₂ + β₃. Where x is as short as noise alone would be, it is far below q.
"""

from typing import Annotated

import msgspec
import numpy as np
from scipy import special

from spdp.kernels.arrays import Array

Dimension = Annotated[int, msgspec.Meta(ge=0)]

# Shares of the risk; where all coordinates are shrunk, the noise has the last, too.
NOISE_SHARE, LENGTH_SHARE, ALONE_SHARE = 0.7, 0.2, 0.1
CLOSE = 50.0  # lengths over σ from which T is taken to be a + q
SURE = 1.0 + 1e-6  # for the numerical inverse of the noncentral law


class Shrinkage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a shrunk mean, for a certificate: released and public.

    ``dimension`` coordinates of length ‖x‖ were shrunk by ``factor``, ``unshrunk`` ones
    were not.
    """

    dimension: Dimension
    sigma: float
    length: Annotated[float, msgspec.Meta(ge=0)]
    factor: float
    unshrunk: Dimension = 0

    def quantiles(self, risks: Array) -> Array:
        """Distances that the error exceeds with probability at most ``risks``."""
        p, alone, f = self.dimension, self.unshrunk, self.factor
        a = self.length / self.sigma
        noise = _square(p, risks * (NOISE_SHARE if alone else NOISE_SHARE + ALONE_SHARE))
        square = (1.0 - f) * _longest(p, a, noise, LENGTH_SHARE * risks) - f * (1.0 - f) * a**2
        own = _square(alone, risks * ALONE_SHARE) if alone else 0.0
        return np.asarray(self.sigma * np.sqrt(own + np.maximum(square, 0.0) + f * noise))


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
