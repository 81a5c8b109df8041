import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from spdp import EigenvalueBounds, PrivateGeodesicRegression
from spdp.errors import DataError, InvalidMatrixError

DOMAIN = EigenvalueBounds(0.05, 20.0)


@pytest.fixture(scope="module")
def data():
    x = np.random.default_rng(0).uniform(20, 80, 4000)
    noise = np.exp(0.1 * np.random.default_rng(1).standard_normal((4000, 1, 1)))
    return noise * np.exp(0.02 * (x - 50))[:, None, None] * np.eye(3), x


def test_estimator_follows_scikit_learn(data):
    X, x = data
    model = PrivateGeodesicRegression((0, 100), 2.0, 1e-6, DOMAIN, random_state=1)
    with pytest.raises(NotFittedError):
        model.predict([1.0])
    twin = clone(model).fit(X, x)
    np.testing.assert_array_equal(model.fit(X, x).coef_, twin.coef_)
    assert model.score(X, x) > 0.9
    assert model.predict([30.0, 70.0]).shape == (2, 3, 3)
    assert np.all(model.prediction_noise([30.0, 70.0]) < 0.2)
    assert model.n_features_in_ == 1
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(x[:3]), model.predict(x[:3]))
    with pytest.raises(InvalidMatrixError, match="expected"):
        model.score(X[0], x)
    with pytest.raises(DataError, match="entries"):
        model.score(X[:3], x[:2])
    with pytest.raises(DataError, match="expected"):
        model.predict(np.zeros((2, 2)))


def test_persons(data):
    X, x = data
    model = PrivateGeodesicRegression((0, 100), 8.0, 1e-6, DOMAIN)
    model.fit(X, x, groups=np.arange(4000) // 2)
    assert model.certificate_["unit"] == "person"
    assert model.certificate_["n"] == 2000


def test_records_of_several_matrices(data):
    X, x = data
    pairs = np.stack([X, 2.0 * X], axis=1)
    model = PrivateGeodesicRegression((0, 100), 4.0, 1e-6, DOMAIN).fit(pairs, x)
    found = model.predict([30.0, 70.0])
    assert found.shape == (2, 2, 3, 3)
    np.testing.assert_allclose(found[:, 1], 2.0 * found[:, 0], rtol=0.2, atol=0.1)
    assert model.score(pairs, x) > 0.9
    with pytest.raises(InvalidMatrixError, match=r"expected \(n, 2, 3, 3\)"):
        model.score(X, x)
