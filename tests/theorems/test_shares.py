"""Sums of discrete Gaussians: how near they are to one (Kairouz, Liu, Steinke 2021)."""

from math import pi

import mpmath
import pytest

from spdp.privacy.account import SMALLEST_SHARE, share_scale


def law(square, reach):
    """Probabilities of the discrete Gaussian of a parameter, in 60 digits."""
    weights = {
        z: mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * square)) for z in range(-reach, reach + 1)
    }
    total = mpmath.fsum(weights.values())
    return {z: w / total for z, w in weights.items()}


def convolved(p, q, reach):
    return {
        z: mpmath.fsum(p[x] * q[z - x] for x in p if z - x in q) for z in range(-reach, reach + 1)
    }


@pytest.mark.parametrize("square", ["0.25", "0.5", "1", "2"])
@pytest.mark.parametrize("sites", [2, 3, 5])
def test_the_sum_is_within_the_bound_of_one_discrete_gaussian(square, sites):
    """And, of two, not within a tenth of it: the bound is of the right order."""
    with mpmath.workdps(60):
        s2, reach, look = mpmath.mpf(square), 60, 8
        one = law(s2, reach)
        found = one
        for _ in range(sites - 1):
            found = convolved(found, one, reach)
        whole = law(sites * s2, reach)
        gap = max(abs(mpmath.log(found[z] / whole[z])) for z in range(-look, look + 1))
        bound = 5 * mpmath.fsum(
            mpmath.exp(-2 * mpmath.pi**2 * s2 * k / (k + 1)) for k in range(1, sites)
        )
        assert gap <= bound
        assert sites > 2 or gap > bound / 10
        assert bound <= 5 * (sites - 1) * mpmath.exp(-(mpmath.pi**2) * s2) * (1 + mpmath.mpf(1e-50))


def test_at_the_smallest_share_the_gap_is_nothing():
    log_gap = float(mpmath.log(5 * 199, 2)) - pi**2 * SMALLEST_SHARE**2 / float(mpmath.log(2))
    assert log_gap < -3600
    for sensitivity, mu, honest in ((1, 10.0, 1), (1, 1e9, 199), (2**31, 0.2, 4)):
        assert share_scale(sensitivity, mu, honest) >= SMALLEST_SHARE
