r"""Exact sampler of the l2 Laplace law as a mixture of discrete Gaussian laws.

.. math:: P(N = q) \propto \exp(-\lVert q \rVert_2 / s), \qquad q \in \mathbb{Z}^d .

exp(−r/s) is proportional to ∫ v^(−1/2)·exp(−v/2s²)·exp(−r²/2v) dv over v > 0. So let v
have the density f(v) ∝ v^(−1/2)·exp(−v/2s²)·Z(v)^d, Z(v) = Σ_z exp(−z²/2v), and given v
let all coordinates be discrete Gaussians of variance parameter v
(:mod:`spdp.privacy.discrete_gaussian`): then q follows the law above. The vector takes
one real number v and d cheap draws, where :mod:`spdp.privacy.laplace_rounding` takes 2d
reals.

**v** is drawn by rejection from two pieces.

- v ≥ 1: Z(v) = √(2πv)·θ(v), θ(v) = 1 + 2·Σ_k exp(−2π²k²v) ≤ 1 + 2⁻²⁷ (Poisson). So f
  is at most (2π)^(d/2)·(1 + 2⁻²⁷)^d·v^(a−1)·exp(−v/2s²), a = (d + 1)/2: v = 2s²·x with
  x ~ Gamma(a), kept with probability (θ(v)/(1 + 2⁻²⁷))^d where v ≥ 1.
- v < 1: Z(v) ≤ Z(1) < 13/5, so f is at most (13/5)^d·v^(−1/2): v = u² with a uniform u,
  kept with probability exp(−v/2s²)·(5·Z(v)/13)^d.

Which piece is tried is a coin of the odds of their integrals, 2·(13/5)^d against
(2π)^(d/2)·(1 + 2⁻²⁷)^d·Γ(a)·(2s²)^a; at a large scale it is never the second.

**Gamma(a)**, after Cheng (1977): u uniform, V = ln(u/(1 − u))/λ, x = a·e^V is accepted
with probability exp(a·(1 + V − e^V))·cosh²(λV/2), cosh²(λV/2) = 1/(4u·(1 − u)). The
ratio of densities is proportional to that. It is at most 1, that is,

    2·ln cosh(λV/2) ≤ a·(e^V − 1 − V),

for λ = 1, a ≥ 1, and for λ² = 4a/3, a ≥ 10. *Proof.* Let V ≥ 0: ln cosh y ≤ y²/2, so
the left side is at most λ²V²/4 ≤ a·V²/2, and e^V − 1 − V ≥ V²/2. Let V = −w < 0 and
λ = 1: both sides are 0 at w = 0, and their derivatives are tanh(w/2) =
(1 − e^−w)/(1 + e^−w) and a·(1 − e^−w), which is more. Let λ² = 4a/3. If w ≤ 1, then
a·w²/3 ≤ a·(w²/2 − w³/6) ≤ a·(e^−w − 1 + w). If w > 1, the left side is at most λw, and
(e^−w − 1 + w)/w is at least its value at 1, 1/e, so that the right side is at least
a·w/e; and λ ≤ a/e for a ≥ 4e²/3 = 9.86. ∎

*Enforced.* A uniform is a real whose digits come from the operating system; decisions
are made in ball arithmetic, with more digits of the same reals until they are certain.
Coordinates are drawn with the double nearest to √v, off by less than 2⁻⁵², which the
sampler's margin covers, and whatever is open there is settled with v itself.

*Assumed.* As in :mod:`spdp.privacy.discrete_gaussian`.

*Therefore* the law is exact, and no working precision changes an outcome: Arb's is one
number for all threads, and another thread may change it at any time.
"""

import os
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from math import isqrt

import numpy as np
from flint import arb, ctx, fmpq, fmpz

from spdp.kernels.arrays import Ints
from spdp.privacy import discrete_gaussian
from spdp.privacy.discrete_gaussian import Read, below

Real = Callable[[], arb]  # encloses a number the better, the higher the precision
Source = Callable[[], Read]  # hands out a stream of bytes for each real

START = 128  # bits
ENOUGH = 60  # correct bits of √v, of which a double takes 53
SHARP_FROM = 19  # dimension from which λ² = 4a/3 is proven


class Uniform:
    """A real of [0, 1], of which more digits are read as precision grows."""

    def __init__(self, read: Read) -> None:
        self.read, self.prefix, self.bits = read, 0, 0

    def __call__(self) -> arb:
        while self.bits < ctx.prec + discrete_gaussian.WORD:
            self.prefix = self.prefix << discrete_gaussian.WORD | int.from_bytes(
                self.read(8), "little"
            )
            self.bits += discrete_gaussian.WORD
        return (arb(fmpz(2 * self.prefix + 1)) + arb(0, 1)) * arb(2) ** (-self.bits - 1)


