"""Noise as an account draws it: its law, entropy, threads, forks, and who draws.

Draws come from the operating system and cannot be seeded. Right code fails by chance
less than once in a million runs (some 40 p-values, each to be above 1e-8).
"""

import multiprocessing
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

from spdp import Ball, Ledger, kernels, private_mean
from spdp.errors import DataError, ParameterError
from spdp.options import Noise
from spdp.privacy import discrete_gaussian, noise

CHANCE = 1e-8
WRONG = [0.97, 1.03]
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "domain": Ball(2.0), "mechanism": "gaussian"}


@pytest.fixture
def choose(monkeypatch):
    """Choose a sampler, as the environment does."""

    def chosen(name):
        monkeypatch.setenv("SPDP_SAMPLER", name)
        forget()

    def forget():
        for kept in (noise._chosen, noise._check_opendp, noise._opendp_gaussian):
            kept.cache_clear()

    yield chosen
    forget()


def zeros(size):
    return np.zeros(size, np.int64)


def law_p_value(drawn, scale):
    """χ² against the exact law, rare values taken together."""
    reach = int(12 * scale)
    with mp.workprec(200):
        half = [mp.exp(-(mpf(z) ** 2) / (2 * mpf(scale) ** 2)) for z in range(reach + 1)]
        total = half[0] + 2 * sum(half[1:])
        law = np.array([float(half[abs(z)] / total) for z in range(-reach, reach + 1)])
    counts = np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=len(law))
    large = law * len(drawn) >= 20
    seen, hoped = (np.append(x[large], x[~large].sum()) for x in (counts, law * len(drawn)))
    return stats.chisquare(seen, hoped * (seen.sum() / hoped.sum())).pvalue


def same_law_p_value(one, other, scale):
    """χ² of two samples, in 14 bins."""
    edges = np.arange(-6, 7) * scale / 2
    counts = [
        np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (one, other)
    ]
    return stats.chi2_contingency(counts).pvalue


def has_the_law(scale, size, wrong=400_000):
    drawn = noise.gaussian(zeros(size), scale, None)
    assert law_p_value(drawn, scale) > CHANCE
    for factor in WRONG:
        assert law_p_value(drawn[:wrong], factor * scale) < CHANCE


@pytest.mark.parametrize("scale", [4.0, 7.3, 33.3])
def test_the_law_is_the_claimed_one_and_no_other(scale):
    has_the_law(scale, 400_000)


@pytest.mark.audit
@pytest.mark.parametrize("scale", [1.0, 4.0, 7.3, 33.3, 100.0])
def test_the_law_of_ten_million_draws(scale):
    has_the_law(scale, 10_000_000)


def has_the_shape(scale, size):
    """Four moments, the normal distribution, low bits, serial correlation.

    At a large scale the discrete law is the normal one up to 1/scale.
    """
    drawn = noise.gaussian(zeros(size), scale, None)
    x = drawn / scale
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((x**power).mean() - moment) < 6 * np.sqrt(variance / size)
    assert stats.kstest(x, "norm").pvalue > CHANCE
    assert stats.kstest(x[:400_000] * 1.03, "norm").pvalue < CHANCE
    for shift in (0, 8, int(np.log2(scale)) - 16):
        counts = np.bincount(drawn >> shift & 255, minlength=256)
        assert stats.chisquare(counts).pvalue > CHANCE
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 6 / np.sqrt(size)


@pytest.mark.parametrize("scale", [2.0**24 + 1, 2.0**40 + 3, 2.0**57])
def test_the_shape_at_large_scales(scale):
    has_the_shape(scale, 400_000)


@pytest.mark.audit
@pytest.mark.parametrize("scale", [2.0**24 + 1, 2.0**31 * 1.7, 2.0**40 + 3, 2.0**59 + 2.0**30])
def test_the_shape_of_ten_million_draws(scale):
    has_the_shape(scale, 10_000_000)


# --- beside OpenDP


