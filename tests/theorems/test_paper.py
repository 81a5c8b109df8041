"""One test for each statement of the paper and for each of its misprints, by name.

Mechanisms draw from the operating system and have no seed. Two samples are tested at
1e-4, two means at four standard errors (6e-5 and 7e-5): right code fails by chance in
0.03 % of the runs of this file. All other samples have fixed seeds.
"""

import math

import numpy as np
import pytest
from scales import check_scale
from scipy import stats
from scipy.special import ndtr

from spdp import Ball, EigenvalueBounds, TangentGaussian
from spdp.distributions import LogGaussian, LogLaplace, log_jacobian
from spdp.geometry import (
    add,
    distance_logeuclid,
    expm,
    invvecd,
    logm,
    mean_logeuclid,
    subtract,
    vecd,
)
from spdp.kernels.vecd import dimension
from spdp.privacy import analytic_sigma, classical_sigma, gaussian_delta


def test_lemma_1_vecd_logm_is_an_isometry(random_spd):
    X, Y = random_spd(50, 6, seed=1), random_spd(50, 6, seed=2)
    frobenius = np.linalg.norm(logm(X) - logm(Y), axis=(1, 2))
    euclidean = np.linalg.norm(vecd(logm(X)) - vecd(logm(Y)), axis=1)
    np.testing.assert_allclose(euclidean, frobenius, rtol=1e-12)
    np.testing.assert_allclose(distance_logeuclid(X, Y), frobenius, rtol=1e-12)


def test_definition_1_log_gaussian(random_spd):
    M = random_spd(1, 3, seed=3)[0]
    cov = np.diag([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    y = vecd(logm(LogGaussian(M, cov).rvs(size=3000, random_state=0))) - vecd(logm(M))
    for j in range(6):
        check_scale(y[:, j], lambda s: stats.norm(scale=s), math.sqrt(cov[j, j]))


def test_lemma_2_properties_of_the_log_gaussian(random_spd):
    M, C = random_spd(2, 3, seed=4)
    X = LogGaussian(np.eye(3), 0.09).rvs(size=3000, random_state=1)
    shifted = vecd(logm(add(X, M))) - vecd(logm(M))  # X ⊕ M ~ LN(M, σ²I)
    check_scale(shifted[:, 0], lambda s: stats.norm(scale=s), 0.3)
    # ⟨Logm C, Logm X⟩ ~ N(0, σ²‖Logm C‖²)
    inner = np.einsum("ij,nij->n", logm(C), logm(X))
    check_scale(inner, lambda s: stats.norm(scale=s), 0.3 * np.linalg.norm(logm(C)))
    norms = np.linalg.norm(logm(X), axis=(1, 2)) ** 2  # ‖Logm X‖² ~ σ²χ²_d
    check_scale(norms, lambda s: stats.chi2(6, scale=s**2), 0.3)


def test_definition_2_and_corollary_1_tangent_gaussian_is_f_plus_noise(random_spd):
    f = random_spd(1, 3, seed=5)[0]
    mechanism = TangentGaussian(0.2, 0.9, 1e-4)
    X = np.stack([mechanism.release(f).value for _ in range(500)])
    noise = vecd(logm(subtract(X, f)))
    check_scale(noise.ravel(), lambda s: stats.norm(scale=s), mechanism.sigma)


def test_theorem_1_distribution_of_the_privacy_loss(random_spd):
    f, g = random_spd(2, 3, seed=6, condition=2.0)
    mechanism = TangentGaussian(0.4, 0.9, 1e-3)
    X = np.stack([mechanism.release(f).value for _ in range(2000)])
    var = mechanism.sigma**2
    loss = LogGaussian(f, var).logpdf(X) - LogGaussian(g, var).logpdf(X)
    law = mechanism.privacy_loss(distance_logeuclid(f, g))
    assert law.mean() == pytest.approx(law.var() / 2)
    check_scale((loss - law.mean()), lambda s: stats.norm(scale=s), law.std())
    assert abs(loss.mean() - law.mean()) < 4 * law.std() / math.sqrt(len(loss))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.99])
def test_theorem_2_privacy_of_both_calibrations(epsilon):
    for delta in (1e-3, 1e-6, 1e-9):
        classical = classical_sigma(1.0, epsilon, delta)
        analytic = analytic_sigma(1.0, epsilon, delta)
        assert gaussian_delta(epsilon, 1.0 / classical) <= delta
        assert gaussian_delta(epsilon, 1.0 / analytic) <= delta * (1 + 1e-12)
        assert analytic < classical


def test_theorem_3_sensitivity_of_the_frechet_mean():
    """Attained by replacing a record by its antipode, for any public centre."""
    rng = np.random.default_rng(7)
    n, k, r = 20, 4, 0.8
    center = invvecd(rng.standard_normal(10))
    u = rng.standard_normal(10)
    u *= r / np.linalg.norm(u)
    X = expm(center + invvecd(np.stack([u] * n)))
    Y = X.copy()
    Y[0] = expm(center - invvecd(u))
    ball = Ball(r, expm(center))
    moved = distance_logeuclid(mean_logeuclid(X), mean_logeuclid(Y))
    assert moved == pytest.approx(ball.sensitivity(n, k), rel=1e-9)
    wild = expm(invvecd(3.0 * rng.standard_normal((n, 10))))
    wilder = wild.copy()
    wilder[3] = expm(invvecd(-40.0 * u))
    moved = distance_logeuclid(mean_logeuclid(ball.clip(wild)), mean_logeuclid(ball.clip(wilder)))
    assert moved <= ball.sensitivity(n, k) * (1 + 1e-9)


