"""The paper's statements need a flat metric and no more: all of them, over all charts.

Written with the chart φ alone, as the proof in docs/paper.md is.

Mechanisms and means draw from the operating system and have no seed. Per chart five
samples are tested at 1e-4 and one mean at four standard errors (6e-5): right code
fails by chance in 4·(5·1e-4 + 6e-5) = 0.2 % of the runs of this file.
"""

import math

import numpy as np
import pytest
from scales import check_scale
from scipy import stats

from spdp import Ball, RiemannianLaplace, TangentGaussian, private_mean
from spdp.charts import CHARTS
from spdp.distributions import LogGaussian, LogLaplace
from spdp.errors import ParameterError
from spdp.statistics.partial_sums import LatticeSum

K = 3


@pytest.fixture(params=[name for name, chart in CHARTS.items() if chart.flat])
def chart(request):
    return CHARTS[request.param]


@pytest.fixture
def summaries(chart, random_records):
    """Matrices of the metric's space."""
    return chart.matrices(chart.vector(random_records(20, K, seed=6, condition=3.0)))


def test_lemma_1_a_chart_is_an_isometry_and_onto(chart):
    y = np.random.default_rng(0).standard_normal((50, chart.dimension(K)))
    np.testing.assert_allclose(chart.vector(chart.matrices(y)), y, atol=1e-9)


def test_definition_1_vectors_of_a_log_gaussian_are_gaussian(chart, summaries):
    variances = np.linspace(0.1, 0.6, chart.dimension(K))
    law = LogGaussian(summaries[0], np.diag(variances), chart.name)
    y = chart.vector(law.rvs(size=2000, random_state=0)) - chart.vector(summaries[0])
    for j, variance in enumerate(variances):
        check_scale(y[:, j], lambda s: stats.norm(scale=s), math.sqrt(variance))


def test_definition_2_the_tangent_gaussian_is_the_summary_plus_noise(chart, summaries):
    f, mechanism = summaries[0], TangentGaussian(0.2, 0.9, 1e-4, metric=chart.name)
    X = np.stack([mechanism.release(f).value for _ in range(600)])
    noise = chart.vector(X) - chart.vector(f)
    check_scale(noise.ravel(), lambda s: stats.norm(scale=s), mechanism.sigma)
    check_scale((noise**2).sum(axis=1), lambda s: _scaled(mechanism.squared_error(K), s), 1.0)


def _scaled(law, s):
    """The law of s² times what has ``law``."""
    return type("Scaled", (), {"cdf": staticmethod(lambda x: law.cdf(np.asarray(x) / s**2))})


def test_theorem_1_distribution_of_the_privacy_loss(chart, summaries):
    f, g = summaries[:2]
    mechanism = TangentGaussian(0.4, 0.9, 1e-3, metric=chart.name)
    X = np.stack([mechanism.release(f).value for _ in range(2000)])
    var = mechanism.sigma**2
    loss = LogGaussian(f, var, chart.name).logpdf(X) - LogGaussian(g, var, chart.name).logpdf(X)
    law = mechanism.privacy_loss(np.linalg.norm(chart.vector(f) - chart.vector(g)))
    check_scale(loss - law.mean(), lambda s: stats.norm(scale=s), law.std())
    assert abs(loss.mean() - law.mean()) < 4 * law.std() / math.sqrt(len(loss))


def test_theorem_3_sensitivity_of_the_frechet_mean_is_attained(chart):
    n, r, d = 20, 0.8, chart.dimension(K)
    u = np.random.default_rng(7).standard_normal(d)
    u *= r / np.linalg.norm(u)
    a = np.tile(u, (n, 1))
    b = a.copy()
    b[0] = -u
    ends = [Ball(r).clip(chart.matrices(y), chart) for y in (a, b)]
    moved = np.linalg.norm(np.subtract(*[chart.vector(X).mean(axis=0) for X in ends]))
    assert moved == pytest.approx(Ball(r).sensitivity(n, K, chart), rel=1e-9)


def test_theorem_4_utility_of_a_private_mean(chart, summaries):
    domain, d = Ball(2.0), chart.dimension(K)
    options = {"epsilon": 1.0, "delta": 1e-6, "domain": domain, "metric": chart.name}
    truth = chart.vector(domain.clip(summaries, chart)).mean(axis=0)
    many = np.concatenate([summaries] * 400)  # so that noise stays inside the domain
    releases = [
        private_mean(many, mechanism="gaussian", method="oneshot", **options) for _ in range(200)
    ]
    errors = [((chart.vector(release.value) - truth) ** 2).sum() for release in releases]
    law = releases[0].squared_error
    sigma = TangentGaussian(domain.sensitivity(len(many), K, chart), 1.0, 1e-6).sigma
    assert law.mean() == pytest.approx(d * sigma**2, rel=1e-6)
    check_scale(errors, lambda s: _scaled(law, s), 1.0)
    certificate = releases[0].certificate
    assert (certificate["metric"], certificate["distance"]) == (chart.name, chart.distance)
    assert chart.distance in certificate["estimand"]
    assert all(check.ok for check in releases[0].verify() if check.name != "signature")


def test_the_laplace_law_and_mechanism(chart, summaries):
    """E ρ² = σ²·d(d + 1), by the exact sampler and as an ε-DP mechanism."""
    f, d = summaries[0], chart.dimension(K)
    X = LogLaplace(f, 0.05, chart.name).rvs(size=2000, random_state=2)
    rho = np.linalg.norm(chart.vector(X) - chart.vector(f), axis=1)
    check_scale(rho, lambda s: stats.gamma(d, scale=s), 0.05)
    mechanism = RiemannianLaplace(0.05, 1.0, metric=chart.name)
    X = np.stack([mechanism.release(f).value for _ in range(300)])
    rho = np.linalg.norm(chart.vector(X) - chart.vector(f), axis=1)
    check_scale(rho, lambda s: stats.gamma(d, scale=s), 0.05)


def test_adaptive_releases_stay_within_their_bound(chart, summaries):
    rng = np.random.default_rng(1)
    d = chart.dimension(K)
    X = chart.matrices(0.5 + 0.1 * rng.standard_normal((1500, d)))
    truth = chart.vector(X).mean(axis=0)
    options = {"epsilon": 1.0, "delta": 1e-6, "domain": Ball(4.0), "metric": chart.name}
    missed = 0
    for seed in range(20):
        release = private_mean(X, method="adaptive", random_state=seed, **options)
        missed += np.linalg.norm(chart.vector(release.value) - truth) > release.error_bound(0.95)
    assert missed <= 4


def test_sums_of_different_metrics_do_not_merge(random_spd):
    X = random_spd(20, K)
    sums = [LatticeSum.of(X, Ball(1.0), metric=name) for name in CHARTS if CHARTS[name].flat]
    for other in sums[1:]:
        with pytest.raises(ParameterError, match="different metrics"):
            sums[0] + other
