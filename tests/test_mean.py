import json

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from spdp import Ball, EigenvalueBounds, PrivateFrechetMean, private_mean
from spdp.errors import DataError, InvalidMatrixError, ParameterError
from spdp.geometry import distance_logeuclid, mean_logeuclid
from spdp.mean import plan_one_shot

BOUNDS = EigenvalueBounds(0.05, 20.0)
KEYS = {"private", "float_safe", "mechanism", "calibration", "epsilon", "delta", "mu", "adjacency", "n", "k", "domain", "sensitivity"}
KEYS |= {"sigma", "lattice_step", "expected_squared_error", "squared_error_quantiles", "seed", "versions", "created"}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((400, 3, 6))
    return A @ A.transpose(0, 2, 1) / 6 + 0.1 * np.eye(3)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_error_has_its_stated_law_and_no_other(X, mechanism, adjacency):
    """Exact for replace-one; for add-remove the stated law is at the worst offset, so errors are stochastically smaller."""
    options = {"epsilon": 1.0, "delta": 1e-5, "domain": BOUNDS, "mechanism": mechanism, "adjacency": adjacency}
    truth = mean_logeuclid(BOUNDS.clip(X))
    releases = [private_mean(X, method="oneshot", **options) for _ in range(200)]
    errors = distance_logeuclid(np.stack([r.value for r in releases]), truth, squared=True)
    law = plan_one_shot(3, **options).law(len(X))
    from spdp.laws import law_of

    law = law_of(law)
    if adjacency == "replace-one":
        assert stats.kstest(errors, law.cdf).pvalue > 1e-5
        for wrong in (0.7, 1.3):
            assert stats.kstest(errors / wrong**2, law.cdf).pvalue < 1e-5
    else:
        assert errors.mean() <= law.mean() * 1.2
        assert errors.mean() >= law.mean() * 0.3


def test_certificate(X):
    release = private_mean(X, epsilon=0.7, delta=1e-6, domain=BOUNDS)
    c = release.certificate
    assert set(c) >= KEYS
    json.dumps(c, allow_nan=False)
    assert c["private"] is True
    assert c["seed"] is None
    assert (c["n"], c["k"], c["epsilon"]) == (400, 3, 0.7)
    assert c["adjacency"] == "replace-one"
    assert c["sensitivity"] == pytest.approx(BOUNDS.sensitivity(400, 3))
    assert c["domain"] == {"type": "EigenvalueBounds", "low": 0.05, "high": 20.0}
    assert c["expected_squared_error"] == pytest.approx(release.squared_error.mean())
    assert set(c["squared_error_quantiles"]) == {"50%", "90%", "95%", "99%"}
    assert c["squared_error_quantiles"]["95%"] == pytest.approx(release.squared_error.ppf(0.95))


@pytest.mark.parametrize("options", [{}, {"adjacency": "add-remove"}, {"mechanism": "laplace"}])
def test_nothing_but_the_value_depends_on_the_data(X, options):
    """Two datasets of one size, same seed: certificates differ in nothing (but for the time, and the private count)."""
    other = np.stack([np.diag([30.0, 1e-9, 1.0])] * len(X))
    certificates = []
    for data in (X, other):
        c = private_mean(data, epsilon=0.7, delta=1e-6, domain=BOUNDS, random_state=1, **options).certificate
        c.pop("created")
        certificates.append(json.dumps(c))
    assert certificates[0] == certificates[1]


def test_auto_takes_the_smaller_expected_error_from_public_numbers():
    small = plan_one_shot(2, epsilon=0.1, delta=1e-6, domain=Ball(0.25))
    large = plan_one_shot(30, epsilon=0.1, delta=1e-6, domain=Ball(0.25))
    assert (small.noise, large.noise) == ("laplace", "gaussian")
    assert np.sqrt(small.expected_squared_error(500)) == pytest.approx(0.0346, rel=0.01)
    assert np.sqrt(large.expected_squared_error(500)) == pytest.approx(
        np.sqrt(465)
        * np.sqrt(plan_one_shot(1, epsilon=0.1, delta=1e-6, domain=Ball(0.25), mechanism="gaussian").expected_squared_error(500)),
        rel=1e-9,
    )


