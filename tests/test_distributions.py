import numpy as np
import pytest
from scales import check_scale
from scipy import stats

from spdp.distributions import LogGaussian, LogLaplace, log_jacobian
from spdp.errors import InvalidMatrixError, ParameterError
from spdp.geometry import distance_logeuclid, invvecd, logm, vecd


@pytest.fixture
def mean(random_spd):
    return random_spd(1, 3, seed=5, condition=10.0)[0]


def test_log_gaussian_has_its_covariance(mean, rng):
    A = rng.standard_normal((6, 6))
    cov = A @ A.T + 0.1 * np.eye(6)
    X = LogGaussian(mean, cov).rvs(size=4000, random_state=1)
    y = vecd(logm(X)) - vecd(logm(mean))
    z = np.linalg.solve(np.linalg.cholesky(cov), y.T)
    check_scale((z**2).sum(axis=0), lambda scale: stats.chi2(6, scale=scale**2), 1.0)


def test_log_laplace_exact_radius_and_direction(mean):
    X = LogLaplace(mean, 0.3).rvs(size=4000, random_state=2)
    rho = distance_logeuclid(X, mean)
    check_scale(rho, lambda scale: stats.gamma(6, scale=scale), 0.3)
    u = (vecd(logm(X)) - vecd(logm(mean))) / rho[:, None]
    np.testing.assert_allclose(u.T @ u / len(u), np.eye(6) / 6, atol=0.02)


def test_mcmc_agrees_with_the_exact_law(mean):
    X = LogLaplace(mean, 0.3).rvs(size=1500, random_state=3, method="mcmc", burn_in=400)
    check_scale(distance_logeuclid(X, mean), lambda scale: stats.gamma(6, scale=scale), 0.3)


def test_the_chain_moves_in_high_dimension():
    """From a random point the chain finds its radius.

    From the mean itself, at d = 210, one step in two million is accepted.
    """
    law = LogLaplace(np.eye(20), 0.05)
    rho = np.linalg.norm(law.offsets(8, 0, "mcmc", burn_in=6000), axis=1) / 0.05
    assert np.abs(rho - 210).max() < 120


@pytest.mark.parametrize("law", [lambda M: LogGaussian(M, 0.5), lambda M: LogLaplace(M, 0.4)])
def test_logpdf_integrates_to_one(law):
    """By importance sampling for k = 2, from a wider log Gaussian of the same mean."""
    M = np.array([[1.5, 0.3], [0.3, 0.8]])
    proposal = LogGaussian(M, 1.5)
    X = proposal.rvs(size=40_000, random_state=4)
    weights = np.exp(law(M).logpdf(X) - proposal.logpdf(X))
    assert abs(weights.mean() - 1) < 4 * weights.std() / 200


def test_log_gaussian_density_by_numerical_jacobian(random_spd):
    X = random_spd(1, 3, seed=9, condition=20.0)[0]
    assert np.exp(log_jacobian(X)) == pytest.approx(jacobian(X), rel=1e-6)


def jacobian(X, h=1e-5):
    """det of d vecd(logm X) / d vecd(X), by central differences."""
    v = vecd(X)
    moved = [[vecd(logm(invvecd(v + s * e))) for e in np.eye(len(v))] for s in (h, -h)]
    return abs(np.linalg.det((np.array(moved[0]) - moved[1]) / (2 * h)))


def test_density_is_smooth_where_eigenvalues_coincide():
    at = log_jacobian(np.diag([2.0, 2.0, 3.0]))
    for gap in (1e-15, 1e-12, 1e-8, 1e-5, 1e-3):
        near = log_jacobian(np.diag([2.0 - gap, 2.0 + gap, 3.0]))
        assert near == pytest.approx(at, abs=3 * gap + 1e-13)
    assert log_jacobian(np.eye(4)) == pytest.approx(0.0, abs=1e-14)
    assert np.isfinite(LogGaussian(np.eye(2), 1.0).logpdf(np.diag([1e-120, 1e120])))


def test_shapes_and_seeds(mean):
    law = LogLaplace(mean, 0.1)
    assert law.rvs(random_state=0).shape == (3, 3)
    assert law.rvs(size=(2, 4), random_state=0).shape == (2, 4, 3, 3)
    np.testing.assert_array_equal(law.rvs(size=3, random_state=7), law.rvs(size=3, random_state=7))
    assert law.logpdf(law.rvs(size=5, random_state=0)).shape == (5,)
    one = LogGaussian([[2.0]], 0.25)
    x = np.array([[[0.5]], [[3.0]]])
    expected = stats.lognorm(0.5, scale=2.0).logpdf(x[:, 0, 0])
    np.testing.assert_allclose(one.logpdf(x), expected, rtol=1e-12)


def test_errors(mean):
    with pytest.raises(ParameterError, match="cov has shape"):
        LogGaussian(mean, np.eye(3))
    with pytest.raises(InvalidMatrixError, match="positive definite"):
        LogGaussian(mean, -np.eye(6))
    with pytest.raises(ParameterError, match="scale"):
        LogLaplace(mean, 0.0)
    with pytest.raises(ParameterError, match="method"):
        LogLaplace(mean, 1.0).rvs(method="gibbs")
    with pytest.raises(ParameterError, match="burn_in"):
        LogLaplace(mean, 1.0).rvs(method="mcmc", burn_in=0)
    with pytest.raises(ParameterError, match="expected"):
        LogLaplace(mean, 1.0).logpdf(np.eye(2))
