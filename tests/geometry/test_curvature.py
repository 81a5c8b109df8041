"""The geometry of the affine-invariant metric, statement by statement."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spdp.charts.riemann import Point
from spdp.geometry import distance_riemann, expm, invvecd, mean_logeuclid, mean_riemann, vecd
from spdp.geometry.curvature import Hessian, commutator_gap, excess, stretch, xcothx
from spdp.kernels import kernels_for
from spdp.kernels.vecd import dimension

SEEDS, SIZES = st.integers(0, 100_000), st.integers(2, 5)


def tangent(rng, n, k, length):
    """Vectors of at most this length."""
    Y = rng.standard_normal((n, dimension(k)))
    return Y / np.linalg.norm(Y, axis=1, keepdims=True) * length * rng.random((n, 1)) ** 0.3


def somewhere(rng, k):
    """A point at random."""
    return Point.start(dimension(k)).moved(tangent(rng, 1, k, 2.0)[0])


def matrices(point, Y):
    """Exp_C of vectors, as matrices."""
    X = point.factor @ expm(invvecd(Y)) @ point.factor.T
    return 0.5 * (X + np.swapaxes(X, -1, -2))


@given(SEEDS, SIZES, st.floats(0.1, 5.0))
def test_the_length_of_a_vector_is_the_distance_from_its_point(seed, k, length):
    rng = np.random.default_rng(seed)
    C, Y = somewhere(rng, k), tangent(rng, 6, k, length)
    found = distance_riemann(matrices(C, np.zeros(dimension(k))), matrices(C, Y))
    np.testing.assert_allclose(found, np.linalg.norm(Y, axis=1), atol=1e-8)


@given(SEEDS, SIZES, st.floats(0.1, 4.0))
def test_logarithms_are_one_lipschitz_and_rauch_bounds_exponentials(seed, k, length):
    rng = np.random.default_rng(seed)
    C, (a, b) = somewhere(rng, k), tangent(rng, 2, k, length)
    d, flat = float(distance_riemann(*matrices(C, np.array([a, b])))), np.linalg.norm(a - b)
    longest = max(np.linalg.norm(a), np.linalg.norm(b))
    assert flat <= d * (1 + 1e-7) + 1e-9
    assert d <= flat * stretch(longest / np.sqrt(2.0)) * (1 + 1e-7) + 1e-9


def test_rauchs_factor_cannot_be_ten_per_cent_smaller():
    """Orthogonal directions in the plane of largest curvature, close together."""
    r, t = 4.0, 1e-3
    S, T = np.diag([1.0, -1.0]) / np.sqrt(2.0), np.array([[0.0, 1.0], [1.0, 0.0]]) / np.sqrt(2.0)
    a, b = r * S, r * (np.cos(t) * S + np.sin(t) * T)
    ratio = distance_riemann(expm(a), expm(b)) / np.linalg.norm(a - b)
    assert 0.9 * stretch(r / np.sqrt(2.0)) < ratio <= stretch(r / np.sqrt(2.0)) * (1 + 1e-6)


@given(SEEDS, SIZES, st.floats(0.1, 4.0))
def test_the_hessian_is_that_of_finite_differences_of_transported_gradients(seed, k, length):
    rng = np.random.default_rng(seed)
    C, Y = somewhere(rng, k), tangent(rng, 5, k, length)
    (w,) = tangent(rng, 1, k, 1.0)
    t, plain = 1e-5, Point.start(dimension(k))
    ends = [
        kernels_for().carry(Y, C.moved(s * w).to_here(C)).mean(axis=0) for s in (-0.5 * t, 0.5 * t)
    ]
    slope = (ends[0] - ends[1]) / t
    H = Hessian(Y)
    np.testing.assert_allclose(H(w), slope, rtol=0, atol=2e-5 * np.linalg.norm(w))
    np.testing.assert_allclose(H(H.solve(w)), w, rtol=0, atol=1e-5 * np.linalg.norm(w))
    rayleigh = float(w @ H(w) / (w @ w))
    most = float(np.mean(excess(np.linalg.norm(Y, axis=1))))
    assert 1.0 - 1e-12 <= rayleigh <= 1.0 + most + 1e-12
    assert np.allclose(plain.factor, np.eye(k))


@given(SEEDS, SIZES)
def test_a_move_and_its_reverse_give_the_same_vectors(seed, k):
    rng = np.random.default_rng(seed)
    C, Y = somewhere(rng, k), tangent(rng, 5, k, 2.0)
    (w,) = tangent(rng, 1, k, 1.5)
    there = C.moved(w)
    carried = kernels_for().carry(Y, there.to_here(C))
    np.testing.assert_allclose(kernels_for().carry(carried, C.to_here(there)), Y, atol=1e-9)
    np.testing.assert_allclose(there.at(np.zeros(dimension(k))), C.at(w), atol=1e-9)
    back = there.moved(-w)  # transport there and back is none
    np.testing.assert_allclose(back.factor, C.factor, atol=1e-9)
    np.testing.assert_allclose(C.seen(C.at(w)), w, atol=1e-9)


def test_the_functions_of_the_distance_are_what_they_are_said_to_be():
    r = np.concatenate([np.geomspace(1e-8, 1.0, 50), np.linspace(1.01, 60.0, 200)])
    h = excess(r)
    assert (np.diff(h) > 0).all()
    assert (np.diff(h) <= np.diff(r) / np.sqrt(2.0) * (1 + 1e-9)).all()
    assert (h <= np.minimum(r**2 / 6.0, r / np.sqrt(2.0)) * (1 + 1e-12)).all()
    np.testing.assert_allclose(excess(1e-3), (1e-3) ** 2 / 6.0, rtol=1e-6)
    np.testing.assert_allclose(excess(2.0), 2.0**0.5 / np.tanh(2.0**0.5) - 1.0, rtol=1e-13)
    assert excess(0.0141) == pytest.approx(float(excess(0.01415)), rel=1e-2)  # both branches
    np.testing.assert_allclose(xcothx(np.array([0.0, -2.0, 2.0])), [1.0, *2 * [2 / np.tanh(2.0)]])
    assert stretch(0.0) == 1.0
    assert stretch(2.0) == pytest.approx(np.sinh(2.0) / 2.0)
    assert stretch(1e4) == np.inf


@pytest.mark.parametrize("k", [3, 5, 9])
def test_a_unit_step_leaves_the_predicted_share_of_the_error(k):
    """1 + r²/(6(k + 1)) on traceless directions, isotropic records; 1 on the trace."""
    rng, d, r = np.random.default_rng(k), dimension(k), 0.5
    Y = rng.standard_normal((40_000, d)) * (r / np.sqrt(d))
    H = Hessian(Y)
    w = vecd(np.diag(np.arange(k) - (k - 1) / 2.0))
    assert float(w @ H(w) / (w @ w)) - 1.0 == pytest.approx(r**2 / (6 * (k + 1)), rel=0.05)
    trace = vecd(np.eye(k))
    np.testing.assert_allclose(H(trace), trace, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_predicted_gap_is_that_of_the_two_means_to_leading_order(seed):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    root = (Q * np.exp([-0.4, 0.0, 0.2, 0.4])) @ Q.T
    S = rng.standard_normal((3000, 10)) * 0.15
    X = root @ expm(invvecd(S)) @ root
    X = 0.5 * (X + X.transpose(0, 2, 1))
    Y = kernels_for().log_vectors(X, -np.inf, np.inf)[0]
    gap = float(distance_riemann(mean_logeuclid(X), mean_riemann(X)))
    mean = Y.mean(axis=0)
    assert commutator_gap(mean, Y - mean) == pytest.approx(gap, rel=0.2)
