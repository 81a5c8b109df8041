"""Calibrations that are safe to the last bit, against the definition in many digits."""

import math
import os
import random
import sys
import threading
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spdp.errors import ParameterError
from spdp.privacy import (
    analytic_sigma,
    calibration,
    classical_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    laplace_scale,
)
from spdp.privacy.budget import pure_mu
from spdp.privacy.calibration import classical_mu, next_below

EPSILONS = [0.0, 1e-300, 1e-9, 1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 20.0, 100.0, 300.0, 700.0]
DELTAS = [0.5, 0.1, 1e-3, 1e-5, 1e-9, 1e-14, 1e-30, 1e-100, 1e-200, 1e-300]


def true_delta(epsilon, sensitivity, sigma, near):
    """δ of Gaussian noise by definition, to a hundred digits of what it is near.

    It is the difference of two numbers up to one.
    """
    with mpmath.workdps(100 + math.ceil(-math.log10(near))):
        e, mu = mpmath.mpf(epsilon), mpmath.mpf(sensitivity) / mpmath.mpf(sigma)
        return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)


def check_sigma(sensitivity, epsilon, delta):
    """σ is enough, and not wasteful: a billionth less would not be enough."""
    sigma = analytic_sigma(sensitivity, epsilon, delta)
    assert true_delta(epsilon, sensitivity, sigma, delta) <= mpmath.mpf(delta)
    assert true_delta(epsilon, sensitivity, sigma * (1 - 1e-9), delta) > mpmath.mpf(delta)


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
        assert true_delta(epsilon, 2.0, sigma, delta) <= mpmath.mpf(delta)


def test_conversions_are_inverse_and_conservative():
    for epsilon in EPSILONS[1:]:
        for delta in DELTAS:
            mu = gaussian_mu(epsilon, delta)
            exact = true_delta(epsilon, mu, 1.0, delta)
            assert exact <= mpmath.mpf(delta)
            assert gaussian_delta(epsilon, mu) == pytest.approx(delta, rel=1e-9)
            assert mpmath.mpf(gaussian_delta(epsilon, mu)) >= exact
            back = gaussian_epsilon(delta, mu)
            assert true_delta(back, mu, 1.0, delta) <= mpmath.mpf(delta)
            assert back <= epsilon * (1 + 1e-9) + 1e-15
    assert gaussian_epsilon(0.5, 0.1) == 0.0
    assert gaussian_delta(1e6, 1e-3) == 5e-324
    assert gaussian_delta(1e6, 1e9) == 1.0


def test_mu_of_the_classical_calibration_is_rounded_down():
    for epsilon, delta in [(0.1, 1e-6), (0.5, 1e-9), (0.999, 0.5)]:
        mu, sigma = classical_mu(epsilon, delta), classical_sigma(1.0, epsilon, delta)
        assert Fraction(mu) * Fraction(sigma) <= 1 + Fraction(1, 2**52)
        assert mu == pytest.approx(1 / sigma, rel=1e-15)
        assert true_delta(epsilon, mu, 1.0, delta) <= mpmath.mpf(delta)


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


# --- what others do with mpmath's precision changes no value; theirs is left alone

DIGITS = 15  # mpmath's own


def budgets(seed, many):
    rng = random.Random(seed)
    return [(10 ** rng.uniform(-4, 0), 10 ** rng.uniform(-14, -4)) for _ in range(many)]


def values(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    gauss = (mu, gaussian_delta(epsilon, mu), gaussian_epsilon(delta, mu))
    sigmas = (analytic_sigma(0.3, epsilon, delta), classical_sigma(0.3, epsilon, delta))
    return (*gauss, *sigmas, classical_mu(epsilon, delta), pure_mu(epsilon))


def forget():
    for name in ("_mu_exact", "_mu_rounded", "_sigma_rounded", "_classical_mu_exact"):
        getattr(calibration, name).cache_clear()


@pytest.fixture
def told():
    """What is computed while nobody interferes; nothing of it is remembered."""
    mpmath.mp.dps = DIGITS
    forget()
    yield lambda pairs: ([values(*pair) for pair in pairs], forget())[0]
    mpmath.mp.dps = DIGITS
    forget()


@pytest.mark.parametrize("digits", [6, 14, 50])
def test_the_callers_precision_changes_no_bit_and_is_left_alone(told, digits):
    pairs = budgets(0, 30)
    expected = told(pairs)
    mpmath.mp.dps = digits
    assert [values(*pair) for pair in pairs] == expected
    assert mpmath.mp.dps == digits


@pytest.fixture
def hasty():
    """Threads that interrupt each other all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_change_no_bit_of_each_other(told, hasty):
    pairs = budgets(1, 120)
    expected = told(pairs)
    seen = [None] * len(pairs)
    gate = threading.Barrier(4)

    def work(first):
        gate.wait()
        for i in range(first, len(pairs), 4):
            seen[i] = values(*pairs[i])

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert seen == expected
    assert mpmath.mp.dps == DIGITS


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 warns
def test_a_child_waits_for_no_thread_that_it_does_not_have(hasty):
    stop = threading.Event()

    def work():
        while not stop.is_set():
            pure_mu(0.5)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                threading.Timer(20, lambda: os._exit(1)).start()
                os._exit(0 if pure_mu(0.5) > 0 else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()


def test_what_another_thread_computed_is_not_rounded_anew(told):
    """Numbers are kept between calls, and know the precision of their thread."""
    pairs = budgets(2, 60)
    expected = told(pairs)
    for kept in (classical_mu, gaussian_mu):
        other = threading.Thread(target=lambda kept=kept: [kept(*pair) for pair in pairs])
        other.start()
        other.join()
    assert [values(*pair) for pair in pairs] == expected
