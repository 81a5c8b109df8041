"""Synthetic records of a release: its mean and covariance, and nothing else."""

import numpy as np
import pytest

from spdp import (
    EigenvalueBounds,
    Release,
    private_class_means,
    private_dispersion,
    private_mean,
    private_median,
    private_pca,
    private_regression,
)
from spdp.distributions import LogGaussian
from spdp.errors import ParameterError
from spdp.geometry import logm, vecd

OPTIONS = {"epsilon": 2.0, "delta": 1e-6, "domain": EigenvalueBounds(0.001, 1000.0)}


@pytest.fixture(scope="module")
def X():
    return LogGaussian(np.diag([1.0, 2.0]), np.diag([0.5, 0.1, 0.2])).rvs(3000, 0)


def test_records_have_the_released_mean_and_covariance(X):
    release = private_pca(X, n_components=1, random_state=0, **OPTIONS)
    Y = vecd(logm(release.sample(40_000, random_state=1)))
    np.testing.assert_allclose(Y.mean(axis=0), vecd(logm(release.value)), atol=0.02)
    np.testing.assert_allclose(np.cov(Y.T), release.values["covariance"], atol=0.02)


def test_deviations_alone_are_drawn_without_correlations(X):
    release = private_dispersion(X, random_state=0, **OPTIONS)
    Y = vecd(logm(release.sample(40_000, random_state=1)))
    np.testing.assert_allclose(Y.std(axis=0), release.values["deviations"], rtol=0.05)
    assert np.abs(np.corrcoef(Y.T) - np.eye(3)).max() < 0.05


def test_it_is_a_function_of_released_numbers_and_the_seed_alone(X, tmp_path):
    release = private_pca(X, n_components=1, random_state=0, **OPTIONS)
    release.save(tmp_path / "out")
    again = Release.load(tmp_path / "out").sample(10, random_state=3)
    np.testing.assert_array_equal(again, release.sample(10, random_state=3))
    assert not np.array_equal(release.sample(10), release.sample(10))
    assert OPTIONS["domain"].contains(again).all()


def test_a_mean_alone_is_not_enough(X):
    with pytest.raises(AttributeError, match="released covariance"):
        private_mean(X, random_state=0, **OPTIONS).sample(3)
    with pytest.raises(ParameterError, match="at least 1"):
        private_dispersion(X, random_state=0, **OPTIONS).sample(0)


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_records_of_classes_lie_about_the_means_of_their_classes(X, covariance):
    y = np.repeat(["low", "high"], [2000, 1000])
    Z = X * np.where(y == "low", 1.0, 5.0)[:, None, None]
    options = {**OPTIONS, "covariance": covariance, "random_state": 0}
    release = private_class_means(Z, y, classes=["low", "high"], **options)
    made, classes = release.sample(20_000, random_state=1)
    assert made.shape == (20_000, 2, 2)
    assert np.mean(classes == "low") == pytest.approx(2 / 3, abs=0.05)
    V, W = vecd(logm(made)), release.values["covariance"]
    for place, name in enumerate(["low", "high"]):
        mine = V[classes == name]
        mean = vecd(logm(release.values["means"][place]))
        np.testing.assert_allclose(mine.mean(axis=0), mean, atol=0.05)
        found = np.cov(mine.T)
        np.testing.assert_allclose(np.diag(found) if W.ndim == 1 else found, W, atol=0.05)


def test_classes_may_be_chosen(X):
    y = np.arange(len(X)) % 2
    options = {**OPTIONS, "classes": [0, 1], "random_state": 0}
    release = private_class_means(X, y, covariance="full", **options)
    assert release.sample(5, classes=1)[1].tolist() == [1] * 5
    assert release.sample(3, classes=[0, 1, 1])[1].tolist() == [0, 1, 1]
    for wrong, match in (([0, 1], "2 classes for 3"), (7, "none of")):
        with pytest.raises(ParameterError, match=match):
            release.sample(3, classes=wrong)
    with pytest.raises(AttributeError, match="covariance='diagonal'"):
        private_class_means(X, y, **options).sample(3)
    with pytest.raises(ParameterError, match="class means"):
        private_dispersion(X, random_state=0, **OPTIONS).sample(3, classes=1)


def test_what_holds_no_spread_is_refused(X):
    x = np.linspace(0, 1, len(X))
    with pytest.raises(AttributeError, match="about its trend"):
        private_regression(X, x, ranges=(0, 1), random_state=0, **OPTIONS).sample(3)
    with pytest.raises(AttributeError, match="released covariance"):
        private_median(X, random_state=0, **OPTIONS).sample(3)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_records_of_several_matrices(X, size):
    pairs = np.stack([X, 3.0 * X], axis=1)
    release = private_dispersion(pairs, random_state=0, **OPTIONS)
    made = release.sample(size, random_state=1)
    assert made.shape == (size, 2, 2, 2)
    assert np.linalg.eigvalsh(made).min() > 0.0
