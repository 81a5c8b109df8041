"""The private regression: replayed, and what it is worth on data of known truth."""

import numpy as np
import pytest
from replay import COMMON, Caught, audit, datasets, replays

from spdp import Ball, EigenvalueBounds, PrivateGeodesicRegression, private_regression
from spdp.charts import chart_of
from spdp.errors import DataError, ParameterError
from spdp.geometry import expm, invvecd
from spdp.queries.covariates import CrossSum, ResidualDistance
from spdp.statistics.regression import check_ranges, predict, prediction_variance

CHART = chart_of("logeuclid")
DOMAIN = EigenvalueBounds(1e-3, 1e3)
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN}


def regression(X, beside, **options):
    return private_regression(X, beside["x"], ranges=[(-1, 1), (-1, 1)], **options)


@pytest.mark.parametrize("grouped", [False, True], ids=["record", "person"])
def test_replays_pass(grouped):
    shares = replays(regression, 40, 3, grouped)
    assert 0.1 < shares.max() <= 1


@pytest.mark.parametrize("grouped", [False, True], ids=["record", "person"])
def test_replays_pass_where_the_number_is_private(grouped):
    shares = replays(regression, 25, 5, grouped, "add-remove")
    assert 0.1 < shares.max() <= 1


@pytest.mark.audit
def test_replays_pass_hundreds_of_times():
    for grouped in (False, True):
        shares = replays(regression, 400, 13, grouped)
        print(f"regression, {grouped=}: largest cost {shares.max():.6f} of the budget")
        assert shares.max() <= 1


@pytest.mark.parametrize("query", [CrossSum, ResidualDistance])
def test_a_halved_sensitivity_is_caught(monkeypatch, query):
    honest = query.sensitivity
    monkeypatch.setattr(query, "sensitivity", lambda self, kind: honest(self, kind) // 2)
    with pytest.raises(Caught, match="more than its stated sensitivity"):
        replays(regression, 80, 3)


@pytest.mark.parametrize("odd", ["n/a", 10**400, [1, 2], 1.7e308, 1j, None, float("nan")])
def test_a_list_of_covariates_with_an_odd_one_passes_the_replay(random_spd, odd):
    X, x = random_spd(40, 2), np.linspace(0, 1, 40).tolist()

    def statistic(covariates):
        return private_regression(
            X,
            covariates,
            ranges=(0, 1),
            epsilon=2.0,
            delta=1e-6,
            domain=Ball(3.0),
            on_invalid="center",
        )

    for seed in range(3):
        audit(statistic, x, [odd, *x[1:]], seed=seed)


def test_predictions_for_records_of_several_matrices():
    X, _ = datasets(np.random.default_rng(2), 2, 2.0)
    X = np.stack([np.concatenate([X] * 40)] * 2, axis=1)
    x = np.linspace(-1, 1, len(X))
    release = private_regression(X, x, ranges=(-1, 1), epsilon=60.0, **COMMON)
    assert predict(release, [0.0, 0.5]).shape == (2, 2, 2, 2)


def test_ranges_too_narrow_for_numbers_are_refused():
    with pytest.raises(ParameterError, match=r"slopes .*1e-140"):
        check_ranges([(0.0, 1e-150)])
    assert check_ranges([(0.0, 1e-130)]).shape == (1, 2)


# --- accuracy


def matrices(Y):
    return expm(invvecd(Y))


def trend_data(n=6000, p=2, seed=2):
    rng = np.random.default_rng(seed)
    x = rng.uniform(20, 60, (n, p)) * np.arange(1, p + 1)
    slopes = rng.standard_normal((p, 6)) * 0.02 / np.arange(1, p + 1)[:, None]
    Y = 0.4 + (x - 40 * np.arange(1, p + 1)) @ slopes + 0.2 * rng.standard_normal((n, 6))
    return matrices(Y), x, Y, slopes


RANGES = [(0, 100), (0, 200)]


def test_a_regression_finds_the_trend_and_states_its_noise():
    X, x, Y, slopes = trend_data()
    F = np.column_stack([np.ones(len(x)), x])
    best = np.linalg.lstsq(F, Y, rcond=None)[0]
    where = np.array([[25.0, 60.0], [40.0, 80.0], [55.0, 110.0]])
    truth = np.column_stack([np.ones(3), where]) @ best
    ratios = []
    for s in range(10):
        release = private_regression(X, x, ranges=RANGES, random_state=s, **BUDGET)
        assert np.linalg.norm(release.values["slopes"] - slopes) < 0.3 * np.linalg.norm(slopes)
        errors = ((CHART.vector(predict(release, where)) - truth) ** 2).sum(axis=1)
        ratios.append(errors / (6 * prediction_variance(release, where)))
    assert 0.6 < np.mean(ratios) < 2.2  # clipping leaves a part of the first fit's error


def test_a_trend_that_cannot_be_seen_is_not_made_up():
    rng = np.random.default_rng(3)
    X, x = matrices(0.3 * rng.standard_normal((800, 6))), rng.uniform(0, 100, 800)
    scores = [
        PrivateGeodesicRegression((0, 100), 1.0, 1e-6, DOMAIN, random_state=s).fit(X, x).score(X, x)
        for s in range(6)
    ]
    assert np.mean(scores) > -0.1


def test_a_regression_refuses_what_it_cannot_do():
    X, x, _, _ = trend_data(n=20)
    with pytest.raises(ParameterError, match=r"20 records .*too few"):
        private_regression(X, x, ranges=RANGES, anyway=True, **BUDGET)
    with pytest.raises(ParameterError, match="low < high"):
        private_regression(X, x, ranges=[(1, 0), (0, 1)], **BUDGET)
    with pytest.raises(ParameterError, match="expected"):
        private_regression(X, x, ranges=[0, 1, 2], **BUDGET)
    with pytest.raises(DataError, match=r"covariates .*per range"):
        private_regression(X, x, ranges=(0, 1), anyway=True, **BUDGET)
    with pytest.raises(ParameterError, match="leak"):
        PrivateGeodesicRegression(domain=DOMAIN).fit(X, x)
