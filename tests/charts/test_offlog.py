"""The off-log metric: every vector a correlation matrix, every record its own."""

import numpy as np
import pytest
import scipy.linalg

from spdp import Ball, CorrelationBounds, EigenvalueBounds, TraceBounds, private_mean
from spdp.charts import CHARTS
from spdp.errors import ParameterError
from spdp.kernels import kernels_for
from spdp.kernels.base import Status

CHART = CHARTS["offlog"]


def correlation(X):
    s = 1.0 / np.sqrt(np.diagonal(X, axis1=-2, axis2=-1))
    return X * s[..., :, None] * s[..., None, :]


def is_correlation_matrix(C):
    unit, symmetric = (np.diagonal(C) == 1.0).all(), (C == C.T).all()
    return unit and symmetric and np.linalg.eigvalsh(C)[0] > 0


@pytest.mark.parametrize("k", [2, 3, 9, 20])
def test_coordinates_are_the_formula(random_spd, k):
    C = correlation(random_spd(1, k, seed=k)[0])
    i, j = np.triu_indices(k, 1)
    expected = np.sqrt(2.0) * scipy.linalg.logm(C)[i, j]
    np.testing.assert_allclose(CHART.vector(C), expected, atol=1e-12)
    Y, status = CHART.coordinates(C[None], kernels_for())
    np.testing.assert_allclose(Y[0], expected, atol=1e-12)
    assert status[0] == Status.OK


@pytest.mark.parametrize("k", [2, 3, 9, 20])
def test_the_inverse_ends_at_the_one_correlation_matrix(random_spd, k):
    C = correlation(random_spd(50, k, seed=1, condition=1e4))
    back = CHART.matrices(CHART.vector(C))
    np.testing.assert_allclose(back, C, atol=1e-11)
    assert all(map(is_correlation_matrix, back))


@pytest.mark.parametrize("size", [0.0, 1.0, 20.0, 60.0, 1e5])
def test_what_is_released_is_certified_to_be_its_vector(size):
    """What is stated is the vector of the matrix, even where it had to be moved."""
    rng = np.random.default_rng(2)
    for k in (2, 5, 20):
        v = rng.standard_normal(CHART.dimension(k))
        v *= size / np.linalg.norm(v)
        z = CHART.representable(v)
        M = CHART.matrices(z)
        assert is_correlation_matrix(M)
        assert np.linalg.norm(CHART.vector(M) - z) <= 1e-4 * max(1.0, np.linalg.norm(z))
        if size <= 1.0:
            np.testing.assert_array_equal(z, v)


def test_a_record_counts_by_its_correlations_alone(random_spd):
    X = random_spd(40, 4)
    units = np.exp(np.random.default_rng(0).uniform(-20, 20, (40, 4)))
    scaled = X * units[:, :, None] * units[:, None, :]
    region = CorrelationBounds(0.01).region(4, CHART)
    one, _ = CHART.vectors(X, region, kernels_for())
    other, status = CHART.vectors(scaled, region, kernels_for())
    assert not status.any()
    np.testing.assert_allclose(one, other, atol=1e-9)
    single, _ = CHART.vectors(X[:1], region, kernels_for())
    np.testing.assert_array_equal(single[0], one[0])


def test_records_without_correlations_are_invalid(random_spd):
    X = random_spd(6, 3)
    X[1, :, 2] = X[1, 2, :] = 0.0
    X[2, 0, 0] = -1.0
    X[3, 0, 0] = np.inf
    X[4, 0, 1] = 9.0
    X[5] *= 1e-310
    region = Ball(3.0).region(3, CHART)
    for name in ("numpy", None):
        q, status = CHART.encode(X, region, kernels_for(wanted=name))
        assert status.tolist() == [0, 3, 3, 1, 2, 0]
        assert (q[1:5] == 0).all()


@pytest.mark.parametrize("k", [2, 4, 20])
def test_the_ball_of_a_shrinkage_holds_all_shrunk_correlations(k):
    rng, eta = np.random.default_rng(3), 0.1
    factors = rng.standard_normal((2000, k, 2)) * np.exp(rng.normal(0, 3, (2000, k, 1)))
    C = correlation(factors @ factors.transpose(0, 2, 1) + 1e-9 * np.eye(k))
    C = (1 - eta) * C + eta * np.eye(k)
    radius = CorrelationBounds(eta).region(k, CHART).radius
    far = np.linalg.norm(CHART.vector(0.5 * (C + C.transpose(0, 2, 1))), axis=1)
    assert far.max() <= radius
    assert far.max() > 0.4 * radius
    assert radius == pytest.approx(TraceBounds(eta, 2.0 * k).region(k, CHART).radius)
    assert EigenvalueBounds(eta, 1.5).region(k, CHART).radius <= radius


def test_what_no_correlation_matrix_keeps_is_refused():
    with pytest.raises(ParameterError, match="have trace 4"):
        TraceBounds(0.1, 3.0).region(4, CHART)
    with pytest.raises(ParameterError, match="at least 2 rows"):
        Ball(1.0).region(1, CHART)


def test_a_private_mean_of_correlations_is_one():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((400, 5, 40))
    C = correlation(A @ A.transpose(0, 2, 1))
    for method in ("oneshot", "adaptive"):
        release = private_mean(
            C,
            epsilon=0.3,
            delta=1e-6,
            domain=CorrelationBounds(0.05),
            metric="offlog",
            method=method,
        )
        assert is_correlation_matrix(release.value)
        assert release.certificate["distance"] == "off-log"


@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_components_are_those_that_permutations_keep(k):
    """What all entries share, what rows add, the rest: shrunk apart in a search."""
    d = k * (k - 1) // 2
    i, j = np.triu_indices(k, 1)
    a = np.random.default_rng(k).standard_normal(k)
    a -= a.mean()
    parts = CHART.components(0.3 + a[i] + a[j])
    assert [size for _, size in parts] == [size for size in (1, k - 1, d - k)[: k - 1] if size > 0]
    np.testing.assert_allclose(parts[0].v, 0.3 + (k == 2) * (a[i] + a[j]), atol=1e-12)
    if k > 2:
        np.testing.assert_allclose(parts[1].v, a[i] + a[j], atol=1e-12)
    for rest in parts[2:]:
        np.testing.assert_allclose(rest.v, 0.0, atol=1e-12)
