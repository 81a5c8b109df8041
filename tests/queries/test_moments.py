"""Second moments: how symmetric matrices are packed, and how far one record moves sums.

Squared lengths, moments by class, and what is added up around centres of classes.
"""

import pickle
from math import isqrt, sqrt

import numpy as np
import pytest

from spdp.kernels import MODULES, kernels_for
from spdp.kernels.base import RECORD_NORM
from spdp.options import Adjacency
from spdp.queries import WHOLE, Rows
from spdp.queries.moments import (
    COUNTED,
    FACTOR_NORM,
    OF,
    OFF_DIAGONAL,
    OFF_NOISE,
    ON_DIAGONAL,
    WEIGHT,
    ClassDeviation,
    ClassDistance,
    ClassHistogram,
    MomentSum,
    SquaredNormSum,
    packed,
    unpacked,
)
from spdp.queries.sums import Frame

C = 3
GAMMA = (11 + 5 * sqrt(5)) / 8
N = RECORD_NORM
KINDS = [
    (classes, second, pooled)
    for classes in (1, 2, 5)
    for second in ("none", "trace", "diagonal", "full")
    for pooled in (True, False)
]


@pytest.fixture(params=MODULES)
def kernels(request):
    return kernels_for(wanted=request.param)


def square(v):
    return sum(int(x) ** 2 for x in v)


# --- packing


def symmetric(rng, *shape):
    A = rng.integers(-1000, 1000, (*shape, shape[-1]))
    return A + np.swapaxes(A, -1, -2)


def test_diagonal_then_upper_triangle_row_by_row():
    C = np.array([[1, 2, 3], [2, 4, 5], [3, 5, 6]])
    assert packed(C).tolist() == [5, 20, 30, 14, 21, 35]


@pytest.mark.parametrize("d", [1, 2, 7])
def test_back_and_forth(rng, d):
    C = symmetric(rng, 3, d)
    values = np.stack([packed(one) for one in C])
    assert (unpacked(values.astype(float), d) == C).all()
    assert (unpacked(values[0].astype(float), d) == C[0]).all()


def test_the_length_is_at_most_that_of_a_matrix(rng):
    """What sensitivities rest on; largest where nothing is on the diagonal."""
    assert OFF_DIAGONAL**2 <= 2 * ON_DIAGONAL**2
    for d in (2, 5):
        C = symmetric(rng, d)
        for one in (C, C - np.diag(np.diagonal(C)), np.diag(np.diagonal(C))):
            assert (packed(one) ** 2).sum() <= ON_DIAGONAL**2 * (one**2).sum()


def test_noise_of_entries(rng):
    """The same noise in every number is less in an entry off the diagonal."""
    noisy = unpacked(rng.standard_normal((20_000, 3)), 2).std(axis=0)
    assert noisy[0, 1] / noisy[0, 0] == pytest.approx(OFF_NOISE, rel=0.05)


# --- squared lengths


def farthest(square):
    """Largest squared distance of (y, b‖y‖²) over the unit ball, on a fine grid."""
    s, u = np.meshgrid(np.linspace(0, 1, 801), np.linspace(0, 1, 801))
    return ((s + u) ** 2 * (1 + square * (s - u) ** 2)).max()


def test_the_lemma_holds_at_its_constant_and_not_beyond():
    assert farthest(GAMMA) <= 4 + 1e-12
    assert farthest(GAMMA * 1.001) > 4.0001
    assert (WEIGHT / OF) ** 2 <= GAMMA


def test_the_direction_does_not_matter(rng):
    """Random pairs in the ball never exceed what opposite ones do."""
    Y, Z = rng.standard_normal((2, 20_000, 3))
    for A in (Y, Z):
        A *= (rng.random(len(A)) ** 0.1 / np.linalg.norm(A, axis=1))[:, None]
    lift = np.hstack([Y - Z, sqrt(GAMMA) * ((Y**2).sum(1) - (Z**2).sum(1))[:, None]])
    assert (lift**2).sum(axis=1).max() <= 4 + 1e-12


