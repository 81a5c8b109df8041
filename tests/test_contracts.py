"""What every chart, kernel and query must keep: one test over all of their tables.

A new metric, kernel or query is put to these by standing in its table.
"""

import pickle
from math import isqrt

import numpy as np
import pytest

from spdp import Ball, CorrelationBounds, EigenvalueBounds, TraceBounds
from spdp.charts import CHARTS
from spdp.choices import Adjacency
from spdp.frame import Frame
from spdp.kernels import MODULES, RECORD_NORM, base, kernels_for
from spdp.queries import (
    AbsoluteSum,
    CorrelationSum,
    DistanceSum,
    ExcessSum,
    Histogram,
    SpreadSum,
    VectorSum,
)
from spdp.queries.spread import COUNTED

DOMAINS = [
    Ball(1.5),
    Ball(0.3, np.diag([1.0, 2.0, 0.5])),
    EigenvalueBounds(0.2, 4.0),
    TraceBounds(0.2, 5.0),
    CorrelationBounds(0.1),
]
K = 3


@pytest.fixture(params=MODULES)
def kernels(request):
    found = kernels_for(wanted=request.param)
    assert request.param == found.NAME
    return found


@pytest.fixture(params=CHARTS)
def chart(request):
    return CHARTS[request.param]


def make_queries(rng, d):
    """One query of each kind, with parameters at random."""
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0] if rng.random() < 0.5 else None
    frame = Frame(rng.standard_normal(d), np.exp(rng.uniform(-2, 2, d)), axes)
    radius, edges = 10.0 ** rng.uniform(-2, 1), np.sort(rng.uniform(0, 20, 8))
    longest = radius * float(frame.width.max())
    weights = (int(0.8 * RECORD_NORM), int(0.6 * RECORD_NORM))
    return [
        VectorSum("sum", frame, radius),
        VectorSum("sum and count", frame, radius, weight=1 << 29),
        AbsoluteSum("absolute", frame, radius),
        DistanceSum("distance", frame, radius),
        Histogram("histogram", frame, edges),
        CorrelationSum("correlation", frame, radius),
        ExcessSum("excess", frame, radius, (30.0 * longest, longest), weights),
        ExcessSum("squares", frame, radius, (30.0 * longest, 9.0 * longest), weights, (1, 2)),
        SpreadSum("spread", Frame.plain(frame.center), radius),
        SpreadSum("spread and count", Frame.plain(frame.center), radius, COUNTED),
    ]


QUERIES = [query.name for query in make_queries(np.random.default_rng(0), 2)]


def free_entries(chart, k):
    """Directions of unit length in which a chart's matrices have room."""
    if "c" in chart.kinds:
        return chart.unfold(np.eye(chart.dimension(k)))
    # all entries, or those off the diagonal
    return base.invvecd(np.eye(base.dimension(k)))[-chart.dimension(k) :]


def square(v):
    return sum(int(x) ** 2 for x in v)


