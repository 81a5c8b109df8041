"""The bound on a mean that was shrunk toward a point fixed before."""

import numpy as np
import pytest
from scipy import special

from spdp.error.shrinkage import Shrinkage

RISK = np.array([0.05])


def releases(p, length, runs, alone=0, seed=0):
    """Errors of James–Stein estimates of a mean of some length, and what is known."""
    rng = np.random.default_rng([p, length, seed])
    theta = np.zeros(p)
    theta[0] = length
    X = theta + rng.standard_normal((runs, p))
    a = np.linalg.norm(X, axis=1)
    f = np.maximum(0.0, 1.0 - (p - 2) / a**2)
    errors = np.sum((f[:, None] * X - theta) ** 2, axis=1)
    if alone:
        errors += np.sum(rng.standard_normal((runs, alone)) ** 2, axis=1)
    return np.sqrt(errors), a, f


def covered(p, length, alone=0, sigma=1.0, runs=1500):
    """Share of the errors below their bound, for a noise stated to be ``sigma``."""
    errors, a, f = releases(p, length, runs, alone)
    bounds = [
        Shrinkage(p, sigma, *each, alone).quantiles(RISK)[0] for each in zip(a, f, strict=True)
    ]
    return np.mean(errors <= bounds)


@pytest.mark.parametrize("p", [3, 20, 45, 210])
@pytest.mark.parametrize("length", [0, 2, 8, 40, 80])
def test_it_covers_whatever_the_mean_is(p, length):
    assert covered(p, length) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 1500)


@pytest.mark.parametrize("length", [0, 8])
def test_it_covers_with_a_coordinate_left_alone(length):
    assert covered(44, length, alone=1) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 1500)


@pytest.mark.parametrize("length", [15, 40])
def test_less_noise_than_there_is_would_be_noticed(length):
    """Of a long mean, of which nothing is left to the split of the risk."""
    assert covered(45, length, sigma=0.7) < 0.9


def test_a_short_mean_is_bounded_far_below_its_noise():
    noise = np.sqrt(2.0 * special.gammainccinv(22.5, 0.05))
    _, a, f = releases(45, 0, 200)
    bounds = [Shrinkage(45, 1.0, *each).quantiles(RISK)[0] for each in zip(a, f, strict=True)]
    assert np.mean(bounds) < 0.7 * noise
    _, a, f = releases(45, 40, 200)  # and a long one is not much worse off
    bounds = [Shrinkage(45, 1.0, *each).quantiles(RISK)[0] for each in zip(a, f, strict=True)]
    assert np.mean(bounds) < 1.05 * noise


def test_smaller_risks_have_larger_bounds():
    risks = np.geomspace(1e-7, 0.5, 30)
    for length in (0.0, 5.0, 49.0, 51.0, 1e6):
        reaches = Shrinkage(45, 1.0, length, 0.5).quantiles(risks)
        assert np.isfinite(reaches).all()
        assert (np.diff(reaches) < 1e-9).all()
