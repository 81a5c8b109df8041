"""The private analysis of variance: its effects, its bound, the level of its test."""

import numpy as np
import pytest

from spdp import EigenvalueBounds, private_anova, private_difference
from spdp.errors import ParameterError
from spdp.geometry import expm, invvecd
from spdp.release.summary import Summary

BUDGET = {"epsilon": 1.0, "delta": 1e-6, "domain": EigenvalueBounds(1e-3, 1e3)}


def classes(shift, seed, C=4, n=6000):
    """Records of C classes, the first of which lies apart by ``shift``."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, C, n)
    Y = 0.3 * rng.standard_normal((n, 6)) + shift * (y == 0)[:, None]
    return expm(invvecd(Y)), y, Y


def test_effects_are_covered_and_seen():
    seen = 0
    for s in range(20):
        X, y, Y = classes(0.2, s)
        release = private_anova(X, y, classes=range(4), random_state=s, **BUDGET)
        means = np.array([Y[y == c].mean(axis=0) for c in range(4)])
        counts = release.values["counts"]
        effects = means - counts @ means / counts.sum()
        assert np.linalg.norm(release.value - effects) <= release.error_bound(0.95)
        assert np.abs(release.value - effects).max() < 0.1
        seen += release.values["p_value"] < 0.05
    assert seen >= 18


def test_classes_that_do_not_differ_are_seldom_told_apart():
    """Seeded. 5 of 100 are expected; more than 12 has a probability of 0.1 %."""
    p = [
        float(private_anova(X, y, classes=range(3), random_state=s, **BUDGET).values["p_value"])
        for s in range(100)
        for X, y, _ in [classes(0.0, s, 3, 4500)]
    ]
    assert np.mean(np.array(p) < 0.05) <= 0.12
    assert 0.35 < np.median(p) < 0.65  # a test that never rejects would be near 1


def test_two_classes_are_the_difference():
    """The same queries and noise: effects and p-value are those of the difference."""
    X, y, _ = classes(0.1, 0, 2)
    both = {"classes": (1, 0), "random_state": 3, **BUDGET}
    anova, difference = private_anova(X, y, **both), private_difference(X, y, **both)
    first, second = anova.value
    np.testing.assert_allclose(first - second, difference.value, atol=1e-12)
    assert anova.values["p_value"] == pytest.approx(difference.values["p_value"])
    np.testing.assert_array_equal(anova.values["means"], difference.values["means"])


def test_effects_add_up_to_zero_and_are_verified():
    X, y, _ = classes(0.1, 1)
    release = private_anova(X, y, classes=range(4), **BUDGET)
    np.testing.assert_allclose(release.values["counts"] @ release.value, 0.0, atol=1e-9)
    assert all(check.ok for check in release.verify())
    rows = Summary(release.certificate).rows()
    assert "p = " in rows["test"] or "p < " in rows["test"]
    assert rows["effects"].startswith("sum of squares between classes ")


@pytest.mark.parametrize("wrong", [(), (0,), (0, 0)])
def test_it_needs_two_public_classes_or_more(random_spd, wrong):
    with pytest.raises(ParameterError, match="classes"):
        private_anova(random_spd(50, 2), np.zeros(50), classes=wrong, **BUDGET)
