"""The sampler by strips: tables that prove themselves, and draws replayed exactly.

Draws are compared, bit by bit, with those of :mod:`exact_strips`, which reads the same
words and knows neither doubles nor balls. Tables of few cells meet the rare branches.
"""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from exact_strips import Proposal, below, check, draw, enclosed
from flint import ctx
from mpmath import mp, mpf
from strip_words import (
    Stream,
    columns_of,
    counted,
    cut_words,
    exact_counts,
    far_out,
    places_of,
    replay,
    word_for,
    zeros,
)

from spdp.kernels import backend
from spdp.privacy import discrete_gaussian, discrete_gaussian_numpy
from spdp.privacy.discrete_gaussian_numpy import Open, saturated

SCALES = [
    *(1.0, 1.5, 4.0, 7.3, math.nextafter(32.0, 0), 32.0, 100.0, 1234.5678, 2.0**20, 2.0**24 + 1),
    *(2.0**30 + 12345, 2.0**35 + 3, 2.0**36, 2.0**40 + 3, 2.0**50, 2.0**57, 2.0**60),
]
MOST, LEAST = 2**63 - 1, -(2**63)


@pytest.fixture(params=["native", "numpy"])
def make(request):
    """Both makers of tables, and with them both ways to draw."""
    if request.param == "numpy":
        return discrete_gaussian_numpy.Table.of
    if backend() != "native":
        pytest.skip("no compiled kernels")
    return discrete_gaussian.make_table


# --- tables


@pytest.mark.parametrize("bits", [32, 24, 12])
@pytest.mark.parametrize("scale", SCALES)
def test_a_table_makes_the_law_exact(make, scale, bits):
    check(make(scale, bits))


def test_tables_of_random_scales_make_the_law_exact(make):
    rng = random.Random(1)
    for _ in range(40):
        check(make(2.0 ** rng.uniform(0, 60), rng.choice([32, 32, 12, 17])))


def test_wide_tables_make_the_law_exact():
    for scale in (2.0**60 + 2.0**10, 2.0**72 * 1.3, 2.0**300, 2.0**1000):
        check(discrete_gaussian.make_table(scale))


FIELDS = ("height", "sure", "own", "other", "shift")


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.skipif(backend() != "native", reason="no compiled kernels")
def test_cpp_and_numpy_make_the_same_table(scale):
    one, other = discrete_gaussian.make_table(scale), discrete_gaussian_numpy.Table.of(scale)
    for name in ("scale", "bits", "width", "strips", "top", "tail_strips"):
        assert getattr(one, name) == getattr(other, name)
    for name in FIELDS:
        assert columns_of(one, name) == columns_of(other, name)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("height", -1, "too low"),
        ("sure", 10**6, "not sure"),
        ("own", 1, "tile"),
        ("shift", 1, "tile"),
        ("other", 1, "tile"),
    ],
)
def test_a_wrong_table_is_found(name, change, said):
    table = discrete_gaussian_numpy.Table.of(100.0)
    wrong = getattr(table, name).copy()
    wrong[3] += change
    with pytest.raises(AssertionError, match=said):
        check(table._replace(**{name: wrong}))


@pytest.mark.parametrize("change", [{"tail_strips": 1}, {"strips": 100}, {"top": 10**9}])
def test_other_wrong_tables_are_found(change):
    with pytest.raises(AssertionError):
        check(discrete_gaussian_numpy.Table.of(100.0)._replace(**change))


@pytest.mark.parametrize("scale", [0.99, 0.0, -4.0, math.nan, math.inf, 2.0**1001])
def test_scales_without_a_table_are_refused(make, scale):
    with pytest.raises(ValueError, match="no table"):
        make(scale)


# --- the exponential


def weight_of(kind, z, scale):
    if kind == "numpy":
        return float(
            discrete_gaussian_numpy.exp_minus(np.array([0.5 * (z / scale) * (z / scale)]))[0]
        )
    from spdp.kernels import _native

    return _native.strip_weight(z, scale)


@pytest.mark.parametrize("kind", ["native", "numpy"])
def test_the_double_exponential_is_as_near_as_proven(kind):
    """4,000 arguments; the proof says 2⁻⁴⁴, the margin is 2⁻⁴⁰."""
    if kind == "native" and backend() != "native":
        pytest.skip("no compiled kernels")
    rng, worst = random.Random(2), Fraction(0)
    for _ in range(4000):
        scale = 2.0 ** rng.uniform(0, 60)
        z = int(scale * rng.uniform(0, 7.99))
        low, high = enclosed(Fraction(z * z) / (2 * Fraction(scale) ** 2), 160)
        got = Fraction(weight_of(kind, z, scale))
        worst = max(worst, abs(got / low - 1), abs(got / high - 1))
    assert Fraction(1, 2**53) < worst < Fraction(1, 2**44)


def test_the_enclosures_of_the_reference_enclose():
    mp.prec = 300
    for x in (Fraction(1, 7**30), Fraction(1, 3), Fraction(22), Fraction(700)):
        low, high = enclosed(x, 200)
        exact = mp.exp(-mpf(x.numerator) / x.denominator)
        assert (
            mpf(low.numerator) / low.denominator <= exact <= mpf(high.numerator) / high.denominator
        )
        assert high - low < Fraction(1, 2**180)


# --- replays


@pytest.mark.parametrize("scale", SCALES)
def test_draws_are_those_of_the_reference(make, scale):
    replay(make(scale), 1500)


