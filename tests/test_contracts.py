"""What every chart, kernel and query must keep: one test over all of their tables.

A new metric, kernel or query is put to these by standing in its table.
"""

import inspect
import pickle
from functools import singledispatch
from importlib import import_module
from math import inf, isqrt
from pkgutil import iter_modules

import numpy as np
import pytest

from spdp import Ball, CorrelationBounds, EigenvalueBounds, TraceBounds, statistics
from spdp.charts import CHARTS, LOGEUCLID
from spdp.domain.base import Space
from spdp.kernels import MODULES, kernels_for
from spdp.kernels.base import RECORD_NORM, Region
from spdp.kernels.vecd import dimension, invvecd
from spdp.options import Adjacency
from spdp.queries import WHOLE, Estimate, Query, Rows, covariates, moments, sums
from spdp.queries.covariates import Trend
from spdp.queries.moments import COUNTED
from spdp.queries.sums import COUNT_UNIT, Frame
from spdp.statistics.mechanisms import Stated

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


C, P = 3, 2  # classes, and covariates
SHARED = (  # what counts rows in part: those of a person, one in each class
    sums.ShareSum,
    sums.RecordCount,
    moments.MomentSum,
    moments.ClassDistance,
    moments.ClassDeviation,
    moments.ClassHistogram,
    moments.HistogramByClass,
    sums.ClassClippingBias,
)


def make_queries(rng, d):
    """One query of each kind at least, with parameters at random, and their centres."""
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0] if rng.random() < 0.5 else None
    centers, width = rng.standard_normal((C, d)), np.exp(rng.uniform(-2, 2, d))
    center = centers[0]
    frame, plain = Frame(center, width, axes), Frame.plain(center)
    radius, edges = 10.0 ** rng.uniform(-2, 1), np.sort(rng.uniform(0, 20, 8))
    longest, radii = radius * float(width.max()), radius * np.linspace(0.5, 1.5, C)
    weights = (int(0.8 * RECORD_NORM), int(0.6 * RECORD_NORM))
    region = Region(-inf, inf, center, radius)
    slopes = np.concatenate([center[None], rng.standard_normal((P, d))])
    trend = Trend(rng.uniform(-0.2, 0.2, P), rng.uniform(0.2, 1.2, P), slopes)
    of_x = Frame.plain(np.zeros(P))
    made = [
        sums.VectorSum("sum", frame, radius),
        sums.VectorSum("sum and count", frame, radius, weight=1 << 29),
        sums.WholeSum("whole sum", plain, radius, weight=int(rng.choice([0, 1 << 29]))),
        sums.ShareSum("shares", frame, radius, weight=1 << 29),
        sums.share_sum(region, Adjacency.REPLACE_ONE),
        sums.AbsoluteSum("absolute", frame, radius),
        sums.DistanceSum("distance", frame, radius),
        sums.Histogram("histogram", frame, edges),
        sums.RecordCount("count"),
        sums.EdgeCount("edge", LOGEUCLID, region),
        sums.DirectionSum("directions", center, radius),
        sums.ClippingBias("clipping bias", frame, radius, (30.0 * longest, longest), weights),
        sums.ClippingBias(
            "loss of squares", frame, radius, (30.0 * longest, 9.0 * longest), weights, (1, 2)
        ),
        sums.ClassClippingBias("class clipping bias", center, radii, radius),
        moments.CorrelationSum("correlation", frame, radius),
        moments.SquaredNormSum("squared norms", plain, radius),
        moments.SquaredNormSum("squared norms and count", plain, radius, COUNTED),
        moments.MomentSum("moments", frame, radius, C, "full", True, centers),
        moments.MomentSum("moments by class", frame, radius, C, "diagonal", False),
        moments.MomentSum("traces by class", frame, radii, C, "trace", False),
        moments.MomentSum("sums by class", frame, radius, C),
        moments.MomentSum("moments in balls by class", frame, radii, C, "full", False),
        moments.ClassDistance("class distance", frame, centers, radius),
        moments.ClassDeviation("class deviation", frame, centers, radius),
        moments.ClassHistogram("class histogram", frame, centers, edges),
        moments.HistogramByClass("histogram by class", frame, edges, C),
        covariates.CovariateSum("covariates", sums.VectorSum("", of_x, 1.5)),
        covariates.CovariateSum("covariate deviations", sums.AbsoluteSum("", of_x, 0.8)),
        covariates.ResidualDistance("residual", trend, radius),
        covariates.CrossSum("cross moments", trend, radius),
    ]
    return made, centers


