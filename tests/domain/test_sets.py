"""The kinds of domains: what they hold, how they clip, what they refuse."""

import json

import numpy as np
import pytest

from spdp import (
    Ball,
    CorrelationBounds,
    EigenvalueBounds,
    TraceBounds,
    amplitude_bounds,
    private_mean,
    tensor_bounds,
)
from spdp.charts import CHARTS, clip_to_ball
from spdp.charts.base import Chart
from spdp.domain.base import check_domain
from spdp.domain.sets import domain_of
from spdp.errors import InvalidMatrixError, ParameterError
from spdp.geometry import distance_logeuclid, logm
from spdp.kernels import MODULES, kernels_for
from spdp.kernels.base import RECORD_NORM
from spdp.kernels.vecd import invvecd
from spdp.release import Release
from spdp.statistics.partial_sums import LatticeSum


def test_ball_clips_radially(random_spd):
    X = random_spd(200, 4, condition=20.0)
    center = random_spd(1, 4, seed=3, condition=2.0)[0]
    ball = Ball(2.0, center)
    inside = distance_logeuclid(X, center) <= 2.0
    Y = ball.clip(X)
    assert 0 < inside.sum() < len(X)
    np.testing.assert_allclose(Y[inside], X[inside], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(distance_logeuclid(Y[~inside], center), 2.0, rtol=1e-9)
    direction = logm(X[~inside]) - logm(center)
    moved = logm(Y[~inside]) - logm(center)
    lengths = np.linalg.norm(direction, axis=(1, 2)) * np.linalg.norm(moved, axis=(1, 2))
    cosine = (direction * moved).sum(axis=(1, 2)) / lengths
    np.testing.assert_allclose(cosine, 1.0, atol=1e-9)
    assert ball.contains(Y).all()
    np.testing.assert_array_equal(ball.contains(X), inside)


def test_eigenvalue_bounds(random_spd):
    X = random_spd(200, 4, condition=1e8)
    bounds = EigenvalueBounds(0.1, 20.0)
    w = np.linalg.eigvalsh(bounds.clip(X))
    np.testing.assert_allclose(w, np.clip(np.linalg.eigvalsh(X), 0.1, 20.0), rtol=1e-9)
    assert bounds.contains(bounds.clip(X)).all()
    assert not bounds.contains(X).all()
    assert bounds.radius_for(4) == pytest.approx(np.log(200.0))
    assert bounds.sensitivity(50, 4) == pytest.approx(2 * np.log(200.0) / 50)
    region = bounds.region(4)
    np.testing.assert_allclose(region.center[:4], np.log(np.sqrt(2.0)))


def test_a_nearly_singular_matrix_is_clipped_not_refused():
    v = np.array([1.0, 2.0, 3.0])
    X = np.outer(v, v)  # rank one: SPD only up to rounding
    w = np.linalg.eigvalsh(EigenvalueBounds(1e-3, 1e3).clip(X))
    np.testing.assert_allclose(w, [1e-3, 1e-3, 14.0], rtol=1e-9)
    with pytest.raises(InvalidMatrixError, match="positive definite"):
        EigenvalueBounds(1e-3, 1e3).clip(-X)
    with pytest.raises(InvalidMatrixError, match="positive definite"):
        Ball(1.0).clip(np.zeros((2, 2)))


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, np.inf, "wide", 1e-200])
def test_bad_radius(radius):
    with pytest.raises(ParameterError, match="radius"):
        Ball(radius)


@pytest.mark.parametrize(
    ("domain", "metric", "what"),
    [
        (Ball(0.8, 1e307 * np.eye(2)), "logeuclid", "do not hold the domain's centre"),
        (EigenvalueBounds(1e-320, 1e-310), "hermitian", "do not hold the domain's centre"),
        (Ball(0.2, [[8e37, 2e37], [2e37, 1e37]]), "logchol", "do not hold the domain's centre"),
        (EigenvalueBounds(1e-36, 1e307), "logchol", "radius in this metric is 3.16e"),
    ],
)
def test_a_domain_that_float64_cannot_hold_is_refused(domain, metric, what):
    with pytest.raises(ParameterError, match=what):
        domain.region(2, CHARTS[metric])


def test_bad_domains():
    with pytest.raises(ParameterError, match="low"):
        EigenvalueBounds(0.0, 1.0)
    with pytest.raises(ParameterError, match="smaller"):
        EigenvalueBounds(2.0, 1.0)
    with pytest.raises(ParameterError, match="n must be"):
        Ball(1.0).sensitivity(0, 3)
    with pytest.raises(InvalidMatrixError, match="positive definite"):
        Ball(1.0, -np.eye(2))
    with pytest.raises(ParameterError, match="center is"):
        Ball(1.0, np.eye(2)).region(3)
    with pytest.raises(ParameterError, match=r"required.*leak"):
        check_domain(None)
    for taken in ("auto", "data", np.eye(3), 2.0):
        with pytest.raises(ParameterError, match="leak"):
            check_domain(taken)


def test_domains_are_values():
    assert Ball(1.0) == Ball(1)
    assert Ball(1.0, np.eye(2)) == Ball(1.0, np.eye(2))
    assert Ball(1.0, np.eye(2)) != Ball(1.0)
    assert hash(Ball(1.0)) == hash(Ball(1.0))
    assert EigenvalueBounds(1, 2) == EigenvalueBounds(1.0, 2.0)
    with pytest.raises(ValueError, match="read-only"):
        Ball(1.0, np.eye(2)).center[0, 0] = 2.0