def laplace(total: Ints, scale: Fraction, source: Source | None = None) -> Ints:
    """``total`` plus one draw; sums saturate at the ends of int64.

    ``source`` is for tests, which replay streams of their own.
    """
    fresh = source or (lambda: os.urandom)
    v, narrow = _variance(len(total), scale, fresh)
    if narrow:
        noise = [_narrow(v, fresh()) for _ in range(len(total))]
        return np.array(
            [discrete_gaussian.saturated(t, z) for t, z in zip(total, noise, strict=True)], np.int64
        )
    root = nearest_root(v)
    return discrete_gaussian.gaussian(
        total,
        root,
        table=discrete_gaussian.make_table(root),  # not kept: it is part of the noise
        exponent=lambda z: arb(fmpz(z)) ** 2 / (2 * v()),
        read=None if source is None else source(),
        digits=fresh(),
    )


def _variance(d: int, scale: Fraction, fresh: Source) -> tuple[Real, bool]:
    """v, and whether it is below 1."""
    while True:
        narrow = below(lambda: _odds(d, scale, ctx.prec), fresh())
        v = (_small if narrow else _large)(d, fmpq(scale.numerator, scale.denominator), fresh)
        if v is not None:
            return v, narrow


def _small(d: int, s: fmpq, fresh: Source) -> Real | None:
    """A proposal of v < 1; None if it is rejected."""
    root = Uniform(fresh())
    accepted = below(lambda: _small_level(d, s, root() ** 2), fresh())
    return (lambda: root() ** 2) if accepted else None


def _large(d: int, s: fmpq, fresh: Source) -> Real | None:
    """A proposal of v ≥ 1; None if it is rejected."""
    u = _gamma(d, fresh)

    def v() -> arb:
        return arb(s * s * (d + 1)) * _logistic(d, u()).exp()

    accepted = _at_least_one(v) and below(lambda: _large_level(d, v()), fresh())
    return v if accepted else None


def _gamma(d: int, fresh: Source) -> Uniform:
    """The uniform of a Gamma((d + 1)/2) variable: tried until one is accepted.

    The odds of the two pieces are for the whole variable: a rejection here must not
    lead back to their coin.
    """
    while True:
        u = Uniform(fresh())
        if below(partial(_level_of, d, u), fresh()):
            return u


def _level_of(d: int, u: Uniform) -> arb:
    return gamma_level(d, u())


@lru_cache(maxsize=64)
def _odds(d: int, scale: Fraction, precision: int) -> arb:
    """Chance of the piece v < 1."""
    s = arb(fmpq(scale.numerator, scale.denominator))
    large = ((1 + arb(2) ** -27) * (4 * arb.pi()).sqrt() * s) ** d * arb(fmpq(d + 1, 2)).gamma()
    ratio = arb(2).sqrt() / s * arb(fmpq(13, 5)) ** d / large
    return ratio / (1 + ratio)


def _logistic(d: int, u: arb) -> arb:
    """V = ln(u/(1 − u))/λ."""
    power = (u / (1 - u)).log()
    return power / arb(fmpq(2 * (d + 1), 3)).sqrt() if d >= SHARP_FROM else power


def gamma_level(d: int, u: arb) -> arb:
    """Chance to accept the Gamma((d + 1)/2) variable of a uniform."""
    V = _logistic(d, u)
    return ((1 + V - V.exp()) * fmpq(d + 1, 2)).exp() / (4 * u * (1 - u))


def _at_least_one(v: Real) -> bool:
    precision = START
    while True:
        with ctx.workprec(precision):
            known = v()
            if known >= 1:
                return True
            if known < 1:
                return False
        precision += discrete_gaussian.WORD


def _large_level(d: int, v: arb) -> arb:
    """(θ(v)/(1 + 2⁻²⁷))^d, v ≥ 1. The terms left out are below 2^−prec."""
    base = -2 * arb.pi() ** 2 * v
    precision = ctx.prec  # read once: other threads may change it
    terms = [2 * (base * (k * k)).exp() for k in range(1, isqrt(precision // 19) + 2)]
    theta = sum(terms, start=arb(1, arb(2) ** -precision))
    return (theta / (1 + arb(2) ** -27)) ** d


def _small_level(d: int, s: fmpq, v: arb) -> arb:
    """exp(−v/2s²)·(5·Z(v)/13)^d, v ≤ 1. The terms left out are below 2^−prec."""
    precision = ctx.prec
    terms = [2 * (-(k * k) / (2 * v)).exp() for k in range(1, isqrt(2 * precision) + 2)]
    Z = sum(terms, start=arb(1, arb(2) ** -precision))
    return (-v / (2 * s * s)).exp() * (Z * fmpq(5, 13)) ** d


def nearest_root(v: Real) -> float:
    """√v to all digits of a double but the last, where v ≥ 1."""
    precision = START
    while True:
        with ctx.workprec(precision):
            root = v().sqrt()
            if root.rel_accuracy_bits() >= ENOUGH:
                return float(root.mid())
        precision += discrete_gaussian.WORD


def _narrow(v: Real, read: Read) -> int:
    """A discrete Gaussian of v ≤ 1: k of chance 2^−(k+1), accepted in proportion.

    2^k·exp(−k²/2) ≤ 5/4 for all k.
    """
    while True:
        k, negative = discrete_gaussian.zeros(read), read(1)[0] & 1
        if k == 0 and negative:
            continue
        if below(partial(_narrow_level, k, v), read):
            return -k if negative else k


def _narrow_level(k: int, v: Real) -> arb:
    return (-(k * k) / (2 * v())).exp() * 2**k * fmpq(4, 5)