@pytest.mark.parametrize("name", MODULES)
def test_integers_keep_the_bound_for_the_worst_neighbours(name, rng):
    """Antipodes, and the lengths 1 and √5 − 2 at which the lemma is tight."""
    kernels, bound = kernels_for(wanted=name), 2 * N + 3
    largest = 0
    for d in (1, 2, 5, 40):
        query = SquaredNormSum("", Frame.plain(np.zeros(d)), 1.0)
        assert query.sensitivity(Adjacency.REPLACE_ONE) == bound
        for _ in range(200):
            v = rng.standard_normal(d)
            v /= np.linalg.norm(v)
            other = rng.choice([1.0, sqrt(5) - 2, 0.2, 0.25, rng.random()])
            a, b = (query.total(Rows(y[None]), kernels) for y in (v, -other * v))
            moved = sum((int(x) - int(y)) ** 2 for x, y in zip(a, b, strict=True))
            alone = sum(int(x) ** 2 for x in a)
            assert moved <= bound**2
            assert alone <= query.sensitivity(Adjacency.ADD_REMOVE) ** 2
            largest = max(largest, isqrt(moved))
    assert largest > 0.99999 * 2 * N


def test_totals_mean_what_they_say(rng):
    Y = 0.3 * rng.standard_normal((500, 4)) + 1.0
    query = SquaredNormSum("", Frame.plain(np.ones(4)), 10.0)
    answer = query.total(Rows(Y), kernels_for()).astype(float)
    mean, square, *sds, count = query.estimate(answer, 1e9, len(Y))
    np.testing.assert_allclose(mean, (Y - 1.0).mean(axis=0), atol=1e-6)
    assert square == pytest.approx(((Y - 1.0) ** 2).sum(axis=1).mean(), rel=1e-6)
    assert sds == pytest.approx([1e9 * unit for unit in query.units(len(Y))])
    assert count.value == len(Y)


def test_a_count_costs_no_more_than_a_record_replaced():
    frame = Frame.plain(np.zeros(3))
    query = SquaredNormSum("", frame, 1.0, COUNTED)
    replaced = SquaredNormSum("", frame, 1.0).sensitivity(Adjacency.REPLACE_ONE)
    assert query.sensitivity(Adjacency.REPLACE_ONE) == replaced
    alone = query.sensitivity(Adjacency.ADD_REMOVE)
    assert alone < replaced
    total = query.total(Rows(np.array([[1.0, 0.0, 0.0]])), kernels_for())
    assert int(total[-1]) == COUNTED
    assert isqrt(sum(int(x) ** 2 for x in total)) >= alone - 3


# --- moments by class


def plain(d, radius=1.0, **options):
    return MomentSum("moments", Frame.plain(np.zeros(d)), radius, **options)


def any_query(rng, d, classes, second, pooled):
    """A query of a kind, with parameters at random."""
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0] if rng.random() < 0.5 else None
    frame = Frame(rng.standard_normal(d), np.exp(rng.uniform(-2, 2, d)), axes)
    centers = rng.standard_normal((classes, d)) if rng.random() < 0.5 else None
    radius = 10.0 ** rng.uniform(-2, 1)
    return MomentSum("moments", frame, radius, classes, second, pooled, centers)


