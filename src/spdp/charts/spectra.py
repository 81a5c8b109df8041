r"""The smallest ball around spectra whose least value and trace are bounded.

Independent of any chart: eigenvalues l_i ≥ low > 0 with Σ l_i ≤ T (T > k·low). How far
can their logarithms be from (t, …, t)? With φ(l) = (ln l − t)²,

    r(t)² = max { Σ φ(l_i) : l_i ≥ low, Σ l_i ≤ T }.

*Theorem.* r(t)² = max over p = 0 … k of p·(ln m_p − t)² + (k − p)·(ln low − t)², where
m_p = (T − (k − p)·low)/p: p eigenvalues share what the other k − p, at low, leave them.

*Proof.* The set is compact, so there is a maximum; call an eigenvalue above low free.
(1) If Σ l_i < T, none is free: φ is strictly convex in ln l, and such a function has no
maximum inside an interval. That is p = 0. (2) Otherwise Σ l_i = T; suppose two free
eigenvalues m < M. Moving δ from one to the other is feasible for small δ of either
sign, so φ'(m) = φ'(M) and φ''(m) + φ''(M) ≤ 0. Put x = ln m − t and y = ln M − t; then
φ'(m) = 2e⁻ᵗ·xe⁻ˣ, φ''(m) = 2e⁻²ᵗ·(1 − x)e⁻²ˣ, and so for M with y. The
function xe⁻ˣ rises up to x = 1, falls beyond it, and is positive for x > 0 only; so
xe⁻ˣ = ye⁻ʸ with x < y means 0 < x < 1 < y. With ρ = y/x > 1 it says x = ln ρ/(ρ − 1).
Dividing by (xe⁻ˣ)² = (ye⁻ʸ)², φ''(m) + φ''(M) has the sign of

    (1 − x)/x² − (y − 1)/y²,  that is, of  ρ² + 1 − x·ρ·(ρ + 1).

It is positive because ln ρ < (ρ − 1)/√ρ, hence x < 1/√ρ, and
ρ² + 1 − √ρ·(ρ + 1) = (ρ^1.5 − 1)(ρ^0.5 − 1) > 0: a contradiction. So all free
eigenvalues are equal, and if there are p of them, they are m_p. Every such spectrum is
feasible, so the maximum over p is r(t)², no more and no less. ∎

For other charts: any bound of the form ‖y‖ ≤ ‖ln l − t‖ (off-log coordinates: the
projection takes tI to zero) takes its radius from :func:`trace_ball`.
"""

from math import sqrt

import numpy as np

from spdp.errors import ParameterError, named
from spdp.kernels.arrays import Array

SLACK = 1e-9  # added to the radius, relative
EPS = float(np.finfo(np.float64).eps)


def largest_eigenvalue(low: float, trace: float, k: int) -> float:
    """T − (k − 1)·low, which no eigenvalue exceeds; an error if there is no room."""
    top = trace - (k - 1) * low
    if not low < top < np.inf:
        raise ParameterError(
            f"a trace of at most {trace:g} leaves no room for {k} eigenvalues of at least "
            f"{low:g}: {named('trace')} must exceed {k} times {named('low')}"
        )
    return float(top)


def extreme_spectra(low: float, trace: float, k: int) -> tuple[Array, Array]:
    """p = 0 … k and ln m_p, of the only spectra that can lie farthest.

    ln low stands first, where no eigenvalue is free.
    """
    p = np.arange(k + 1.0)
    shared = np.maximum(trace - (k - p[1:]) * low, p[1:] * low) / p[1:]
    return p, np.log(np.concatenate([[low], shared]))


def spread_from(t: float, low: float, trace: float, k: int) -> float:
    """r(t), an upper bound in spite of rounding.

    A computed ln m_p is off by at most about k + |ln m_p| units of rounding (m_p is at
    least T/k, and T − (k − p)·low is right to one unit of T), so the k logarithms
    together by √k times that; the slack added is more.
    """
    p, logs = extreme_spectra(low, trace, k)
    square = float((p * (logs - t) ** 2 + (k - p) * (logs[0] - t) ** 2).max())
    rounding = 8.0 * EPS * sqrt(k) * (k + float(np.abs(logs).max()) + abs(t))
    return sqrt(square) * (1.0 + SLACK) + rounding


def trace_ball(low: float, trace: float, k: int) -> tuple[float, float]:
    """The t with the smallest r(t), and r(t).

    r(t)² is a maximum of parabolas k·(t − s_p)² + v_p, s_p the mean logarithm of an
    extreme spectrum: strictly convex, and it falls where the highest parabola does.
    Bisection finds its minimum; whichever t it ends at, r(t) bounds the spread from it.
    """
    p, logs = extreme_spectra(low, trace, k)
    mean = (p * logs + (k - p) * logs[0]) / k
    least = p * (logs - mean) ** 2 + (k - p) * (logs[0] - mean) ** 2
    below, above = float(logs[0]), float(logs[1])
    while below < (t := 0.5 * (below + above)) < above:
        highest = int(np.argmax(k * (t - mean) ** 2 + least))
        below, above = (t, above) if t < mean[highest] else (below, t)
    return t, spread_from(t, low, trace, k)
