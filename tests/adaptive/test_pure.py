"""The search with Laplace noise: ε-DP, its bound, and where it gains."""

from fractions import Fraction
from functools import partial
from math import log, sqrt

import numpy as np
import pytest
from scipy import stats

from spdp import Ball, EigenvalueBounds, Ledger, private_mean
from spdp.adaptive import MeanSearch, PureMeanSearch, Search, counted
from spdp.charts import LOGEUCLID
from spdp.domain.base import Space
from spdp.engines.store import ArrayStore
from spdp.error.bound import SURE, laplace_margin
from spdp.errors import ParameterError
from spdp.geometry import distance_logeuclid
from spdp.options import Adjacency
from spdp.privacy import account as accounts
from spdp.privacy.account import Account
from spdp.privacy.budget import Budget
from spdp.queries import Rows
from spdp.queries.sums import RecordCount
from spdp.release.certificate import CLEAR_LAPLACE

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE


def records(kind, n, d, width, seed=0):
    """Vectors in the unit ball whose rms distance from their mean is ``width``."""
    rng = np.random.default_rng(seed)
    Z, v = rng.standard_normal((n, d)), np.zeros(d)
    v[0] = 1.0
    if kind == "t3":
        Z /= np.sqrt(rng.chisquare(3, n) / 3)[:, None]
    elif kind == "two groups":
        Z = 0.4 * Z / sqrt(d) + np.where(rng.random(n) < 0.2, 2.2, 0.0)[:, None] * v
    Z *= width / sqrt((Z**2).sum(axis=1).mean())
    if kind == "outliers":
        Z[rng.random(n) < 0.01] += 0.7 * v
    Y = Z - Z.mean(axis=0) + 0.3 * np.roll(v, 1)
    return Y * np.minimum(1.0, 1.0 / np.linalg.norm(Y, axis=1, keepdims=True))


def searched(Y, k, budget, adjacency=REPLACE, seed=0):
    """A search's error, its bounds at 95 %, and its account."""
    space = Space.of(LOGEUCLID, Ball(1.0), k)
    account = Account(budget, adjacency, random_state=np.random.default_rng([7, seed]))
    search = Search(counted(ArrayStore(Rows(Y)), account), account, space)
    run = MeanSearch if budget.mu else PureMeanSearch
    found = run(search).run()
    y = LOGEUCLID.project(found.y, space.region)
    return float(np.linalg.norm(y - Y.mean(axis=0))), found, account


def rms(errors):
    return sqrt(np.mean(np.square(errors)))


def one_shot(n, d, epsilon):
    return 2.0 * sqrt(d * (d + 1.0)) / (n * epsilon)


# --- privacy


