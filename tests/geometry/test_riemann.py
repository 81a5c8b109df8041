"""The affine-invariant functions beside pyRiemann's, and what makes them such."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyriemann.geometry.distance import distance_riemann as pyriemann_distance
from pyriemann.geometry.geodesic import geodesic_riemann as pyriemann_geodesic
from pyriemann.geometry.mean import mean_riemann as pyriemann_mean

from spdp.errors import InvalidMatrixError, ParameterError
from spdp.geometry import (
    distance_logeuclid,
    distance_riemann,
    expm,
    geodesic_riemann,
    invvecd,
    mean_logeuclid,
    mean_riemann,
)
from spdp.kernels import kernels_for
from spdp.kernels.vecd import dimension


@pytest.fixture(params=["numpy", "native"])
def backend(request, monkeypatch):
    """Makes the functions of this module use one implementation of the kernels."""
    if request.param == "native":
        pytest.importorskip("spdp.kernels._native")
    monkeypatch.setenv("SPDP_KERNELS", request.param)
    assert request.param == kernels_for().NAME


def records(seed, n, k, spread=1.0, condition=10.0):
    """SPD matrices of this rms distance from a matrix of this condition number."""
    rng = np.random.default_rng(seed)
    S = rng.standard_normal((n, dimension(k)))
    S *= spread / np.sqrt((S**2).sum(axis=1).mean())
    Q = np.linalg.qr(rng.standard_normal((k, k)))[0]
    root = (Q * np.sqrt(np.geomspace(1.0, condition, k))) @ Q.T
    X = root @ expm(invvecd(S)) @ root
    return 0.5 * (X + X.transpose(0, 2, 1))


def hermitian(seed, n, k):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, k, 3 * k)) + 1j * rng.standard_normal((n, k, 3 * k))
    X = A @ A.conj().transpose(0, 2, 1) / (3 * k)
    return 0.5 * (X + X.conj().transpose(0, 2, 1))


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("spread", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 9, 20, 50])
def test_the_mean_is_pyriemanns(k, spread):
    X = records(k, 60, k, spread)
    weights = np.random.default_rng(k).random(60)
    for w in (None, weights):
        ours = mean_riemann(X, w)
        theirs = pyriemann_mean(X, sample_weight=w, tol=1e-13, maxiter=500)
        assert pyriemann_distance(ours, theirs) <= 1e-10
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * np.abs(theirs).max())
        assert (ours == ours.T).all()


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("k", [1, 2, 3, 5, 9, 20, 50])
def test_distances_and_geodesics_are_pyriemanns(k):
    A, B = records(1, 30, k, 2.0), records(2, 30, k, 3.0)
    np.testing.assert_allclose(distance_riemann(A, B), pyriemann_distance(A, B), atol=1e-10)
    ours = distance_riemann(A, B[0], squared=True)
    np.testing.assert_allclose(ours, pyriemann_distance(A, B[0], squared=True), rtol=1e-10)
    alpha = np.linspace(-0.5, 1.5, 30)
    for at in (np.zeros(30), np.full(30, 0.3), np.ones(30), alpha):
        ours = geodesic_riemann(A, B, at)
        theirs = np.array([pyriemann_geodesic(*three) for three in zip(A, B, at, strict=True)])
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * np.abs(theirs).max())
        np.testing.assert_array_equal(ours, ours.transpose(0, 2, 1))


def test_hermitian_matrices_are_pyriemanns_too():
    X = hermitian(0, 40, 4)
    ours, theirs = mean_riemann(X), pyriemann_mean(X, tol=1e-13)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(ours, ours.conj().T)
    np.testing.assert_allclose(distance_riemann(X, ours), pyriemann_distance(X, theirs), atol=1e-10)
    np.testing.assert_allclose(
        geodesic_riemann(X[0], X[1], 0.2), pyriemann_geodesic(X[0], X[1], 0.2), atol=1e-12
    )
    np.testing.assert_allclose(mean_riemann(X, init=X[0]), theirs, rtol=0, atol=1e-10)


def test_batches_have_a_mean_each():
    X = records(3, 24, 3).reshape(2, 3, 4, 3, 3)
    M = mean_riemann(X)
    assert M.shape == (2, 3, 3, 3)
    np.testing.assert_array_equal(M[1, 2], mean_riemann(X[1, 2]))


@given(st.integers(0, 10_000), st.integers(1, 6), st.floats(0.1, 3.0))
def test_the_estimand_does_not_depend_on_a_congruence(seed, k, spread):
    X = records(seed, 12, k, spread)
    W = np.eye(k) + 0.3 * np.random.default_rng(seed).standard_normal((k, k)) / np.sqrt(k)
    moved = W @ X @ W.T
    moved = 0.5 * (moved + moved.transpose(0, 2, 1))
    M = mean_riemann(X)
    assert distance_riemann(mean_riemann(moved), W @ M @ W.T) <= 1e-8
    np.testing.assert_allclose(
        distance_riemann(moved, moved[0]), distance_riemann(X, X[0]), atol=1e-7
    )


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_commuting_matrices_have_the_log_euclidean_mean_and_distance(seed, k):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((k, k)))[0]
    X = (Q * np.exp(rng.standard_normal((9, 1, k)))) @ Q.T
    X = 0.5 * (X + X.transpose(0, 2, 1))
    np.testing.assert_allclose(mean_riemann(X), mean_logeuclid(X), rtol=0, atol=1e-11)
    ours = distance_riemann(X[0], X[1:])
    np.testing.assert_allclose(ours, distance_logeuclid(X[0], X[1:]), rtol=0, atol=1e-10)


@given(st.integers(0, 10_000), st.integers(2, 6), st.floats(0.1, 4.0))
def test_distances_are_no_smaller_than_log_euclidean_ones(seed, k, spread):
    A, B = records(seed, 2, k, spread)
    assert distance_riemann(A, B) >= distance_logeuclid(A, B) - 1e-9


@given(st.integers(0, 10_000), st.floats(0.0, 1.0))
def test_a_geodesic_has_its_points_where_they_should_be(seed, alpha):
    A, B = records(seed, 2, 3, 2.0)
    C = geodesic_riemann(A, B, alpha)
    whole = distance_riemann(A, B)
    assert distance_riemann(A, C) == pytest.approx(alpha * whole, abs=1e-9)
    assert distance_riemann(C, B) == pytest.approx((1 - alpha) * whole, abs=1e-9)


def test_records_far_apart_converge_though_unit_steps_would_not():
    """Where H exceeds 2 on average, unit steps oscillate."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((30, 3, 3)))[0]
    X = (Q * np.exp([[[-9.0, 0.0, 9.0]]])) @ Q.transpose(0, 2, 1)
    M = mean_riemann(0.5 * (X + X.transpose(0, 2, 1)))
    theirs = pyriemann_mean(X, tol=1e-13, maxiter=1000)
    assert pyriemann_distance(M, theirs) <= 1e-7  # records of condition 1e8