MADE, _ = make_queries(np.random.default_rng(0), 2)
QUERIES = [query.name for query in MADE]
IN_SHARES = sums.ShareSum | sums.RecordCount
IN_PART = [place for place, query in enumerate(MADE) if isinstance(query, SHARED)]


def make_rows(rng, query, m, d):
    """Records with all that a query may look at; shares only for what sums shares."""
    share = rng.integers(0, WHOLE + 1, m) if isinstance(query, IN_SHARES) else None
    label, x = rng.integers(-1, C, m), rng.uniform(-1, 1, (m, P))
    return Rows(rng.standard_normal((m, d)), label, share, x)


def free_entries(chart, k):
    """Directions of unit length in which a chart's matrices have room."""
    if "c" in chart.kinds:
        return chart.unfold(np.eye(chart.dimension(k)))
    # all entries, or those off the diagonal
    return invvecd(np.eye(dimension(k)))[-chart.dimension(k) :]


def square(v):
    return sum(int(x) ** 2 for x in v)


# --- charts
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("domain", DOMAINS)
def test_vectors_and_matrices_are_inverse(chart, kernels, domain, random_records):
    chart = Space.of(chart, domain, K).chart  # a ball may be seen from its own centre
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
    chart = Space.of(chart, domain, K).chart  # a ball may be seen from its own centre
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
    chart = Space.of(chart, domain, K).chart  # a ball may be seen from its own centre
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
    chart = Space.of(chart, domain, K).chart  # a ball may be seen from its own centre
    X = random_records(301, K, condition=1e4)
    region = domain.region(K, chart)
    q, _ = chart.encode(X, region, kernels)
    total, _ = chart.lattice_sum(X, region, kernels)
    np.testing.assert_array_equal(total, q.sum(axis=0))
    assert max(map(square, q)) <= RECORD_NORM**2


# --- queries


def all_queries():
    """Concrete classes of queries that are in the package, wherever they are."""
    for module in iter_modules(statistics.__path__, "spdp.statistics."):
        import_module(module.name)
    found, todo = set(), [Query]
    while todo:
        todo += (below := todo.pop().__subclasses__())
        found |= {kind for kind in below if kind.__module__.startswith("spdp.")}
    return {kind for kind in found if not inspect.isabstract(kind)}


def test_every_query_stands_in_the_table():
    """But for a summary that is stated: nothing is computed from records."""
    assert all_queries() - {Stated} == {type(query) for query in MADE}
    assert len(set(QUERIES)) == len(QUERIES)


def neighbours(rng, query, centers):
    """Records, the same with the first replaced by any other, and with one added."""
    d = centers.shape[1]
    a = make_rows(rng, query, 20, d)
    a.Y[0] = centers[0] + rng.standard_normal(d) * 10.0 ** rng.uniform(-3, 3)
    a.x[0] = rng.choice([-1.0, 1.0], P) if rng.random() < 0.7 else a.x[0]
    if a.share is not None:
        a.share[0] = rng.choice([0, WHOLE, a.share[0]])
    b = Rows(*(column if column is None else column.copy() for column in a))
    b.label[0] = rng.choice([a.label[0], rng.integers(-1, C)])
    u = a.Y[0] - centers[0]
    turned = np.roll(u, 1) * rng.choice([-1.0, 1.0], d)  # often at right angles
    far = -u * 10.0 ** rng.uniform(-2, 2)
    fates = (centers[0] + far, centers[0] + turned, centers[0], centers[b.label[0]], a.Y[0])
    b.Y[0] = fates[rng.integers(len(fates))]
    b.x[0] = (a.x[0], -a.x[0], np.zeros(P), a.x[0] * [1.0, -1.0])[rng.integers(4)]
    if b.share is not None:
        b.share[0] = rng.choice([0, WHOLE, a.share[0], b.share[1]])
    both = zip(a, b, strict=True)
    more = Rows(*(one if one is None else np.concatenate([one[:1], two]) for one, two in both))
    return a, b, more


