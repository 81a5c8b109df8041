"""Words for the sampler by strips: recorded, replayed, made for a cell, or all."""

import math
import random

import numpy as np
from exact_strips import draw, level

from spdp.privacy import discrete_gaussian as shipped


class Stream:
    """Words that are given, then those of a seeded generator; keeps what it gave."""

    def __init__(self, seed, words=()):
        self.rng, self.blocks, self.words = random.Random(seed), [], list(words)

    def __call__(self, size):
        given, self.words = self.words[: size // 8], self.words[size // 8 :]
        block = given + [self.rng.getrandbits(64) for _ in range(size // 8 - len(given))]
        self.blocks.append(block)
        return b"".join(word.to_bytes(8, "little") for word in block)

    @property
    def all(self):
        return [word for block in self.blocks for word in block]


def zeros(size):
    return np.zeros(size, np.int64)


def replay(table, size, seed=0, words=(), more=(), strips=shipped):
    """Draw, and once more by the reference; the number of digits that were read."""
    main, extra = Stream(seed, words), Stream(seed + 1, more)
    drawn = strips.gaussian(zeros(size), table.scale, table=table, read=main, digits=extra)
    digits = iter(extra.all)
    assert drawn.tolist() == draw(table, size, main.blocks, digits)
    assert next(digits, None) is None  # both read the same digits
    return len(extra.all)


def columns_of(table, name):
    return [int(number) for number in getattr(table, name)]


def places_of(table):
    """Slices of each strip's cells: first, end, and column and v of the first."""
    room, places = 1 << table.bits - 8, {}
    own, other, shift = (columns_of(table, name) for name in ("own", "other", "shift"))
    for i in range(256):
        places.setdefault(i, []).append((0, own[i], i, 0))
        first = (own[i] + shift[i]) % 2**32
        places.setdefault(other[i], []).append((first, first + room - own[i], i, own[i]))
    return places


def word_for(table, places, z, cell, negative=0):
    """The words of a proposal of a given cell and integer."""
    strip, offset = z >> table.width, z & ((1 << table.width) - 1)
    first, _, column, v = next(p for p in places[strip] if p[0] <= cell < p[1])
    low = column | (v + cell - first) << 40 - table.bits
    word = low | negative << 32 | (offset & 2**31 - 1) << 33
    return [word, offset >> 31] if table.width > 31 else [word]


def counted(table, offset, strips=shipped):
    """How many cells of each strip are accepted and open at an offset, of all cells."""
    n, bits = table.strips, table.bits
    cells = np.arange(1 << bits, dtype=np.uint64)
    words = cells & 255 | (cells >> 8) << (40 - bits) | np.uint64((offset & 2**31 - 1) << 33)
    if table.width > 31:
        words = np.stack([words, np.full_like(words, offset >> 31)], axis=1).ravel()
    taken = sum(math.ceil(level(table, (i << table.width) + offset)[0]) for i in range(n))
    size = taken + 2 * table.tail_strips
    given, at = words.tobytes(), 0

    def read(count):
        nonlocal at
        at += count
        more = at - len(given)
        return given[at - count : at] + (b"\0" * more if 0 < more <= count else b"")

    out = np.full(size, -1)
    found = strips._draw(table, zeros(size), out, read, strips._exponent_of(1.0), read)
    waiting = np.array([p[0] for p in found], np.int64)
    accepted = np.bincount(np.delete(out, waiting) >> table.width, minlength=n)
    cut = [p[4] >> table.width for p in found if not p[1]]
    assert sum(p[1] for p in found) == 2 * table.tail_strips
    return accepted, np.bincount(cut, minlength=n)


def exact_counts(table, offset):
    """⌊level⌋ cells of each strip are accepted; the one that the level cuts is open."""
    levels = [level(table, (i << table.width) + offset) for i in range(table.strips)]
    whole = [math.floor(low) for low, _ in levels]
    assert whole == [math.floor(high) for _, high in levels]
    return whole, [int(low != floor) for (low, _), floor in zip(levels, whole, strict=True)]


def cut_words(table, rng, tries):
    """Words of the very cell that the level of a random integer cuts, and digits that
    equal the level's own: the third word of them decides."""
    places, words, more = places_of(table), [], []
    for _ in range(tries):
        z = rng.randrange(1, table.strips << table.width)
        exact, _ = level(table, z, places=400)
        cell = math.floor(exact)
        words += word_for(table, places, z, cell, rng.getrandbits(1))
        digits = math.floor((exact - cell) * 2**128)
        more += [digits >> 64, digits % 2**64, rng.choice([0, 2**64 - 1])]
    return words, more


def far_out(table, total, negative, strips=shipped):
    """A total with a draw of the tail after a thousand halvings."""
    words = word_for(table, places_of(table), table.strips << table.width, 0, negative)
    far = Stream(0, [0] * 15 + [1 << 23] + [0] * 4000)
    given = {"table": table, "read": Stream(0, words), "digits": far}
    return int(strips.gaussian(np.array([total]), table.scale, **given)[0])