def test_invalid_matrices_are_named_and_too_few_passes_are_told():
    X = records(0, 5, 3)
    bad = X.copy()
    bad[3] = -np.eye(3)
    with pytest.raises(InvalidMatrixError, match="matrix 3 is not positive definite"):
        mean_riemann(bad)
    with pytest.raises(InvalidMatrixError, match=r"matrix \(1, 3\)"):
        mean_riemann(np.array([X, bad]))
    for function in (distance_riemann, geodesic_riemann):
        with pytest.raises(InvalidMatrixError, match="matrix 3 is not positive"):
            function(bad, X)
        with pytest.raises(InvalidMatrixError, match="B has shape"):
            function(X, np.ones((2, 3)))
    with pytest.raises(InvalidMatrixError, match="expected"):
        mean_riemann(np.zeros((0, 3, 3)))
    with pytest.raises(ParameterError, match="sample_weight"):
        mean_riemann(X, np.ones(4))
    with pytest.raises(ParameterError, match="init has shape"):
        mean_riemann(X, init=np.eye(2))
    with pytest.raises(ParameterError, match="alpha"):
        geodesic_riemann(X, X, np.nan)
    with pytest.warns(UserWarning, match="convergence not reached after 1 it"):
        mean_riemann(X, maxiter=1, tol=1e-14)
