"""The exact l2 Laplace sampler: its law, and that precision never steers it.

Draws come from the operating system and cannot be seeded. A right sampler fails by
chance less than once in a million runs (some 20 p-values, each to be above 1e-8); a
scale wrong by a factor 0.7 or 1.3 is always seen.
"""

import hashlib
import io
import itertools
import math
import os
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import flint
import mpmath
import numpy as np
import pytest
from scipy import stats

from spdp.errors import ParameterError
from spdp.privacy.laplace_rounding import laplace_vector, propose

CHANCE = 1e-8
WRONG = [0.7, 1.3]
LARGE = Fraction(2**31)


def uniforms_of(d):
    """The uniforms of one proposal: ticket, d factors, then angles, then cuts."""
    return d + 2 * ((d + 1) // 2)


def stream(seed, d, *, heads=None, size=1000):
    """The read function of a fixed stream; heads[i] is how uniform i begins."""
    count = uniforms_of(d)
    raw = bytearray(hashlib.shake_256(repr(seed).encode()).digest(count * size))
    for i, head in (heads or {}).items():
        raw[i : i + count * len(head) : count] = head
    return io.BytesIO(raw).read


def draw(d, scale, n):
    return np.array([laplace_vector(d, scale) for _ in range(n)], dtype=np.float64)


def lattice_law(d, scale):
    """All q in a box that misses less than 1e-10 of the law, with their exp(-|q|/s)."""
    reach = math.ceil(30 * scale)
    q = np.indices((2 * reach + 1,) * d).reshape(d, -1).T - reach
    return q, np.exp(-np.linalg.norm(q, axis=1) / scale)


def law_p_value(sample, d, scale):
    """Chi-square of single lattice points, the rare ones (below 50) taken together."""
    q, weight = lattice_law(d, scale)
    law = weight / weight.sum()
    large = law * len(sample) >= 50
    index = {tuple(point): i for i, point in enumerate(q[large].tolist())}
    counts = np.zeros(len(index) + 1)
    for point in sample.astype(np.int64).tolist():
        counts[index.get(tuple(point), -1)] += 1
    expected = np.append(law[large], law[~large].sum()) * len(sample)
    return stats.chisquare(counts, expected).pvalue


@pytest.mark.parametrize(
    ("d", "scale", "n"),
    [
        (1, Fraction(1, 2), 30_000),
        (1, Fraction(3), 10_000),
        (2, Fraction(2), 20_000),
        (3, Fraction(3, 2), 30_000),
    ],
)
def test_the_law_on_the_lattice_is_the_claimed_one_and_no_other(d, scale, n):
    sample = draw(d, scale, n)
    assert law_p_value(sample, d, float(scale)) > CHANCE
    for factor in WRONG:
        assert law_p_value(sample, d, factor * float(scale)) < CHANCE


@pytest.mark.parametrize(("d", "n"), [(6, 4000), (45, 1000)])
def test_the_radius_follows_the_gamma_law_at_a_large_scale(d, n):
    radius = np.linalg.norm(draw(d, LARGE, n), axis=1) / float(LARGE)
    assert stats.kstest(radius, stats.gamma(d).cdf).pvalue > CHANCE
    for factor in WRONG:
        assert stats.kstest(radius, stats.gamma(d, scale=factor).cdf).pvalue < CHANCE


@pytest.mark.parametrize("d", [3, 6])
def test_the_direction_is_uniform_on_the_sphere(d, rng):
    x = draw(d, LARGE, 4000)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    law = stats.beta(0.5, (d - 1) / 2).cdf
    # An axis, the last axis, and one that mixes the pairs the direction is made of.
    for axis in (np.eye(d)[0], np.eye(d)[-1], stats.uniform_direction(d).rvs(random_state=rng)):
        assert stats.kstest((x @ axis) ** 2, law).pvalue > CHANCE
        assert stats.binomtest(int((x @ axis > 0).sum()), len(x)).pvalue > CHANCE


def test_low_bits_are_uniform():
    low = np.array([[n % 16 for n in laplace_vector(6, LARGE)] for _ in range(3000)])
    assert stats.chisquare(np.bincount(low.ravel(), minlength=16)).pvalue > CHANCE


def residues(values):
    return np.bincount([value % 64 for value in values], minlength=64)


def test_the_tail_has_no_holes_where_a_floating_point_sampler_has():
    scale = 2**61
    exact = (abs(laplace_vector(1, Fraction(scale))[0]) for _ in range(20_000))
    tail = [value for value in exact if value > 2 * scale]
    assert stats.chisquare(residues(tail)).pvalue > CHANCE
    floating = (round(-scale * math.log(1 - u)) for u in np.random.default_rng(0).random(20_000))
    holed = [value for value in floating if value > 2 * scale]
    assert (residues(holed) == 0).sum() == 63


def test_neither_the_far_tail_nor_the_centre_is_cut_off():
    seeds = range(40)
    far = {propose(1, LARGE, stream(seed, 1, heads={1: bytes(60)}), 8)[0] % 8 for seed in seeds}
    assert far == set(range(8))
    least = 480 * math.log(2) * float(LARGE)
    assert abs(propose(1, LARGE, stream(0, 1, heads={1: bytes(60)}), 8)[0]) > least
    assert propose(1, LARGE, stream(0, 1, heads={1: b"\xff" * 60}), 8) == [0]


@pytest.mark.parametrize("d", [1, 2, 3, 6, 9])
@pytest.mark.parametrize("scale", [Fraction(4, 3), LARGE / 3, Fraction(2**61)])
def test_the_outcome_does_not_depend_on_the_starting_precision(d, scale):
    for seed in range(30):
        at_64, *others = (propose(d, scale, stream(seed, d), size) for size in (8, 1, 7, 25, 99))
        assert all(other == at_64 for other in others)


def proposal(d, scale, read):
    """q, its chance and its ticket by plain arithmetic of 2,000 bits."""
    count, pairs = uniforms_of(d), (d + 1) // 2
    raw = read(count * 250)
    with mpmath.workprec(2000):
        u = [mpmath.mpf(int.from_bytes(raw[i::count], "big")) / 2**2000 for i in range(count)]
        factors, angles, cuts = u[1 : 1 + d], u[1 + d : 1 + d + pairs], u[1 + d + pairs :]
        edges = [mpmath.mpf(0), *sorted(cuts), mpmath.mpf(1)]
        normals = [
            mpmath.sqrt(high - low) * trig(2 * mpmath.pi * angle)
            for (low, high), angle in zip(itertools.pairwise(edges), angles, strict=True)
            for trig in (mpmath.cos, mpmath.sin)
        ][:d]
        s = mpmath.mpf(scale.numerator) / scale.denominator
        radius = s * sum(-mpmath.log(factor) for factor in factors)
        length = mpmath.sqrt(sum(x * x for x in normals))
        q = [int(mpmath.floor(radius * x / length + 0.5)) for x in normals]
        norm = mpmath.sqrt(sum(cell * cell for cell in q))
        chance = mpmath.exp((radius - norm) / s - mpmath.sqrt(d) / (2 * s))
        assert 0 < chance <= 1
        return q, chance, u[0]


def reference(d, scale, read):
    q, chance, ticket = proposal(d, scale, read)
    return q if ticket < chance else None


def first_bytes(real):
    """The first 40 bytes of a number in [0, 1)."""
    with mpmath.workprec(2000):
        return int(real * 2**320).to_bytes(40, "big")


@pytest.mark.parametrize("scale", [Fraction(4, 3), LARGE / 3])
def test_the_outcome_is_that_of_plain_arithmetic_at_a_high_precision(scale):
    outcomes = []
    for d, seed in itertools.product([1, 2, 3, 6, 9], range(12)):
        outcomes.append(propose(d, scale, stream(seed, d), 8))
        assert outcomes[-1] == reference(d, scale, stream(seed, d))
    assert (None in outcomes) == (scale < 2)


@pytest.mark.parametrize("uniform", range(8), ids=lambda i: f"uniform {i}")
@pytest.mark.parametrize("byte", [0, 127, 128, 255])
def test_uniforms_at_the_edges_of_their_range_are_refined(uniform, byte):
    # A ball at 0 has no logarithm, one at 1/2 or 1 leaves a sign or a gap open.
    heads = {uniform: bytes([byte]) * 40}
    outcome = propose(4, LARGE, stream(byte, 4, heads=heads), 1)
    assert outcome == reference(4, LARGE, stream(byte, 4, heads=heads))


def test_cuts_that_agree_in_their_first_bits_are_told_apart_later():
    heads = dict.fromkeys([10, 11], b"same first bytes")
    outcome = propose(6, LARGE, stream("cuts", 6, heads=heads), 4)
    assert outcome == reference(6, LARGE, stream("cuts", 6, heads=heads))


def test_a_point_close_to_halfway_is_rounded_by_later_bits():
    # At d = 1, |Y| = -s ln(u): u is made to agree with |Y| = k + 1/2 in 320 bits.
    k, outcomes = 12_345, set()
    for seed in range(20):
        with mpmath.workprec(2000):
            halfway = mpmath.exp(-(k + mpmath.mpf(1) / 2) / LARGE.numerator)
        heads = {0: b"\0", 1: first_bytes(halfway)}
        q = propose(1, LARGE, stream(seed, 1, heads=heads), 8)
        assert q == reference(1, LARGE, stream(seed, 1, heads=heads))
        outcomes.add(abs(q[0]))
    assert outcomes == {k, k + 1}


def test_a_ticket_close_to_the_chance_is_decided_by_later_bits():
    scale, outcomes = Fraction(4, 3), set()
    for seed in range(20):
        _, chance, _ = proposal(3, scale, stream(seed, 3))
        heads = {0: first_bytes(chance)}
        outcome = propose(3, scale, stream(seed, 3, heads=heads), 8)
        assert outcome == reference(3, scale, stream(seed, 3, heads=heads))
        outcomes.add(outcome is None)
    assert outcomes == {True, False}


def test_the_share_accepted_is_the_ratio_of_the_two_normalisers():
    # The sum of exp(-|q|/s) over the integral, 8 pi s^3, times exp(-sqrt(d)/2s).
    d, s, n = 3, 1.5, 10_000
    weight = lattice_law(d, s)[1].sum()
    share = weight / (8 * np.pi * s**3) * math.exp(-math.sqrt(d) / (2 * s))
    assert share > math.exp(-math.sqrt(d) / s)
    accepted = sum(propose(d, Fraction(3, 2), os.urandom, 8) is not None for _ in range(n))
    assert stats.binomtest(accepted, n, share).pvalue > CHANCE


def test_threads_share_the_precision_but_not_the_outcome():
    cases = [(seed, 3 + seed % 40) for seed in range(200)]

    def outcome(case):
        seed, d = case
        return propose(d, LARGE, stream(seed, d), 4 + seed % 9)

    alone = [outcome(case) for case in cases]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(outcome, cases)) == alone


