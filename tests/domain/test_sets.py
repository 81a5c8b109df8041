import json

import numpy as np
import pytest

from spdp import Ball, EigenvalueBounds, TraceBounds
from spdp.charts import CHARTS
from spdp.domain import check_domain, domain_of
from spdp.errors import InvalidMatrixError, ParameterError
from spdp.geometry import distance_logeuclid, logm


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
    with pytest.raises(ParameterError, match="records are"):
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
