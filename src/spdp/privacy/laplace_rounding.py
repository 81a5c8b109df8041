r"""Exact sampler of the l2 Laplace law on the integer lattice, for few dimensions.

From 32 on :mod:`.laplace_mixture` draws, which is faster there.

.. math:: P(N = q) \propto \exp(-\lVert q \rVert_2 / s), \qquad q \in \mathbb{Z}^d .

A point Y of the continuous law (density proportional to exp(-|y|/s)) is rounded to the
nearest lattice point q, which is accepted with probability

.. math:: \exp\bigl((|Y| - |q|)/s - \sqrt{d}/(2s)\bigr) \le 1 ,

at most one because |Y| - |q| <= |Y - q| <= sqrt(d)/2. Density times acceptance is
exp(-|q|/s) up to a constant, the same all over the cell of q, and every cell has
volume one: the accepted q follow the law above exactly.

Y = R x has the radius R = -s ln(u_1 ... u_d), a Gamma(d, s) variable, and a direction x
uniform on the sphere. In an even dimension 2m the squared lengths of the m pairs of
coordinates of x are the gaps that m - 1 uniform cuts leave in [0, 1] (the squared
length of a pair of Gaussians is exponential), and their angles are uniform. In an odd
dimension a direction of one dimension more is drawn, its last coordinate dropped and
the rest brought back to length one.

Enforced: a uniform is an interval of reals whose bits come from the operating system;
all arithmetic on it is ball arithmetic, which encloses the true values; a rounding or
an acceptance that the balls leave open is decided by appending bits to the same
uniforms. So q is a function of the endless streams of bits alone. The working
precision, and whatever other threads do to it, changes the time, never the outcome.
Assumed: the balls of Arb (python-flint) enclose what they should; the operating
system's bits are uniform and independent.
Therefore: the law is exact, without gaps, cut-off tails or rounded probabilities.

The sampler never sees data, so its time depends on the noise only, and weakly: the
number of rejected proposals is independent of the vector returned, the rare appending
of bits is not.
"""

import math
import os
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np
from flint import arb, ctx, fmpz

from spdp.errors import ParameterError
from spdp.kernels.arrays import Ints

# Bits read beyond those of the noise itself. With 16, at most about one draw in 300 has
# to append more; the outcome would be the same with any other number.
GUARD_BITS = 16

# A draw takes at most exp(sqrt(d)/s) proposals on average: at this limit e^7 = 1,100.
LARGEST_SQRT_D_OVER_SCALE = 7

LIMIT = (1 << 63) - 1
HALF = arb(0.5)
PLUS_MINUS_ONE = arb(0, 1)


def laplace(total: Ints, scale: Fraction) -> Ints:
    """``total`` plus one draw; sums saturate at the ends of int64."""
    sums = [int(t) + q for t, q in zip(total, laplace_vector(len(total), scale), strict=True)]
    return np.array([min(max(s, -LIMIT), LIMIT) for s in sums], np.int64)


