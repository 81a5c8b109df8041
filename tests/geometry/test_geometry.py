import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyriemann.geometry.base import logm as pyriemann_logm
from pyriemann.geometry.distance import distance_logeuclid as pyriemann_distance
from pyriemann.geometry.mean import mean_logeuclid as pyriemann_mean

from spdp.charts import chart_of
from spdp.errors import InvalidMatrixError, ParameterError
from spdp.geometry import (
    add,
    distance_logeuclid,
    distance_offlog,
    expm,
    invvecd,
    log_cholesky,
    logm,
    mean_logeuclid,
    mean_offlog,
    off_log,
    scale,
    subtract,
    vecd,
)
from spdp.kernels import kernels_for


@pytest.fixture(params=["numpy", "native"])
def backend(request, monkeypatch):
    """Makes the functions of this module use one implementation of the kernels."""
    if request.param == "native":
        pytest.importorskip("spdp.kernels._native")
    monkeypatch.setenv("SPDP_KERNELS", request.param)
    assert request.param == kernels_for().NAME


@st.composite
def spd(draw, max_k=6):
    k = draw(st.integers(1, max_k))
    seed = draw(st.integers(0, 2**32 - 1))
    spread = draw(st.floats(0.0, 12.0))
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((k, k)))
    X = (Q * np.exp(rng.uniform(-spread / 2, spread / 2, k))) @ Q.T
    return 0.5 * (X + X.T)


@given(spd())
def test_logm_and_expm_are_inverse_and_exactly_symmetric(X):
    L = logm(X)
    back = expm(L)
    assert (L == L.T).all()
    assert (back == back.T).all()
    np.testing.assert_allclose(back, X, rtol=0, atol=1e-9 * np.abs(X).max())


@given(spd(), st.integers(0, 1000))
def test_group_operations(X, seed):
    Y = np.random.default_rng(seed).standard_normal((len(X), len(X)))
    Y = Y @ Y.T + np.eye(len(X))
    np.testing.assert_allclose(logm(add(X, Y)), logm(Y) + logm(X), atol=1e-7)
    np.testing.assert_allclose(logm(subtract(X, X)), 0, atol=1e-9)
    np.testing.assert_allclose(logm(scale(0.5, X)), 0.5 * logm(X), atol=1e-8)


@given(spd())
def test_vecd_is_an_isometry_with_the_stated_order(X):
    v = vecd(X)
    k = len(X)
    np.testing.assert_allclose(np.linalg.norm(v), np.linalg.norm(X), rtol=1e-14)
    np.testing.assert_array_equal(v[:k], np.diagonal(X))
    if k > 1:
        assert v[k] == np.sqrt(2) * X[0, 1]
    np.testing.assert_allclose(invvecd(v), X, rtol=1e-15)


@pytest.mark.parametrize("k", [1, 2, 3, 9, 20, 40])
def test_pyriemann_agrees(random_spd, k):
    X = random_spd(20, k)
    np.testing.assert_allclose(logm(X), pyriemann_logm(X), atol=1e-12)
    for weights in (None, np.arange(1.0, 21.0)):
        theirs = pyriemann_mean(X, sample_weight=weights)
        np.testing.assert_allclose(mean_logeuclid(X, weights), theirs, rtol=0, atol=1e-11)
    theirs = pyriemann_distance(X, X[0])
    np.testing.assert_allclose(distance_logeuclid(X, X[0]), theirs, atol=1e-11)
    np.testing.assert_allclose(distance_logeuclid(X, X[0], squared=True), theirs**2, atol=1e-10)


def test_any_leading_shape_and_float32(random_spd):
    X = random_spd(12, 3).reshape(2, 3, 2, 3, 3)
    assert logm(X).shape == X.shape
    assert mean_logeuclid(X).shape == (2, 3, 3, 3)
    assert distance_logeuclid(X, X[0, 0, 0]).shape == (2, 3, 2)
    L = logm(X.astype(np.float32))
    assert L.dtype == np.float64
    np.testing.assert_allclose(L, logm(X), atol=1e-4)
    assert logm(np.array([[4.0]])).item() == pytest.approx(np.log(4.0))


@pytest.mark.parametrize("condition", [1e12, 1e14])
def test_condition_numbers(random_spd, condition):
    X = random_spd(50, 5, condition=condition)
    log_w = np.log(np.linalg.eigvalsh(X))
    np.testing.assert_allclose(np.linalg.eigvalsh(logm(X)), log_w, atol=5e-16 * condition + 1e-12)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("s", [1e-310, 1e-300, 1e300])
def test_extreme_scales(s):
    X = np.array([[2.0, 1.0], [1.0, 2.0]])
    expected = np.log(s) * np.eye(2) + logm(X)
    np.testing.assert_allclose(logm(s * X), expected, rtol=1e-13, atol=1e-12)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("k", [2, 3, 9])
@pytest.mark.parametrize(
    ("dtype", "size"), [(np.float64, 1e-17), (np.float64, 1e-300), (np.float32, 1e-8)]
)
def test_rounding_of_a_logarithm_near_zero_is_no_asymmetry(rng, k, dtype, size):
    """All entries of the logarithm of a matrix near I may be rounding errors."""
    S = (size * rng.standard_normal((20, k, k))).astype(dtype)
    E = expm(S)
    assert np.abs(E - np.eye(k)).max() < 10 * size + 1e-14
    np.testing.assert_array_equal(E, E.transpose(0, 2, 1))
    expected = 0.5 * (S.astype(np.float64) + S.transpose(0, 2, 1))
    np.testing.assert_allclose(invvecd(vecd(S)), expected, rtol=1e-14)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("function", [expm, vecd, logm])