@pytest.mark.parametrize("scale", SCALES)
def test_rare_branches_are_those_of_the_reference(make, scale):
    """With few cells up to a hundredth of all proposals is open, or in the tail."""
    assert replay(make(scale, 12), 8000 if scale < 2 else 3000) > 3


@pytest.mark.parametrize("scale", [2.0**60 + 2.0**10, 2.0**72 * 1.3, 2.0**130])
def test_wide_draws_are_those_of_the_reference(scale):
    table, main, extra = discrete_gaussian.make_table(scale, 12), Stream(0), Stream(1)
    total = zeros(60)
    drawn = discrete_gaussian.gaussian(total, scale, table=table, read=main, digits=extra)
    digits, found = iter(extra.all), []
    for block in main.blocks:
        proposal = Proposal(table, sum(word << 64 * i for i, word in enumerate(block)))
        z = None if proposal.outcome(table) is False else proposal.settle(table, digits)
        found += [] if z is None else [max(LEAST, min(z, MOST))]
    assert drawn.tolist() == found
    assert next(digits, None) is None


@pytest.mark.parametrize("scale", [4.0, 100.0, 2.0**30 + 12345, 2.0**50])
def test_words_that_are_open_are_settled_by_their_digits(make, scale):
    table = make(scale)
    words, more = cut_words(table, random.Random(3), 100)
    assert replay(table, 150, 5, words, more) >= 300


def test_zero_is_drawn_with_one_sign_and_below_its_level(make):
    table = make(4.0)
    places = places_of(table)
    words = [
        *word_for(table, places, 0, table.top - 1, 1),  # the second sign
        *word_for(table, places, 0, table.top),  # above the level, which is a whole number
        *word_for(table, places, 0, table.top - 1),
        *word_for(table, places, 3, 0, 1),
    ]
    drawn = discrete_gaussian.gaussian(zeros(2), 4.0, table=table, read=Stream(0, words))
    assert drawn.tolist() == [0, -3]


@pytest.mark.parametrize("halvings", [0, 1, 5, 63, 64, 80])
@pytest.mark.parametrize("height", [0, 2**64 - 1])
def test_the_tail_far_out(halvings, height):
    """A height of 0.000… is below every level however far out; one of 0.111… is not."""
    table = discrete_gaussian.make_table(2.0**57)
    leading = [0] * (halvings // 64) + [1 << 63 - halvings % 64]
    stream = Stream(0, leading + [height] * 8000)
    exponent = discrete_gaussian._exponent_of(table.scale)
    drawn = discrete_gaussian.settle(table, Open(0, True, True, 1, 5), exponent, stream)
    place = table.strips + halvings * table.tail_strips + 1 % table.tail_strips
    z = (place << table.width) + 5
    assert drawn == (-z if height == 0 else None)
    accepted = below(table, z, 0, halvings, iter(stream.all[len(leading) :]))
    assert accepted is (height == 0)


@pytest.mark.parametrize("total", [0, 2**62, MOST, LEAST])
@pytest.mark.parametrize("negative", [0, 1])
def test_the_sum_saturates_and_not_the_noise(make, total, negative):
    """A draw of the tail beyond int64: were it cut before it is added, the total would
    show."""
    assert far_out(make(2.0**57), total, negative) == (LEAST if negative else MOST)


def test_sums_in_strips_saturate():
    rng = np.random.default_rng(0)
    total = rng.integers(LEAST, MOST, 4000, endpoint=True)
    noise = rng.integers(-(2**62), 2**62, 4000)
    exact = [max(LEAST, min(int(t) + int(z), MOST)) for t, z in zip(total, noise, strict=True)]
    assert saturated(total, noise).tolist() == exact
    assert {LEAST, MOST} < set(exact)


@pytest.mark.parametrize("end", [LEAST, MOST])
def test_draws_beyond_the_ends_stay_there(make, end):
    table = make(2.0**60)
    main, extra, wanted = Stream(1), Stream(2), 1000
    drawn = discrete_gaussian.gaussian(
        np.full(wanted, end), table.scale, table=table, read=main, digits=extra
    )
    noise = draw(table, wanted, main.blocks, iter(extra.all))
    assert drawn.tolist() == [max(LEAST, min(end + z, MOST)) for z in noise]


# --- every word there is


@pytest.mark.parametrize(
    ("scale", "bits"),
    [(1.0, 12), (4.0, 12), (4.0, 18), (7.3, 16), (33.3, 14), (100.0, 16), (2.0**40 + 3, 16)],
)
def test_of_all_words_as_many_are_accepted_as_the_law_says(make, scale, bits):
    """This is the law itself, counted and not sampled."""
    table = make(scale, bits)
    m = 1 << table.width
    for offset in {0, m - 1, *random.Random(8).choices(range(m), k=3)}:
        accepted, cut = counted(table, offset)
        assert (accepted.tolist(), cut.tolist()) == exact_counts(table, offset)


# --- precision


def test_digits_do_not_depend_on_the_precision():
    """Other code may set flint's precision: outcomes and digits stay the same."""
    table, outcomes = discrete_gaussian_numpy.Table.of(100.0, 12), []
    for precision in (10, 53, 1000):
        with ctx.workprec(precision):
            main, extra = Stream(6), Stream(7)
            drawn = discrete_gaussian.gaussian(
                zeros(2000), 100.0, table=table, read=main, digits=extra
            )
            assert ctx.prec == precision
        outcomes.append((drawn.tolist(), extra.all))
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert len(outcomes[0][1]) > 10
