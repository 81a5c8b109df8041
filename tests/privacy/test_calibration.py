"""Calibrations that are safe to the last bit, against the definition in many digits."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spdp.errors import ParameterError
from spdp.privacy import (
    analytic_sigma,
    classical_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    laplace_scale,
)
from spdp.privacy.calibration import classical_mu, next_below

EPSILONS = [0.0, 1e-300, 1e-9, 1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 20.0, 100.0, 300.0, 700.0]
DELTAS = [0.5, 0.1, 1e-3, 1e-5, 1e-9, 1e-14, 1e-30, 1e-100, 1e-200, 1e-300]


def true_delta(epsilon, sensitivity, sigma):
    """δ of Gaussian noise by definition, with so many digits that none is lost."""
    with mpmath.workdps(700):
        e, mu = mpmath.mpf(epsilon), mpmath.mpf(sensitivity) / mpmath.mpf(sigma)
        return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)


def check_sigma(sensitivity, epsilon, delta):
    """σ is enough, and not wasteful: a billionth less would not be enough."""
    sigma = analytic_sigma(sensitivity, epsilon, delta)
    assert true_delta(epsilon, sensitivity, sigma) <= mpmath.mpf(delta)
    assert true_delta(epsilon, sensitivity, sigma * (1 - 1e-9)) > mpmath.mpf(delta)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_analytic_sigma_is_never_optimistic_and_never_wasteful(epsilon):
    for delta in DELTAS:
        for sensitivity in (1.0, 3.7e-5):
            check_sigma(sensitivity, epsilon, delta)


@given(st.floats(0, 700), st.floats(-300, -0.31), st.floats(-8, 8))
def test_analytic_sigma_anywhere(epsilon, log_delta, log_sensitivity):
    check_sigma(10**log_sensitivity, epsilon, 10**log_delta)


@pytest.mark.parametrize("delta", [0.5, 1e-2, 1e-5, 1e-9, 1e-14])
def test_classical_sigma_is_valid_where_it_is_allowed(delta):
    for epsilon in (1e-3, 0.1, 0.5, 0.999):
        sigma = classical_sigma(2.0, epsilon, delta)
        formula = 2.0 * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
        assert sigma == pytest.approx(formula, rel=1e-14)
        assert true_delta(epsilon, 2.0, sigma) <= mpmath.mpf(delta)


def test_conversions_are_inverse_and_conservative():
    for epsilon in EPSILONS[1:]:
        for delta in DELTAS:
            mu = gaussian_mu(epsilon, delta)
            assert true_delta(epsilon, mu, 1.0) <= mpmath.mpf(delta)
            assert gaussian_delta(epsilon, mu) == pytest.approx(delta, rel=1e-9)
            assert mpmath.mpf(gaussian_delta(epsilon, mu)) >= true_delta(epsilon, mu, 1.0)
            back = gaussian_epsilon(delta, mu)
            assert true_delta(back, mu, 1.0) <= mpmath.mpf(delta)
            assert back <= epsilon * (1 + 1e-9) + 1e-15
    assert gaussian_epsilon(0.5, 0.1) == 0.0
    assert gaussian_delta(1e6, 1e-3) == 5e-324
    assert gaussian_delta(1e6, 1e9) == 1.0


def test_mu_of_the_classical_calibration_is_rounded_down():
    for epsilon, delta in [(0.1, 1e-6), (0.5, 1e-9), (0.999, 0.5)]:
        mu, sigma = classical_mu(epsilon, delta), classical_sigma(1.0, epsilon, delta)
        assert Fraction(mu) * Fraction(sigma) <= 1 + Fraction(1, 2**52)
        assert mu == pytest.approx(1 / sigma, rel=1e-15)
        assert true_delta(epsilon, mu, 1.0) <= mpmath.mpf(delta)


def test_the_lattice_pays_with_the_next_delta_below():
    for delta in (0.5, 1e-6, 1e-100):
        assert math.nextafter(next_below(delta), 1.0) == delta
    with pytest.raises(ParameterError, match="delta must be at least 1e-100"):
        next_below(1e-101)


def test_dp_accounting_agrees():
    dp_accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld.accountant import get_smallest_gaussian_noise
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    for epsilon, delta in [(0.1, 1e-6), (1.0, 1e-5), (5.0, 1e-8)]:
        theirs = get_smallest_gaussian_noise(DifferentialPrivacyParameters(epsilon, delta), 1, 1.0)
        assert analytic_sigma(1.0, epsilon, delta) == pytest.approx(theirs, rel=1e-5)
    accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-3)
    accountant.compose(dp_accounting.GaussianDpEvent(2.0), 4)
    theirs = accountant.get_epsilon(1e-6)
    assert gaussian_epsilon(1e-6, 1.0) == pytest.approx(theirs, rel=1e-2)
    assert gaussian_epsilon(1e-6, 1.0) <= theirs


def test_laplace_scale_is_rounded_up():
    for d, e in [(1.0, 3.0), (0.1, 0.7), (1e-9, 1e-3)]:
        s = laplace_scale(d, e)
        assert Fraction(s) * Fraction(e) >= Fraction(d)
        assert s == pytest.approx(d / e, rel=1e-15)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0, -1.0, "x", None])
def test_bad_sensitivity(bad):
    for call, rest in (
        (analytic_sigma, (1.0, 1e-5)),
        (classical_sigma, (0.5, 1e-5)),
        (laplace_scale, (1.0,)),
    ):
        with pytest.raises(ParameterError, match="sensitivity"):
            call(bad, *rest)


@pytest.mark.parametrize("delta", [float("nan"), 0.0, 1.0, -1e-9, 2.0])
def test_bad_delta(delta):
    for call in (analytic_sigma, classical_sigma):
        with pytest.raises(ParameterError, match="delta"):
            call(1.0, 0.5, delta)
    with pytest.raises(ParameterError, match="delta"):
        gaussian_epsilon(delta, 1.0)


@pytest.mark.parametrize("epsilon", [float("nan"), float("inf"), -0.1, 1e7])
def test_bad_epsilon(epsilon):
    for call, arguments in (
        (analytic_sigma, (1.0, epsilon, 1e-5)),
        (gaussian_mu, (epsilon, 1e-5)),
        (gaussian_delta, (epsilon, 1.0)),
    ):
        with pytest.raises(ParameterError, match="epsilon"):
            call(*arguments)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 10.0])
def test_classical_is_refused_where_it_is_unproven(epsilon):
    with pytest.raises(ParameterError, match="classical"):
        classical_sigma(1.0, epsilon, 1e-5)


def test_sigma_scales_with_sensitivity():
    sensitivities = np.array([1e-12, 0.1, 7.0, 1e12])
    sigmas = [analytic_sigma(s, 0.3, 1e-7) for s in sensitivities]
    np.testing.assert_allclose(sigmas / sensitivities, analytic_sigma(1.0, 0.3, 1e-7), rtol=1e-14)
