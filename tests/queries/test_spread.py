"""A sum with its squared length costs no more than the sum."""

from math import isqrt, sqrt

import numpy as np
import pytest

from spdp.choices import Adjacency
from spdp.frame import Frame
from spdp.kernels import MODULES, RECORD_NORM, kernels_for
from spdp.queries import SpreadSum
from spdp.queries.spread import COUNTED, OF, WEIGHT

GAMMA = (11 + 5 * sqrt(5)) / 8
N = RECORD_NORM


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
        query = SpreadSum("", Frame.plain(np.zeros(d)), 1.0)
        assert query.sensitivity(Adjacency.REPLACE_ONE) == bound
        for _ in range(200):
            v = rng.standard_normal(d)
            v /= np.linalg.norm(v)
            other = rng.choice([1.0, sqrt(5) - 2, 0.2, 0.25, rng.random()])
            a, b = query.total(v[None], kernels), query.total(-other * v[None], kernels)
            moved = sum((int(x) - int(y)) ** 2 for x, y in zip(a, b, strict=True))
            alone = sum(int(x) ** 2 for x in a)
            assert moved <= bound**2
            assert alone <= query.sensitivity(Adjacency.ADD_REMOVE) ** 2
            largest = max(largest, isqrt(moved))
    assert largest > 0.99999 * 2 * N


def test_totals_mean_what_they_say(rng):
    Y = 0.3 * rng.standard_normal((500, 4)) + 1.0
    query = SpreadSum("", Frame.plain(np.ones(4)), 10.0)
    mean, square = query.moments(query.total(Y, kernels_for()).astype(float), len(Y))
    np.testing.assert_allclose(mean, (Y - 1.0).mean(axis=0), atol=1e-6)
    assert square == pytest.approx(((Y - 1.0) ** 2).sum(axis=1).mean(), rel=1e-6)


def test_a_count_costs_no_more_than_a_record_replaced():
    frame = Frame.plain(np.zeros(3))
    query = SpreadSum("", frame, 1.0, COUNTED)
    replaced = SpreadSum("", frame, 1.0).sensitivity(Adjacency.REPLACE_ONE)
    assert query.sensitivity(Adjacency.REPLACE_ONE) == replaced
    alone = query.sensitivity(Adjacency.ADD_REMOVE)
    assert alone < replaced
    total = query.total(np.array([[1.0, 0.0, 0.0]]), kernels_for())
    assert int(total[-1]) == COUNTED
    assert isqrt(sum(int(x) ** 2 for x in total)) >= alone - 3