def test_prices_add_up_to_epsilon_in_exact_arithmetic():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        k, n = int(rng.integers(2, 5)), int(rng.integers(50, 5000))
        epsilon, adjacency = float(rng.uniform(0.1, 20.0)), (REPLACE, ADD)[seed % 2]
        Y = records("t3", n, k * (k + 1) // 2, 10.0 ** rng.uniform(-2, 0), seed)
        _, _, account = searched(Y, k, Budget.pure(epsilon), adjacency, seed)
        spent = sum(Fraction(step.epsilon) for step in account.steps)
        assert 1 - 1e-12 < spent / Fraction(epsilon) <= 1
        with pytest.raises(ParameterError, match="more than its budget"):
            account.ask(RecordCount("more"), ArrayStore(Rows(Y)), 1e-6)


def lower_bound_on_epsilon(shares, runs, rng=None):
    """From answers to one count, of which each record's share is the whole sensitivity.

    All answers exceed the larger count with probability 2⁻ᵐ, and e^−ε times that for
    the smaller one: 99.9 % confidence, on both sides together.
    """
    hits = []
    for n in (10, 11):
        store, high = ArrayStore(Rows(np.zeros((n, 1)))), 0
        for _ in range(runs):
            account = Account(Budget.pure(1.0), ADD, random_state=rng)
            answers = [account.ask(RecordCount("n"), store, s).estimate.value[0] for s in shares]
            high += min(answers) > 11.0
        hits.append(high)
    most = stats.beta.ppf(1 - 2.5e-4, hits[0] + 1, runs - hits[0])
    least = stats.beta.ppf(2.5e-4, hits[1], runs - hits[1] + 1)
    return log(least / most)


SHARES = (0.2, 0.3, 0.5)


def test_answers_are_as_private_as_they_claim_together():
    assert 0.7 < lower_bound_on_epsilon(SHARES, 10_000, np.random.default_rng(0)) <= 1.0


def test_the_audit_catches_too_little_noise(monkeypatch):
    honest, less = accounts.laplace_scale_exact, Fraction(7, 10)
    monkeypatch.setattr(accounts, "laplace_scale_exact", lambda s, e: honest(s, e) * less)
    assert lower_bound_on_epsilon(SHARES, 10_000, np.random.default_rng(0)) > 1.0


@pytest.mark.audit
def test_answers_are_as_private_as_they_claim_with_real_noise():
    """False alarm: one run in two thousand."""
    found = lower_bound_on_epsilon(SHARES, 40_000)
    print(f"ε of three answers: at least {found:.3f}, 1 is claimed")
    assert 0.8 < found <= 1.0


def test_a_ledger_is_charged_once_for_all_steps(tmp_path, random_spd):
    X, options = random_spd(2000, 3, condition=3.0), {"epsilon": 1.0, "domain": Ball(5.0)}
    ledger = Ledger(tmp_path / "pure.ledger", epsilon=3.0, delta=0.0)
    c = private_mean(X, delta=0.0, ledger=ledger, **options).certificate
    assert (len(c["steps"]) > 5, c["delta"], c["method"]) == (True, 0.0, "adaptive")
    assert ledger.remaining()["pure_epsilon"] == pytest.approx(2.0)
    private_mean(X, delta=0.0, ledger=ledger, adjacency="add-remove", **options)
    assert ledger.remaining()["pure_epsilon"] == pytest.approx(0.0, abs=1e-6)


# --- accuracy


@pytest.mark.parametrize(("k", "n"), [(2, 2000), (3, 2000), (5, 6000), (9, 20_000)])
@pytest.mark.parametrize(("width", "most"), [(0.05, 0.45), (0.8, 1.35)])
def test_it_gains_where_data_are_narrow_and_loses_little_where_they_are_wide(k, n, width, most):
    d = k * (k + 1) // 2
    Y = records("gauss", n, d, width)
    runs = [searched(Y, k, Budget.pure(1.0), seed=seed)[0] for seed in range(25)]
    assert rms(runs) <= most * one_shot(n, d, 1.0)


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("k", [2, 3])
def test_a_private_number_of_records_costs_no_accuracy(k, pure):
    """A record more moves a sum by half as much as one replaced: errors are smaller."""
    budget = Budget.pure(1.0) if pure else Budget.gaussian(1.0, 1e-6)
    Y = records("gauss", 1500, k * (k + 1) // 2, 0.1)
    errors = {
        adjacency: [searched(Y, k, budget, adjacency, seed)[0] for seed in range(30)]
        for adjacency in (REPLACE, ADD)
    }
    assert rms(errors[ADD]) <= 1.1 * rms(errors[REPLACE])


@pytest.mark.parametrize("adjacency", [REPLACE, ADD])
@pytest.mark.parametrize("kind", ["gauss", "t3", "two groups", "outliers"])
@pytest.mark.parametrize(("n", "width"), [(600, 0.05), (3000, 0.1), (3000, 0.6)])
def test_the_bound_covers(kind, n, width, adjacency):
    """And so does the one for records within reach; 95 % is promised."""
    Y, hits, within = records(kind, n, 3, width), 0, []
    for seed in range(60):
        error, found, _ = searched(Y, 2, Budget.pure(1.0), adjacency, seed)
        hits += error <= found.bound.at(0.95)
        if found.within is not None:
            reach = found.within.at(0.95)
            within.append(error <= reach or reach >= found.bound.at(0.95))
    assert stats.binomtest(hits, 60, 0.95, alternative="less").pvalue > 1e-3
    if within and kind == "gauss":  # nothing lies beyond the reach
        assert np.mean(within) > 0.9


def test_a_bound_that_forgets_the_laplace_law_of_the_bias_is_smaller():
    _, found, _ = searched(records("gauss", 3000, 3, 0.1), 2, Budget.pure(1.0))
    assert found.bound.replace(bias_law="normal").at(0.99) < found.bound.at(0.99)


@pytest.mark.parametrize("dimension", [1, 4, 7, 46])
def test_the_margin_of_a_count_is_rarely_exceeded(dimension):
    """Of Laplace noise, by simulation at a larger risk: the bound on its tail holds."""
    rng = np.random.default_rng(dimension)
    u = rng.standard_normal((100_000, dimension))
    x = rng.gamma(dimension, size=100_000) * u[:, 0] / np.linalg.norm(u, axis=1)
    sd = sqrt(dimension + 1.0)
    theta = np.linspace(0.01, 0.999, 500)
    for level in (1.0, 2.0, 4.0):
        bound = 2.0 * np.min(
            np.exp(-theta * level * sd) * (1.0 - theta**2) ** (-0.5 * (dimension + 1))
        )
        assert np.mean(np.abs(x) > level * sd) <= bound
    assert laplace_margin(dimension) >= SURE


def test_eigenvalue_bounds_know_their_farthest_point():
    """No matrix of the domain lies farther, and some lie nearly as far."""
    rng = np.random.default_rng(0)
    space = Space.of(LOGEUCLID, EigenvalueBounds(0.1, 10.0), 3)
    for _ in range(20):
        S = rng.standard_normal((3, 3))
        w, V = np.linalg.eigh(S + S.T)
        center = LOGEUCLID.fold((V * np.clip(w, -2.2, 2.2)) @ V.T)
        far = space.chart.farthest(center, space.region)
        ends = np.where(np.clip(w, -2.2, 2.2) > 0, np.log(0.1), np.log(10.0))
        worst = LOGEUCLID.fold((V * ends) @ V.T)
        assert np.linalg.norm(worst - center) == pytest.approx(far)
        assert far <= space.region.radius + np.linalg.norm(center - space.region.center)
        for _ in range(50):
            Q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
            other = LOGEUCLID.fold((Q * rng.choice([np.log(0.1), np.log(10.0)], 3)) @ Q.T)
            assert np.linalg.norm(other - center) <= far * (1 + 1e-12)


def test_the_released_steps_are_those_of_a_pure_search(random_spd):
    ask = partial(private_mean, random_spd(3000, 3, condition=3.0), domain=Ball(5.0))
    c = ask(epsilon=1.0, delta=0.0).certificate
    names = [step["step"] for step in c["steps"]]
    assert names[:3] == ["edge", "center", "distance"]
    assert names[-2:] == ["clipping bias", "mean"]
    assert "near bias" in names
    assert c["mu"] is None
    assert all("mu" not in step for step in c["steps"])
    assert sum(step["epsilon"] for step in c["steps"]) == pytest.approx(1.0)


def test_a_ball_that_hardly_pays_is_looked_beyond_or_not_taken(random_spd):
    """It verifies: no clipped mean without a look at what lies beyond its ball."""
    ask = partial(private_mean, random_spd(3000, 3, condition=4.0), domain=Ball(2.0))
    seen = set()
    for seed in range(30):
        release = ask(epsilon=1.0, delta=0.0, random_state=seed)
        assert all(check.ok for check in release.verify())
        seen.add("near bias" in [step["step"] for step in release.certificate["steps"]])
    assert seen == {True, False}


def test_laplace_noise_alone_rarely_looks_like_records_at_the_edge(random_spd):
    """Its tails are heavier: at three standard deviations one in 140 would alarm."""
    X = random_spd(600, 2, condition=3.0)
    options = {"epsilon": 1.0, "delta": 0.0, "domain": Ball(5.0)}
    shares = []
    for seed in range(400):
        c = private_mean(X, **options, random_state=seed).certificate
        shares.append(c["outside"]["share"] / c["outside"]["sd"])
    assert np.mean(np.array(shares) > 3.0) > 0.002
    assert np.mean(np.array(shares) > CLEAR_LAPLACE) < 0.006


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_persons_at_one_point_are_within_their_bound(mechanism):
    """Their vectors are rounded to the domain's lattice before any ball is found."""
    one = np.array([[1.3, 0.2], [0.2, 0.9]])
    X, truth = np.tile(one, (20_000, 1, 1)), one
    options = {"epsilon": 10.0, "delta": 1e-6, "domain": Ball(3.0), "mechanism": mechanism}
    hits = []
    for seed in range(12):
        release = private_mean(X, groups=np.arange(20_000), random_state=seed, **options)
        within = release.certificate["error_bound_within"]
        bound = release.error_bound(0.99) if within is None else within["99%"]
        hits.append(distance_logeuclid(release.value, truth) <= bound)
        assert all(check.ok for check in release.verify())
    assert np.mean(hits) >= 0.9


def test_a_budget_too_small_for_its_steps_is_refused_before_payment(tmp_path, random_spd):
    ledger = Ledger(tmp_path / "small.ledger", epsilon=1.0, delta=0.0)
    given = {"epsilon": 1e-6, "delta": 0.0, "domain": Ball(5.0), "adjacency": "add-remove"}
    with pytest.raises(ParameterError, match="too small for a search"):
        private_mean(random_spd(20, 20), ledger=ledger, **given)
    assert ledger.history() == []