def test_asymmetry_that_matters_is_refused(function):
    X = np.stack([np.eye(3)] * 4)
    X[2, 0, 1] = 1e-6
    message = r"matrix 2 is not symmetric: entries \(0, 1\) and \(1, 0\) differ by 1e-06"
    with pytest.raises(InvalidMatrixError, match=message):
        function(X)


@pytest.mark.usefixtures("backend")
def test_an_argument_of_the_logarithm_has_no_scale_of_its_own():
    with pytest.raises(InvalidMatrixError, match="not symmetric"):
        logm([[2e-17, 1e-17], [0.0, 2e-17]])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[1.0, 0.5], [0.4, 1.0]], r"not symmetric: entries \(0, 1\) and \(1, 0\) differ by 0.1"),
        ([[1.0, np.nan], [np.nan, 1.0]], r"not finite: entry \(0, 1\) is nan"),
        ([[np.inf, 0.0], [0.0, 1.0]], r"not finite: entry \(0, 0\) is inf"),
        (np.diag([1.0, -3.2e-5]), r"not positive definite: smallest eigenvalue -3.2e-05"),
        (np.zeros((2, 2)), r"not positive definite: smallest eigenvalue 0"),
    ],
)
@pytest.mark.usefixtures("backend")
def test_bad_matrices_are_named(random_spd, bad, message):
    X = random_spd(6, 2)
    X[3] = bad
    for function in (logm, mean_logeuclid, lambda A: distance_logeuclid(A, np.eye(2))):
        with pytest.raises(InvalidMatrixError, match=f"matrix 3 is {message}") as caught:
            function(X)
        assert caught.value.index == (3,)
    with pytest.raises(InvalidMatrixError, match=r"matrix \(1, 0\)"):
        logm(X.reshape(2, 3, 2, 2))


def test_bad_shapes_and_types():
    for bad in (np.ones(3), np.ones((2, 3)), np.ones((0, 0))):
        with pytest.raises(InvalidMatrixError, match="shape"):
            logm(bad)
    with pytest.raises(InvalidMatrixError, match="dtype complex"):
        logm(np.eye(2, dtype=complex))
    with pytest.raises(ParameterError, match="length"):
        invvecd(np.ones(4))
    with pytest.raises(ParameterError, match="sample_weight"):
        mean_logeuclid(np.stack([np.eye(2)] * 3), [1.0, -1.0, 1.0])
    with pytest.raises(InvalidMatrixError, match="not symmetric"):
        vecd([[1.0, 2.0], [3.0, 1.0]])
    with pytest.raises(InvalidMatrixError, match="overflows"):
        expm([[800.0]])


@pytest.mark.parametrize(("function", "d"), [(vecd, 6), (log_cholesky, 6), (off_log, 3)])
def test_no_matrices_have_no_vectors(function, d):
    assert function(np.empty((2, 0, 3, 3))).shape == (2, 0, d)


def hermitian(n, k, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, k, 3 * k)) + 1j * rng.standard_normal((n, k, 3 * k))
    return A @ np.swapaxes(A, -1, -2).conj() / (3 * k)


def test_complex_means_and_distances_are_those_of_the_hermitian_chart():
    X, chart = hermitian(20, 4), chart_of("hermitian")
    Y = chart.vector(X)
    mean = mean_logeuclid(X)
    np.testing.assert_array_equal(mean, mean.conj().T)
    np.testing.assert_allclose(mean, chart.matrices(Y.mean(axis=0)), atol=1e-12)
    weights = np.arange(20.0)
    expected = chart.matrices(weights @ Y / weights.sum())
    np.testing.assert_allclose(mean_logeuclid(X, weights), expected, atol=1e-12)
    np.testing.assert_allclose(mean_logeuclid(X[None])[0], mean, atol=1e-12)
    far = distance_logeuclid(X, mean)
    np.testing.assert_allclose(far, np.linalg.norm(Y - Y.mean(axis=0), axis=1), rtol=1e-9)
    np.testing.assert_allclose(distance_logeuclid(X, mean, squared=True), far**2)
    np.testing.assert_allclose(
        distance_logeuclid(X.real + 0j, np.eye(4)), distance_logeuclid(X.real, np.eye(4))
    )
    with pytest.raises(InvalidMatrixError, match="matrix 3"):
        mean_logeuclid(np.where(np.arange(20)[:, None, None] == 3, -X, X))


def test_off_log_means_and_distances(random_spd):
    X, chart = random_spd(20, 4), chart_of("offlog")
    Y = off_log(X)
    np.testing.assert_allclose(Y, chart.vector(X))
    L = logm(X[0] / np.sqrt(np.outer(np.diagonal(X[0]), np.diagonal(X[0]))))
    order = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    np.testing.assert_allclose(Y[0], [np.sqrt(2.0) * L[i, j] for i, j in order], atol=1e-12)
    mean = mean_offlog(X)
    assert (np.diagonal(mean) == 1.0).all()
    np.testing.assert_allclose(off_log(mean), Y.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(off_log(mean_offlog(X, np.eye(20)[7])), Y[7], atol=1e-9)
    np.testing.assert_allclose(mean_offlog(X.reshape(2, 10, 4, 4))[0], mean_offlog(X[:10]))
    far = distance_offlog(X, mean)
    np.testing.assert_allclose(far, np.linalg.norm(Y - Y.mean(axis=0), axis=1), rtol=1e-6)
    assert distance_offlog(X[0], 7.0 * X[0]) == pytest.approx(0.0, abs=1e-9)