@pytest.mark.parametrize("place", range(len(QUERIES)), ids=QUERIES)
def test_worst_case_neighbours(kernels, place):
    """One record replaced by any other, added or removed.

    The total moves within bounds.
    """
    rng = np.random.default_rng(place)
    largest = dict.fromkeys(Adjacency, 0.0)
    for _ in range(250):
        made, centers = make_queries(rng, int(rng.integers(1, 8)))
        query = made[place]
        a, b, more = neighbours(rng, query, centers)
        here, there = query.total(a, kernels), query.total(b, kernels)
        removed = query.total(a.take(slice(1, None)), kernels)
        for adjacency, pair in (
            (Adjacency.REPLACE_ONE, (here, there)),
            (Adjacency.ADD_REMOVE, (here, removed)),
            (Adjacency.ADD_REMOVE, (there, query.total(more, kernels))),
        ):
            bound, moved = query.sensitivity(adjacency), square(pair[0] - pair[1])
            assert moved <= bound**2
            largest[adjacency] = max(largest[adjacency], isqrt(moved) / bound)
    assert min(largest.values()) > 0.7  # the bounds are not idle


@pytest.mark.parametrize("place", IN_PART, ids=[QUERIES[place] for place in IN_PART])
def test_a_person_moves_no_more_than_a_record(kernels, place):
    """Persons with a row in every class, in shares, against others and none."""
    rng = np.random.default_rng(place)
    for _ in range(100):
        made, centers = make_queries(rng, d := int(rng.integers(1, 6)))
        query, totals = made[place], []
        for _ in range(2):
            parts = rng.dirichlet(np.full(C, 10.0 ** rng.uniform(-2, 1)))
            share = np.floor(parts * WHOLE * rng.choice([1.0, 0.7])).astype(np.int64)
            Y = centers[0] + rng.standard_normal((C, d)) * 10.0 ** rng.uniform(-2, 3)
            totals.append(query.total(Rows(Y, np.arange(C), share), kernels))
        apart = square(totals[0] - totals[1])
        assert apart <= query.sensitivity(Adjacency.REPLACE_ONE) ** 2
        assert square(totals[0]) <= query.sensitivity(Adjacency.ADD_REMOVE) ** 2


@pytest.mark.parametrize("place", range(len(QUERIES)), ids=QUERIES)
def test_totals_do_not_depend_on_blocks_or_order(kernels, place):
    rng = np.random.default_rng(5)
    query = make_queries(rng, 6)[0][place]
    rows = make_rows(rng, query, 500, 6)
    whole, order = query.total(rows, kernels), rng.permutation(500)
    assert whole.dtype == np.int64
    parts = [query.total(rows.take(some), kernels) for some in np.array_split(order, 7)]
    np.testing.assert_array_equal(np.sum(parts, axis=0), whole)
    twin = pickle.loads(pickle.dumps(query))
    np.testing.assert_array_equal(twin.total(rows, kernels), whole)


# --- what queries claim to tell, from the records as they are


def seen(frame, Y, centers=0.0):
    """Coordinates in a frame; around other centres, if there are such."""
    R = Y - (frame.center if np.ndim(centers) == 0 else centers)
    return (R if frame.axes is None else R @ frame.axes) / frame.width


