"""Directions, clipping bias, and shares: how far one record moves their sums."""

from math import isqrt

import numpy as np
import pytest

from spdp.kernels import MODULES, kernels_for
from spdp.kernels.base import RECORD_NORM
from spdp.options import Adjacency
from spdp.queries import WHOLE, Rows
from spdp.queries.sums import NEARNESS, ClassClippingBias, DirectionSum, in_units


@pytest.fixture(params=MODULES)
def kernels(request):
    return kernels_for(wanted=request.param)


def square(v):
    return sum(int(x) ** 2 for x in v)


@pytest.mark.parametrize("whole", [1, 7, 1 << 30])
def test_shares_are_whole_numbers_in_their_range_whatever_they_are(whole):
    share = np.array([-np.inf, -0.1, 0.0, 0.5, np.nextafter(1.0, 0.0), 1.0, 1.5, np.inf, np.nan])
    units = in_units(share, whole)
    almost = whole - 1
    assert units.dtype == np.int64
    assert units.tolist() == [0, 0, 0, whole // 2, almost, whole, whole, whole, 0]


# --- directions: no radius


def test_directions_are_unit_vectors_however_far_the_records(kernels, rng):
    Y = rng.standard_normal((200, 5)) * 10.0 ** rng.uniform(-3, 6, (200, 1))
    query = DirectionSum("", np.full(5, 0.1), 1.0)
    for y in Y:
        total = query.total(Rows(y[None]), kernels)
        u, distance = (y - 0.1) / np.linalg.norm(y - 0.1), np.linalg.norm(y - 0.1)
        np.testing.assert_allclose(total[:-1] / RECORD_NORM, u, atol=1e-8)
        assert total[-1] / NEARNESS == pytest.approx(min(1.0, 1.0 / distance), abs=1e-8)


def test_a_record_at_the_centre_has_no_direction(kernels):
    total = DirectionSum("", np.ones(3), 0.5).total(Rows(np.ones((4, 3))), kernels)
    np.testing.assert_array_equal(total, [0, 0, 0, 4 * NEARNESS])


def test_worst_case_neighbours_of_directions(kernels):
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
            moved = square(query.total(Rows(a), kernels) - query.total(Rows(other), kernels))
            bound = query.sensitivity(adjacency)
            assert moved <= bound**2
            largest[adjacency] = max(largest[adjacency], isqrt(moved) / bound)
    assert min(largest.values()) > 0.99  # the bounds are not idle


# --- clipping bias of rows of classes


def test_it_is_the_sum_of_what_a_ball_takes_away(rng):
    Y = rng.standard_normal((300, 4)) * 3.0
    label = rng.integers(-1, 2, 300)
    query = ClassClippingBias("", np.ones(4), np.array([2.0, 1.0]), 3.0)
    bias = np.clip(np.linalg.norm(Y - 1.0, axis=1) - np.where(label == 1, 1.0, 2.0), 0.0, 3.0)
    total = query.total(Rows(Y, label=label), kernels_for())
    assert total[0] * 3.0 / RECORD_NORM == pytest.approx(bias[label >= 0].sum(), abs=1e-5)


def test_a_person_in_many_classes_counts_once(rng):
    """Whatever a person's rows, they add an integer between 0 and 2³⁰."""
    query = ClassClippingBias("", np.zeros(2), np.ones(6), 1.0)
    for _ in range(100):
        rows = int(rng.integers(1, 6))
        share = rng.multinomial(WHOLE, np.ones(rows) / rows)
        Y = rng.standard_normal((rows, 2)) * 10.0 ** rng.uniform(-1, 5)
        total = query.total(Rows(Y, np.arange(rows), share), kernels_for())[0]
        assert 0 <= total <= query.sensitivity(Adjacency.REPLACE_ONE)
    far = Rows(np.full((2, 2), 1e300), np.arange(2), np.full(2, WHOLE // 2))
    assert query.total(far, kernels_for())[0] == RECORD_NORM
