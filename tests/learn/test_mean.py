import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from spdp import EigenvalueBounds, PrivateFrechetMean
from spdp.errors import InvalidMatrixError, ParameterError
from spdp.geometry import distance_logeuclid

BOUNDS = EigenvalueBounds(0.05, 20.0)


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((400, 3, 6))
    return A @ A.transpose(0, 2, 1) / 6 + 0.1 * np.eye(3)


def test_estimator_follows_scikit_learn(X):
    estimator = PrivateFrechetMean(epsilon=2.0, delta=1e-5, domain=BOUNDS, random_state=3)
    with pytest.raises(NotFittedError):
        estimator.transform(X)
    twin = clone(estimator)
    assert twin.get_params() == estimator.get_params()
    estimator.fit(X)
    assert estimator.n_features_in_ == 3
    assert estimator.certificate_["private"] is False
    np.testing.assert_array_equal(twin.fit(X).mean_, estimator.mean_)
    assert estimator.set_params(epsilon=1.0).epsilon == 1.0
    assert estimator.transform(X).shape == (400, 6)
    np.testing.assert_allclose(
        np.linalg.norm(estimator.transform(X[:5]), axis=1),
        distance_logeuclid(X[:5], estimator.mean_),
    )
    with pytest.raises(InvalidMatrixError, match="expected"):
        estimator.transform(np.eye(3))
    with pytest.raises(ParameterError, match="leak"):
        PrivateFrechetMean(1.0, 1e-6).fit(X)


def test_estimator_in_a_pyriemann_pipeline(rng):
    from pyriemann.estimation import Covariances
    from sklearn.linear_model import LogisticRegression

    signals = rng.standard_normal((60, 4, 200)) * np.repeat([1.0, 3.0], 30)[:, None, None]
    labels = np.repeat([0, 1], 30)
    pipeline = make_pipeline(
        Covariances("lwf"),
        PrivateFrechetMean(5.0, 1e-3, EigenvalueBounds(0.1, 20.0)),
        LogisticRegression(),
    )
    assert pipeline.fit(signals, labels).score(signals, labels) > 0.9
    assert pipeline[1].certificate_["private"] is True


def test_partial_fit(random_spd):
    X = random_spd(300, 3)
    make = lambda: PrivateFrechetMean(1.0, 1e-5, BOUNDS, method="oneshot", random_state=2)  # noqa: E731
    whole = make().fit(X)
    pieces = make().partial_fit(X[:100])
    pieces.merge(make().partial_fit(X[100:]))
    assert not hasattr(pieces, "mean_")
    np.testing.assert_array_equal(pieces.release().mean_, whole.mean_)
    assert not hasattr(pieces, "sum_")
    assert pieces.certificate_["n"] == 300
    assert not hasattr(clone(pieces), "mean_")
    with pytest.raises(NotFittedError):
        pieces.release()


def test_partial_fit_refuses_a_misspelt_policy(X):
    """A policy that is not one must not pass for "center"."""
    bad = X.copy()
    bad[3] = np.nan
    with pytest.raises(ParameterError, match="on_invalid .*'center'"):
        PrivateFrechetMean(1.0, 1e-5, BOUNDS, on_invalid="rais").partial_fit(bad)


def test_merging_takes_the_records_along(X):
    """A sum is released once, and only where its domain is the estimator's own."""
    first = PrivateFrechetMean(1.0, 1e-5, BOUNDS).partial_fit(X)
    with pytest.raises(ParameterError, match="different domains"):
        PrivateFrechetMean(1.0, 1e-5, EigenvalueBounds(0.1, 2.0)).merge(first)
    second = PrivateFrechetMean(1.0, 1e-5, BOUNDS).merge(first)
    with pytest.raises(NotFittedError):
        first.release()
    assert second.release().certificate_["n"] == len(X)
    third = PrivateFrechetMean(1.0, 1e-5, BOUNDS).partial_fit(X)
    with pytest.raises(ParameterError, match="count twice"):
        third.merge(third)


def test_a_failed_release_keeps_the_sum(X):
    estimator = PrivateFrechetMean(1e-300, 1e-30, BOUNDS).partial_fit(X)
    with pytest.raises(ParameterError, match="too small"):
        estimator.release()
    assert estimator.set_params(epsilon=1.0, delta=1e-5).release().certificate_["n"] == len(X)