def within(Z, radius):
    """Vectors clipped to a ball."""
    return Z * np.minimum(1.0, radius / np.linalg.norm(Z, axis=1))[:, None]


def counts_between(edges, norms):
    return np.histogram(norms, [-inf, *edges, inf])[0]


@singledispatch
def claims(query, rows, found):
    """Pairs of what an estimate says and what is so, and how fine the lattice is."""
    raise NotImplementedError(f"no claim is known of {type(query).__name__}")


@claims.register
def _(query: sums.VectorSum, rows, found):
    yield found.value, within(seen(query.frame, rows.Y), query.radius).mean(axis=0), query.radius
    yield found.count.value, len(rows.Y), 1.0


@claims.register
def _(query: sums.ShareSum, rows, found):
    part = rows.share / WHOLE
    mean = part @ within(seen(query.frame, rows.Y), query.radius) / part.sum()
    yield found.value, mean, query.radius
    yield found.count.value, part.sum(), 1.0


@claims.register
def _(query: sums.AbsoluteSum, rows, found):
    mean = np.abs(within(seen(query.frame, rows.Y), query.radius)).mean(axis=0)
    yield found.value, mean, query.radius


def mean_distance(Z, cap):
    return [np.minimum(np.linalg.norm(Z, axis=1), cap).mean()]


@claims.register
def _(query: sums.DistanceSum, rows, found):
    yield found.value, mean_distance(seen(query.frame, rows.Y), query.cap), query.cap


@claims.register
def _(query: sums.Histogram, rows, found):
    norms = np.linalg.norm(seen(query.frame, rows.Y), axis=1)
    yield found.value, counts_between(query.edges, norms), 1.0


@claims.register
def _(query: sums.RecordCount, rows, found):
    yield found.value, [rows.share.sum() / WHOLE], 1.0


@claims.register
def _(query: sums.EdgeCount, rows, found):
    far = np.linalg.norm(rows.Y - query.region.center, axis=1) >= query.region.radius
    yield found.value, [far.mean()], 1.0


@claims.register
def _(query: sums.DirectionSum, rows, found):
    R = rows.Y - query.center
    rho = np.linalg.norm(R, axis=1)
    nearness = np.minimum(1.0, query.near / rho).mean()
    yield found.value, [*(R / rho[:, None]).mean(axis=0), nearness], 1.0


@claims.register
def _(query: sums.ClippingBias, rows, found):
    rho = np.linalg.norm(rows.Y - query.frame.center, axis=1)
    norms = np.linalg.norm(seen(query.frame, rows.Y), axis=1)
    after = rho * np.minimum(1.0, query.radius / norms)
    powers = query.powers or (1,) * len(query.reaches)
    pairs = zip(query.reaches, powers, strict=True)
    lost = [(np.minimum(rho, reach) ** power - after**power).mean() for reach, power in pairs]
    yield found.value, lost, max(reach**2 + reach for reach in query.reaches)


@claims.register
def _(query: sums.ClassClippingBias, rows, found):
    distance = np.linalg.norm(rows.Y - query.center, axis=1)
    bias = np.clip(distance - query.radii[rows.label], 0.0, query.cap)
    yield found.value, [bias[rows.label >= 0].sum()], len(rows.Y) * query.cap


@claims.register
def _(query: moments.CorrelationSum, rows, found):
    Z = within(seen(query.frame, rows.Y), query.radius)
    yield found.value, Z.T @ Z / len(Z), 300.0 * query.radius**2  # a lattice of 2¹⁴


@claims.register
def _(query: moments.SquaredNormSum, rows, found):
    Z = within(rows.Y - query.frame.center, query.radius)
    yield found.mean, Z.mean(axis=0), query.radius
    yield found.square, (Z * Z).sum(axis=1).mean(), query.radius**2
    yield found.count.value, len(Z), 1.0