def test_theorem_4_utility_and_misprint_2(random_spd):
    """E ρ² = 8 r² ln(1.25/δ) d / (n² ε²); the printed 4 r² is half the truth."""
    n, k, r, epsilon, delta = 500, 3, 0.25, 0.4, 1e-6
    mechanism = TangentGaussian(2 * r / n, epsilon, delta, calibration="classical")
    law = mechanism.squared_error(k)
    d = 6
    utility = 8 * r**2 * math.log(1.25 / delta) * d / (n**2 * epsilon**2)
    assert law.mean() == pytest.approx(utility, rel=1e-6)
    f = random_spd(1, k, seed=8)[0]
    rho2 = [distance_logeuclid(mechanism.release(f).value, f, squared=True) for _ in range(400)]
    half_width = 4 * law.std() / math.sqrt(400)
    assert abs(np.mean(rho2) - utility) < half_width
    assert abs(np.mean(rho2) - utility / 2) > half_width


def test_lemma_3_eigenvalue_bounds_give_a_radius(random_spd):
    low, high, k = 0.02, 3.0, 5
    X = EigenvalueBounds(low, high).clip(random_spd(200, k, condition=1e6))
    paper = math.sqrt(k) * max(abs(math.log(low)), abs(math.log(high)))
    centred = math.sqrt(k) / 2 * math.log(high / low)
    assert (np.linalg.norm(logm(X), axis=(1, 2)) <= paper).all()
    middle = math.sqrt(low * high) * np.eye(k)
    assert (distance_logeuclid(X, middle) <= centred * (1 + 1e-12)).all()
    extreme = np.diag([low, high, low, high, low])
    assert distance_logeuclid(extreme, middle) == pytest.approx(centred)
    assert centred < paper


def test_laplace_utility_grows_as_d_times_d_plus_1():
    """E ρ² = σ²·d(d+1): the k⁴ of the paper's comparison."""
    for k in (2, 5):
        d = dimension(k)
        X = LogLaplace(np.eye(k), 0.01).rvs(size=4000, random_state=k)
        rho2 = distance_logeuclid(X, np.eye(k), squared=True)
        assert rho2.mean() == pytest.approx(1e-4 * d * (d + 1), rel=0.1)


def test_misprint_1_the_printed_analytic_condition_accepts_any_sigma():
    """With +Δ/2σ in both terms the left side is never positive.

    The corrected condition refuses small σ.
    """
    for sigma in (1e-6, 1e-3, 1.0, 1e3):
        for epsilon in (0.1, 1.0, 5.0):
            a = 1.0 / (2 * sigma) - epsilon * sigma
            assert ndtr(a) - math.exp(epsilon) * ndtr(a) <= 0
    assert gaussian_delta(0.1, 1 / 1e-3) > 0.99


def test_misprint_3_the_jacobian_needs_its_denominator():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3, 3))
    X = A @ A.T / 3 + 0.5 * np.eye(3)
    w = np.linalg.eigvalsh(X)
    ratios = [w[j] / w[i] for i, j in ((0, 1), (0, 2), (1, 2))]
    printed = np.prod(np.log(ratios)) / np.prod(w)
    v, h = vecd(X), 1e-5
    up, down = ([vecd(logm(invvecd(v + s * e))) for e in np.eye(6)] for s in (h, -h))
    numerical = abs(np.linalg.det((np.array(up) - down) / (2 * h)))
    assert math.exp(log_jacobian(X)) == pytest.approx(numerical, rel=1e-6)
    assert abs(printed / numerical - 1) > 0.5


def test_misprint_4_the_printed_acceptance_rule_has_another_stationary_law():
    """min(1, exp((ρ(M, X) − ρ(M, X'))/σ)) keeps the Laplace law.

    Comparing with ρ(X, X'), as printed, does not.
    """
    d, m, steps = 3, 4000, 200
    rng = np.random.default_rng(1)
    x = np.zeros((m, d))
    for _ in range(steps):
        y = x + rng.standard_normal((m, d))
        printed = np.linalg.norm(x - y, axis=1) - np.linalg.norm(y, axis=1)
        accept = np.log(rng.random(m)) < printed
        x[accept] = y[accept]
    assert stats.kstest(np.linalg.norm(x, axis=1), stats.gamma(d).cdf).pvalue < 1e-6
    X = LogLaplace(np.eye(2), 1.0).rvs(size=m, random_state=2, method="mcmc", burn_in=steps)
    assert stats.kstest(distance_logeuclid(X, np.eye(2)), stats.gamma(3).cdf).pvalue > 1e-3


def test_misprint_6_the_extrinsic_sensitivity_is_too_small():
    n, r = 500, 0.25
    X, Y = np.full((n, 1, 1), math.exp(r)), np.full((n, 1, 1), math.exp(r))
    Y[0] = math.exp(-r)
    moved = abs(mean_logeuclid(X) - mean_logeuclid(Y)).item()
    assert moved == pytest.approx(0.0012834, abs=1e-6)
    assert 2 * (math.exp(r) - 1) / n < moved <= math.exp(r) * 2 * r / n


def test_misprint_8_the_gaussian_tail_bound():
    for sigma in (0.5, 2.0):
        for t in (1.0, 3.0):
            bound = sigma / (t * math.sqrt(2 * math.pi)) * math.exp(-(t**2) / (2 * sigma**2))
            assert stats.norm(scale=sigma).sf(t) <= bound