# --- charts
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("domain", DOMAINS)
def test_vectors_and_matrices_are_inverse(chart, kernels, domain, random_records):
    X = domain.clip(random_records(200, K), chart)
    Y, status = chart.vectors(X, domain.region(K, chart), kernels)
    assert not status.any()
    np.testing.assert_allclose(chart.matrices(Y), X, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(chart.vector(X), Y, atol=1e-9)
    assert chart.size(chart.dimension(K)) == K


def test_the_metric_of_a_chart_is_flat(chart, kernels, random_records):
    """The midpoint of two vectors is the midpoint of their matrices: straight lines."""
    X = random_records(2, K, condition=5.0)
    region = Ball(50.0).region(K, chart)
    a, b = chart.vectors(X, region, kernels)[0]
    middle = chart.vector(chart.matrices(0.5 * (a + b)))
    for end in (a, b):
        assert np.linalg.norm(middle - end) == pytest.approx(0.5 * np.linalg.norm(a - b))


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_record_lies_in_the_ball_of_its_domain(chart, kernels, domain, random_records):
    region = domain.region(K, chart)
    Y, _ = chart.vectors(random_records(500, K, condition=1e6), region, kernels)
    if isinstance(domain, EigenvalueBounds):
        inside = domain.clip(random_records(500, K, condition=1e6), chart)
        Y = chart.vector(inside)
        assert np.linalg.norm(Y - region.center, axis=1).max() <= region.radius * (1 + 1e-9)
    projected = chart.project(Y, region)
    assert np.linalg.norm(projected - region.center, axis=1).max() <= region.radius * (1 + 1e-9)
    np.testing.assert_allclose(chart.project(projected, region), projected, atol=1e-9)


@pytest.mark.parametrize("domain", DOMAINS)
def test_projection_never_moves_away_from_the_domain(chart, domain):
    rng = np.random.default_rng(0)
    region = domain.region(K, chart)
    d = chart.dimension(K)
    for _ in range(200):
        inside = chart.project(rng.standard_normal(d) * 3, region)
        outside = rng.standard_normal(d) * 10
        near = chart.project(outside, region)
        assert np.linalg.norm(near - inside) <= np.linalg.norm(outside - inside) * (1 + 1e-12)


@pytest.mark.parametrize("size", [1e-17, 1.0, 30.0, 1e3, 1e6])
def test_matrices_are_positive_definite_whatever_the_vector(chart, size):
    rng = np.random.default_rng(1)
    for k in (1, 2, 3, 9, 30):
        for v in rng.standard_normal((20, chart.dimension(k))) * size:
            M = chart.matrices(v)
            assert np.isfinite(M).all()
            assert (M == M.conj().T).all()
            np.linalg.cholesky(M)
            assert np.linalg.eigvalsh(M)[0] > 0


def test_the_jacobian_is_that_of_the_map_from_free_entries(chart, random_records):
    X = chart.matrices(chart.vector(random_records(1, K, seed=4)[0]))
    h = 1e-6
    steps = free_entries(chart, K)
    up, down = (chart.vector(X + s * steps) for s in (h, -h))
    numerical = np.linalg.slogdet((up - down) / (2 * h))[1]
    assert chart.log_jacobian(X) == pytest.approx(numerical, abs=1e-6)
    assert np.shape(chart.log_jacobian(np.stack([X, X]))) == (2,)


def test_components_are_orthogonal_and_add_up(chart):
    for k in (1, 2, 4):
        d = chart.dimension(k)
        parts = chart.components(np.eye(d))  # projections onto the components
        np.testing.assert_allclose(sum(P for P, _ in parts), np.eye(d), atol=1e-12)
        for P, p in parts:
            np.testing.assert_allclose(P @ P, P, atol=1e-12)
            np.testing.assert_allclose(P, P.T, atol=1e-12)
            assert np.trace(P) == pytest.approx(p)


def test_components_of_large_vectors_need_no_matrix(chart):
    v = np.ones(chart.dimension(400))  # a basis would take 51 GB
    np.testing.assert_allclose(sum(part for part, _ in chart.components(v)), v)


@pytest.mark.parametrize("domain", DOMAINS)
def test_lattice_sums_are_the_sums_of_codes(chart, kernels, domain, random_records):
    X = random_records(301, K, condition=1e4)
    region = domain.region(K, chart)
    q, _ = chart.encode(X, region, kernels)
    total, _ = chart.lattice_sum(X, region, kernels)
    np.testing.assert_array_equal(total, q.sum(axis=0))
    assert max(map(square, q)) <= RECORD_NORM**2


# --- queries
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(len(QUERIES)), ids=QUERIES)
def test_worst_case_neighbours(kernels, place):
    """One record replaced by any other, added or removed.

    The total moves within bounds.
    """
    rng = np.random.default_rng(place)
    largest = 0.0
    for _ in range(150):
        d = int(rng.integers(1, 8))
        query = make_queries(rng, d)[place]
        base = rng.standard_normal((20, d))
        a, b = base.copy(), base.copy()
        a[0] = rng.standard_normal(d) * 10.0 ** rng.uniform(-3, 3)
        turned = np.roll(a[0], 1) * rng.choice([-1.0, 1.0], d)  # often at right angles
        fates = (-a[0] * 10.0 ** rng.uniform(-2, 2), query.frame.center, turned)
        b[0] = fates[rng.integers(3)]
        moved = query.total(a, kernels) - query.total(b, kernels)
        bound = query.sensitivity(Adjacency.REPLACE_ONE)
        assert square(moved) <= bound**2
        largest = max(largest, isqrt(square(moved)) / bound)
        removed = query.total(a, kernels) - query.total(a[1:], kernels)
        assert square(removed) <= query.sensitivity(Adjacency.ADD_REMOVE) ** 2
    assert largest > 0.7  # the bound is not idle


@pytest.mark.parametrize("place", range(len(QUERIES)), ids=QUERIES)
def test_totals_do_not_depend_on_blocks_or_order(kernels, place):
    rng = np.random.default_rng(5)
    query, Y = make_queries(rng, 6)[place], rng.standard_normal((500, 6))
    whole = query.total(Y, kernels)
    parts = [query.total(part, kernels) for part in np.array_split(rng.permutation(Y), 7)]
    np.testing.assert_array_equal(np.sum(parts, axis=0), whole)
    twin = pickle.loads(pickle.dumps(query))
    np.testing.assert_array_equal(twin.total(Y, kernels), whole)
