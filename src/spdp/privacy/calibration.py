r"""ε, δ and μ: how much noise a guarantee needs, and what guarantee a noise gives.

Pure functions of numbers. A Gaussian mechanism with sensitivity Δ and standard
deviation σ is exactly μ-Gaussian-DP with μ = Δ/σ, and (ε, δ)-DP iff δ(ε; μ) ≤ δ, where

    δ(ε; μ) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)      (Balle and Wang 2018, theorem 8).

Every result is rounded to the safe side. The curve is evaluated in arbitrary precision
(mpmath), with as many digits as its own cancellation needs, because in double precision
the two terms above agree to all digits long before δ is small. So the true δ of a
returned σ never exceeds the target, not even in the last bit, and σ is optimal to about
one part in 10¹⁵.

*Arithmetic in many digits*, at a precision that no other code can change. ``mpmath.mp``
and its precision belong to the whole program: a caller may set it, and a thread that
leaves ``mpmath.workdps`` sets it while another thread computes. What must be rounded to
the safe side therefore works in contexts of its own, one for each thread, and sets its
digits whenever it begins: no lock can be left held, and no precision left behind by an
interrupt matters.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from math import inf, isfinite, nextafter
from typing import Any

import mpmath

from spdp.errors import ParameterError, named
from spdp.options import positive, real

Number = Any  # mpmath's real numbers carry no type information

_HERE = threading.local()
_SHARED_DIGITS = 1000  # more than any calculation here asks for


@contextmanager
def precise(digits: int) -> Iterator[Any]:
    """Functions of mpmath at ``digits`` decimal digits, until the block ends.

    Numbers made in such a block may leave it, but arithmetic with them rounds to the
    precision of the thread that made them. So compute in a block again, with
    ``mp.mpf(x)`` of a number x that was kept, which another thread may have made.
    """
    mp = _own()
    before, mp.dps = mp.prec, digits
    try:
        yield mp
    finally:
        mp.prec = before  # of the block around this one


def _own() -> Any:
    """This thread's context."""
    mp = getattr(_HERE, "mp", None)
    if mp is None:
        mp = _HERE.mp = mpmath.MPContext()
    return mp


def _know_constants() -> None:
    """Compute π, e and ln 2 to more digits than will be asked for.

    mpmath caches them for all contexts. When more digits are wanted it replaces value
    and length one after the other, which is not safe among threads: after this call,
    nothing here makes it do so, nor does any caller who wants fewer digits than these.
    """
    with precise(_SHARED_DIGITS) as mp:
        +mp.pi, +mp.e, +mp.ln2  # noqa: B018


_know_constants()


SMALLEST_DELTA = 1e-100
LARGEST_EPSILON = 1e6  # far beyond any guarantee; the curve is exact up to here
_DIGITS = 22  # correct digits wanted of δ(ε; μ) before rounding
_WORKING = _DIGITS + 15


def check_budget(epsilon: float, delta: float) -> tuple[float, float]:
    """(ε, δ) as floats if 0 ≤ ε ≤ 10⁶ and 0 < δ < 1, or an error that names one."""
    e, d = _check_epsilon(epsilon), real("delta", delta)
    if not 0 < d < 1:
        raise ParameterError(
            f"{named('delta')} must lie between 0 and 1, and above 0 for Gaussian noise, "
            f"got {delta!r}"
        )
    return e, d


def _check_epsilon(epsilon: float) -> float:
    e = real("epsilon", epsilon)
    if not (isfinite(e) and e >= 0):
        raise ParameterError(f"{named('epsilon')} must be finite and >= 0, got {epsilon!r}")
    if e > LARGEST_EPSILON:
        raise ParameterError(f"{named('epsilon')} must be ≤ {LARGEST_EPSILON:g}, got {epsilon!r}")
    return e


def next_below(delta: float) -> float:
    """The δ that noise on the lattice is calibrated to: the next double below.

    The discrete Gaussian is post-processing of the continuous one but for η < d·10⁻¹³⁰
    (:mod:`spdp.privacy.account`); the gap between doubles pays for it from δ = 10⁻¹⁰⁰
    on.
    """
    if delta < SMALLEST_DELTA:
        raise ParameterError(f"{named('delta')} must be at least {SMALLEST_DELTA}, got {delta!r}")
    return nextafter(delta, 0.0)


