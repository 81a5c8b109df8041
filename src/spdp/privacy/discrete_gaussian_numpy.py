"""The sampler by strips in NumPy, where there are no compiled kernels.

The same table, and the same draws from the same words, as
``kernels/native/discrete_gaussian.cpp`` makes. What both do, and why it is exact:
:mod:`spdp.privacy.discrete_gaussian`.
"""

from collections.abc import Callable
from math import ceil, factorial, floor, frexp, ldexp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.kernels.arrays import Array, Ints

COLUMN_BITS = 8
COLUMNS = 1 << COLUMN_BITS
OFFSET_BITS = 31  # of the place in a strip, in a proposal's first word
MARGIN = 2.0**-40
LARGEST_EXPONENT = 32.0
BLOCK = 8192  # words read at a time
LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max

Words = NDArray[np.uint64]


class Open(NamedTuple):
    """A proposal that doubles do not settle."""

    place: int  # of its total
    tail: bool
    negative: bool
    cell: int
    magnitude: int  # |z|; of the tail, the place in a strip


class Table(NamedTuple):
    """Strips and cells of a scale."""

    scale: float
    bits: int
    width: int  # a strip holds 2**width integers
    strips: int
    top: int
    tail_strips: int
    height: Ints
    sure: Ints
    own: Ints  # cells of a column that are its own strip's
    other: Ints  # whose the rest are
    shift: Ints  # and how much higher they lie there, modulo 2**32

    @classmethod
    def of(cls, scale: float, bits: int = 32) -> "Table":
        if not (1 <= scale <= 2.0**1000 and 12 <= bits <= 32):
            raise ValueError(f"no table for scale {scale!r} and {bits} bits")
        width = max(0, frexp(scale)[1] - 5)
        per_strip = ldexp(scale, -width)
        cells = 1 << bits
        w = exp_minus(0.5 * (np.arange(COLUMNS) / per_strip).clip(max=8.0) ** 2).tolist()
        total, n = 0.0, 0
        while w[n] * cells > total:
            total += w[n]
            n += 1
        q = ceil(0.7 * per_strip * per_strip / n)
        top = floor((cells - n - 2.0 * q) / total * (1 - 16 * MARGIN))
        height, sure = np.zeros((2, COLUMNS), np.int64)
        for i in range(n):
            height[i] = int(top * w[i] * (1 + MARGIN)) + 1
            sure[i] = int(top * w[i + 1 if width else i] * (1 - MARGIN))
        height[n] = 2 * q
        height[n + 1] = cells - height.sum()
        if n + 2 > COLUMNS or 0.5 * (n / per_strip) ** 2 > LARGEST_EXPONENT or height[n + 1] < 0:
            raise ValueError(f"no table for scale {scale!r}")
        if top * w[n] * (1 + MARGIN) > 1:
            raise ValueError(f"no table for scale {scale!r}")
        return cls(scale, bits, width, n, top, q, height, sure, *_columns(height, bits))


def _columns(height: Ints, bits: int) -> tuple[Ints, Ints, Ints]:
    """Walker's alias table in integers: every cell of every strip has one place."""
    room = 1 << bits - COLUMN_BITS
    left = [int(h) for h in height]
    own, other, shift = (np.zeros(COLUMNS, np.int64) for _ in range(3))
    poor = [i for i in range(COLUMNS) if left[i] < room]
    rich = [i for i in range(COLUMNS) if left[i] >= room]
    while poor:
        i, j = poor.pop(), rich[-1]
        left[j] -= room - left[i]
        own[i], other[i], shift[i] = left[i], j, (left[j] - left[i]) % (1 << 32)
        if left[j] < room:
            poor.append(rich.pop())
    own[rich] = room
    return own, other, shift


def exp_minus(g: Array) -> Array:
    """exp(−g) with a relative error below 2⁻⁴⁴, 0 ≤ g ≤ 32."""
    n = np.floor(g * 1.4426950408889634 + 0.5)
    f = n * 0.6931471805599453 - g
    total = np.full_like(f, 1 / factorial(12))
    for k in range(11, -1, -1):
        total = total * f + 1 / factorial(k)
    return np.asarray(np.ldexp(total, -n.astype(np.int64)))


def draw(table: Table, total: Ints, out: Ints, read: Callable[[int], bytes]) -> list[Open]:
    """Totals with noise, into ``out``; gives the places that are open."""
    done, listed = 0, list[Open]()
    words = 2 if table.width > OFFSET_BITS else 1
    while done < len(total):
        wanted = len(total) - done
        some = min(wanted + wanted // 16 + 4, BLOCK // words)
        found = propose(table, np.frombuffer(read(8 * words * some), "<u8"), total, done, out)
        done, more = found
        listed += more
    return listed


def propose(
    table: Table, words: Words, total: Ints, done: int, out: Ints
) -> tuple[int, list[Open]]:
    """Draws for the totals from number ``done`` on; how many are done then."""
    width = np.uint64(table.width)
    within = np.uint64((1 << table.width) - 1)
    if table.width > OFFSET_BITS:
        words, second = words[::2], words[1::2]
        offset = (words >> np.uint64(33) | second << np.uint64(OFFSET_BITS)) & within
    else:
        offset = words >> np.uint64(33) & within
    column = (words & np.uint64(COLUMNS - 1)).astype(np.int64)
    low = words & np.uint64(0xFFFFFFFF)
    v = (low >> np.uint64(32 + COLUMN_BITS - table.bits)).astype(np.int64)
    own = v < table.own[column]
    strip = np.where(own, column, table.other[column])
    u = np.where(own, v, v + table.shift[column] & 0xFFFFFFFF)
    z = (strip.astype(np.uint64) << width) + offset
    taken = u < table.sure[strip]
    open_ones = strip == table.strips
    rest = np.flatnonzero(~taken & (strip < table.strips))
    x = z[rest].astype(np.float64) / table.scale
    level = table.top * exp_minus(0.5 * x * x)
    taken[rest] = surely = u[rest] + 1.0 <= level * (1 - MARGIN)
    open_ones[rest] = ~surely & (u[rest] < level * (1 + MARGIN))
    zero = np.flatnonzero(z == 0)  # its level is C itself
    taken[zero], open_ones[zero] = u[zero] < table.top, False
    negative = (words >> np.uint64(32) & np.uint64(1)).astype(bool)
    taken &= (z != 0) | ~negative  # zero has one sign

    used = np.flatnonzero(taken | open_ones)[: len(total) - done]
    places = np.arange(done, done + len(used))
    signed = z[used].astype(np.int64)
    noise = np.where(negative[used], -signed, signed)
    out[places] = saturated(total[places], noise)
    tail = strip == table.strips
    listed = [
        Open(
            done + int(at),
            bool(tail[p]),
            bool(negative[p]),
            int(u[p]),
            int(offset[p] if tail[p] else z[p]),
        )
        for at in np.flatnonzero(open_ones[used])
        for p in (used[at],)
    ]
    return done + len(used), listed


def saturated(total: Ints, noise: Ints) -> Ints:
    """The sum, at the ends of int64 where it would be beyond."""
    sums = total + noise  # modulo 2**64
    sums[(noise > 0) & (sums < total)] = MOST
    sums[(noise < 0) & (sums > total)] = LEAST
    return sums
