"""Covariances shrunk as far as their noise asks for."""

import numpy as np
import pytest

from spdp.adaptive.shrinkage import shrunk_covariance


def noisy(rng, W, sd):
    E = np.triu(rng.standard_normal(W.shape) * sd * 5 / 7, 1)
    return W + E + E.T + np.diag(rng.standard_normal(len(W)) * sd)


@pytest.mark.parametrize("sd", [1e-6, 0.05, 0.3, 5.0])
def test_it_is_positive_definite_and_nearer_than_what_was_seen(sd):
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.standard_normal((20, 20)))[0]
    W = (V * rng.uniform(0.3, 2.0, 20)) @ V.T
    seen = noisy(rng, W, sd)
    found = shrunk_covariance(seen, sd)
    assert np.linalg.eigvalsh(found)[0] > 0
    if sd >= 0.3:
        assert np.linalg.norm(found - W) < np.linalg.norm(seen - W)
    if sd == 1e-6:
        np.testing.assert_allclose(found, W, atol=1e-4)


def test_a_diagonal_stays_above_its_noise():
    rng = np.random.default_rng(1)
    w = rng.uniform(0.5, 1.5, 30)
    np.testing.assert_allclose(shrunk_covariance(w, 1e-9), w, atol=1e-6)
    seen = w + rng.standard_normal(30)
    found = shrunk_covariance(seen, 1.0)
    assert found.min() > 0.2
    assert np.linalg.norm(found - w) < np.linalg.norm(seen - w)


@pytest.mark.parametrize("C", [np.zeros((3, 3)), -np.eye(3), np.zeros(3), -np.ones(3), [[0.0]]])
def test_noise_alone_gives_a_covariance_too(C):
    found = shrunk_covariance(np.asarray(C), 0.1)
    low = np.linalg.eigvalsh(found)[0] if found.ndim == 2 else found.min()
    assert low > 0
