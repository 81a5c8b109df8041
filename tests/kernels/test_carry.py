"""Vectors seen from another point: all kernels, on every instruction set."""

import mpmath
import numpy as np
import pytest

from spdp.kernels import kernels_for, reference
from spdp.kernels.vecd import dimension, invvecd, vecd

try:
    from spdp.kernels import _native, native

    BACKENDS = ["numpy", *_native.instruction_sets()]
except ImportError:  # built without a compiler
    BACKENDS = ["numpy"]

ALL_K = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 20, 33, 47, 48, 70, 128, 129]


@pytest.fixture(params=BACKENDS)
def kernels(request):
    """One implementation, in one instruction set."""
    if request.param == "numpy":
        yield reference
        return
    best = _native.instruction_set()
    _native.set_instruction_set(request.param)
    yield kernels_for(wanted="native")
    _native.set_instruction_set(best)


def vectors(rng, n, k, spread=2.0):
    Y = rng.standard_normal((n, dimension(k)))
    return Y * (spread / np.linalg.norm(Y, axis=1, keepdims=True))


def factor(rng, k, condition=10.0):
    """A square matrix of a known condition number."""
    U, V = (np.linalg.qr(rng.standard_normal((k, k)))[0] for _ in range(2))
    return (U * np.geomspace(1.0, condition, k)) @ V.T


@pytest.mark.parametrize("k", ALL_K)
def test_the_image_is_the_logarithm_of_the_congruent_matrix(kernels, k):
    rng = np.random.default_rng(k)
    Y, W = vectors(rng, 37 if k < 48 else 5, k), factor(rng, k)
    X = W @ reference.expm(invvecd(Y))[0] @ W.T
    expected = vecd(reference.logm(0.5 * (X + X.transpose(0, 2, 1)))[0])
    np.testing.assert_allclose(kernels.carry(Y, W), expected, rtol=0, atol=2e-12)


@pytest.mark.parametrize("k", [1, 2, 3, 9, 13, 48, 129])
def test_a_move_and_its_reverse_give_the_same_vectors(kernels, k):
    rng = np.random.default_rng(k)
    Y, W = vectors(rng, 37 if k < 48 else 5, k), factor(rng, k, 100.0)
    back = kernels.carry(kernels.carry(Y, W), np.linalg.inv(W))
    np.testing.assert_allclose(back, Y, rtol=0, atol=1e-9)


@pytest.mark.parametrize("k", [2, 3, 9])
def test_a_rotation_of_the_point_is_one_of_the_vectors(kernels, k):
    rng = np.random.default_rng(k)
    Y, Q = vectors(rng, 20, k), np.linalg.qr(rng.standard_normal((k, k)))[0]
    expected = vecd(Q @ invvecd(Y) @ Q.T)
    np.testing.assert_allclose(kernels.carry(Y, Q), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("power", [-300, -20, 0, 20, 300])
@pytest.mark.parametrize("k", [1, 3, 9, 50])
def test_sizes_of_point_and_records_leave_no_range(kernels, k, power):
    rng = np.random.default_rng(k)
    Y, W = vectors(rng, 9, k), factor(rng, k)
    one = np.zeros(dimension(k))
    one[:k] = 1.0
    expected = kernels.carry(Y, W) + (2 * power * np.log(10.0) - 600.0) * one
    carried = kernels.carry(Y - 600.0 * one, 10.0**power * W)
    np.testing.assert_allclose(carried, expected, rtol=0, atol=64 * 2.0**-52 * 2000)  # of sizes


@pytest.mark.parametrize("k", [2, 3, 9, 13])
def test_what_float64_cannot_resolve_is_raised_by_a_rule_of_its_own(kernels, k):
    """Log-eigenvalues far apart: the largest is right, others are raised to a floor."""
    rng = np.random.default_rng(k)
    Q, W = np.linalg.qr(rng.standard_normal((k, k)))[0], factor(rng, k)
    for spread in (60.0, 700.0, 1e6, 1e100):
        w = np.linspace(-spread, spread, k)
        y = vecd((Q * w) @ Q.T)
        carried = kernels.carry(y[None], W)[0]
        assert np.isfinite(carried).all()
        found = np.linalg.eigvalsh(invvecd(carried))
        top = spread + 2.0 * np.log(np.linalg.norm(W @ Q[:, -1]))
        assert found[-1] == pytest.approx(top, rel=1e-9, abs=1e-4)
        assert found[-1] - found[0] <= -np.log(8 * k * 2.0**-52) + 1e-9 * spread
        mixed = kernels.carry(np.array([y, 0.1 * y / spread, y]), W)
        np.testing.assert_array_equal(mixed[[0, 2]], [carried, carried])


def test_what_is_no_number_becomes_zero_and_harms_no_neighbour(kernels):
    rng = np.random.default_rng(0)
    Y, W = vectors(rng, 50, 3), factor(rng, 3)
    expected = kernels.carry(Y, W)
    Z = Y.copy()
    Z[3], Z[17, 1], Z[49, 5] = np.nan, np.inf, -np.inf
    bad = [3, 17, 49]
    found = kernels.carry(Z, W)
    assert (found[bad] == 0.0).all()
    good = np.setdiff1d(np.arange(50), bad)
    np.testing.assert_array_equal(found[good], expected[good])


@pytest.mark.parametrize("k", [2, 3, 9, 20, 64])
def test_results_do_not_depend_on_neighbours_or_strides(kernels, k):
    rng = np.random.default_rng(k)
    Y, W = vectors(rng, 100, k), factor(rng, k)
    whole = kernels.carry(Y, W)
    alone = np.concatenate([kernels.carry(Y[i : i + 1], W) for i in range(30)])
    np.testing.assert_array_equal(alone, whole[:30])
    for other in (np.asfortranarray(Y), np.hstack([Y, Y])[:, : Y.shape[1]]):
        np.testing.assert_array_equal(kernels.carry(other, W), whole)
    np.testing.assert_array_equal(kernels.carry(Y[::-2], W), whole[::-2])
    assert kernels.carry(Y[:0], W).shape == (0, Y.shape[1])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3, 9, 13, 47, 48, 130])