def agrees_with_opendp(scale, size):
    pytest.importorskip("opendp")
    ours = noise.gaussian(zeros(20 * size), scale, None)
    theirs = noise._opendp_gaussian(scale)(zeros(size))
    assert same_law_p_value(ours, theirs, scale) > CHANCE
    for factor in WRONG:
        wrong = noise.gaussian(zeros(20 * size), factor * scale, None)
        assert same_law_p_value(wrong, theirs, scale) < CHANCE


@pytest.mark.parametrize("scale", [4.0, 7.3])
def test_opendp_draws_the_same_law(scale):
    agrees_with_opendp(scale, 80_000)


@pytest.mark.audit
@pytest.mark.parametrize("scale", [4.0, 7.3, 100.0, 2.0**31 * 1.7])
def test_opendp_draws_the_same_law_in_a_million_draws(scale):
    if scale < 1000:
        agrees_with_opendp(scale, 1_000_000)
        return
    ours = noise.gaussian(zeros(1_000_000), scale, None)
    theirs = noise._opendp_gaussian(scale)(zeros(1_000_000))
    assert stats.ks_2samp(ours, theirs).pvalue > CHANCE
    assert stats.ks_2samp(ours * 1.03, theirs).pvalue < CHANCE


def test_opendp_draws_where_it_is_chosen_and_the_certificate_says_so(choose, random_spd):
    pytest.importorskip("opendp")
    X = random_spd(60, 2)
    choose("strips")
    assert private_mean(X, **BUDGET).certificate["versions"]["sampler"] == discrete_gaussian.NAME
    choose("opendp")
    release = private_mean(X, **BUDGET)
    assert release.certificate["versions"]["sampler"] == f"opendp-{version('opendp')}"
    assert all(check.ok for check in release.verify())
    assert noise.gaussian(zeros(3), 5.0, None).dtype == np.int64
    pure = private_mean(X, **BUDGET | {"delta": 0.0, "mechanism": "laplace"})
    assert pure.certificate["versions"]["sampler"] == "laplace-1"
    simulated = private_mean(X, random_state=0, **BUDGET)
    assert simulated.certificate["versions"]["sampler"] == "simulation"


def test_an_unknown_sampler_is_refused_before_anything_is_paid(choose, tmp_path, random_spd):
    ledger = Ledger(tmp_path / "ledger", epsilon=5.0, delta=1e-5)
    choose("dice")
    with pytest.raises(
        ParameterError, match="SPDP_SAMPLER must be 'strips' or 'opendp', got 'dice'"
    ):
        private_mean(random_spd(60, 2), ledger=ledger, **BUDGET)
    assert ledger.history() == []


def test_without_opendp_the_choice_is_refused_before_anything_is_paid(
    choose, tmp_path, random_spd, monkeypatch
):
    ledger = Ledger(tmp_path / "ledger", epsilon=5.0, delta=1e-5)
    monkeypatch.setitem(sys.modules, "opendp", None)
    choose("opendp")
    with pytest.raises(DataError, match=r"needs OpenDP; install it with.*spdp\[opendp\]"):
        private_mean(random_spd(60, 2), ledger=ledger, **BUDGET)
    assert ledger.history() == []


def test_a_broken_opendp_is_refused_before_anything_is_paid(
    choose, tmp_path, random_spd, monkeypatch
):
    ledger = Ledger(tmp_path / "ledger", epsilon=5.0, delta=1e-5)
    monkeypatch.setitem(sys.modules, "opendp.measurements", None)
    choose("opendp")
    with pytest.raises(ParameterError, match="OpenDP does not draw"):
        private_mean(random_spd(60, 2), ledger=ledger, **BUDGET)
    assert ledger.history() == []


def test_releases_need_no_opendp():
    code = """
    import sys
    sys.modules["opendp"] = None
    import numpy as np
    from spdp import Ball, private_mean
    for delta in (1e-6, 0.0):
        private_mean(np.stack([np.eye(2)] * 50), epsilon=1.0, delta=delta, domain=Ball(2.0))
    """
    subprocess.run([sys.executable, "-c", dedent(code)], check=True)


