"""Bounds on the trace: an interval and a ball that both bind, in every kernel."""

import json

import numpy as np
import pytest

from spdp import CorrelationBounds, EigenvalueBounds, TraceBounds, private_mean
from spdp.charts import CHARTS, clip_to_ball
from spdp.charts.base import Chart
from spdp.domain import domain_of
from spdp.errors import ParameterError
from spdp.kernels import MODULES, RECORD_NORM, kernels_for
from spdp.kernels.base import invvecd
from spdp.release import Release
from spdp.statistics.sums import LatticeSum

CHART = CHARTS["logeuclid"]
DOMAIN = TraceBounds(0.1, 6.0)


@pytest.fixture(params=MODULES)
def kernels(request):
    return kernels_for(wanted=request.param)


def correlations(n, k, shrinkage, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, k, k + 2))
    C = A @ A.transpose(0, 2, 1)
    scale = 1 / np.sqrt(np.diagonal(C, axis1=1, axis2=2))
    C = C * scale[:, :, None] * scale[:, None, :]
    return (1 - shrinkage) * C + shrinkage * np.eye(k)


def both(X, region):
    """The definition: log-eigenvalues clipped, then the vector."""
    w, V = np.linalg.eigh(X)
    logs = np.clip(np.log(w), region.log_low, region.log_high)
    L = (V * logs[:, None, :]) @ V.transpose(0, 2, 1)
    i, j = np.triu_indices(X.shape[1], 1)
    Y = np.concatenate([np.diagonal(L, axis1=1, axis2=2), np.sqrt(2) * L[:, i, j]], axis=1)
    norm = np.linalg.norm(Y - region.center, axis=1, keepdims=True)
    return region.center + (Y - region.center) * np.minimum(1.0, region.radius / norm), norm


@pytest.mark.parametrize("k", [3, 4, 9, 15])
def test_interval_and_ball_bind_in_vectors_and_codes(kernels, random_spd, k):
    region = TraceBounds(0.02, float(k)).region(k)
    X = random_spd(400, k, condition=1e5) * np.logspace(-2, 2, 400)[:, None, None]
    want, norm = both(X, region)
    assert 0.05 < (norm > region.radius).mean() < 0.95  # the ball binds for some
    Y, status = CHART.vectors(X, region, kernels)
    assert not status.any()
    np.testing.assert_allclose(Y, want, atol=1e-9)
    q, _ = kernels.encode(X, region)
    step = region.radius / RECORD_NORM
    assert np.abs(q - (want - region.center) / step).max() < 2.0  # toward zero, and rounding
    total, _ = kernels.lattice_sum(X, region)
    np.testing.assert_array_equal(total, q.sum(axis=0))


def test_records_that_keep_the_bounds_are_left_alone(random_spd):
    X = correlations(300, 6, 0.1)
    for domain in (TraceBounds(0.1, 6.0), CorrelationBounds(0.1)):
        assert domain.contains(X).all()
        np.testing.assert_allclose(domain.clip(X), X, atol=1e-9)
    wide = random_spd(300, 6, condition=1e6) * 10.0
    assert not DOMAIN.contains(wide).any()
    assert DOMAIN.contains(DOMAIN.clip(wide)).all()


def test_projection_ends_in_both_sets():
    rng = np.random.default_rng(0)
    region = DOMAIN.region(6)
    V = rng.standard_normal((300, 21)) * 10.0 ** rng.uniform(-2, 2, (300, 1))
    P = CHART.project(V, region)
    assert (np.linalg.norm(P - region.center, axis=1) <= region.radius * (1 + 1e-12)).all()
    w = np.linalg.eigvalsh(invvecd(P))
    assert w.min() >= region.log_low - 1e-9
    assert w.max() <= region.log_high + 1e-9
    np.testing.assert_allclose(CHART.project(P, region), P, atol=1e-9)


def test_bounds_of_eigenvalues_need_no_ball():
    """Their ball holds them: the vector at a corner is not touched again."""
    region = EigenvalueBounds(0.1, 10.0).region(3)
    corner = CHART.vector(10.0 * np.eye(3))
    np.testing.assert_array_equal(CHART.project(corner, region)[3:], corner[3:])
    assert clip_to_ball(corner, region.center, region.radius) == pytest.approx(corner)


def test_it_is_smaller_than_bounds_of_eigenvalues():
    for k in (3, 5, 20, 100):
        wide = EigenvalueBounds(0.1, k - (k - 1) * 0.1)
        assert CorrelationBounds(0.1).radius_for(k) < wide.radius_for(k)
        fallback = Chart.traced(CHART, 0.1, float(k), k)  # of a chart that knows no better
        assert fallback.radius == pytest.approx(wide.radius_for(k))
    assert CorrelationBounds(0.2).radius_for(20) == TraceBounds(0.2, 20).radius_for(20)


@pytest.mark.parametrize("domain", [TraceBounds(0.1, 6.0), CorrelationBounds(0.1)])
def test_releases_and_sums_with_it(tmp_path, domain):
    X = correlations(2000, 6, 0.1)
    assert domain_of(json.loads(json.dumps(domain.describe()))) == domain
    for method in ("oneshot", "adaptive"):
        release = private_mean(X, epsilon=1.0, delta=1e-6, domain=domain, method=method)
        release.save(tmp_path / method)
        assert all(check.ok for check in Release.load(tmp_path / method).verify())
        assert domain.contains(release.value)
    total = LatticeSum.of(X[:500], domain) + LatticeSum.of(X[500:], domain)
    total.save(tmp_path / "sum.npz")
    assert LatticeSum.load(tmp_path / "sum.npz").domain == domain
    wrong = {**release.certificate["domain"], "shrinkage": 0.5, "low": 0.5}
    with pytest.raises(ParameterError, match="not a description"):
        domain_of(wrong)


def test_mistakes():
    for shrinkage in (0.0, 1.0, 2.0, np.nan):
        with pytest.raises(ParameterError, match="shrinkage"):
            CorrelationBounds(shrinkage)
    with pytest.raises(ParameterError, match="smaller than trace"):
        TraceBounds(1.0, 1.0)
    with pytest.raises(ParameterError, match="trace must exceed 20 times low"):
        TraceBounds(0.1, 1.0).region(20)
    with pytest.raises(ParameterError, match="low"):
        TraceBounds(0.0, 1.0)
