"""Distances, spreads and counts around the centres of classes."""

import pickle
from math import isqrt

import numpy as np
import pytest

from spdp.choices import Adjacency
from spdp.frame import Frame
from spdp.kernels import RECORD_NORM, kernels_for
from spdp.queries import WHOLE, CentredDistance, CentredHistogram, CentredSpread, Rows

C = 3


def make(rng, d):
    """One query of each kind, with parameters at random."""
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0] if rng.random() < 0.5 else None
    frame = Frame(np.zeros(d), np.exp(rng.uniform(-2, 2, d)), axes)
    centers, radius = rng.standard_normal((C, d)), 10.0 ** rng.uniform(-2, 1)
    return [
        CentredDistance("within", frame, centers, radius),
        CentredSpread("spread", frame, centers, radius),
        CentredHistogram("tail", frame, centers, np.sort(rng.uniform(0, 20, 8))),
    ]


def square(v):
    return sum(int(x) ** 2 for x in v)


@pytest.mark.parametrize("place", range(3))
def test_worst_case_neighbours(place):
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
        total = query.over(Rows(Y, label), kernels)
        bound = query.sensitivity(Adjacency.REPLACE_ONE)
        moved = square(total - query.over(Rows(other, changed), kernels))
        assert moved <= bound**2
        largest = max(largest, isqrt(moved) / bound)
        removed = square(total - query.over(Rows(Y[1:], label[1:]), kernels))
        assert removed <= query.sensitivity(Adjacency.ADD_REMOVE) ** 2
    assert largest > 0.7


@pytest.mark.parametrize("place", range(3))
def test_a_person_moves_no_more_than_a_record(place):
    rng, kernels = np.random.default_rng(place), kernels_for()
    for _ in range(100):
        d = int(rng.integers(1, 6))
        query = make(rng, d)[place]
        totals = []
        for _ in range(2):
            share = np.floor(rng.dirichlet(np.full(C, 0.3)) * WHOLE).astype(np.int64)
            Y = rng.standard_normal((C, d)) * 10.0 ** rng.uniform(-2, 3)
            totals.append(query.over(Rows(Y, np.arange(C), share), kernels))
        bound = query.sensitivity(Adjacency.REPLACE_ONE)
        assert square(totals[0] - totals[1]) <= bound**2
        assert square(totals[0]) <= query.sensitivity(Adjacency.ADD_REMOVE) ** 2


@pytest.mark.parametrize("place", range(3))
def test_totals_do_not_depend_on_blocks_or_order(place):
    rng, kernels = np.random.default_rng(1), kernels_for()
    query = make(rng, 5)[place]
    rows = Rows(rng.standard_normal((200, 5)), rng.integers(-1, C, 200))
    turn = rng.permutation(200)
    parts = [query.over(rows.take(some), kernels) for some in np.array_split(turn, 7)]
    whole = pickle.loads(pickle.dumps(query)).over(rows, kernels)
    np.testing.assert_array_equal(np.sum(parts, axis=0), whole)


def test_they_are_what_they_are_called():
    rng, kernels = np.random.default_rng(2), kernels_for()
    Y, label, centers = rng.standard_normal((500, 4)), rng.integers(0, C, 500), np.eye(4)[:C]
    R, frame, rows = Y - centers[label], Frame.plain(np.zeros(4)), Rows(Y, label)
    norms = np.linalg.norm(R, axis=1)
    within = CentredDistance("", frame, centers, 50.0).over(rows, kernels)
    assert within[0] * 50.0 / RECORD_NORM == pytest.approx(norms.sum())
    spread = CentredSpread("", frame, centers, 50.0).over(rows, kernels)
    np.testing.assert_allclose(spread * 50.0 / RECORD_NORM, np.abs(R).sum(axis=0), rtol=1e-6)
    edges = np.array([1.0, 2.0, 3.0])
    tail = CentredHistogram("", frame, centers, edges).over(rows, kernels)
    expected = np.histogram(norms, [0, 1, 2, 3, np.inf])[0]
    assert (tail // WHOLE).tolist() == expected.tolist()
