from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from spdp import (
    EigenvalueBounds,
    ExtrinsicGaussian,
    Ledger,
    RiemannianLaplace,
    TangentGaussian,
    private_mean,
)
from spdp.errors import InvalidMatrixError, ParameterError
from spdp.geometry import distance_logeuclid, logm, vecd
from spdp.lattice import quantize
from spdp.privacy import analytic_sigma, classical_sigma

M = np.array([[1.5, 0.3, 0.0], [0.3, 0.8, -0.1], [0.0, -0.1, 1.1]])
MAKERS = {
    "tangent": lambda: TangentGaussian(0.1, 0.8, 1e-5),
    "classical": lambda: TangentGaussian(0.1, 0.8, 1e-5, calibration="classical"),
    "laplace": lambda: RiemannianLaplace(0.1, 0.8),
    "extrinsic": lambda: ExtrinsicGaussian(0.1, 0.8, 1e-5),
}


def squared_distance(name, X):
    if name == "extrinsic":
        return ((X - M) ** 2).sum(axis=(-1, -2))
    return distance_logeuclid(X, M, squared=True)


@pytest.mark.parametrize("name", MAKERS)
def test_one_face(name):
    mechanism = MAKERS[name]()
    for attribute in ("sensitivity", "epsilon", "delta", "sigma", "mu", "calibration", "name"):
        assert hasattr(mechanism, attribute)
    release = mechanism.release(M)
    assert release.value.shape == (3, 3)
    assert (release.value == release.value.T).all()
    c = release.certificate
    assert c["private"] is True
    assert c["seed"] is None
    assert c["float_safe"] is True
    assert c["estimand"] == "the stated summary"
    assert c["epsilon"] == 0.8
    assert c["expected_squared_error"] == pytest.approx(mechanism.squared_error(3).mean(), rel=1e-9)


@pytest.mark.parametrize("seed", [None, 12])
@pytest.mark.parametrize("name", MAKERS)
def test_the_noise_has_its_claimed_law_and_no_other(name, seed):
    """Passes at the claimed scale, fails at 0.7 and 1.3 times it.

    Private and simulated noise alike. Private noise has no seed: at 1e-5 for each of
    the mechanisms, right code fails by chance in 0.004 % of all runs.
    """
    mechanism = MAKERS[name]()
    rng = None if seed is None else np.random.default_rng(seed)
    X = np.stack([mechanism.release(M, random_state=rng).value for _ in range(600)])
    statistic = squared_distance(name, X)
    law = mechanism.squared_error(3)
    assert stats.kstest(statistic, law.cdf).pvalue > 1e-5
    for wrong in (0.7, 1.3):
        assert stats.kstest(statistic / wrong**2, law.cdf).pvalue < 1e-5


def test_the_laws():
    tangent = TangentGaussian(0.1, 0.8, 1e-5)
    assert tangent.sigma == analytic_sigma(0.1, 0.8, 1e-5)
    assert tangent.squared_error(3).mean() == pytest.approx(6 * tangent.sigma**2, rel=1e-7)
    assert tangent.squared_error(3).ppf(0.9) == pytest.approx(
        tangent.sigma**2 * stats.chi2(6).ppf(0.9), rel=1e-7
    )
    assert TangentGaussian(0.1, 0.8, 1e-5, calibration="classical").sigma == classical_sigma(
        0.1, 0.8, 1e-5
    )
    laplace = RiemannianLaplace(0.1, 0.8)
    assert laplace.squared_error(30).mean() == pytest.approx(laplace.sigma**2 * 465 * 466, rel=1e-6)
    assert laplace.squared_error(30).ppf(0.5) == pytest.approx(
        (laplace.sigma * stats.gamma(465).ppf(0.5)) ** 2, rel=1e-6
    )


@pytest.mark.parametrize("sensitivity", [1e-14, 1e-9, 1e-3, 1.0, 1e3])
def test_the_lattice_costs_nothing_and_never_too_little(sensitivity):
    """The noise is at least the calibrated one, and within a few parts in a million for
    any reasonable sensitivity.
    """
    mechanism = TangentGaussian(sensitivity, 0.5, 1e-6)
    ratio = mechanism.squared_error(9).mean() / (45 * mechanism.sigma**2)
    assert ratio >= 1
    if sensitivity >= 1e-9:
        assert ratio < 1 + 2e-5