@claims.register
def _(query: moments.MomentSum, rows, found):
    around = 0.0 if query.centers is None else query.centers[rows.label]
    radii = np.broadcast_to(query.radius, C)
    Z = seen(query.frame, rows.Y, around)
    Z = np.array([within(z[None], radii[c])[0] for z, c in zip(Z, rows.label, strict=True)])
    each = [Z[rows.label == c] for c in range(C)]
    n, fine = len(Z), float(radii.max())
    yield found.counts, [len(part) for part in each], n
    yield found.sums, [part.sum(axis=0) for part in each], n * fine
    groups = [Z[rows.label >= 0]] if query.pooled else each
    squares = [part.T @ part for part in groups]
    if query.second == "diagonal":
        squares = [np.diagonal(square) for square in squares]
    if query.second == "trace":
        squares = [[np.trace(square)] for square in squares]
    if query.second == "none":
        assert found.second.size == 0
    else:
        yield found.second, squares, n * 300.0 * fine**2  # a lattice of some 2¹³


def of_classes(query, rows):
    """Coordinates of rows that have a class, around its centre."""
    known = rows.take(rows.label >= 0)
    return seen(query.frame, known.Y, query.centers[known.label])


@claims.register
def _(query: moments.ClassDistance, rows, found):
    total = len(of_classes(query, rows)) * np.array(
        mean_distance(of_classes(query, rows), query.cap)
    )
    yield found.value, total / len(rows.Y), query.cap


@claims.register
def _(query: moments.ClassDeviation, rows, found):
    sizes = np.abs(within(of_classes(query, rows), query.radius))
    yield found.value, sizes.sum(axis=0) / len(rows.Y), query.radius


@claims.register
def _(query: moments.ClassHistogram, rows, found):
    norms = np.linalg.norm(of_classes(query, rows), axis=1)
    yield found.value, counts_between(query.edges, norms), 1.0


@claims.register
def _(query: moments.HistogramByClass, rows, found):
    norms = np.linalg.norm(seen(query.frame, rows.Y), axis=1)
    each = [counts_between(query.edges, norms[rows.label == c]) for c in range(C)]
    yield found.value, np.concatenate(each), 1.0


@claims.register
def _(query: covariates.CovariateSum, rows, found):
    yield from claims(query.asked, Rows(rows.x), found)


def regressors(trend, x):
    z = np.clip((x - trend.middle) / trend.half, -1.0, 1.0)
    return np.column_stack([np.ones(len(z)), z])


@claims.register
def _(query: covariates.ResidualDistance, rows, found):
    R = rows.Y - regressors(query.trend, rows.x) @ query.trend.coefficients
    yield found.value, mean_distance(R, query.cap), query.cap


@claims.register
def _(query: covariates.CrossSum, rows, found):
    F = regressors(query.trend, rows.x)
    U = within(rows.Y - F @ query.trend.coefficients, query.radius)
    # covariates are seen in steps of 2⁻¹⁵
    fine = 100.0 * (1.0 + query.radius + np.abs(query.trend.coefficients).max())
    yield found.gram, F.T @ F / len(F), fine
    yield found.cross, F.T @ U / len(F), fine


@pytest.mark.parametrize("place", range(len(QUERIES)), ids=QUERIES)
def test_estimates_say_what_they_claim(kernels, place):
    """The plain mean, count or moment of the records, but for the lattice."""
    rng = np.random.default_rng(place)
    for d in (1, 3, 6, 7):
        for _ in range(5):
            query = make_queries(rng, d)[0][place]
            rows = make_rows(rng, query, 200, d)
            answer = query.total(rows, kernels).astype(float)
            for found, so, fine in claims(query, rows, query.estimate(answer, 0.0, 200.0)):
                np.testing.assert_allclose(found, so, rtol=1e-6, atol=1e-6 * fine)