def test_only_the_sampler_calls_the_compiled_one():
    """The import contract does not see compiled modules."""
    package = Path(noise.__file__).parents[1]
    callers = [file for file in package.rglob("*.py") if "draw_gaussian" in file.read_text("utf-8")]
    assert [file.relative_to(package).as_posix() for file in callers] == [
        "privacy/discrete_gaussian.py"
    ]


# --- entropy, threads, forks

WIDE = 2.0**57  # at which two of 10⁵ draws are equal with a chance below 1e-7


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_no_word_is_used_twice_by_threads(threads):
    """Words used twice would be equal draws."""
    if kernels.backend() != "native":
        pytest.skip("no compiled kernels")
    from spdp.kernels import _native

    before = _native.get_num_threads()
    try:
        _native.set_num_threads(threads)
        drawn = noise.gaussian(zeros(100_000), WIDE, None)
    finally:
        _native.set_num_threads(before)
    assert len(np.unique(drawn)) == 100_000
    assert abs(drawn.std() / WIDE - 1) < 6 / np.sqrt(200_000)


def test_callers_in_threads_share_no_word():
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda _: noise.gaussian(zeros(2000), WIDE, None), range(40)))
    assert len(np.unique(np.concatenate(parts))) == 80_000


def _draw_some(_):
    return noise.gaussian(zeros(500), WIDE, None)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads
def test_forked_processes_share_no_word():
    before = _draw_some(0)
    with multiprocessing.get_context("fork").Pool(3) as pool:
        parts = pool.map(_draw_some, range(12), chunksize=1)
    everything = np.concatenate([before, *parts, _draw_some(0)])
    assert len(np.unique(everything)) == len(everything)


def test_the_numpy_sampler_has_the_law(monkeypatch):
    monkeypatch.setattr(discrete_gaussian, "native", lambda: None)
    discrete_gaussian.kept_table.cache_clear()
    try:
        has_the_law(7.3, 200_000)
    finally:
        discrete_gaussian.kept_table.cache_clear()


def test_without_native_entropy_words_come_from_python(monkeypatch):
    if kernels.backend() != "native":
        pytest.skip("no compiled kernels")
    from spdp.kernels import _native

    class Elsewhere:
        HAS_ENTROPY = False
        draw_gaussian = staticmethod(_native.draw_gaussian)
        StripTable = _native.StripTable

    monkeypatch.setattr(discrete_gaussian, "native", lambda: Elsewhere)
    has_the_law(7.3, 200_000)


def test_words_of_the_wrong_size_are_refused():
    with pytest.raises(ValueError):
        discrete_gaussian.gaussian(zeros(5), 10.0, read=lambda count: b"\0" * (count - 1))


# --- ends and edges


@pytest.mark.parametrize("law", list(Noise))
def test_a_seed_is_a_simulation(law):
    assert noise.sampler(law, np.random.default_rng(0)) == "simulation"


@pytest.mark.parametrize("d", [6, 40])
@pytest.mark.parametrize("scale", [Fraction(-5), Fraction(0), Fraction(1, 1000), 5])
def test_a_scale_that_no_sampler_can_draw_is_refused(d, scale):
    with pytest.raises(ParameterError, match="scale must be"):
        noise.laplace(np.zeros(d, np.int64), scale, None)


def test_it_saturates_at_the_ends_of_the_integers():
    ends = np.array([discrete_gaussian.MOST, -discrete_gaussian.MOST] * 40)
    drawn = noise.gaussian(ends, 1e4, None)
    assert (np.sign(drawn) == np.sign(ends)).all()
    assert (np.abs(drawn.astype(float)) > discrete_gaussian.MOST - 20 * 1e4).all()


def test_an_empty_total_has_no_noise():
    assert noise.gaussian(zeros(0), 1e4, None).size == 0


@pytest.mark.parametrize("total", [np.arange(100)[::3], np.arange(34, dtype=np.int32)])
def test_totals_of_any_layout_get_noise(total):
    drawn = noise.gaussian(total, 4.0, None)
    assert drawn.shape == total.shape
    assert np.abs(drawn - total).max() < 60
