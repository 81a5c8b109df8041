"""What others do with mpmath's precision changes no value, and theirs is left alone."""

import os
import random
import sys
import threading

import mpmath
import pytest

from spdp.privacy import calibration
from spdp.privacy.calibration import (
    analytic_sigma,
    classical_mu,
    classical_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
)
from spdp.privacy.costs import pure_mu

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
