r"""Exact sampler of the discrete Gaussian law, by strips.

.. math:: P(N = z) \propto \exp(-z^2/2s^2), \qquad z \in \mathbb{Z} .

**Table.** With γ(z) = z²/2s², the integers |z| = 0, 1, … are cut into n strips of
m = 2ʲ, strip i from i·m to i·m + m − 1. There are 2³² cells. Strip i has height[i] of
them, at least C·exp(−γ(i·m)) for a whole number C; the tail, |z| ≥ n·m, has 2q, and the
rest are void. sure[i] is at most C·exp(−γ(z)) for all z of the strip. (In code C is
``top``, n ``strips``, q ``tail_strips`` and m 2 to the ``width``.)

**A proposal** is a cell, a sign and an offset r < m, all uniform: of one word of 64
bits, and of a second for the bits of r beyond 31. Let the cell be number u of strip i,
z = i·m + r, and F = 0.b₁b₂… a uniform real of further bits. The proposal is accepted
if u + F < C·exp(−γ(z)), and zero with a negative sign is not. Of the tail, the cell
chooses one of q strips, and h, a number of zeros before the first one in a row of bits,
one of the blocks of q strips: z = (n + h·q + u mod q)·m + r is accepted if
F < 2ʰ·C·exp(−γ(z)).

**Law.** A given z > 0 with a given sign comes in a proposal with probability

    2⁻³²·(1/m)·½·Σ_{u < height[i]} P(u + F < C·exp(−γ(z))) = C·exp(−γ(z))/(2³³·m),

since height[i] is no less than C·exp(−γ(z)); zero, with one sign, alike. In the tail it
comes with 2⁻³²·2·2^−(h+1)·(1/m)·½·P(F < 2ʰ·C·exp(−γ(z))), which is the same if
2ʰ·C·exp(−γ(z)) ≤ 1. That holds: z ≥ n·m + h·q·m, hence γ(z) ≥ γ(n·m) + h·n·q·m²/s²,
with C·exp(−γ(n·m)) ≤ 1 and n·q·m²/s² ≥ 0.694 > ln 2. So accepted z follow the law. Of
C, n and q nothing else is needed.

**Doubles.** ε = 2⁻⁵³. For γ ≤ 32 the computed exp(−γ) is off by a factor 1 ± 272 ε,
below 2⁻⁴⁴, with or without fused operations: z to double, z/s and x·x/2 are 5.01 ε of
γ, so 161 ε; n·ln 2 − γ, n ≤ 47, 57 ε; Taylor's rest 3.1 ε; Horner and coefficients
50 ε; 2⁻ⁿ nothing. Doubles decide only beyond a margin of 2⁻⁴⁰. What lies within, a cell
of a strip and so one proposal in some 10⁸, is *open*, and is settled in ball arithmetic
(Arb): digits of F are read until it is decided. It will be, since exp(−γ) is irrational
but for z = 0, whose level is C. The margin leaves room for a scale that is known to
2⁻⁵⁰, as the mixture of :mod:`spdp.privacy.laplace_mixture` has it.

*Enforced.* Table and comparisons are of integers, or decided beyond the margin, else in
balls. Each word comes from the operating system and is used once, within the call that
reads it: no state outlives a call, so that threads and forked processes share none. The
sum of total and noise saturates at the ends of int64, not the noise. The C++ file does
not compile with ``-ffast-math``.

*Assumed.* Doubles are IEEE binary64; Arb's balls enclose; the operating system's bits
are uniform and independent.

*Therefore* the law is exact, without gaps, cut-off tails or rounded probabilities, and
a draw is a function of the bits alone. Time depends on the noise, and next to nothing
on totals: where sums end at the ends of int64, and by the length of Python's integers
where a draw was open.
"""

import os
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from flint import arb, ctx, fmpq, fmpz

from spdp.kernels import backend
from spdp.kernels.arrays import Ints
from spdp.privacy import discrete_gaussian_numpy
from spdp.privacy.discrete_gaussian_numpy import OFFSET_BITS, Open

if TYPE_CHECKING:
    from spdp.kernels import _native

Table: TypeAlias = "_native.StripTable | discrete_gaussian_numpy.Table"
Read = Callable[[int], bytes]
Exponent = Callable[[int], arb]

# name in certificates; to be changed when the same words would give other draws
NAME = "strips-1"
LEAST, MOST = -(1 << 63), (1 << 63) - 1
INT64_SCALE = 2.0**60  # beyond, strips hold integers that int64 does not
WORD = 64  # bits


@lru_cache(maxsize=1)  # one choice for a process: tables are kept
def native() -> ModuleType | None:
    """The compiled sampler, where compiled kernels are used."""
    if backend() != "native":
        return None
    from spdp.kernels import _native

    return _native


def make_table(scale: float, bits: int = 32) -> Table:
    """The table of a scale. Fewer bits make tests meet rare branches."""
    compiled = native()
    if compiled is None or scale > INT64_SCALE:
        return discrete_gaussian_numpy.Table.of(scale, bits)
    return compiled.StripTable(scale, bits)  # type: ignore[no-any-return]


kept_table = lru_cache(maxsize=64)(make_table)  # scales are public