def test_pure_dp(X):
    c = private_mean(X, epsilon=0.5, delta=0, domain=BOUNDS).certificate
    assert (c["mechanism"], c["delta"], c["mu"], c["float_safe"]) == ("riemannian-laplace", 0.0, None, False)
    with pytest.raises(ParameterError, match="pure"):
        private_mean(X, epsilon=0.5, delta=0, domain=BOUNDS, mechanism="gaussian")
    assert private_mean(X, epsilon=0, delta=1e-2, domain=BOUNDS).certificate["mechanism"] == "tangent-gaussian"


def test_add_remove_protects_the_count(X):
    c = private_mean(X, epsilon=1.0, delta=1e-5, domain=BOUNDS, adjacency="add-remove").certificate
    assert c["n"] is None
    estimates = [
        private_mean(X, epsilon=1.0, delta=1e-5, domain=BOUNDS, adjacency="add-remove", random_state=s).certificate["n_estimate"]
        for s in range(60)
    ]
    assert np.mean(estimates) == pytest.approx(400, abs=5)
    assert np.std(estimates) > 2
    lone = private_mean(X[:1], epsilon=0.1, delta=1e-6, domain=BOUNDS, adjacency="add-remove")
    assert np.isfinite(lone.value).all()


def test_bad_records(X):
    Y = X.copy()
    Y[7] = np.nan
    with pytest.raises(InvalidMatrixError, match="matrix 7 is not finite"):
        private_mean(Y, epsilon=1.0, delta=1e-5, domain=BOUNDS)
    a = private_mean(Y, epsilon=1.0, delta=1e-5, domain=BOUNDS, on_invalid="center", random_state=0)
    Y[7] = np.sqrt(0.05 * 20.0) * np.eye(3)
    b = private_mean(Y, epsilon=1.0, delta=1e-5, domain=BOUNDS, random_state=0)
    np.testing.assert_allclose(a.value, b.value, rtol=1e-8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"delta": 1e-101}, "delta"),
        ({"domain": None}, "leak"),
        ({"domain": "auto"}, "leak"),
        ({"mechanism": "exponential"}, "mechanism"),
        ({"adjacency": "substitute"}, "adjacency"),
        ({"on_invalid": "skip"}, "on_invalid"),
        ({"epsilon": 0.0, "delta": 0}, "epsilon"),
    ],
)
def test_bad_parameters(X, change, message):
    options = {"epsilon": 1.0, "delta": 1e-5, "domain": BOUNDS} | change
    with pytest.raises(ParameterError, match=message):
        private_mean(X, **options)


def test_an_iterator_can_be_read_only_once(X):
    from spdp.records import as_records

    records = as_records(iter([X]))
    private_mean(records, epsilon=1.0, delta=1e-5, domain=BOUNDS)
    with pytest.raises(DataError, match="only once"):
        private_mean(records, epsilon=1.0, delta=1e-5, domain=BOUNDS)


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
    np.testing.assert_allclose(np.linalg.norm(estimator.transform(X[:5]), axis=1), distance_logeuclid(X[:5], estimator.mean_))
    with pytest.raises(InvalidMatrixError, match="expected"):
        estimator.transform(np.eye(3))
    with pytest.raises(ParameterError, match="leak"):
        PrivateFrechetMean().fit(X)


def test_estimator_in_a_pyriemann_pipeline(rng):
    from pyriemann.estimation import Covariances
    from sklearn.linear_model import LogisticRegression

    signals = rng.standard_normal((60, 4, 200)) * np.repeat([1.0, 3.0], 30)[:, None, None]
    labels = np.repeat([0, 1], 30)
    pipeline = make_pipeline(Covariances("lwf"), PrivateFrechetMean(5.0, 1e-3, EigenvalueBounds(0.1, 20.0)), LogisticRegression())
    assert pipeline.fit(signals, labels).score(signals, labels) > 0.9
    assert pipeline[1].certificate_["private"] is True
