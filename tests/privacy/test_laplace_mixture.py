"""The ℓ2 Laplace law as a mixture: replayed in high precision, and its law.

Tests of the law draw from the operating system, without a seed: nine p-values, each to
be above 1e-8. A scale wrong by a factor 0.7 or 1.3 (beside the other sampler, 1.5) is
seen.
"""

import hashlib
import io
import math
from fractions import Fraction

import numpy as np
import pytest
from exact_strips import WIDER, draw
from flint import arb, ctx
from mpmath import mp, mpf
from scipy import stats
from scipy.integrate import quad

from spdp.privacy import discrete_gaussian
from spdp.privacy.laplace_mixture import SHARP_FROM, _odds, _variance, gamma_level, laplace
from spdp.privacy.laplace_mixture import nearest_root as root_of
from spdp.privacy.laplace_rounding import laplace_vector

CHANCE = 1e-8
BITS = 6400  # of each real, where the reference takes them all at once
LARGE = Fraction(3 * 2**31)


class Source:
    """A stream of its own for each real, numbered as they are asked for."""

    def __init__(self, seed):
        self.seed, self.count = seed, 0

    def raw(self, number, size=1 << 13):
        return hashlib.shake_256(f"{self.seed} {number}".encode()).digest(size)

    def __call__(self):
        self.count += 1
        return io.BytesIO(self.raw(self.count)).read

    def real(self, number):
        """The uniform real of a stream: words of 64 digits, the lowest byte first."""
        raw, total = self.raw(number, BITS // 8), 0
        for at in range(0, len(raw), 8):
            total = total << 64 | int.from_bytes(raw[at : at + 8], "little")
        return (mpf(total) + mpf(1) / 2) / mpf(2) ** BITS


def reference(d, scale, source):
    """v by the formulas of the docstring, with BITS digits of all reals; how many reals
    were asked for, and whether v is below 1."""
    s, a, number = mpf(scale.numerator) / scale.denominator, mpf(d + 1) / 2, 0

    def uniform():
        nonlocal number
        number += 1
        return source.real(number)

    small = 2 * mpf(13) ** d / mpf(5) ** d
    large = (2 * mp.pi) ** (mpf(d) / 2) * (1 + mpf(2) ** -27) ** d * mp.gamma(a) * (2 * s * s) ** a
    while True:
        if uniform() < small / (small + large):
            v = uniform() ** 2
            Z = 1 + 2 * sum(mp.exp(-mpf(k * k) / (2 * v)) for k in range(1, 40))
            if uniform() < mp.exp(-v / (2 * s * s)) * (5 * Z / 13) ** d:
                return v, number, True
            continue
        v, accepted = mpf(0), False
        while not accepted:
            u = uniform()
            rate = mp.sqrt(4 * a / 3) if d >= SHARP_FROM else 1
            V = mp.log(u / (1 - u)) / rate
            accepted = uniform() < mp.exp(a * (1 + V - mp.exp(V))) * mp.cosh(rate * V / 2) ** 2
            v = 2 * s * s * a * mp.exp(V)
        if v >= 1:
            theta = 1 + 2 * sum(mp.exp(-2 * mp.pi**2 * k * k * v) for k in range(1, 20))
            if uniform() < (theta / (1 + mpf(2) ** -27)) ** d:
                return v, number, False


CASES = [(1, Fraction(1, 3)), (2, Fraction(1, 2)), (3, Fraction(3, 2)), (18, Fraction(7))]
CASES += [(19, Fraction(2)), (40, LARGE), (465, LARGE)]


@pytest.mark.parametrize(("d", "scale"), CASES)
def test_the_variance_is_that_of_the_formulas(d, scale):
    """Both pieces, rejections, and the two rates of Cheng's proposals."""
    kinds = set()
    with mp.workprec(600):
        for seed in range(60):
            one, other = Source((seed, d)), Source((seed, d))
            v, narrow = _variance(d, scale, one)
            exact, count, small = reference(d, scale, other)
            assert (narrow, one.count) == (small, count)
            with ctx.workprec(200):
                known = v()
            apart = abs(mpf(known.mid().str(60, radius=False)) / exact - 1)
            assert apart < mpf(10) ** -30
            kinds.add((narrow, count > 4))
    assert len(kinds) > 1


@pytest.mark.parametrize(("d", "scale"), [(1, 0.5), (2, 0.75), (3, 0.5)])
def test_pieces_are_chosen_as_often_as_the_density_says(d, scale):
    """Where v < 1 and v ≥ 1 are both frequent; the density integrated numerically."""

    def Z(v):
        return 1 + 2 * np.exp(-(np.arange(1, 60) ** 2) / (2 * v)).sum()

    def density(root):  # of √v
        return np.exp(-(root**2) / (2 * scale**2)) * Z(root**2) ** d if root else 1.0

    small, large = quad(density, 0, 1)[0], quad(density, 1, 20)[0]
    narrow = sum(_variance(d, Fraction(scale), Source((i, "odds")))[1] for i in range(2000))
    share = small / (small + large)
    assert stats.binomtest(narrow, 2000, share).pvalue > 1e-4  # seeded
    assert stats.binomtest(narrow, 2000, share * 0.85).pvalue < 1e-4


@pytest.mark.parametrize("d", [32, 100])
def test_coordinates_are_those_of_the_exact_reference(d):
    """Given v, all draws are replayed in integers, with words that are open among
    them."""
    for seed in range(6):
        source = Source((seed, "whole"))
        drawn = laplace(np.zeros(d, np.int64), LARGE, source)
        v, _ = _variance(d, LARGE, again := Source((seed, "whole")))
        near, words, digits = root_of(v), again(), again()
        table = discrete_gaussian.make_table(near)
        size = (d + d // 16 + 4) * 8 * (2 if table.width > 31 else 1)
        blocks = [np.frombuffer(words(size), "<u8").tolist() for _ in range(3)]
        rest = iter(np.frombuffer(digits(800), "<u8").tolist())
        assert drawn.tolist() == draw(table, d, blocks, rest)
        assert source.count == again.count


def test_the_scale_of_the_coordinates_is_the_nearest_root():
    for seed in range(200):
        v, _ = _variance(40, Fraction(5), Source(seed))
        with ctx.workprec(300):
            off = v().sqrt() / arb(root_of(v)) - 1
            assert abs(off) < arb(WIDER.numerator) / WIDER.denominator / 2


def test_a_uniform_near_its_ends_is_read_until_the_root_is_known():
    """u = 2⁻²⁰⁰: the first words are all zero, and say nothing of its logarithm."""
    raw = io.BytesIO(b"\0" * 25 + b"\1" + b"\7" * 1000)
    from spdp.privacy.laplace_mixture import Uniform, _logistic

    u = Uniform(raw.read)
    root = root_of(lambda: _logistic(1, 1 - u()).exp())  # 2²⁰⁰, or so
    with mp.workprec(400):
        exact = mp.sqrt(1 / mpf(2) ** 200)
    assert 0.01 < root * float(exact) < 100
    assert u.bits >= 256 + 60


# --- the bound of the proposals


@pytest.mark.parametrize("d", [1, 2, 5, 18, 19, 20, 40, 465, 10**5])
def test_no_chance_exceeds_one(d):
    """What the docstring proves, at u from 2⁻²⁰⁰ to 1 − 2⁻²⁰⁰."""
    with ctx.workprec(800):
        ends = [arb(2) ** -j for j in (200, 100, 50, 20, *range(1, 12))]
        inner = [arb(i) / 400 for i in range(1, 200)]
        for u in ends + inner:
            assert gamma_level(d, u) <= 1 or u == arb(1) / 2
            assert gamma_level(d, 1 - u) <= 1 or u == arb(1) / 2
        near_one = gamma_level(d, arb(1) / 2 + arb(2) ** -30)
        assert near_one > 1 - arb(2) ** -40  # it is sharp: a larger one would exceed 1


def test_a_steeper_proposal_would_exceed_one():
    """λ² = 4a/3 needs a ≥ 9.86: at a = 1 the same formula breaks the bound."""
    with mp.workprec(200):
        rate, a, worst = mp.sqrt(mpf(4) / 3 * 8), mpf(1), mpf(0)
        for i in range(1, 400):
            V = -mpf(i) / 100
            worst = max(worst, mp.exp(a * (1 + V - mp.exp(V))) * mp.cosh(rate * V / 2) ** 2)
    assert worst > 1


def test_bounds_of_the_normaliser():
    """Z(1) < 13/5, and θ(1) ≤ 1 + 2⁻²⁷: the two constants."""
    with mp.workprec(200):
        Z = 1 + 2 * sum(mp.exp(-mpf(k * k) / 2) for k in range(1, 40))
        assert 2.5 < Z < mpf(13) / 5
        assert 1 < Z / mp.sqrt(2 * mp.pi) < 1 + mpf(2) ** -27


def test_two_to_the_k_times_the_weight_is_at_most_five_quarters():
    assert max(2**k * math.exp(-k * k / 2) for k in range(60)) < 1.25


# --- the law


def p_value(drawn, d, scale, size):
    reach = math.ceil((30 if d < 3 else 20) * scale)
    squares = np.arange(-reach, reach + 1) ** 2
    for _ in range(d - 1):
        squares = np.add.outer(squares, np.arange(-reach, reach + 1) ** 2)
    law = np.exp(-np.sqrt(squares) / scale)
    expected = law.ravel() / law.sum() * size
    places = np.ravel_multi_index((drawn + reach).T, law.shape, mode="clip")
    counts = np.bincount(places, minlength=law.size)
    large = expected >= 20
    seen, hoped = (np.append(x[large], x[~large].sum()) for x in (counts, expected))
    return stats.chisquare(seen, hoped * (seen.sum() / hoped.sum())).pvalue


SLOW = [pytest.param(*case, marks=pytest.mark.audit) for case in ((1, 0.5), (2, 0.75))]


@pytest.mark.parametrize(("d", "scale"), [*SLOW, (2, 3.0), (3, 1.5)])
def test_the_law_on_the_lattice_is_the_claimed_one_and_no_other(d, scale):
    size = 15_000
    drawn = np.array([laplace(np.zeros(d, np.int64), Fraction(scale)) for _ in range(size)])
    assert p_value(drawn, d, scale, size) > CHANCE
    assert p_value(drawn, d, scale * 0.7, size) < CHANCE
    assert p_value(drawn, d, scale * 1.3, size) < CHANCE


@pytest.mark.parametrize("d", [21, 66, 465])
def test_the_radius_follows_the_gamma_law_at_a_large_scale(d):
    drawn = [laplace(np.zeros(d, np.int64), LARGE) for _ in range(1000)]
    radius = np.linalg.norm(np.array(drawn, float), axis=1) / float(LARGE)
    assert stats.kstest(radius, stats.gamma(d).cdf).pvalue > CHANCE
    for wrong in (0.7, 1.3):
        assert stats.kstest(radius, stats.gamma(d, scale=wrong).cdf).pvalue < CHANCE


def test_it_agrees_with_the_other_exact_sampler():
    """First coordinates and radii of both, at a scale of a few steps."""
    scale, d = Fraction(5), 24
    ours = np.array([laplace(np.zeros(d, np.int64), scale) for _ in range(3000)], float)
    theirs = np.array([laplace_vector(d, scale) for _ in range(3000)], float)
    for of in (lambda x: np.linalg.norm(x, axis=1), lambda x: x[:, 0]):
        assert stats.ks_2samp(of(ours), of(theirs)).pvalue > CHANCE
        assert stats.ks_2samp(of(ours) * 1.5, of(theirs)).pvalue < CHANCE


def test_odds_are_those_of_the_integrals():
    with mp.workprec(200):
        small = 2 * (mpf(13) / 5) ** 2
        large = 2 * mp.pi * (1 + mpf(2) ** -27) ** 2 * mp.gamma(1.5) * mpf(2) ** 1.5
        with ctx.workprec(100):
            known = float(_odds(2, Fraction(1), 100))
        assert known == pytest.approx(float(small / (small + large)), rel=1e-12)