def _round(x: Number, *, up: bool) -> float:
    """The nearest double on the safe side of ``x``."""
    y = float(x)
    with precise(_WORKING) as mp:  # holds every double
        while (mp.mpf(y) < x) if up else (mp.mpf(y) > x):
            y = nextafter(y, inf if up else -inf)
    return y


def _upper_tail(mp: Any, x: Number) -> Number:
    return mp.erfc(x / mp.sqrt(2)) / 2


def _curve(epsilon: Number, mu: Number) -> tuple[Number, Number]:
    """δ(ε; μ) to about ``_DIGITS`` digits, and its subtracted term e^ε·Φ(−μ/2 − ε/μ).

    Precision grows until it makes up for the cancellation between the two terms.
    """
    digits = _DIGITS
    while True:
        with precise(digits + 15) as mp:
            first = _upper_tail(mp, epsilon / mu - mu / 2)
            second = mp.exp(epsilon) * _upper_tail(mp, epsilon / mu + mu / 2)
            if first > second:
                lost = int(mp.log10(first / (first - second))) + 1
                if digits - lost >= _DIGITS:
                    return first - second, second
                digits = max(_DIGITS + lost, digits + 10)
            else:
                digits *= 2


def _newton(mp: Any, step: Callable[[Number], Number], x: Number) -> Number:
    """Follow ``step`` until it is below 1e-20; callers verify the result.

    ln δ is concave in ε (δ(ε) convolves two log-concave functions) and, by numerical
    evidence, in ln μ, hence Newton's iterates approach the root from the safe side.
    """
    for _ in range(100):
        h = step(x)
        x += h
        if abs(h) < mp.mpf(10) ** -20:
            break
    return x


@lru_cache(maxsize=4096)
def _mu_exact(epsilon: float, delta: float) -> Number:
    """Largest μ with δ(ε; μ) ≤ δ, to about 1e-20 and never above the truth."""
    with precise(_WORKING) as mp:
        e, log_target = mp.mpf(epsilon), mp.log(mp.mpf(delta))
        # δ ≤ Φ(μ/2 − ε/μ) gives a lower bound of μ, and so does δ(ε; μ) ≤ δ(0; μ) ≤
        # μ/√(2π)
        z = -mp.mpf(_normal_quantile(delta))
        root = mp.sqrt(z * z + 2 * e)
        steep = 2 * e / (z + root) if z > 0 else root - z
        guess = max(steep, mp.sqrt(2 * mp.pi) * mp.mpf(delta))

        def step(x: Number) -> Number:  # dδ/dμ = φ(ε/μ − μ/2)
            mu = mp.exp(x)
            value, _ = _curve(e, mu)
            return (log_target - mp.log(value)) * value / (mu * mp.npdf(e / mu - mu / 2))

        mu, shrink = mp.exp(_newton(mp, step, mp.log(guess))), mp.mpf(10) ** -20
        while mp.log(_curve(e, mu)[0]) > log_target:
            mu *= 1 - shrink
            shrink *= 4
        return +mu


def _normal_quantile(p: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(p))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest μ for which a μ-Gaussian-DP mechanism is (ε, δ)-DP, rounded down.

    Examples
    --------
    >>> from spdp.privacy import gaussian_mu
    >>> round(gaussian_mu(1.0, 1e-6), 4)
    0.2367
    """
    return _mu_rounded(*check_budget(epsilon, delta))


@lru_cache(maxsize=4096)
def _mu_rounded(epsilon: float, delta: float) -> float:
    return _round(_mu_exact(epsilon, delta), up=False)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Smallest δ for which a μ-Gaussian-DP mechanism is (ε, δ)-DP, rounded up.

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    e = _check_epsilon(epsilon)
    m = positive("mu", mu)
    if e / m - m / 2 > 1e8:  # δ < exp(−10¹⁵) is far under the smallest double
        return 5e-324
    if m > 1e8:  # and so is 1 − δ
        return 1.0
    with precise(_WORKING) as mp:
        delta = _curve(mp.mpf(e), mp.mpf(m))[0] * (1 + mp.mpf(10) ** -20)
        return min(1.0, _round(delta, up=True))


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Smallest ε for which a μ-Gaussian-DP mechanism is (ε, δ)-DP, rounded up.

    0 if δ alone covers it.

    Examples
    --------
    >>> from spdp.privacy import gaussian_epsilon
    >>> round(gaussian_epsilon(1e-6, 0.5), 3)
    2.254
    """
    mu = positive("mu", mu)
    d = check_budget(0.0, delta)[1]
    with precise(_WORKING) as mp:
        m = mp.mpf(mu)
        log_target = mp.log(mp.mpf(d))
        if mp.log(_curve(mp.mpf(0), m)[0]) <= log_target:
            return 0.0

        def step(e: Number) -> Number:  # dδ/dε = −e^ε·Φ(−μ/2 − ε/μ)
            value, second = _curve(e, m)
            return (mp.log(value) - log_target) * value / second

        # δ ≤ Φ(μ/2 − ε/μ) gives an upper bound of ε
        epsilon = _newton(mp, step, max(m * (m / 2 - mp.mpf(_normal_quantile(d))), mp.mpf(0)))
        epsilon, grow = max(epsilon, mp.mpf(0)), mp.mpf(10) ** -20
        while mp.log(_curve(epsilon, m)[0]) > log_target:
            epsilon += (epsilon + m) * grow
            grow *= 4
        return _round(epsilon, up=True)


