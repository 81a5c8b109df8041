"""The private difference of classes: replayed, and what it is worth on data of known
truth."""

import numpy as np
import pytest
from replay import Caught, replays
from scipy import stats

from spdp import EigenvalueBounds, private_difference
from spdp.charts import chart_of
from spdp.errors import DataError, ParameterError
from spdp.geometry import expm, invvecd
from spdp.queries.moments import MomentSum
from spdp.queries.sums import ClassClippingBias
from spdp.release.summary import Summary

CHART = chart_of("logeuclid")
DOMAIN = EigenvalueBounds(1e-3, 1e3)
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN}


def difference(X, beside, **options):
    return private_difference(X, beside["y"], classes=(0, 1), **options)


@pytest.mark.parametrize("query", [MomentSum, ClassClippingBias])
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
    options = BUDGET | {"domain": EigenvalueBounds(0.02, 50.0)}
    for seed in range(20):
        release = private_difference(
            matrices(Y), np.arange(8) % 2, classes=(0, 1), random_state=seed, **options
        )
        error = np.linalg.norm(release.value - [-6.0, 0.0, 0.0])
        assert error <= release.error_bound(0.02) <= release.error_bound(0.99)
        assert release.error_bound(0.02) == release.error_bound(0.3)
        assert all(check.ok for check in release.verify())