def test_the_working_precision_of_flint_is_left_as_it_was():
    with flint.ctx.workprec(71):
        laplace_vector(3, LARGE)
        assert flint.ctx.prec == 71


def test_huge_scales_give_python_integers_beyond_64_bits():
    noise = laplace_vector(45, Fraction(2**200, 3))
    assert all(type(n) is int for n in noise)
    assert max(abs(n) for n in noise) > 2**64


@pytest.mark.parametrize(("d", "scale"), [(1, Fraction(1, 7)), (4, Fraction(2, 7))])
def test_the_smallest_scale_allowed_can_be_drawn(d, scale):
    assert len(laplace_vector(d, scale)) == d
    with pytest.raises(ParameterError, match="use a finer lattice"):
        laplace_vector(d, scale * Fraction(999, 1000))


@pytest.mark.parametrize(
    ("d", "scale", "message"),
    [
        (0, Fraction(1), "d must be at least 1"),
        (2, 1.5, "exact Fraction, got 1.5"),
        (2, Fraction(0), "at least sqrt"),
        (2, Fraction(-3), "at least sqrt"),
        (6, Fraction(1, 1000), "= 0.35 lattice steps at d = 6, got 1/1000"),
    ],
)
def test_senseless_arguments_are_refused(d, scale, message):
    with pytest.raises(ParameterError, match=message):
        laplace_vector(d, scale)