def laplace_vector(d: int, scale: Fraction) -> list[int]:
    """Draw one integer vector with P(q) proportional to exp(-|q| / scale), exactly.

    Parameters
    ----------
    d : int
        Dimension, at least 1.
    scale : Fraction
        The scale s, an exact rational with s >= sqrt(d) / 7 and no upper limit. Below,
        nearly every proposal would be rejected: the share accepted is at least
        exp(-sqrt(d) / s), which is one for all practical purposes at s = 2^31.

    Returns
    -------
    list of int
        Python integers: at a large scale they may exceed 64 bits.

    Examples
    --------
    >>> from fractions import Fraction
    >>> noise = laplace_vector(6, Fraction(2**31))
    >>> len(noise)
    6
    """
    check_scale(d, scale)
    bits = int(scale).bit_length() + 2 * d.bit_length() + GUARD_BITS
    while (noise := propose(d, scale, os.urandom, -(-bits // 8))) is None:
        pass
    return noise


def check_scale(d: int, scale: Fraction) -> None:
    """Raise an error for a scale at which a draw would take too long."""
    if d < 1:
        raise ParameterError(f"the dimension d must be at least 1, got {d}")
    if not isinstance(scale, Fraction):
        raise ParameterError(f"scale must be an exact Fraction, got {scale!r}")
    if scale <= 0 or (LARGEST_SQRT_D_OVER_SCALE * scale.numerator) ** 2 < d * scale.denominator**2:
        least = math.sqrt(d) / LARGEST_SQRT_D_OVER_SCALE
        raise ParameterError(
            f"scale must be at least sqrt(d)/{LARGEST_SQRT_D_OVER_SCALE} = {least:.3g} lattice "
            f"steps at d = {d}, got {scale}: use a finer lattice"
        )


def propose(d: int, scale: Fraction, read: Callable[[int], bytes], size: int) -> list[int] | None:
    """Propose one vector; None if it is rejected.

    The outcome is a function of the endless stream of bytes that ``read(n)`` hands out
    n at a time. It does not depend on ``size``, the bytes read per uniform at a time.
    """
    count = d + 2 * _pairs(d)
    prefixes, bits = [0] * count, 0
    precision = ctx.prec
    try:
        while True:
            prefixes = _extend(prefixes, read(count * size))
            bits += 8 * size
            ctx.prec = bits + GUARD_BITS
            decided = _evaluate(d, scale, prefixes, bits)
            if decided is not None:
                cells, accepted = decided
                return [int(cell) for cell in cells] if accepted else None
    finally:
        ctx.prec = precision


def _pairs(d: int) -> int:
    return (d + 1) // 2


def _extend(prefixes: list[int], fresh: bytes) -> list[int]:
    """Append bits to every uniform.

    The uniforms take turns byte by byte, so that a stream read in smaller or larger
    portions gives the same reals.
    """
    count = len(prefixes)
    width = 8 * (len(fresh) // count)
    return [
        (prefix << width) | int.from_bytes(fresh[i::count], "big")
        for i, prefix in enumerate(prefixes)
    ]


def _evaluate(
    d: int, scale: Fraction, prefixes: list[int], bits: int
) -> tuple[list[fmpz], bool] | None:
    """Return the lattice point and whether it is accepted; None if bits are missing.

    A uniform with prefix m lies in [m, m + 1] / 2^bits, which the ball
    [m - 1, m + 1] / 2^bits contains. Where a ball touches zero its logarithm or root is
    NaN, and NaN decides nothing.
    """
    unit = HALF**bits
    first_cut = 1 + d + _pairs(d)
    ticket, *balls = [(PLUS_MINUS_ONE + m) * unit for m in prefixes[:first_cut]]
    # The k-th smallest uniform has the k-th smallest prefix, even where prefixes tie.
    edges = [0, *sorted(prefixes[first_cut:]), 1 << bits]
    gaps = [(PLUS_MINUS_ONE + (high - low)) * unit for low, high in pairwise(edges)]

    s = arb(scale.numerator) / scale.denominator
    gamma = -math.prod(balls[:d], start=arb(1)).log()
    radius = gamma * s
    cells = []
    for x in _direction(d, gaps, balls[d:]):
        cell = (radius * x + HALF).floor().unique_fmpz()
        if cell is None:
            return None
        cells.append(cell)

    norm = arb(sum([cell * cell for cell in cells], start=fmpz(0))).sqrt()
    chance = (gamma - (norm + arb(d).sqrt() * HALF) / s).exp()
    if ticket < chance:
        return cells, True
    if ticket > chance:
        return cells, False
    return None


def _direction(d: int, gaps: list[arb], turns: list[arb]) -> list[arb]:
    """Return a unit vector: pair i has squared length gap i and angle 2 pi turn i."""
    x = []
    for gap, turn in zip(gaps, turns, strict=True):
        length = gap.sqrt()
        sine, cosine = (turn + turn).sin_cos_pi()
        x += [length * cosine, length * sine]
    if len(x) == d:
        return x
    dropped = x.pop()
    rest = (1 - dropped * dropped).sqrt()
    return [coordinate / rest for coordinate in x]