def by_hand(query, rows):
    """The total of rows of integer vectors in a ball of radius N, as defined."""
    d, C = query.d, query.classes
    own = [[0] * (1 + d) for _ in range(C)]
    second = [[0] * query.products for _ in range(query.groups)]
    for i, row in enumerate(rows.Y):
        c = 0 if rows.label is None else int(rows.label[i])
        share = WHOLE if rows.share is None else int(rows.share[i])
        if c < 0:
            continue
        q = [int(x) for x in row]
        p = [(1 if x >= 0 else -1) * round(abs(x) * query.factor / RECORD_NORM) for x in q]
        upper = [OFF_DIAGONAL * p[a] * p[b] for a in range(d) for b in range(a + 1, d)]
        products = [ON_DIAGONAL * x * x for x in p] + upper
        if query.second == "trace":
            products = [sum(products[:d])]
        for place, values in ((own[c], [query.weight, *q]),):
            for j, x in enumerate(values):
                place[j] += (1 if x >= 0 else -1) * (abs(x) * share // WHOLE)
        for j, x in enumerate(products[: query.products]):
            group = second[0 if query.pooled else c]
            group[j] += (1 if x >= 0 else -1) * (abs(x) * share // WHOLE)
    return [x for part in own for x in part] + [x for part in second for x in part]


def lattice_rows(rng, m, d):
    Y = rng.standard_normal((m, d))
    return np.trunc(Y * (0.9 * RECORD_NORM / np.linalg.norm(Y, axis=1, keepdims=True)))


@pytest.mark.parametrize(("classes", "second", "pooled"), KINDS)
@pytest.mark.parametrize("shared", [False, True])
def test_totals_are_what_is_defined(kernels, classes, second, pooled, shared):
    rng = np.random.default_rng(classes)
    query = plain(4, float(RECORD_NORM), classes=classes, second=second, pooled=pooled)
    label = rng.integers(-1, classes, 40)
    share = rng.integers(0, WHOLE + 1, 40) if shared else None
    rows = Rows(lattice_rows(rng, 40, 4), label, share)
    total = query.total(rows, kernels)
    assert total.dtype == np.int64
    assert total.tolist() == by_hand(query, rows)
    assert len(total) == query.size


def test_a_whole_share_is_no_share(kernels):
    rng = np.random.default_rng(0)
    query = any_query(rng, 5, 3, "full", True)
    rows = Rows(rng.standard_normal((100, 5)), rng.integers(0, 3, 100))
    whole = rows._replace(share=np.full(100, WHOLE))
    np.testing.assert_array_equal(query.total(rows, kernels), query.total(whole, kernels))


@pytest.mark.parametrize(("classes", "second", "pooled"), KINDS)
def test_totals_do_not_depend_on_blocks_or_order(kernels, classes, second, pooled):
    rng = np.random.default_rng(7)
    query = any_query(rng, 6, classes, second, pooled)
    rows = Rows(rng.standard_normal((300, 6)), rng.integers(-1, classes, 300))
    whole = query.total(rows, kernels)
    turn = rng.permutation(300)
    parts = [
        query.total(Rows(rows.Y[some], rows.label[some]), kernels)
        for some in np.array_split(turn, 7)
    ]
    np.testing.assert_array_equal(np.sum(parts, axis=0), whole)
    twin = pickle.loads(pickle.dumps(query))
    np.testing.assert_array_equal(twin.total(rows, kernels), whole)


def test_native_and_reference_agree():
    rng = np.random.default_rng(1)
    rows = Rows(np.round(rng.standard_normal((500, 6)), 3), rng.integers(0, 4, 500))
    query = plain(6, 3.0, classes=4, second="full")
    totals = [query.total(rows, kernels_for(wanted=name)) for name in MODULES]
    assert np.abs(totals[0] - totals[-1]).max() <= 20 * len(rows.Y)


def test_the_weights_keep_what_the_proof_needs():
    N, P = RECORD_NORM, FACTOR_NORM
    assert 2 * (ON_DIAGONAL * P**2) ** 2 <= N**2
    for d in (1, 2, 3, 45, 66, 210, 465, 5000):
        query = plain(d, second="full")
        assert query.weight**2 + (ON_DIAGONAL * P**2) ** 2 <= N**2
        # |p| ≤ P' + √d/2 ≤ P, in integers: d ≤ (2(P − P'))²
        assert d <= (2 * (P - query.factor)) ** 2
        assert query.factor > 0
    # 2³² records fit into 64 bits
    assert 2**32 * max(N, ON_DIAGONAL * P**2, OFF_DIAGONAL * P**2 // 2) < 2**63


@pytest.mark.parametrize(("classes", "second", "pooled"), KINDS)
def test_worst_case_neighbours(kernels, classes, second, pooled):
    """A record of any class replaced by any other, added or removed, in integers."""
    rng = np.random.default_rng(classes)
    largest = dict.fromkeys(Adjacency, 0.0)
    for _ in range(120):
        d = int(rng.integers(1, 7))
        query = any_query(rng, d, classes, second, pooled)
        Y, label = rng.standard_normal((6, d)), rng.integers(-1, classes, 6)
        Y[0] *= 10.0 ** rng.uniform(-3, 4)
        a = Rows(Y, label)
        b = Rows(Y.copy(), label.copy())
        b.label[0] = rng.choice([label[0], rng.integers(-1, classes)])
        middle = query.frame.center if query.centers is None else query.centers[label[0]]
        flipped = 2 * middle - Y[0]
        b.Y[0] = (flipped, np.roll(Y[0], 1), Y[0], middle)[rng.integers(4)]
        removed = Rows(Y[1:], label[1:])
        total = query.total(a, kernels)
        moved = {
            Adjacency.REPLACE_ONE: square(total - query.total(b, kernels)),
            Adjacency.ADD_REMOVE: square(total - query.total(removed, kernels)),
        }
        for adjacency, distance in moved.items():
            bound = query.sensitivity(adjacency)
            assert distance <= bound**2
            largest[adjacency] = max(largest[adjacency], isqrt(distance) / bound)
    assert min(largest.values()) > 0.99  # the bounds are not idle


@pytest.mark.parametrize("second", ["none", "full"])
@pytest.mark.parametrize("pooled", [True, False])
def test_search_for_the_worst_pair(second, pooled):
    """Hill climbing over pairs of records: the bound is reached, never exceeded."""
    rng, kernels = np.random.default_rng(3), kernels_for()
    for classes, d in ((1, 2), (1, 9), (3, 3)):
        query = plain(d, classes=classes, second=second, pooled=pooled)
        bound, best = query.sensitivity(Adjacency.REPLACE_ONE), 0
        pair, labels = rng.standard_normal((2, d)), rng.integers(0, classes, 2)
        for turn in range(400):
            step = rng.standard_normal((2, d)) * 0.5 ** (turn / 25)
            tried = pair + step
            new = rng.integers(0, classes, 2) if rng.random() < 0.2 else labels
            ends = [query.total(Rows(tried[i : i + 1], new[i : i + 1]), kernels) for i in range(2)]
            distance = square(ends[0] - ends[1])
            assert distance <= bound**2
            if distance > best:
                best, pair, labels = distance, tried, new
        assert isqrt(best) > 0.99 * 2 * RECORD_NORM


@pytest.mark.parametrize(("classes", "second", "pooled"), KINDS)
def test_a_person_moves_no_more_than_a_record(kernels, classes, second, pooled):
    """Persons with a row in every class, in shares, against others."""
    rng = np.random.default_rng(11)
    for _ in range(60):
        d = int(rng.integers(1, 6))
        query = any_query(rng, d, classes, second, pooled)

        def person(query=query, d=d):
            parts = rng.dirichlet(np.full(classes, 10.0 ** rng.uniform(-2, 1)))
            share = np.floor(parts * WHOLE * rng.choice([1.0, 0.7])).astype(np.int64)
            Y = rng.standard_normal((classes, d)) * 10.0 ** rng.uniform(-2, 3)
            return query.total(Rows(Y, np.arange(classes), share), kernels)

        one, other = person(), person()
        assert square(one - other) <= query.sensitivity(Adjacency.REPLACE_ONE) ** 2
        assert square(one) <= query.sensitivity(Adjacency.ADD_REMOVE) ** 2


def test_a_heavier_count_would_be_caught(monkeypatch):
    """What the worst-case test is worth: weights beyond the lemma exceed the bound."""
    monkeypatch.setattr(MomentSum, "weight", property(lambda self: int(1.05 * RECORD_NORM)))
    query, kernels = plain(3, classes=2), kernels_for()
    ends = [query.total(Rows(np.eye(3)[:1], np.array([c])), kernels) for c in (0, 1)]
    assert square(ends[0] - ends[1]) > (2 * RECORD_NORM + query.rounding) ** 2


@pytest.mark.parametrize(("classes", "second", "pooled"), KINDS)
def test_moments_are_those_of_the_records(classes, second, pooled):
    rng, d, kernels = np.random.default_rng(4), 4, kernels_for()
    Y, label = rng.standard_normal((400, d)), rng.integers(0, classes, 400)
    query = plain(d, 10.0, classes=classes, second=second, pooled=pooled)
    total = query.total(Rows(Y, label), kernels)
    found = query.estimate(total.astype(float), 1e9, 400)
    np.testing.assert_allclose(found.counts, np.bincount(label, minlength=classes), rtol=1e-8)
    sums = [Y[label == c].sum(axis=0) for c in range(classes)]
    np.testing.assert_allclose(found.sums, sums, atol=1e-5)
    groups = [Y] if pooled else [Y[label == c] for c in range(classes)]
    if second == "full":
        np.testing.assert_allclose(found.second, [G.T @ G for G in groups], atol=0.1)
    elif second == "diagonal":
        np.testing.assert_allclose(found.second, [(G * G).sum(axis=0) for G in groups], atol=0.1)
    elif second == "trace":
        np.testing.assert_allclose(found.second, [[(G * G).sum()] for G in groups], atol=0.1)
    else:
        assert found.second.size == 0
    assert found.sum_sd == pytest.approx(1e9 * 10 / RECORD_NORM)
    assert found.count_sd == pytest.approx(1e9 / query.weight)
    assert found.second_sd == pytest.approx(1e9 * 100 / (ON_DIAGONAL * query.factor**2))


def test_centres_of_classes_take_the_place_of_the_frame_s(kernels):
    rng = np.random.default_rng(5)
    centers, label = rng.standard_normal((3, 4)), rng.integers(0, 3, 50)
    Y = rng.standard_normal((50, 4))
    options = {"classes": 3, "second": "full"}
    moved = MomentSum("m", Frame.plain(np.ones(4)), 2.0, centers=centers, **options)
    np.testing.assert_array_equal(
        moved.total(Rows(Y, label), kernels),
        plain(4, 2.0, **options).total(Rows(Y - centers[label], label), kernels),
    )


# --- around the centres of classes, pooled


def make(rng, d):
    """One query of each kind, with parameters at random."""
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0] if rng.random() < 0.5 else None
    frame = Frame(np.zeros(d), np.exp(rng.uniform(-2, 2, d)), axes)
    centers, radius = rng.standard_normal((C, d)), 10.0 ** rng.uniform(-2, 1)
    return [
        ClassDistance("class distance", frame, centers, radius),
        ClassDeviation("deviation", frame, centers, radius),
        ClassHistogram("tail", frame, centers, np.sort(rng.uniform(0, 20, 8))),
    ]


@pytest.mark.parametrize("place", range(3))
def test_worst_case_neighbours_around_centres(place):
    rng, kernels = np.random.default_rng(place), kernels_for()
    largest = 0.0
    for _ in range(200):
        d = int(rng.integers(1, 8))
        query = make(rng, d)[place]
        Y, label = rng.standard_normal((6, d)), rng.integers(-1, C, 6)
        Y[0] *= 10.0 ** rng.uniform(-3, 4)
        other, changed = Y.copy(), label.copy()
        changed[0] = rng.integers(-1, C)
        fates = (query.centers[changed[0]], np.roll(Y[0], 1), rng.standard_normal(d) * 100)
        other[0] = fates[rng.integers(3)]
        total = query.total(Rows(Y, label), kernels)
        bound = query.sensitivity(Adjacency.REPLACE_ONE)
        moved = square(total - query.total(Rows(other, changed), kernels))
        assert moved <= bound**2
        largest = max(largest, isqrt(moved) / bound)
        removed = square(total - query.total(Rows(Y[1:], label[1:]), kernels))
        assert removed <= query.sensitivity(Adjacency.ADD_REMOVE) ** 2
    assert largest > 0.7


@pytest.mark.parametrize("place", range(3))
def test_a_person_moves_no_more_than_a_record_around_centres(place):
    rng, kernels = np.random.default_rng(place), kernels_for()
    for _ in range(100):
        d = int(rng.integers(1, 6))
        query = make(rng, d)[place]
        totals = []
        for _ in range(2):
            share = np.floor(rng.dirichlet(np.full(C, 0.3)) * WHOLE).astype(np.int64)
            Y = rng.standard_normal((C, d)) * 10.0 ** rng.uniform(-2, 3)
            totals.append(query.total(Rows(Y, np.arange(C), share), kernels))
        bound = query.sensitivity(Adjacency.REPLACE_ONE)
        assert square(totals[0] - totals[1]) <= bound**2
        assert square(totals[0]) <= query.sensitivity(Adjacency.ADD_REMOVE) ** 2


@pytest.mark.parametrize("place", range(3))
def test_totals_do_not_depend_on_blocks_or_order_around_centres(place):
    rng, kernels = np.random.default_rng(1), kernels_for()
    query = make(rng, 5)[place]
    rows = Rows(rng.standard_normal((200, 5)), rng.integers(-1, C, 200))
    turn = rng.permutation(200)
    parts = [query.total(rows.take(some), kernels) for some in np.array_split(turn, 7)]
    whole = pickle.loads(pickle.dumps(query)).total(rows, kernels)
    np.testing.assert_array_equal(np.sum(parts, axis=0), whole)


def test_they_are_what_they_are_called():
    rng, kernels = np.random.default_rng(2), kernels_for()
    Y, label, centers = rng.standard_normal((500, 4)), rng.integers(0, C, 500), np.eye(4)[:C]
    R, frame, rows = Y - centers[label], Frame.plain(np.zeros(4)), Rows(Y, label)
    norms = np.linalg.norm(R, axis=1)
    within = ClassDistance("", frame, centers, 50.0).total(rows, kernels)
    assert within[0] * 50.0 / RECORD_NORM == pytest.approx(norms.sum())
    deviation = ClassDeviation("", frame, centers, 50.0).total(rows, kernels)
    np.testing.assert_allclose(deviation * 50.0 / RECORD_NORM, np.abs(R).sum(axis=0), rtol=1e-6)
    edges = np.array([1.0, 2.0, 3.0])
    tail = ClassHistogram("", frame, centers, edges).total(rows, kernels)
    expected = np.histogram(norms, [0, 1, 2, 3, np.inf])[0]
    assert (tail // WHOLE).tolist() == expected.tolist()