def noise_told(found):
    """Numbers of an estimate, each with the standard deviation it states for them."""
    if isinstance(found, Estimate):
        square = np.ndim(found.value) == 2  # of a matrix, it is that of the diagonal
        return [(np.diagonal(found.value) if square else found.value, found.sd)]
    if isinstance(found, moments.Moments):
        second = found.second
        if second.ndim == 3:
            second = np.diagonal(second, axis1=1, axis2=2)
        by_class = [np.reshape(sd, (-1, 1)) for sd in (found.sum_sd, found.second_sd)]
        parts = [(found.counts, found.count_sd), (found.sums, by_class[0])]
        return parts + ([(second, by_class[1])] if second.size else [])
    if hasattr(found, "gram"):
        squares = np.diagonal(found.gram)[1:]
        return [(squares, found.gram_sd), (found.cross, found.cross_sd)]
    return [(found.mean, found.mean_sd), (found.square, found.square_sd)]


@pytest.mark.parametrize("place", range(len(QUERIES)), ids=QUERIES)
def test_estimates_say_how_noisy_they_are(place):
    """Noise of one scale in every integer moves each number by what is stated."""
    for d in (1, 4):
        assert any(is_moved_by_its_noise(place, d, seed) for seed in range(20))


def is_moved_by_its_noise(place, d, seed):
    """False where a number is at the limit of its range, so that nothing moves it."""
    rng, kernels, scale = np.random.default_rng([seed, place]), kernels_for(), 1e5
    query = make_queries(rng, d)[0][place]
    rows = make_rows(rng, query, 200, d)
    answer = query.total(rows, kernels).astype(float)
    noisy = answer + scale
    if getattr(query, "weight", 0) and not isinstance(query, moments.MomentSum):
        noisy[-1] = answer[-1]  # what the noise of a count does is not in the sd
    before, after = (query.estimate(a, scale, 200.0) for a in (answer, noisy))
    for (x, sd), (y, _) in zip(noise_told(before), noise_told(after), strict=True):
        if np.allclose(x, y, rtol=1e-12, atol=0.0):
            return False
        np.testing.assert_allclose(np.asarray(y) - x, np.broadcast_to(sd, np.shape(x)), rtol=1e-3)
    if getattr(query, "weight", 0) and not isinstance(query, moments.MomentSum):
        noisy[-1] += scale
        told = [query.estimate(a, scale, 200.0).count for a in (answer, noisy)]
        assert told[1].value - told[0].value == pytest.approx(told[0].sd, rel=1e-6)
    return True


# --- records at the edge of a domain, in every chart


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_record_moves_the_count_at_the_edge_by_one(chart, kernels, domain, random_records):
    """Whoever it is, and wherever it goes; a record is at the edge by itself."""
    chart = Space.of(chart, domain, K).chart  # a ball may be seen from its own centre
    region = domain.region(K, chart)
    query = sums.EdgeCount("edge", chart, region)
    inside = chart.matrices(region.center)  # a domain's centre is not at its edge
    X = np.concatenate([random_records(60, K, condition=1e4), np.stack([inside] * 20)])
    Y, _ = chart.vectors(X, region, kernels)
    alone = [int(query.total(Rows(y[None]), kernels)[0]) for y in Y]
    assert set(alone) == {0, COUNT_UNIT}
    total = int(query.total(Rows(Y), kernels)[0])
    assert total == sum(alone)
    rng = np.random.default_rng(0)
    for i, j in rng.integers(0, len(Y), (40, 2)):
        other = Y.copy()
        other[i] = Y[j]
        moved = abs(int(query.total(Rows(other), kernels)[0]) - total)
        assert moved == abs(alone[j] - alone[i]) <= query.sensitivity(Adjacency.REPLACE_ONE)
        removed = total - int(query.total(Rows(np.delete(Y, i, axis=0)), kernels)[0])
        assert removed == alone[i] <= query.sensitivity(Adjacency.ADD_REMOVE)
    share = query.estimate(np.array([float(total)]), 0.0, float(len(Y))).value
    np.testing.assert_allclose(share, [np.mean(np.array(alone) > 0)])