def analytic_sigma(sensitivity: float, epsilon: float, delta: float) -> float:
    """Smallest σ for which Gaussian noise is (ε, δ)-DP (theorem 2, corrected).

    For any ε ≥ 0 and 0 < δ < 1. Enforced: δ(ε; Δ/σ) ≤ δ for the doubles that are passed
    and returned. Assumed: ``sensitivity`` bounds the distance between the summaries of
    any two neighbouring datasets. Therefore: noise of this σ is (ε, δ)-DP.

    Examples
    --------
    >>> round(analytic_sigma(1.0, 0.5, 1e-6), 6)
    8.057618
    """
    return _sigma_rounded(positive("sensitivity", sensitivity), *check_budget(epsilon, delta))


@lru_cache(maxsize=4096)
def _sigma_rounded(sensitivity: float, epsilon: float, delta: float) -> float:
    with precise(_WORKING) as mp:
        return _finite_sigma(mp.mpf(sensitivity) / mp.mpf(_mu_exact(epsilon, delta)))


def classical_sigma(sensitivity: float, epsilon: float, delta: float) -> float:
    """σ = Δ·√(2 ln(1.25/δ))/ε, proven for 0 < ε < 1 only and refused elsewhere.

    At ε = 10, δ = 1e-5 its true δ is 2.3 times the target: use :func:`analytic_sigma`
    there.

    Examples
    --------
    >>> from spdp.privacy import classical_sigma
    >>> round(classical_sigma(1.0, 0.5, 1e-6), 2)
    10.6
    """
    D = positive("sensitivity", sensitivity)
    with precise(_WORKING) as mp:
        mu = mp.mpf(_classical_mu_exact(*check_budget(epsilon, delta)))
        return _finite_sigma(mp.mpf(D) / mu)


def classical_mu(epsilon: float, delta: float) -> float:
    """μ = ε/√(2 ln(1.25/δ)) of the classical calibration, rounded down."""
    return _round(_classical_mu_exact(*check_budget(epsilon, delta)), up=False)


@lru_cache(maxsize=256)
def _classical_mu_exact(epsilon: float, delta: float) -> Number:
    if not 0 < epsilon < 1:
        raise ParameterError(
            f"the classical calibration holds for 0 < epsilon < 1 only, got {epsilon!r}; "
            "use analytic"
        )
    with precise(_WORKING) as mp:
        root = mp.sqrt(2 * mp.log(mp.mpf(1.25) / mp.mpf(delta)))
        return mp.mpf(epsilon) / root * (1 - mp.mpf(10) ** -25)


def laplace_scale(sensitivity: float, epsilon: float) -> float:
    """Scale Δ/ε of the Riemannian Laplace law, rounded up.

    The space is flat, so no factor 2 is needed.

    Examples
    --------
    >>> from spdp.privacy import laplace_scale
    >>> laplace_scale(0.5, 2.0)
    0.25
    """
    D, e = positive("sensitivity", sensitivity), positive("epsilon", epsilon)
    scale = D / e
    while isfinite(scale) and (scale == 0 or Fraction(scale) * Fraction(e) < Fraction(D)):
        scale = nextafter(scale, inf)
    return positive("sensitivity / epsilon", scale)


def _finite_sigma(sigma: Number) -> float:
    if sigma > 1.7976931348623157e308:
        raise ParameterError("the noise this budget needs exceeds the range of float64")
    return _round(sigma, up=True)
