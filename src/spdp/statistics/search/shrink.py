r"""James–Stein estimates of a mean seen under isotropic noise.

A chart's vectors have components of one kind (:meth:`spdp.charts.Chart.components`),
as log-vectors do: the trace, the traceless diagonal and the off-diagonal part. A
domain's centre is often wrong in the trace above all, so shrinking each on its own
keeps what one shows clearly.

*Coverage.* For x ~ N(θ, σ²·I_p) with p ≥ 4, the sphere of radius c·σ around the
positive-part James–Stein estimate covers θ at least as often as the one around x, for
every θ and c (Hwang and Casella 1982 for constants somewhat below p − 2; with p − 2
checked by quadrature for p from 4 to 465, at levels from 50 to 99.9 % and ‖θ‖ from 0 to
5c). In other words ‖δ(x) − θ‖ is stochastically no larger than ‖x − θ‖, so a bound on
the noise of x bounds the error of δ(x) as well and the shift need not be added. A
component that is left alone does not matter: given its error, the rest of the radius is
some other c.
"""

import numpy as np
from numpy.typing import NDArray

from spdp.charts import Component

__all__ = ["COVERED_FROM", "shrink", "shrink_best", "shrinkage"]

Array = NDArray[np.float64]

COVERED_FROM = 4  # shrunk dimensions from which coverage is kept
DOUBT = 0.25  # of the square that shrinkage removed, taken for error at least


def shrinkage(v: Array, sigma: float, p: int | None = None) -> float:
    """James and Stein's factor (1 − (p − 2)σ²/‖v‖²)₊.

    ``p`` is the dimension of the space v varies in, that of v itself unless given.
    Below three dimensions nothing is shrunk.
    """
    p, square = len(v) if p is None else p, float(v @ v)
    if p < 3 or square == 0.0:
        return 1.0
    return max(0.0, 1.0 - (p - 2) * sigma**2 / square)


def shrink(v: Array, sigma: float, p: int | None = None) -> tuple[Array, float]:
    """James–Stein estimate of a mean and its likely squared error."""
    p, square = len(v) if p is None else p, float(v @ v)
    if p < 3 or square == 0.0:
        return v, p * sigma**2
    factor = shrinkage(v, sigma, p)
    error = max(factor * p * sigma**2, DOUBT * min(square, (p - 2) * sigma**2))
    return factor * v, error


def shrink_best(v: Array, sigma: float, components: list[Component]) -> tuple[Array, float]:
    """All of v shrunk as one, or by its components: whichever promises less error."""
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