@pytest.mark.parametrize(
    "domain", [Ball(1.5), Ball(0.5, np.diag([1.0, 2.0])), EigenvalueBounds(0.1, 3.0)]
)
def test_a_description_is_all_there_is_to_a_domain(domain):
    assert domain_of(json.loads(json.dumps(domain.describe()))) == domain


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (None, "unknown kind of domain None"),
        ({"type": "Box", "radius": 1.0}, "unknown kind of domain 'Box'"),
        ({"type": "Ball", "width": 1.0}, "not a description of a Ball"),
        ({"type": "Ball", "radius": -1.0, "center": None}, "radius must be"),
    ],
)
def test_other_descriptions_are_refused(description, message):
    with pytest.raises(ParameterError, match=message):
        domain_of(description)


@pytest.mark.parametrize("metric", ["logeuclid", "logchol"])
def test_a_trace_that_leaves_no_room_is_one_clear_error(metric):
    with pytest.raises(ParameterError, match="leaves no room for 3 eigenvalues"):
        TraceBounds(1.0, 2.5).region(3, CHARTS[metric])


# --- bounds on the trace: an interval and a ball that both bind, in every kernel

CHART = CHARTS["logeuclid"]
TRACE = TraceBounds(0.1, 6.0)


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
    assert not TRACE.contains(wide).any()
    assert TRACE.contains(TRACE.clip(wide)).all()


def test_projection_ends_in_both_sets():
    rng = np.random.default_rng(0)
    region = TRACE.region(6)
    V = rng.standard_normal((300, 21)) * 10.0 ** rng.uniform(-2, 2, (300, 1))
    P = CHART.project(V, region)
    assert (np.linalg.norm(P - region.center, axis=1) <= region.radius * (1 + 1e-12)).all()
    w = np.linalg.eigvalsh(invvecd(P))
    assert w.min() >= region.log_low - 1e-9
    assert w.max() <= region.log_high + 1e-9
    np.testing.assert_allclose(CHART.project(P, region), P, atol=1e-9)


@pytest.mark.parametrize(("low", "trace", "k"), [(1e-3, 10.0, 3), (0.25, 55005.5, 22)])
def test_a_projected_vector_has_its_eigenvalues_in_the_interval(low, trace, k):
    """The centre of a domain of traces is not the middle of its interval."""
    domain = TraceBounds(low, trace)
    region = domain.region(k)
    middle = float(region.center[0])
    for below in (1.01, 1.5, 2.0, 5.0):
        v = region.center.copy()
        v[0] = np.log(low / below)
        logs = np.linalg.eigvalsh(invvecd(CHART.project(v, region)))
        assert logs[0] >= np.log(low) - 1e-9
        matrix = np.diag([low / below, *[np.exp(middle)] * (k - 1)])
        assert not domain.contains(matrix)


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


def test_mistakes_in_bounds_on_the_trace():
    for shrinkage in (0.0, 1.0, 2.0, np.nan):
        with pytest.raises(ParameterError, match="shrinkage"):
            CorrelationBounds(shrinkage)
    with pytest.raises(ParameterError, match="smaller than trace"):
        TraceBounds(1.0, 1.0)
    with pytest.raises(ParameterError, match="trace must exceed 20 times low"):
        TraceBounds(0.1, 1.0).region(20)
    with pytest.raises(ParameterError, match="low"):
        TraceBounds(0.0, 1.0)


# --- domains of instruments


def test_tensors_in_any_unit_are_the_same_tensors():
    radii = {tensor_bounds(unit).radius_for(3) for unit in ("mm2/s", "um2/ms", "m2/s", "µm²/ms")}
    assert max(radii) - min(radii) < 1e-12
    assert tensor_bounds("mm2/s") == EigenvalueBounds(1e-5, 5e-3)
    assert tensor_bounds("um2/ms", low=0.1) == EigenvalueBounds(0.1, 5.0)
    assert tensor_bounds("mm2/s").radius_for(3) == pytest.approx(5.38, abs=0.005)
    assert tensor_bounds("mm2/s").contains(np.diag([1.7e-3, 3e-4, 3e-4]))
    assert not tensor_bounds("m2/s").contains(np.diag([1.7e-3, 3e-4, 3e-4]))


def signals(channels, rms, n=50, length=30, seed=0):
    S = np.random.default_rng(seed).standard_normal((n, channels, length))
    return S * rms / np.sqrt((S * S).mean(axis=2, keepdims=True))


def test_amplitudes_hold_every_signal_within_them():
    low, high, k = 0.5, 50.0, 40  # more channels than samples: singular without a floor
    S = signals(k, high)
    C = np.stack([np.cov(s, bias=True) for s in S]) + low**2 * np.eye(k)
    domain = amplitude_bounds(k, low, high, unit="uV", data_unit="uV")
    assert domain == TraceBounds(0.25, k * 2500.25)
    w = np.linalg.eigvalsh(C)
    assert (w.min(), w.sum(axis=1).max()) >= (domain.low * (1 - 1e-9), 0)
    assert w.sum(axis=1).max() <= domain.trace
    assert domain.contains(C).all()
    volts = amplitude_bounds(k, low, high, unit="uV", data_unit="V")
    assert volts.contains(1e-12 * C).all()
    assert not volts.contains(C).any()
    assert volts.radius_for(k) == pytest.approx(domain.radius_for(k))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tensor_bounds("mm/s"), "unit must be one of 'mm2/s'"),
        (lambda: tensor_bounds("mm2/s", low=-1.0), "low"),
        (lambda: amplitude_bounds(0, 1, 2, "V", "V"), "channels"),
        (lambda: amplitude_bounds(3, 2, 1, "V", "V"), "low must be smaller"),
        (lambda: amplitude_bounds(3, 1, 2, "V", "T"), "data_unit must be one of 'V'"),
    ],
)
def test_mistakes_about_instruments(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
