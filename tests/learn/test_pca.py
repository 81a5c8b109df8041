"""The face of geomstats' TangentPCA."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spdp import EigenvalueBounds, PrivateTangentPCA
from spdp.distributions import LogGaussian
from spdp.errors import InvalidMatrixError, ParameterError
from spdp.geometry import distance_logeuclid, logm, vecd

DOMAIN = EigenvalueBounds(0.001, 1000.0)


@pytest.fixture(scope="module")
def X():
    covariance = np.diag([1.0, 0.3, 0.02, 0.02, 0.02, 0.02])
    return LogGaussian(np.diag([1.0, 2.0, 0.5]), covariance).rvs(5000, 0)


@pytest.fixture(scope="module")
def fitted(X):
    return PrivateTangentPCA(2, 2.0, 1e-6, DOMAIN).fit(X)


def test_it_agrees_with_the_non_private_one(X, fitted):
    best = PCA(2).fit(vecd(logm(X)))
    turn = np.abs(np.linalg.svd(fitted.components_ @ best.components_.T)[1])
    assert turn.min() > 0.97
    np.testing.assert_allclose(fitted.explained_variance_, best.explained_variance_, rtol=0.25)
    ratio = best.explained_variance_ratio_
    np.testing.assert_allclose(fitted.explained_variance_ratio_, ratio, atol=0.1)
    assert 0.7 < fitted.trusted_variance_ratio_ <= 1


def test_back_and_forth(X, fitted):
    Z = fitted.transform(X[:50])
    assert Z.shape == (50, 2)
    back = fitted.inverse_transform(Z)
    np.testing.assert_allclose(fitted.transform(back), Z, atol=1e-9)
    far = distance_logeuclid(X[:50], fitted.mean_)
    assert np.mean(distance_logeuclid(X[:50], back)) < 0.5 * np.mean(far)
    with pytest.raises(InvalidMatrixError, match="expected"):
        fitted.transform(np.eye(2)[None])
    with pytest.raises(ParameterError, match="expected"):
        fitted.inverse_transform(np.ones((3, 3)))


def test_it_is_an_estimator(X, fitted):
    again = pickle.loads(pickle.dumps(clone(fitted)))
    pipe = make_pipeline(again.set_params(random_state=0), StandardScaler())
    assert pipe.fit_transform(X).shape == (5000, 2)
    with pytest.raises(ParameterError):
        PrivateTangentPCA(2, 1.0, 1e-6).fit(X)
