"""Errors in the field's units: no matrix within the bound escapes, some come close."""

import numpy as np
import pytest

from spdp.charts import chart_of
from spdp.error.field_units import (
    anisotropy,
    correlation_range,
    correlation_shift,
    eigenvalue_factor,
    mean_eigenvalue,
)
from spdp.geometry import distance_logeuclid, distance_riemann, expm, logm

SIZES = (0.01, 0.1, 0.5, 0.95, 1.5, 3.0)
OFFLOG = chart_of("offlog")


def spectra(rng, k, count):
    """Nearly isotropic to needle-shaped."""
    return np.exp(rng.uniform(0.0, 3.0, (count, 1)) * rng.standard_normal((count, k)))


def rotated(rng, a):
    Q = np.linalg.qr(rng.standard_normal((len(a), len(a))))[0]
    return (Q * a) @ Q.T


def directions(rng, A, count):
    """Unit symmetric matrices: any, those that commute with A, one eigenvector's."""
    k = len(A)
    _, V = np.linalg.eigh(A)
    for _ in range(count):
        H = rng.standard_normal((k, k))
        yield H + H.T
        yield (V * rng.standard_normal(k)) @ V.T
    for i in range(k):
        yield np.outer(V[:, i], V[:, i])
        yield -np.outer(V[:, i], V[:, i])


def neighbours(rng, A, u, count=30):
    """Matrices at log-Euclidean distance u."""
    L = logm(A)
    for H in directions(rng, A, count):
        yield expm(L + u * H / np.linalg.norm(H))


def affine_neighbours(rng, A, u, count=30):
    """Matrices at affine-invariant distance u."""
    w, V = np.linalg.eigh(A)
    root = (V * np.sqrt(w)) @ V.T
    for H in directions(rng, A, count):
        yield root @ expm(u * H / np.linalg.norm(H)) @ root


def fa(a):
    return np.sqrt(1.5) * np.linalg.norm(a - a.mean()) / np.linalg.norm(a)


@pytest.mark.parametrize("u", SIZES)
@pytest.mark.parametrize("near", [neighbours, affine_neighbours])
def test_spectra_stay_within_their_ranges(u, near):
    rng = np.random.default_rng(0)
    distance = distance_logeuclid if near is neighbours else distance_riemann
    for k in (2, 3, 5):
        for a in spectra(rng, k, 8):
            A = rotated(rng, a)
            mean = mean_eigenvalue(A, u)
            for B in near(rng, A, u):
                assert float(distance(A, B)) <= u * (1 + 1e-6)
                b = np.linalg.eigvalsh(B)
                ratio = b / np.linalg.eigvalsh(A)
                assert (np.maximum(ratio, 1 / ratio) <= eigenvalue_factor(u) * (1 + 1e-9)).all()
                assert mean.low * (1 - 1e-9) <= b.mean() <= mean.high * (1 + 1e-9)
                if k == 3:
                    _, (low, high) = anisotropy(A, u)
                    assert low - 1e-9 <= fa(b) <= high + 1e-9


@pytest.mark.parametrize("u", [0.01, 0.3, 0.98])
def test_the_range_of_the_mean_is_reached(u):
    """By the best of many points of the sphere, on either side."""
    rng = np.random.default_rng(1)
    for a in spectra(rng, 3, 5):
        low, high = mean_eigenvalue(np.diag(a), u)
        x = rng.standard_normal((200_000, 3))
        x *= u / np.linalg.norm(x, axis=1, keepdims=True)
        found = (a * np.exp(x)).mean(axis=1)
        assert low <= found.min() <= low + 2e-3 * u * (a.mean() - low) / u
        assert high - 2e-3 * (high - a.mean()) <= found.max() <= high


def test_an_eigenvalue_reaches_its_factor():
    A = np.diag([1.0, 2.0, 3.0])
    B = expm(logm(A) + np.diag([0.0, 0.0, 0.4]))
    assert np.linalg.eigvalsh(B)[-1] / 3 == pytest.approx(eigenvalue_factor(0.4))


