"""Lemmas A and B, and the theorem: property by property, for all data."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spdp.charts.riemann import Point
from spdp.error.bound import Bound
from spdp.error.curvature import Curvature
from spdp.error.laws import Chi2
from spdp.geometry import distance_riemann, expm, invvecd, mean_riemann
from spdp.geometry.curvature import excess
from spdp.kernels.vecd import dimension

SEEDS, SIZES, LENGTHS = st.integers(0, 100_000), st.integers(2, 5), st.floats(0.05, 5.0)
SLACK = 1e-6  # rounding, of records of condition numbers up to 1e6


class Case:
    """Records seen from a point that is not their mean, and what is exact of them."""

    def __init__(self, seed, k, length, n=None):
        self.rng = rng = np.random.default_rng(seed)
        self.k, self.d = k, dimension(k)
        self.Y = self.vectors(n or int(rng.integers(2, 12)), length)
        self.C = Point.start(self.d).moved(self.vectors(1, 1.5)[0])
        self.X = self.matrix(self.Y)
        self.mean = mean_riemann(self.X)
        self.v = self.Y.mean(axis=0)
        L = self.C.factor
        inner = np.linalg.solve(L, np.linalg.solve(L, self.mean).T)
        w, V = np.linalg.eigh(0.5 * (inner + inner.T))
        log = (V * np.log(w)) @ V.T
        i, j = np.triu_indices(k, 1)
        self.e = np.concatenate([np.diagonal(log), np.sqrt(2.0) * log[i, j]])

    def vectors(self, n, length):
        Z = self.rng.standard_normal((n, self.d))
        Z /= np.linalg.norm(Z, axis=1, keepdims=True)
        return Z * length * self.rng.random((n, 1)) ** 0.3

    def matrix(self, w):
        M = self.C.factor @ expm(invvecd(w)) @ self.C.factor.T
        return 0.5 * (M + np.swapaxes(M, -1, -2))

    def mean_excess(self, beyond):
        """h̄, with this in place of ‖e‖."""
        return float(np.mean(excess(np.linalg.norm(self.Y, axis=1) + beyond)))

    def error(self, w):
        return float(distance_riemann(self.matrix(w), self.mean))


def size(v):
    return float(np.linalg.norm(v))


@given(SEEDS, SIZES, LENGTHS)
def test_lemma_a_the_gradient_bounds_the_distance_and_is_a_bounded_map_of_it(seed, k, length):
    case = Case(seed, k, length)
    h = case.mean_excess(size(case.e))
    assert size(case.e) <= size(case.v) * (1 + SLACK) + SLACK
    assert size(case.e) ** 2 <= float(case.v @ case.e) + SLACK
    assert float(case.v @ case.e) <= (1 + h) * size(case.e) ** 2 + SLACK
    assert size(case.v) <= (1 + h) * size(case.e) + SLACK


@given(SEEDS, SIZES, LENGTHS)
def test_lemma_b_the_mean_lies_in_a_ball_about_a_shortened_gradient(seed, k, length):
    case = Case(seed, k, length)
    h = case.mean_excess(size(case.e))
    rho = 0.5 * h / (1 + h)
    assert size(case.e - (1 - rho) * case.v) <= rho * size(case.v) + SLACK


def bound_of(U, y, w, reach, **changes):
    """A bound whose flat part is U at every confidence."""
    curvature = Curvature.of(y, w, reach)
    return Bound(Chi2(3, 0.0), 0.0, 0.0, U, 0.0, 1e300, 1.0, curvature=curvature).replace(**changes)


@given(SEEDS, SIZES, LENGTHS, st.floats(0.0, 2.0), st.sampled_from(["plain", "short", "any"]))
def test_theorem_the_bound_holds_for_any_step(seed, k, length, noise, kind):
    case = Case(seed, k, length)
    N = case.vectors(1, noise + 1e-9)[0]
    y, U = case.v + N, size(N)
    w = {"plain": y, "short": y / (1 + case.mean_excess(0.0)), "any": case.vectors(1, 1.0)[0]}[kind]
    h = case.mean_excess(size(y) + U)
    curved = Curvature.of(y, w, reach=0.0)
    error = case.error(w)
    assert error <= curved.in_tangent_space(U, h) * (1 + SLACK) + SLACK
    # the bound grows with h̄: an upper bound may stand for it
    assert curved.in_tangent_space(U, h) <= curved.in_tangent_space(U, 1.1 * h + 0.01) + SLACK
    at_end = U + size(w - y) + case.mean_excess(size(w)) * size(w)
    assert error <= at_end * (1 + SLACK) + SLACK
    assert error <= size(w) + size(y) + U + SLACK


@given(SEEDS, SIZES, LENGTHS, st.floats(0.2, 1.0), st.floats(0.0, 1.0))
def test_theorem_from_released_numbers_with_clipped_records(seed, k, length, share, noise):
    """ŷ is a mean of records clipped to a ball about C, with its bias counted in U."""
    case = Case(seed, k, length)
    radius = share * length
    norms = np.linalg.norm(case.Y, axis=1)
    clipped = case.Y * np.minimum(1.0, radius / norms)[:, None]
    bias = float(np.maximum(norms - radius, 0.0).mean())
    N = case.vectors(1, noise + 1e-9)[0]
    y = clipped.mean(axis=0) + N
    # a bias measured without error, but for a noise that is as good as none
    for w in (y, 0.7 * y):
        curved = bound_of(size(N), y, w, radius, clipping_bias=bias, clipping_bias_sd=1e-12)
        assert case.error(w) <= curved.at(0.95) * (1 + SLACK) + SLACK


@given(SEEDS, st.integers(1, 5), st.floats(0.05, 3.0))
def test_the_flat_limit_is_the_flat_bound(seed, k, length):
    """One record, or none that is away from C: h̄ vanishes with the reach."""
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(dimension(k)) * 1e-6 * length
    curved = bound_of(1e-6, y, y, 0.0)
    assert curved.at(0.95) == pytest.approx(1e-6, rel=1e-6)


def test_the_curvature_term_of_a_plain_step_is_below_its_length_whatever_the_dispersion():
    y = np.array([0.3, 0.4, 0.0])
    for reach in (0.0, 1.0, 10.0, 1e3, 1e100):
        curved = bound_of(0.0, y, y, reach)
        assert curved.at(0.9) <= 0.5 * np.sinh(0.5 / 2**0.5) / (0.5 / 2**0.5) + 1e-12
        assert curved.at(0.9) <= 2 * 0.5


def test_lemma_bs_radius_cannot_be_a_tenth_smaller():
    """Far records of one plane: H spans nearly all that it may."""
    worst = 0.0
    for seed in range(400):
        case = Case(seed, 2, 0.05 + 4.0 * (seed % 20) / 20)
        h = case.mean_excess(size(case.e))
        rho = 0.5 * h / (1 + h)
        if rho * size(case.v) > 1e-6:
            worst = max(worst, size(case.e - (1 - rho) * case.v) / (rho * size(case.v)))
    assert 0.9 < worst <= 1.0 + SLACK


def test_a_bound_is_read_from_plain_data_and_grows_with_confidence():
    flat = Bound(Chi2(6, 0.01), 0.02, 0.005, 0.01, 1e-9, 30.0, 0.9)
    y, w = np.full(6, 0.1), np.full(6, 0.08)
    curved = flat.replace(curvature=Curvature.of(y, w, 1.5))
    assert Bound.read(msgspec.to_builtins(curved)) == curved
    assert curved.replace(curvature=None) == flat
    levels = [curved.at(c) for c in (0.5, 0.9, 0.95, 0.99)]
    assert levels == sorted(levels)
    assert all(level > flat.at(c) for level, c in zip(levels, (0.5, 0.9, 0.95, 0.99), strict=True))
    assert curved.replace(max_distance=0.01).at(0.95) == 0.01
    assert curved.moved(0.25).at() >= curved.at() + 0.25
    assert set(curved.stated()) == set(flat.stated())