def test_enormous_noise_does_not_overflow():
    release = TangentGaussian(1e5, 0.1, 1e-9).release(M)
    assert np.isfinite(release.value).all()
    assert np.linalg.eigvalsh(release.value)[-1] > 0


def test_seeded_results_repeat_and_say_so():
    mechanism = TangentGaussian(0.1, 0.8, 1e-5)
    first, second = mechanism.release(M, random_state=5), mechanism.release(M, random_state=5)
    np.testing.assert_array_equal(first.value, second.value)
    assert first.certificate["private"] is False
    assert first.certificate["float_safe"] is False
    assert first.certificate["seed"] == 5
    assert (mechanism.release(M).value != mechanism.release(M).value).any()


def test_errors():
    with pytest.raises(ParameterError, match="calibration"):
        TangentGaussian(0.1, 0.5, 1e-5, calibration="optimal")
    with pytest.raises(ParameterError, match="classical"):
        TangentGaussian(0.1, 1.0, 1e-5, calibration="classical")
    with pytest.raises(InvalidMatrixError, match="positive definite"):
        TangentGaussian(0.1, 0.5, 1e-5).release(-np.eye(2))
    with pytest.raises(ParameterError, match="one matrix"):
        TangentGaussian(0.1, 0.5, 1e-5).release(np.stack([M, M]))
    with pytest.raises(ParameterError, match="at least 1e-100"):
        TangentGaussian(0.1, 0.5, 1e-200).release(M)
    with pytest.raises(ParameterError, match="budget is too small"):
        TangentGaussian(0.1, 0.0, 1e-12).release(M)


@pytest.mark.parametrize("sensitivity", [3 * 2.0**-21, 1e-3, 0.7, 8.9e-6])
def test_neighbours_across_a_power_of_two_stay_within_the_sensitivity(sensitivity):
    """Dividing by the lattice step is exact: the step is a power of two."""
    rng = np.random.default_rng(0)
    for mechanism in (TangentGaussian(sensitivity, 1.0, 1e-6), RiemannianLaplace(sensitivity, 1.0)):
        bound = mechanism._query(3).bound
        for y in (2.0 ** rng.integers(-3, 9, 500)) * (1 - 2.0**-52):
            a, b = np.array([y, 0.1, 0.0]), np.array([y + sensitivity, 0.1, 0.0])
            moved = quantize(a, mechanism.step) - quantize(b, mechanism.step)
            exact = Fraction(float(b[0])) - Fraction(float(a[0]))
            if exact <= Fraction(sensitivity):
                assert sum(int(v) ** 2 for v in moved) <= bound**2


def test_a_value_that_float64_cannot_hold_is_said_to_be_moved():
    """Eigenvalues of a float64 matrix differ by 1e14 at most: the bound says so."""
    X = np.stack([np.diag([1e-20, 1e20])] * 2000)
    options = {"epsilon": 10.0, "delta": 1e-6, "domain": EigenvalueBounds(1e-30, 1e30)}
    truth = np.array([np.log(1e-20), np.log(1e20), 0.0])
    for method in ("oneshot", "adaptive"):
        release = private_mean(X, method=method, **options)
        error = np.linalg.norm(vecd(logm(release.value)) - truth)
        assert error > 10
        assert error <= release.error_bound(0.999)
        assert all(check.ok for check in release.verify())
    wide = TangentGaussian(1e-3, 1.0, 1e-6).release(np.diag([1e-11, 1e11]))
    assert wide.error_bound(0.99) >= 10
    assert "float64" in wide.certificate["error_statement"]


def test_a_scale_that_cannot_be_drawn_costs_nothing(tmp_path):
    ledger = Ledger(tmp_path / "l", epsilon=100.0, delta=1e-6)
    with pytest.raises(ParameterError, match="scale must be"):
        RiemannianLaplace(1e-16, 10.0).release(np.eye(9), ledger=ledger)
    assert ledger.spent()["entries"] == 0