def test_sums_of_congruent_matrices(kernels, k, weighted):
    rng = np.random.default_rng(k)
    Y, W = vectors(rng, 40 if k < 48 else 5, k), factor(rng, k)
    X = reference.expm(invvecd(Y))[0]
    weights = rng.random(len(X)) if weighted else None
    total, status, smallest = kernels.log_sum(X, weights, W)
    carried = reference.carry(Y, W)
    expected = carried.sum(axis=0) if weights is None else weights @ carried
    np.testing.assert_allclose(vecd(total), expected, rtol=0, atol=1e-10)
    assert not status.any()
    w = np.linalg.eigvalsh(W @ X @ W.T)[:, 0]
    np.testing.assert_allclose(smallest, w, rtol=1e-9)
    bad = X.copy()
    bad[1], bad[2] = np.nan, -np.eye(k)
    assert kernels.log_sum(bad, weights, W)[1][:4].tolist() == [0, 1, 3, 0]


def test_accuracy_is_that_of_the_carried_matrix_against_fifty_digits(kernels):
    """A record of condition 1e6 seen from a point of condition 1e4."""
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    y, W = vecd((Q * np.log([1e-3, 1.0, 1e3])) @ Q.T), factor(rng, 3, 100.0)
    with mpmath.workdps(50):
        X = mpmath.expm(mpmath.matrix(invvecd(y).tolist()), method="taylor")
        V = mpmath.matrix(W.tolist())
        A = V * X * V.T
        values, vectors_ = mpmath.eigsy((A + A.T) / 2)
        L = vectors_ * mpmath.diag([mpmath.log(v) for v in values]) * vectors_.T
        exact = vecd(np.array([[float(L[i, j]) for j in range(3)] for i in range(3)]))
    np.testing.assert_allclose(kernels.carry(y[None], W)[0], exact, rtol=0, atol=1e-7)


@pytest.mark.skipif(BACKENDS == ["numpy"], reason="the native kernels are not built")
def test_results_do_not_depend_on_threads():
    rng = np.random.default_rng(1)
    Y, W, before = vectors(rng, 9000, 3), factor(rng, 3), _native.get_num_threads()
    try:
        results = []
        for count in (1, 2, 7):
            _native.set_num_threads(count)
            results.append(native.carry(Y, W))
    finally:
        _native.set_num_threads(before)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


@pytest.mark.skipif(BACKENDS == ["numpy"], reason="the native kernels are not built")
def test_wrong_sizes_are_refused_by_the_module():
    status, out = np.empty(2, np.uint8), np.empty((2, 3))
    for Y, W in ((np.ones((2, 3)), np.eye(3)), (np.ones((2, 4)), np.eye(2))):
        with pytest.raises(ValueError, match="size"):
            _native.carry(Y, W, 0, status, out)