def gaussian(
    total: Ints,
    scale: float,
    *,
    table: "Table | None" = None,
    exponent: Exponent | None = None,
    read: Read | None = None,
    digits: Read = os.urandom,
) -> Ints:
    """``total`` plus independent draws.

    Parameters
    ----------
    total : array of int64
    scale : float
        s, from 1 to 2¹⁰⁰⁰.
    table : Table, optional
        Of the scale.
    exponent : function, optional
        z ↦ γ(z) as a ball of the precision that is set, where s is known better than
        the scale says, which is then off by a factor 1 ± 2⁻⁵⁰ at most.
    read, digits : function, optional
        Sources of bytes: of the proposals' words, and of the digits of open ones. All
        bytes come from the operating system unless tests replay others.
    """
    total = np.ascontiguousarray(total, np.int64)
    table = kept_table(scale) if table is None else table
    exponent = exponent or _exponent_of(scale)
    out = np.empty_like(total)
    open_ones = _draw(table, total, out, read, exponent, digits)
    while open_ones:
        rejected = []
        for proposal in sorted(open_ones):
            place, z = proposal.place, settle(table, proposal, exponent, digits)
            if z is None:
                rejected.append(place)
            else:
                out[place] = saturated(total[place], z)
        again = np.empty(len(rejected), np.int64)
        found = _draw(table, total[rejected], again, read, exponent, digits)
        out[rejected] = again
        open_ones = [one._replace(place=rejected[one.place]) for one in found]
    return out


def _draw(
    table: Table, total: Ints, out: Ints, read: Read | None, exponent: Exponent, digits: Read
) -> list[Open]:
    """Totals with noise, into ``out``; what is open is left to be settled."""
    if table.scale > INT64_SCALE:
        for place, exact in enumerate(total):
            out[place] = saturated(exact, _wide(table, read or os.urandom, exponent, digits))
        return []
    if isinstance(table, discrete_gaussian_numpy.Table):
        return discrete_gaussian_numpy.draw(table, total, out, read or os.urandom)
    compiled = native()
    assert compiled is not None
    if read is None and not compiled.HAS_ENTROPY:
        read = os.urandom
    return [Open(*one) for one in compiled.draw_gaussian(table, total, out, read)]


def saturated(total: int, noise: int) -> int:
    return max(LEAST, min(int(total) + noise, MOST))


def _wide(table: Table, read: Read, exponent: Exponent, digits: Read) -> int:
    """One draw in Python's integers, which have no ends."""
    words = 1 + max(0, -(-(table.width - OFFSET_BITS) // WORD))
    while True:
        word = int.from_bytes(read(8 * words), "little")
        column, v = word & 255, (word & 0xFFFFFFFF) >> (40 - table.bits)
        strip, cell = column, v
        if v >= table.own[column]:
            strip, cell = int(table.other[column]), (v + int(table.shift[column])) & 0xFFFFFFFF
        if strip > table.strips:
            continue
        magnitude = (word >> 33) & ((1 << table.width) - 1)
        tail = strip == table.strips
        if not tail:
            magnitude += strip << table.width
        proposal = Open(0, tail, bool(word >> 32 & 1), cell, magnitude)
        if (z := settle(table, proposal, exponent, digits)) is not None:
            return z


def settle(table: Table, proposal: Open, exponent: Exponent, digits: Read) -> int | None:
    """The draw of a proposal, in ball arithmetic; None if it is rejected."""
    z, cell, halvings = proposal.magnitude, proposal.cell, 0
    if proposal.tail:
        halvings = zeros(digits)
        block = table.strips + halvings * table.tail_strips
        z += (block + cell % table.tail_strips) << table.width
        cell = 0
    if z == 0:  # of the levels, the only one that is no irrational number
        return None if proposal.negative or cell >= table.top else 0
    if not below(lambda: table.top * (-exponent(z)).exp() * arb(2) ** halvings, digits, cell):
        return None
    return -z if proposal.negative else z


def _exponent_of(scale: float) -> Exponent:
    top, bottom = scale.as_integer_ratio()
    return lambda z: arb(fmpq(fmpz(z * bottom) ** 2, 2 * fmpz(top) ** 2))


def zeros(digits: Read) -> int:
    """Number of zeros before the first one, of fresh bits."""
    zeros = 0
    while not (word := int.from_bytes(digits(8), "little")):
        zeros += WORD
    return zeros + WORD - word.bit_length()


def below(level: Callable[[], arb], digits: Read, cell: int = 0) -> bool:
    """Whether cell + F < level, for a uniform F whose digits are read.

    ``level`` gives an enclosure that narrows as precision grows. A digit is read only
    if the level surely lies between the two ends that are known of cell + F: how many
    are read is a function of the digits alone, not of the precision.
    """
    places, before, precision = 0, ctx.prec, 2 * WORD
    try:
        while True:
            ctx.prec = precision
            scaled = level() * arb(2) ** places
            low, high = arb(fmpz(cell)), arb(fmpz(cell + 1))
            if scaled >= high:
                return True
            if scaled <= low:
                return False
            if scaled > low and scaled < high:
                cell = cell << WORD | int.from_bytes(digits(8), "little")
                places += WORD
            precision += WORD
    finally:
        ctx.prec = before
