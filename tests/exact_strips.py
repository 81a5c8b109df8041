"""The sampler by strips once more, slow and plain, in integers and fractions alone.

It has no doubles, no balls and no code of :mod:`spdp.privacy.discrete_gaussian`. A
table is taken as it is: :func:`check` proves of it, in exact arithmetic, all that the
law rests on.
"""

from fractions import Fraction
from itertools import pairwise

WIDER = Fraction(1, 2**50)  # how far a scale may be from the one its table was made for


def enclosed(x, places):
    """exp(−x), x ≥ 0, between two fractions: Taylor at x/2ʳ < ½, squared r times.

    All numbers are integers in units of 2^−places, rounded down and up.
    """
    squarings = max(0, (2 * x.numerator // x.denominator).bit_length())
    one = 1 << places
    y = x / 2**squarings
    down, up = y.numerator * one // y.denominator, -(-y.numerator * one // y.denominator)
    low = high = one
    term_low, term_high, k = one, one, 0
    while term_high > 1:  # terms alternate and fall: each partial sum is a bound
        k += 1
        term_low = term_low * down // (one * k)
        term_high = -(-term_high * up // (one * k))
        if k % 2:
            low, high = low - term_high, high - term_low
        else:
            low, high = low + term_low, high + term_high
    low, high = low - term_high, high + term_high
    for _ in range(squarings):
        low, high = low * low // one, -(-high * high // one)
    return Fraction(low, one), Fraction(high, one)


def level(table, z, scale=None, places=128):
    """C·exp(−z²/2s²) between two fractions."""
    s = Fraction(table.scale if scale is None else scale)
    if z == 0:
        return Fraction(table.top), Fraction(table.top)
    return tuple(table.top * end for end in enclosed(Fraction(z * z) / (2 * s * s), places))


def below(table, z, cell, halvings, digits, scale=None):
    """Whether (cell + 0.digits…)/2^halvings is below the level of z."""
    size, places = 1 << halvings, 96 + halvings
    while True:
        low, high = (end * size for end in level(table, z, scale, places))
        if cell + 1 <= low:
            return True
        if cell >= high:
            return False
        if cell < low and high < cell + 1:
            cell = cell << 64 | next(digits)
            size <<= 64
        places += 64


class Proposal:
    """What one or two words say, by a table."""

    def __init__(self, table, word):
        column, v = word % 256, word % 2**32 >> (40 - table.bits)
        self.strip, self.cell = column, v
        if v >= table.own[column]:
            self.strip = int(table.other[column])
            self.cell = (v + int(table.shift[column])) % 2**32
        self.sign = -1 if word >> 32 & 1 else 1
        self.offset = (word >> 33) % (1 << table.width)
        self.magnitude = (self.strip << table.width) + self.offset
        self.void, self.tail = self.strip > table.strips, self.strip == table.strips

    def outcome(self, table):
        """True, False, or None where digits decide."""
        if self.void or self.tail:
            return None if self.tail else False
        if self.magnitude == 0 and self.sign < 0:
            return False
        low, high = level(table, self.magnitude)
        if self.cell + 1 <= low:
            return True
        return False if self.cell >= high else None

    def settle(self, table, digits, scale=None):
        """The draw, or None."""
        z, cell, halvings = self.magnitude, self.cell, 0
        if self.tail:
            while (word := next(digits)) == 0:
                halvings += 64
            halvings += 64 - word.bit_length()
            strip = table.strips + halvings * table.tail_strips + cell % table.tail_strips
            z, cell = (strip << table.width) + self.offset, 0
        return self.sign * z if below(table, z, cell, halvings, digits, scale) else None


def draw(table, size, blocks, digits, scale=None):
    """As many draws, from blocks of words; open ones are settled after the others.

    Those that are rejected then are drawn anew, from the next block.
    """
    words = 2 if table.width > 31 else 1
    blocks, drawn, places = iter(blocks), [0] * size, list(range(size))
    while places:
        block, waiting = [], []
        for place in places:
            while True:
                if not block:
                    block = list(next(blocks))
                parts = [block.pop(0) for _ in range(words)]
                proposal = Proposal(table, sum(part << 64 * i for i, part in enumerate(parts)))
                outcome = proposal.outcome(table)
                if outcome is not False:
                    break
            if outcome is None:
                waiting.append((place, proposal))
            drawn[place] = proposal.sign * proposal.magnitude
        places = []
        for place, proposal in waiting:
            z = proposal.settle(table, digits, scale)
            if z is None:
                places.append(place)
            else:
                drawn[place] = z
    return drawn


def check(table):
    """Raise unless the table makes the law exact, also at scales 2⁻⁵⁰ away."""
    s, m, n, q = Fraction(table.scale), 1 << table.width, table.strips, table.tail_strips
    height, sure = [int(h) for h in table.height], [int(h) for h in table.sure]
    larger, smaller = s * (1 + WIDER), s * (1 - WIDER)
    for i in range(n):
        assert height[i] >= level(table, i * m, larger)[1], "a strip is too low"
        assert sure[i] <= level(table, (i + 1) * m - 1, smaller)[0], "not sure"
    assert level(table, n * m, larger)[1] <= 1, "the tail is too high"
    assert height[n] == 2 * q
    assert 1000 * n * q * m * m >= 694 * larger**2, "a block does not halve the law"
    assert (n * m) ** 2 <= 64 * smaller**2, "the exponent is beyond its proof"
    assert n + 1 < 256
    assert sum(height) == 1 << table.bits, "cells are missing"
    assert not any(sure[n:])
    assert not any(height[n + 2 :])
    check_columns(table, height)


def check_columns(table, height):
    """Every height of every strip has one cell."""
    room = 1 << table.bits - 8
    parts = {i: [] for i in range(256)}
    for i in range(256):
        own = int(table.own[i])
        assert 0 <= own <= room
        parts[i].append((0, own))
        if own < room:
            first = (own + int(table.shift[i])) % 2**32
            parts[int(table.other[i])].append((first, first + room - own))
    for i, listed in parts.items():
        edges = [edge for part in sorted(p for p in listed if p[0] < p[1]) for edge in part]
        whole = [0, *edges, height[i]]
        assert all(a == b for a, b in list(pairwise(whole))[::2]), "columns do not tile the cells"
