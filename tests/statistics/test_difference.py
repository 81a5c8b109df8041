"""The private difference of classes: replayed, and what it is worth on data of known
truth."""

import numpy as np
import pytest
from replay import Caught, replays
from scipy import stats

from spdp import Ball, EigenvalueBounds, Ledger, Release, plan, private_difference
from spdp.charts import chart_of
from spdp.errors import DataError, ParameterError
from spdp.geometry import expm, invvecd
from spdp.queries.moments import HistogramByClass, MomentSum
from spdp.queries.sums import ClassClippingBias
from spdp.release.report import html_report
from spdp.release.summary import Summary

CHART = chart_of("logeuclid")
DOMAIN = EigenvalueBounds(1e-3, 1e3)
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN}


def difference(X, beside, **options):
    return private_difference(X, beside["y"], classes=(0, 1), **options)


@pytest.mark.parametrize("query", [MomentSum, ClassClippingBias, HistogramByClass])
def test_a_halved_sensitivity_is_caught(monkeypatch, query):
    honest = query.sensitivity
    monkeypatch.setattr(query, "sensitivity", lambda self, kind: honest(self, kind) // 2)
    with pytest.raises(Caught, match="more than its stated sensitivity"):
        replays(difference, 80, 3)


# --- accuracy


def matrices(Y):
    return expm(invvecd(Y))


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
        X, y, _ = two_classes(0.0, s, n=2400)
        release = private_difference(X, y, classes=(0, 1), random_state=s, **BUDGET)
        seen += release.values["p_value"] < 0.05
    assert seen <= 12  # 5 are expected; more than 12 has a probability of 0.1 %


def unequal(ratio, seed, n=4000):
    """Vectors of two classes of one mean, the first wider, or skewed in one axis."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    if ratio == "skewed":
        Y = 0.2 * rng.standard_normal((n, 6))
        Y[:, 0] += np.where(y == 1, rng.exponential(0.8, n) - 0.8, 0.2 * rng.standard_normal(n))
    else:
        Y = 0.25 * rng.standard_normal((n, 6)) * np.where(y == 1, ratio, 1.0)[:, None]
    return matrices(Y), y


@pytest.mark.parametrize("ratio", [2.0, 3.0, "skewed"])
def test_classes_of_one_mean_and_unequal_spreads_are_seldom_told_apart(ratio):
    """The test of version 0.2 rejected 10, 21 and 89 % of such classes.

    Seeded. At a true level of 8 %, more than 18 of 120 has a probability of 0.5 %.
    """
    options = BUDGET | {"domain": Ball(5.0), "classes": (1, 0)}
    seen, unlike = 0, 0
    for s in range(120):
        X, y = unequal(ratio, s)
        release = private_difference(X, y, random_state=s, **options)
        seen += release.values["p_value"] < 0.05
        first, second = release.certificate["steps"][-1]["radii"]
        unlike += first > second
    assert seen <= 18
    assert unlike >= 110  # the wider class has a ball of its own


def test_no_p_value_is_given_where_spreads_cannot_be_compared(tmp_path):
    X, y, _ = two_classes(0.5, 0, n=1000)  # each class below 800 at ε = 1
    release = private_difference(X, y, classes=(1, 0), random_state=0, **BUDGET)
    assert np.isnan(release.values["p_value"])
    test = release.certificate["steps"][-1]["test"]
    assert test["p_value"] is None
    assert "too small" in test["withheld"]
    told = Summary(release.certificate).rows()["test"]
    assert told.startswith("no p-value: the smallest class is too small")
    release.save(tmp_path / "out")
    again = Release.load(tmp_path / "out")
    assert np.isnan(again.values["p_value"])
    assert all(check.ok for check in again.verify())
    assert "no p-value" in html_report(again)


def test_a_ledger_keeps_a_release_without_a_p_value(tmp_path):
    ledger = Ledger(tmp_path / "l", epsilon=5.0, delta=1e-5)
    X, y, _ = two_classes(0.5, 0, n=1000)
    release = private_difference(X, y, classes=(1, 0), ledger=ledger, **BUDGET)
    values, certificate = ledger.recover(1)
    assert np.isnan(values["p_value"])
    assert certificate == release.certificate


def test_the_rule_that_withholds_is_planned():
    options = {"k": 3, "domain": Ball(5.0), "epsilon": 1.0, "delta": 1e-6, "spread": 0.5}
    least = plan("difference", n=4000, **options).thresholds["for a p-value"]
    assert 1500 < least < 1700
    few = plan("difference", n=least // 2, **options)
    assert few.verdict == f"too few records for a p-value: {least:,} are needed"
    assert few.predictions[0].numbers["p-value given"] == 0.0


def many_coordinates(shift, seed, n=2000, k=30):
    """Two classes of matrices so large that noise hides their covariances: n·μ < 2d."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    Y = 0.05 * rng.standard_normal((n, k * (k + 1) // 2))
    Y[:, 0] += shift * y
    return matrices(Y), y


def test_where_noise_hides_covariances_their_traces_keep_the_level_and_find_differences():
    seen = {0.0: 0, 0.5: 0}
    for shift in seen:
        for s in range(25):
            X, y = many_coordinates(shift, s)
            release = private_difference(
                X, y, classes=(0, 1), random_state=s, **BUDGET | {"domain": Ball(5.0)}
            )
            seen[shift] += release.values["p_value"] < 0.05
        assert all(check.ok for check in release.verify())
    assert seen[0.0] <= 5  # 1.25 are expected; more than 5 has a probability of 0.1 %
    assert seen[0.5] >= 22


def test_a_p_value_is_never_zero():
    """The law's tail underflows for classes that are far apart, but is positive."""
    for shift, shown in ((1.0, ": p < 2.2e-16, "), (0.0, ": p = ")):
        X, y, _ = two_classes(shift, 0, n=6000)
        release = private_difference(X, y, classes=(1, 0), random_state=0, **BUDGET)
        test = release.certificate["steps"][-1]["test"]
        tail = float(stats.chi2.sf(test["statistic"] / test["scale"], test["df"]))
        assert (tail == 0.0) == (shift == 1.0)
        assert release.values["p_value"] == test["p_value"] == max(tail, np.finfo(float).tiny)
        assert shown in Summary(release.certificate).rows()["test"]


def test_a_difference_needs_two_public_classes(random_spd):
    X = random_spd(50, 2)
    for classes in ((1,), (1, 1), (0, 1, 2)):
        with pytest.raises(ParameterError, match=r"classes must be two|classes .*class twice"):
            private_difference(X, np.zeros(50), classes=classes, **BUDGET)
    with pytest.raises(ParameterError, match="needs a class"):
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


def test_the_bound_of_classes_too_small_to_be_seen_is_certain_at_every_level():
    """No law of noise: the largest distance there is, for small confidences too."""
    Y = np.zeros((8, 3))
    Y[:, 0] = np.where(np.arange(8) % 2, 3.0, -3.0)
    options = BUDGET | {"domain": EigenvalueBounds(0.02, 50.0), "anyway": True}
    for seed in range(20):
        release = private_difference(
            matrices(Y), np.arange(8) % 2, classes=(0, 1), random_state=seed, **options
        )
        error = np.linalg.norm(release.value - [-6.0, 0.0, 0.0])
        assert error <= release.error_bound(0.02) <= release.error_bound(0.99)
        assert release.error_bound(0.02) == release.error_bound(0.3)
        assert all(check.ok for check in release.verify())
