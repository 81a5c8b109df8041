"""Cross moments: the lemma, its integers, and what the sums stand for."""

import pickle
from math import isqrt, sqrt

import numpy as np
import pytest

from spdp.kernels import MODULES, kernels_for
from spdp.kernels.base import RECORD_NORM
from spdp.options import Adjacency
from spdp.queries import Rows
from spdp.queries.covariates import CovariateSum, CrossSum, ResidualDistance, Trend
from spdp.queries.sums import AbsoluteSum, Frame


@pytest.fixture(params=MODULES)
def kernels(request):
    return kernels_for(wanted=request.param)


def square(v):
    return sum(int(x) ** 2 for x in v)


def plain(p, d, radius=1.0):
    return CrossSum("", Trend(np.zeros(p), np.ones(p), np.zeros((1 + p, d))), radius)


def any_query(rng, p, d):
    trend = Trend(
        rng.uniform(-1, 1, p), 10.0 ** rng.uniform(-2, 0, p), rng.standard_normal((1 + p, d))
    )
    return CrossSum("", trend, 10.0 ** rng.uniform(-2, 1))


def lifted(u, x):
    """The real vector of the lemma."""
    p = len(x)
    alpha, beta = (1.0, 1.0) if p == 1 else (1 / p, (1 - 1 / p) / (2 * p))
    i, j = np.triu_indices(p, 1)
    second = np.concatenate([x * x, sqrt(2) * x[i] * x[j]])
    return np.concatenate(
        [np.outer(np.append(1, x), u).ravel(), sqrt(alpha) * x, sqrt(beta) * second]
    )


@pytest.mark.parametrize("p", range(1, 9))
def test_the_lemma(p):
    """Two records are at most 2√(1 + p) apart, and some are; corners and the inside."""
    rng = np.random.default_rng(p)
    farthest = 0.0
    for _ in range(1500):
        u = rng.standard_normal(3)
        u /= np.linalg.norm(u)
        v = u * rng.choice([-1.0, 1.0]) if rng.random() < 0.7 else rng.standard_normal(3)
        v /= max(1.0, np.linalg.norm(v))
        x, z = (
            rng.choice([-1.0, 0.0, 1.0], p) if rng.random() < 0.6 else rng.uniform(-1, 1, p)
            for _ in range(2)
        )
        z = rng.choice([-1.0, 1.0]) * x if rng.random() < 0.3 else z
        farthest = max(farthest, np.linalg.norm(lifted(u, x) - lifted(v, z)))
    assert farthest <= 2 * sqrt(1 + p) * (1 + 1e-12)
    assert farthest > 2 * sqrt(1 + p) * 0.99


@pytest.mark.parametrize("p", [1, 2, 3, 8])
def test_worst_case_neighbours(kernels, p):
    rng = np.random.default_rng(p)
    largest = 0.0
    for _ in range(100):
        d = int(rng.integers(1, 6))
        query = plain(p, d) if rng.random() < 0.7 else any_query(rng, p, d)
        Y, x = rng.standard_normal((9, d)), rng.uniform(-1, 1, (9, p))
        Y[0] *= 10.0 ** rng.uniform(-3, 3)
        x[0] = rng.choice([-1.0, 1.0], p)
        other, moved_x = Y.copy(), x.copy()
        other[0] = -Y[0] * 10.0 ** rng.uniform(-1, 2)
        moved_x[0] *= rng.choice([-1.0, 1.0, 0.5])
        total = query.total(Rows(Y, x=x), kernels)
        moved = square(total - query.total(Rows(other, x=moved_x), kernels))
        bound = query.sensitivity(Adjacency.REPLACE_ONE)
        assert moved <= bound**2
        largest = max(largest, isqrt(moved) / bound)
        removed = square(total - query.total(Rows(Y[1:], x=x[1:]), kernels))
        assert removed <= query.sensitivity(Adjacency.ADD_REMOVE) ** 2
    assert largest > 0.99  # the bound is not idle


@pytest.mark.parametrize("p", [1, 3])
def test_sums_stand_for_cross_moments_and_gram_matrix(kernels, rng, p):
    query = any_query(rng, p, 4)
    Y, x = rng.standard_normal((500, 4)), rng.uniform(-1, 1, (500, p))
    total = query.total(Rows(Y, x=x), kernels).astype(float)
    z = query.trend.seen(x)
    F = np.hstack([np.ones((500, 1)), z])
    U = Y - F @ query.trend.coefficients
    U *= np.minimum(1.0, query.radius / np.linalg.norm(U, axis=1))[:, None]
    found = query.estimate(total, 1e9, 500)
    np.testing.assert_allclose(found.gram, F.T @ F / 500, atol=1e-4)
    np.testing.assert_allclose(found.cross, F.T @ U / 500, atol=1e-4 * (1 + query.radius))
    assert found.gram_sd == pytest.approx(1e9 / (query.weights[1] * 500))
    assert found.cross_sd == pytest.approx(1e9 * query.radius / RECORD_NORM / 500)


def test_totals_do_not_depend_on_blocks_or_order(kernels, rng):
    query = any_query(rng, 2, 3)
    rows = Rows(rng.standard_normal((100, 3)), x=rng.uniform(-1, 1, (100, 2)))
    whole, order = query.total(rows, kernels), rng.permutation(100)
    parts = [query.total(rows.take(part), kernels) for part in np.array_split(order, 7)]
    np.testing.assert_array_equal(np.sum(parts, axis=0), whole)
    twin = pickle.loads(pickle.dumps(query))
    np.testing.assert_array_equal(twin.total(rows, kernels), whole)


def test_records_that_are_no_numbers_stay_within_bounds(kernels):
    query = plain(1, 2)
    for y in (np.nan, np.inf, 1e308):
        total = query.total(Rows(np.full((1, 2), y), x=np.array([[np.nan]])), kernels)
        assert square(total) <= query.sensitivity(Adjacency.ADD_REMOVE) ** 2


def test_residual_distances_and_covariates(kernels, rng):
    Y, x = rng.standard_normal((50, 3)), rng.uniform(-1, 1, (50, 1))
    trend = Trend(np.zeros(1), np.ones(1), rng.standard_normal((2, 3)))
    total = ResidualDistance("", trend, 2.0).total(Rows(Y, x=x), kernels)[0]
    R = Y - trend.coefficients[0] - x * trend.coefficients[1]
    expected = np.minimum(np.linalg.norm(R, axis=1), 2.0).sum()
    assert total * 2.0 / RECORD_NORM == pytest.approx(expected, abs=1e-5)
    asked = CovariateSum("", AbsoluteSum("", Frame.plain(np.zeros(1)), 1.0))
    assert asked.total(Rows(Y, x=x), kernels)[0] / RECORD_NORM == pytest.approx(np.abs(x).sum())
