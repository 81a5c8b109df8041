"""What median, regression and difference are worth, on made-up data of known truth."""

import numpy as np
import pytest
from scipy import stats

from spdp import (
    EigenvalueBounds,
    PrivateGeodesicRegression,
    private_difference,
    private_mean,
    private_median,
    private_regression,
)
from spdp.charts import chart_of
from spdp.errors import DataError, OutsideDomain, ParameterError
from spdp.geometry import expm, invvecd
from spdp.statistics.regression import predict, prediction_variance
from spdp.words import facts

CHART = chart_of("logeuclid")
DOMAIN = EigenvalueBounds(1e-3, 1e3)
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN}


def matrices(Y):
    return expm(invvecd(Y))


def median_of(Y):
    M = np.median(Y, axis=0)
    for _ in range(300):
        w = 1.0 / np.maximum(np.linalg.norm(Y - M, axis=1), 1e-12)
        M = w @ Y / w.sum()
    return M


@pytest.mark.filterwarnings("ignore::spdp.errors.OutsideDomain")
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_median_withstands_outliers_and_a_mean_does_not(adjacency):
    rng = np.random.default_rng(0)
    Y = 0.3 * rng.standard_normal((4000, 6)) + 0.5
    Y[:1200] = np.concatenate([np.full(3, 6.5), np.zeros(3)])  # a corner of the domain
    X, target = matrices(Y), median_of(Y)
    errors = [
        np.linalg.norm(
            CHART.vector(private_median(X, adjacency=adjacency, random_state=s, **BUDGET).value)
            - target
        )
        for s in range(5)
    ]
    assert np.sqrt(np.mean(np.square(errors))) < 0.03
    mean = CHART.vector(private_mean(X, random_state=0, **BUDGET).value)
    assert np.linalg.norm(mean - target) > 1.0


def test_the_stated_noise_of_a_median_is_its_error():
    Y = 0.3 * np.random.default_rng(1).standard_normal((4000, 6))
    X, target = matrices(Y), median_of(Y)
    squares, stated = [], []
    for s in range(12):
        release = private_median(X, random_state=s, **BUDGET)
        squares.append(np.sum((CHART.vector(release.value) - target) ** 2) / 6)
        stated.append(release.certificate["sigma"] ** 2)
        with pytest.raises(AttributeError, match="no bound"):
            release.error_bound()
    assert 0.6 < np.mean(squares) / np.mean(stated) < 1.7


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
    with pytest.raises(ParameterError, match="20 records are too few"):
        private_regression(X, x, ranges=RANGES, **BUDGET)
    with pytest.raises(ParameterError, match="low < high"):
        private_regression(X, x, ranges=[(1, 0), (0, 1)], **BUDGET)
    with pytest.raises(ParameterError, match="expected"):
        private_regression(X, x, ranges=[0, 1, 2], **BUDGET)
    with pytest.raises(DataError, match="one column per range"):
        private_regression(X, x, ranges=(0, 1), **BUDGET)
    with pytest.raises(ParameterError, match="leak"):
        PrivateGeodesicRegression(domain=DOMAIN).fit(X, x)


def two_classes(shift, seed, n=3000):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    Y = 0.3 * rng.standard_normal((n, 6)) + shift * y[:, None]
    return matrices(Y), y, Y


def test_the_difference_of_classes_is_covered_and_seen():
    seen = 0
    for s in range(20):
        X, y, Y = two_classes(0.1, s)
        release = private_difference(X, y, classes=(1, 0), random_state=s, **BUDGET)
        error = np.linalg.norm(release.value - (Y[y == 1].mean(axis=0) - Y[y == 0].mean(axis=0)))
        assert error <= release.error_bound(0.95)  # far wider than what noise alone does
        seen += release.values["p_value"] < 0.05
        assert np.abs(release.values["counts"] - np.bincount(y)[::-1]).max() < 200
    assert seen >= 18


def test_classes_that_do_not_differ_are_seldom_told_apart():
    seen = 0
    for s in range(100):
        X, y, _ = two_classes(0.0, s, n=1500)
        release = private_difference(X, y, classes=(0, 1), random_state=s, **BUDGET)
        seen += release.values["p_value"] < 0.05
    assert seen <= 12  # 5 are expected; more than 12 has a probability of 0.1 %


def test_a_p_value_is_never_zero():
    """The law's tail underflows for classes that are far apart, but is positive."""
    for shift, shown in ((1.0, ": p < 2.2e-16, "), (0.0, ": p = ")):
        X, y, _ = two_classes(shift, 0)
        release = private_difference(X, y, classes=(1, 0), random_state=0, **BUDGET)
        test = release.certificate["steps"][-1]["test"]
        tail = float(stats.chi2.sf(test["statistic"] / test["scale"], test["freedom"]))
        assert (tail == 0.0) == (shift == 1.0)
        assert release.values["p_value"] == test["p_value"] == max(tail, np.finfo(float).tiny)
        assert shown in facts(release.certificate)["test"]


def test_a_difference_needs_two_public_classes(random_spd):
    X = random_spd(50, 2)
    for classes in ((1,), (1, 1), (0, 1, 2)):
        with pytest.raises(ParameterError, match="two different labels|a class twice"):
            private_difference(X, np.zeros(50), classes=classes, **BUDGET)
    with pytest.raises(ParameterError, match="class of each record is missing"):
        private_difference(X, None, classes=(0, 1), **BUDGET)
    with pytest.raises(DataError, match="none of the classes"):
        private_difference(X, np.arange(50) % 3, classes=(0, 1), **BUDGET)


def test_a_class_too_small_to_be_seen_has_a_trivial_bound(random_spd):
    X, y = random_spd(200, 2), np.zeros(200, int)
    release = private_difference(X, y, classes=(0, 1), **BUDGET)
    bound = release.error_bound(0.95)
    assert bound == pytest.approx(
        np.linalg.norm(release.value) + 2 * DOMAIN.region(2, CHART).radius
    )
    assert all(check.ok for check in release.verify())


def test_many_records_at_a_corner_are_told():
    X = np.tile(1e-6 * np.eye(2), (2000, 1, 1))
    with pytest.warns(OutsideDomain):
        private_median(X, **BUDGET)


def test_the_bound_of_classes_too_small_to_be_seen_is_certain_at_every_level():
    """No law of noise: the largest distance there is, for small confidences too."""
    Y = np.zeros((8, 3))
    Y[:, 0] = np.where(np.arange(8) % 2, 3.0, -3.0)
    options = BUDGET | {"domain": EigenvalueBounds(0.02, 50.0)}
    for seed in range(20):
        release = private_difference(
            matrices(Y), np.arange(8) % 2, classes=(0, 1), random_state=seed, **options
        )
        error = np.linalg.norm(release.value - [-6.0, 0.0, 0.0])
        assert error <= release.error_bound(0.02) <= release.error_bound(0.99)
        assert release.error_bound(0.02) == release.error_bound(0.3)
        assert all(check.ok for check in release.verify())
