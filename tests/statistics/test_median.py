"""The private median: replayed, and what it is worth on data of known truth."""

import numpy as np
import pytest
from replay import Caught, replays

from spdp import EigenvalueBounds, private_mean, private_median
from spdp.charts import chart_of
from spdp.errors import DomainMismatch
from spdp.geometry import expm, invvecd
from spdp.queries.sums import DirectionSum

CHART = chart_of("logeuclid")
DOMAIN = EigenvalueBounds(1e-3, 1e3)
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN}


def median(X, beside, **options):
    return private_median(X, **options)


def test_a_halved_sensitivity_is_caught(monkeypatch):
    honest = DirectionSum.sensitivity
    monkeypatch.setattr(DirectionSum, "sensitivity", lambda self, kind: honest(self, kind) // 2)
    with pytest.raises(Caught, match="more than its stated sensitivity"):
        replays(median, 80, 3)


# --- accuracy


def matrices(Y):
    return expm(invvecd(Y))


def median_of(Y):
    M = np.median(Y, axis=0)
    for _ in range(300):
        w = 1.0 / np.maximum(np.linalg.norm(Y - M, axis=1), 1e-12)
        M = w @ Y / w.sum()
    return M


@pytest.mark.filterwarnings("ignore::spdp.errors.DomainMismatch")
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


def test_many_records_at_a_corner_are_told():
    X = np.tile(1e-6 * np.eye(2), (2000, 1, 1))
    with pytest.warns(DomainMismatch):
        private_median(X, **BUDGET)