def test_anisotropy_comes_close_to_its_range():
    """A bound with 0.6 in place of 1/√2 ≈ 0.71 would be broken."""
    u, broken = 0.05, 0
    rng = np.random.default_rng(2)
    for a in spectra(rng, 3, 200):
        b = a[:, None] * np.exp(
            u * np.stack([v / np.linalg.norm(v) for v in rng.standard_normal((200, 3))]).T
        )
        found = np.array([fa(column) for column in b.T])
        value, (low, high) = anisotropy(np.diag(a), u)
        assert value == pytest.approx(fa(a))
        assert (low - 1e-9 <= found).all()
        assert (found <= high + 1e-9).all()
        _, (near, far) = anisotropy(np.diag(a), 0.6 * np.sqrt(2) * u)
        broken += bool((found > far).any() or (found < near).any())
    assert broken


def test_anisotropy_has_its_limits():
    assert anisotropy(np.eye(3), 0.0)[0] == pytest.approx(0.0, abs=1e-12)
    assert anisotropy(np.diag([1.0, 1e-9, 1e-9]), 5.0)[1].high == 1.0
    assert anisotropy(np.diag([1.0, 1e-9, 1e-9]), 9.0)[1].low == 0.0


def equicorrelated(k, r):
    return (1 - r) * np.eye(k) + r * np.ones((k, k))


@pytest.mark.parametrize("u", [0.01, 0.1, 0.5, 2.0])
def test_correlations_stay_within_their_range_of_the_off_log_distance(u):
    rng = np.random.default_rng(3)
    for k in (2, 3, 6, 12):
        S = rng.standard_normal((k, 2 * k))
        random = np.corrcoef(S)
        for C in (np.eye(k), equicorrelated(k, 0.5), equicorrelated(k, 0.95), random):
            y, bound = OFFLOG.vector(C), correlation_shift(C, u)
            steps = [*rng.standard_normal((40, len(y))), *np.eye(len(y))[:10], np.ones(len(y))]
            steps += [-np.ones(len(y)), -np.eye(len(y))[0]]
            moved = OFFLOG.matrices(np.stack([y + u * s / np.linalg.norm(s) for s in steps]))
            assert np.abs(moved - C).max() <= bound


def test_the_bound_on_correlations_is_reached_near_the_identity():
    u = 1e-3
    C = OFFLOG.matrices(np.array([u, 0.0, 0.0]))
    assert abs(C[0, 1]) == pytest.approx(correlation_shift(np.eye(3), u), rel=1e-2)
    assert correlation_shift(equicorrelated(20, 0.9), 50.0) == 2.0


@pytest.mark.parametrize("u", [0.05, 0.5, 2.0])
def test_correlations_stay_within_their_range_of_the_affine_invariant_distance(u):
    rng = np.random.default_rng(4)
    closest = np.inf
    for k in (2, 3, 5):
        for a in spectra(rng, k, 6):
            A = rotated(rng, a)
            s = np.sqrt(np.diag(A))
            r = A / np.outer(s, s)
            for B in affine_neighbours(rng, A, u):
                t = np.sqrt(np.diag(B))
                b = B / np.outer(t, t)
                for i, j in zip(*np.triu_indices(k, 1), strict=True):
                    low, high = correlation_range(r[i, j], u)
                    assert low - 1e-9 <= b[i, j] <= high + 1e-9
                    closest = min(closest, high - b[i, j], b[i, j] - low)
    assert closest < 0.02
    # along (1, 1) and against (1, −1) the end is reached
    B = expm(u / 2 * np.sqrt(2) * np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert B[0, 1] / B[0, 0] == pytest.approx(correlation_range(0.0, u).high)


def test_no_error_means_no_range():
    A = np.diag([1.0, 2.0, 4.0])
    assert mean_eigenvalue(A, 0.0) == pytest.approx((7 / 3, 7 / 3))
    assert eigenvalue_factor(0.0) == pytest.approx(1.0)
    assert correlation_shift(np.eye(3), 0.0) == 0.0
    assert mean_eigenvalue(A, 1e6).low == 0.0
