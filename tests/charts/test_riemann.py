"""The chart of the affine-invariant metric: domains, clipping, and other points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spdp import Ball, EigenvalueBounds, TraceBounds
from spdp.charts import CHARTS, LOGEUCLID, chart_of
from spdp.charts.riemann import Point
from spdp.domain.base import Space
from spdp.errors import ParameterError
from spdp.geometry import distance_riemann, expm, geodesic_riemann, invvecd
from spdp.kernels import kernels_for
from spdp.kernels.vecd import dimension

RIEMANN = CHARTS["riemann"]
DOMAINS = [Ball(1.5), EigenvalueBounds(0.2, 4.0), TraceBounds(0.2, 5.0)]
SEEDS = st.integers(0, 100_000)


def spd(rng, n, k, spread):
    Y = rng.standard_normal((n, dimension(k))) * spread / np.sqrt(k)
    return expm(invvecd(Y))


@pytest.mark.parametrize("domain", DOMAINS)
@given(SEEDS, st.integers(2, 5))
def test_a_domain_is_geodesically_convex(domain, seed, k):
    rng = np.random.default_rng(seed)
    A, B = domain.clip(spd(rng, 2, k, 3.0), RIEMANN)
    between = geodesic_riemann(A, B, rng.random(5))
    assert domain.contains(between, RIEMANN).all()


@pytest.mark.parametrize("domain", DOMAINS)
@given(SEEDS, st.integers(2, 5))
def test_clipping_and_projecting_bring_no_matrix_farther_from_any_of_the_domain(domain, seed, k):
    rng = np.random.default_rng(seed)
    X = spd(rng, 6, k, 4.0)
    inside = domain.clip(spd(rng, 1, k, 3.0), RIEMANN)[0]
    before = distance_riemann(X, inside)
    region = domain.region(k, RIEMANN)
    projected = RIEMANN.matrices(RIEMANN.project(RIEMANN.vector(X), region))
    for after in (domain.clip(X, RIEMANN), projected):
        assert (distance_riemann(after, inside) <= before + 1e-7).all()


@pytest.mark.parametrize("domain", DOMAINS)
def test_regions_and_vectors_are_the_log_euclidean_ones(domain):
    X = spd(np.random.default_rng(0), 50, 3, 3.0)
    ours, theirs = domain.region(3, RIEMANN), domain.region(3, LOGEUCLID)
    np.testing.assert_array_equal(ours.center, theirs.center)
    assert ours._replace(center=None) == theirs._replace(center=None)
    np.testing.assert_array_equal(
        RIEMANN.vectors(X, ours, kernels_for())[0], LOGEUCLID.vectors(X, theirs, kernels_for())[0]
    )


@given(SEEDS, st.integers(2, 5), st.floats(0.5, 5.0))
def test_a_domain_lies_in_its_own_ball_seen_from_anywhere(seed, k, radius):
    rng = np.random.default_rng(seed)
    region = Ball(radius).region(k, RIEMANN)
    Y = rng.standard_normal((30, dimension(k)))
    Y *= radius / np.linalg.norm(Y, axis=1, keepdims=True)
    C = Point.start(dimension(k)).moved(rng.standard_normal(dimension(k)))
    seen, home = kernels_for().carry(Y, C.to_here(None)), C.seen(region.center)
    assert (np.linalg.norm(seen - home, axis=1) <= radius * (1 + 1e-6)).all()


def test_a_ball_about_a_matrix_is_seen_from_it():
    rng = np.random.default_rng(1)
    M, far = np.diag([1.0, 2.0, 5.0]), spd(rng, 20, 3, 3.0)
    space = Space.of(RIEMANN, Ball(0.7, M), 3)
    assert space.chart.reference_point == M.tolist()
    np.testing.assert_allclose(space.region.center, 0.0, atol=1e-12)
    Y, status = space.chart.vectors(far, space.region, kernels_for())
    assert not status.any()
    clipped = space.chart.matrices(Y)
    assert (distance_riemann(clipped, M) <= 0.7 * (1 + 1e-9)).all()
    inside = geodesic_riemann(M, far, 0.01)
    Y, _ = space.chart.vectors(inside, space.region, kernels_for())
    np.testing.assert_allclose(np.linalg.norm(Y, axis=1), distance_riemann(inside, M), atol=1e-9)
    with pytest.raises(ParameterError, match="reference_point"):
        Ball(0.7, M).region(3, RIEMANN)
    assert Space.of(LOGEUCLID, Ball(0.7, M), 3).chart is LOGEUCLID
    scalar = Ball(0.7, 2.0 * np.eye(3))
    np.testing.assert_allclose(scalar.region(3, RIEMANN).center[:3], np.log(2.0))


def test_a_reference_point_whitens_as_in_the_log_euclidean_metric():
    rng = np.random.default_rng(2)
    X, C = spd(rng, 9, 3, 1.0), np.diag([1.0, 3.0, 9.0])
    ours, theirs = chart_of("riemann", C, curved=True), chart_of("logeuclid", C)
    assert (ours.name, ours.flat, theirs.flat) == ("riemann", False, True)
    assert ours.key != theirs.key
    np.testing.assert_array_equal(ours.vector(X), theirs.vector(X))
    np.testing.assert_allclose(
        np.linalg.norm(ours.vector(X), axis=1), distance_riemann(X, C), atol=1e-9
    )
    with pytest.raises(ParameterError, match=r"needs metric='logeuclid' or metric='riemann'"):
        chart_of("logchol", C)


@pytest.mark.parametrize("domain", [EigenvalueBounds(1e-300, 1e300), Ball(1e4), Ball(1e100)])
def test_hostile_records_seen_from_another_point_become_numbers_of_their_own(domain):
    rng = np.random.default_rng(3)
    k, kernels = 3, kernels_for()
    region = domain.region(k, RIEMANN)
    X = spd(rng, 40, k, 1.0) * 10.0 ** rng.uniform(-300, 300, (40, 1, 1))
    X[::7] = np.diag([1e-300, 1.0, 1e300])
    X[1], X[2], X[3] = np.nan, -np.eye(k), np.inf
    Y, _ = RIEMANN.vectors(X, region, kernels)
    C = Point.start(dimension(k)).moved(rng.standard_normal(dimension(k)))
    whole = kernels.carry(Y, C.to_here(None))
    assert np.isfinite(whole).all()
    alone = np.concatenate([kernels.carry(Y[i : i + 1], C.to_here(None)) for i in range(40)])
    np.testing.assert_array_equal(whole, alone)
