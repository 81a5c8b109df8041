"""Directions to records: no radius, and how far one record moves their sum."""

from math import isqrt

import numpy as np
import pytest

from spdp.choices import Adjacency
from spdp.kernels import MODULES, RECORD_NORM, kernels_for
from spdp.queries import DirectionSum
from spdp.queries.directions import NEARNESS


@pytest.fixture(params=MODULES)
def kernels(request):
    return kernels_for(wanted=request.param)


def square(v):
    return sum(int(x) ** 2 for x in v)


def test_directions_are_unit_vectors_however_far_the_records(kernels, rng):
    Y = rng.standard_normal((200, 5)) * 10.0 ** rng.uniform(-3, 6, (200, 1))
    query = DirectionSum("", np.full(5, 0.1), 1.0)
    for y in Y:
        total = query.total(y[None], kernels)
        u, distance = (y - 0.1) / np.linalg.norm(y - 0.1), np.linalg.norm(y - 0.1)
        np.testing.assert_allclose(total[:-1] / RECORD_NORM, u, atol=1e-8)
        assert total[-1] / NEARNESS == pytest.approx(min(1.0, 1.0 / distance), abs=1e-8)


def test_a_record_at_the_centre_has_no_direction(kernels):
    total = DirectionSum("", np.ones(3), 0.5).total(np.ones((4, 3)), kernels)
    np.testing.assert_array_equal(total, [0, 0, 0, 4 * NEARNESS])


def test_worst_case_neighbours(kernels):
    rng = np.random.default_rng(2)
    largest = dict.fromkeys(Adjacency, 0.0)
    for _ in range(300):
        d = int(rng.integers(1, 8))
        query = DirectionSum("", rng.standard_normal(d), 10.0 ** rng.uniform(-3, 3))
        a = rng.standard_normal((20, d))
        a[0] = query.center + rng.standard_normal(d) * 10.0 ** rng.uniform(-6, 6)
        b = a.copy()
        b[0] = query.center - (a[0] - query.center) * 10.0 ** rng.uniform(-6, 6)
        for other, adjacency in ((b, Adjacency.REPLACE_ONE), (a[1:], Adjacency.ADD_REMOVE)):
            moved = square(query.total(a, kernels) - query.total(other, kernels))
            bound = query.sensitivity(adjacency)
            assert moved <= bound**2
            largest[adjacency] = max(largest[adjacency], isqrt(moved) / bound)
    assert min(largest.values()) > 0.99  # the bounds are not idle
