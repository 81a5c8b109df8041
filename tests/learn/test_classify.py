"""Classifiers made of private class means: their faces, and what they hold."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from spdp import Ball, EigenvalueBounds, Ledger, PrivateMDM, PrivateTangentLDA
from spdp.errors import InvalidMatrixError, ParameterError
from spdp.geometry import expm, invvecd, logm, vecd

DOMAIN = EigenvalueBounds(0.01, 100.0)
NAMES = ["a", "b", "c"]
MODELS = [PrivateMDM, PrivateTangentLDA]


@pytest.fixture(scope="module")
def data():
    """Three classes that are apart along one direction, correlated with another."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 6000)
    Y = rng.standard_normal((6000, 6)) * 0.3
    Y[:, 1] += 2.0 * Y[:, 0]
    Y[:, 0] += 0.5 * y
    return expm(invvecd(Y)), np.array(NAMES)[y]


def make(model, **options):
    return model(NAMES, 5.0, 1e-5, DOMAIN, **options)


@pytest.mark.parametrize("model", MODELS)
def test_it_has_the_face_of_a_classifier(model, data):
    X, y = data
    fitted = make(model, random_state=0).fit(X[:5000], y[:5000])
    assert is_classifier(fitted)
    assert fitted.classes_.tolist() == NAMES
    assert fitted.covmeans_.shape == (3, 3, 3)
    assert fitted.priors_.sum() == pytest.approx(1.0)
    assert fitted.n_features_in_ == 3
    P = fitted.predict_proba(X[5000:])
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert (fitted.predict(X[5000:]) == np.array(NAMES)[P.argmax(axis=1)]).all()
    assert fitted.score(X[5000:], y[5000:]) > 0.5
    assert fitted.certificate_["statistic"] == "class-means"
    assert all(check.ok for check in fitted.release_.verify())


def test_mdm_takes_the_nearest_released_mean(data):
    X, y = data
    fitted = make(PrivateMDM, random_state=1).fit(X, y)
    D = fitted.transform(X[:50])
    V, M = vecd(logm(X[:50])), vecd(logm(fitted.covmeans_))
    np.testing.assert_allclose(D, np.linalg.norm(V[:, None] - M, axis=2), atol=1e-9)
    assert (fitted.predict(X[:50]) == np.array(NAMES)[D.argmin(axis=1)]).all()


@pytest.mark.parametrize("covariance", ["none", "diagonal", "full"])
def test_lda_is_that_of_its_released_moments(covariance, data):
    X, y = data
    fitted = make(PrivateTangentLDA, covariance=covariance, random_state=1).fit(X, y)
    W, M = fitted.covariance_, fitted.means_
    assert W.shape == (6, 6)
    np.testing.assert_allclose(fitted.coef_, M @ np.linalg.inv(W), rtol=1e-6)
    V = vecd(logm(X[:200]))
    Z = np.linalg.solve(np.linalg.cholesky(W), (V[:, None] - M).reshape(-1, 6).T)
    scores = -0.5 * (Z**2).sum(axis=0).reshape(200, 3)
    if covariance != "none":
        scores += np.log(fitted.priors_)
    assert (fitted.predict(X[:200]) == np.array(NAMES)[scores.argmax(axis=1)]).all()
    np.testing.assert_allclose(
        fitted.decision_function(X[:200]) @ [1, -1, 0], scores @ [1, -1, 0], atol=1e-6
    )


def test_a_full_covariance_sees_what_a_diagonal_one_does_not(data):
    X, y = data
    scores = {
        kind: make(PrivateTangentLDA, covariance=kind, random_state=2).fit(X, y).score(X, y)
        for kind in ("diagonal", "full")
    }
    assert scores["full"] > scores["diagonal"] + 0.05


def test_two_classes_have_one_decision(data):
    X, y = data
    two = y != "c"
    model = PrivateTangentLDA(["a", "b"], 5.0, 1e-5, DOMAIN, random_state=0).fit(X[two], y[two])
    decision = model.decision_function(X[two])
    assert decision.shape == (two.sum(),)
    assert ((decision > 0) == (model.predict(X[two]) == "b")).all()


@pytest.mark.parametrize("model", MODELS)
def test_clone_pickle_and_parameters(model, data):
    X, y = data
    fitted = make(model, random_state=3).fit(X, y)
    assert not hasattr(clone(fitted), "covmeans_")
    assert clone(fitted).get_params()["classes"] == NAMES
    kept = pickle.dumps(fitted)
    assert len(kept) < 50_000  # nothing of the 6,000 records
    assert (pickle.loads(kept).predict(X[:20]) == fitted.predict(X[:20])).all()
    with pytest.raises(NotFittedError):
        make(model).predict(X)
    with pytest.raises(InvalidMatrixError, match="expected"):
        fitted.predict(np.eye(2)[None])


@pytest.mark.parametrize("model", MODELS)
def test_classes_are_public_and_needed(model, data):
    X, y = data
    with pytest.raises(ParameterError, match="public list of classes"):
        model(epsilon=1.0, delta=1e-6, domain=DOMAIN).fit(X, y)
    with pytest.raises(ParameterError, match="domain"):
        model(NAMES, 1.0, 1e-6).fit(X, y)


def test_a_pipeline_of_pyriemann_and_a_search_over_parameters(data):
    from pyriemann.estimation import Covariances

    rng = np.random.default_rng(1)
    signals = rng.standard_normal((80, 3, 100)) * np.repeat([1.0, 3.0], 40)[:, None, None]
    labels = np.repeat([0, 1], 40)
    model = PrivateMDM([0, 1], 20.0, 1e-3, Ball(4.0))
    pipeline = make_pipeline(Covariances("lwf"), model).fit(signals, labels)
    assert pipeline.score(signals, labels) > 0.9
    X, y = data
    found = GridSearchCV(make(PrivateTangentLDA), {"covariance": ["none", "diagonal"]}, cv=2)
    assert found.fit(X[:600], y[:600]).best_params_


def test_persons_are_groups_and_a_ledger_is_charged(data, tmp_path):
    X, y = data
    ledger = Ledger(tmp_path / "ledger.db", epsilon=6.0, delta=1e-4)
    persons = np.arange(len(X)) // 3
    fitted = make(PrivateMDM, ledger=ledger).fit(X, y, groups=persons)
    assert fitted.certificate_["unit"] == "person"
    assert fitted.certificate_["n"] == 2000
    assert fitted.counts_.sum() == pytest.approx(2000, rel=0.2)
    assert len(ledger.history()) == 1
