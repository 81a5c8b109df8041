"""The log-Cholesky metric, beside pyRiemann and beside its own readable kernel."""

import numpy as np
import pytest
from pyriemann.geometry import distance as their_distance
from pyriemann.geometry import mean as their_mean

from spdp import EigenvalueBounds, TraceBounds
from spdp.charts import CHARTS
from spdp.charts.logchol import factor_vectors
from spdp.errors import InvalidMatrixError
from spdp.geometry import distance_logchol, log_cholesky, mean_logchol
from spdp.kernels import kernels_for
from spdp.kernels.base import Status
from spdp.kernels.vecd import dimension

try:
    from spdp.kernels import _native

    SETS = _native.instruction_sets()
except ImportError:  # built without a compiler
    SETS = []

CHART = CHARTS["logchol"]


@pytest.fixture(params=SETS)
def native(request):
    best = _native.instruction_set()
    _native.set_instruction_set(request.param)
    yield kernels_for(wanted="native")
    _native.set_instruction_set(best)


@pytest.mark.parametrize("k", [1, 2, 3, 9, 20])
def test_means_and_distances_are_pyriemanns(random_spd, k):
    X, Y = random_spd(60, k, seed=1), random_spd(60, k, seed=2)
    weights = np.random.default_rng(0).random(60)
    np.testing.assert_allclose(mean_logchol(X), their_mean.mean_logchol(X), atol=1e-12)
    np.testing.assert_allclose(
        mean_logchol(X, weights), their_mean.mean_logchol(X, sample_weight=weights), atol=1e-12
    )
    for squared in (False, True):
        theirs = their_distance.distance_logchol(X, Y, squared=squared)
        np.testing.assert_allclose(distance_logchol(X, Y, squared), theirs, rtol=1e-12)
    assert mean_logchol(np.stack([X, Y])).shape == (2, k, k)


def test_the_mean_of_vectors_is_the_vector_of_the_mean(random_spd):
    X = random_spd(30, 4)
    np.testing.assert_allclose(log_cholesky(mean_logchol(X)), log_cholesky(X).mean(axis=0))


def test_an_invalid_matrix_is_named(random_spd):
    X = random_spd(5, 3)
    X[2] = np.diag([1.0, -1.0, 1.0])
    with pytest.raises(InvalidMatrixError, match="matrix 2 is not positive definite"):
        log_cholesky(X)
    singular = np.array([[657721.0, 69746.0], [69746.0, 7396.0]])  # its determinant is 0
    for Y, name in ((singular, "the matrix"), ([np.eye(2), singular], "matrix 1")):
        with pytest.raises(InvalidMatrixError, match=f"{name} is not positive definite: smallest"):
            log_cholesky(Y)
    X[2, 0, 1] = 1.0
    with pytest.raises(InvalidMatrixError, match="matrix 2 is not symmetric"):
        mean_logchol(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 30])
def test_native_vectors_agree_with_the_readable_kernel(native, random_spd, k, dtype):
    X = random_spd(101, k, condition=1e4).astype(dtype)
    scales = np.ones((101, 1, 1))
    if dtype is np.float64:
        scales[::7], scales[1::7], scales[2::7] = 1e-300, 1e300, 2.0**401
    X = (X * scales).astype(dtype)
    expected, status = factor_vectors(X)
    assert not status.any()
    for A in (X, X.transpose(0, 2, 1), np.asfortranarray(X), X[:, ::-1, ::-1][:, ::-1, ::-1]):
        Y, status = native.OWN["logchol"].vectors(A)
        assert not status.any()
        size = np.abs(expected).max(axis=1, keepdims=True)
        np.testing.assert_allclose(Y / size, expected / size, atol=1e-11)


def test_a_bad_lane_is_told_and_harms_no_neighbour(native, random_spd):
    X = random_spd(50, 3)
    Y = X.copy()
    Y[3], Y[17], Y[30], Y[49], Y[8] = np.nan, np.inf, -np.eye(3), 0.0, 1e-320 * np.eye(3)
    Y[40, 0, 1] += 1.0
    bad = {3: 1, 17: 1, 30: 3, 49: 3, 40: 2}
    region = EigenvalueBounds(0.01, 100.0).region(3, CHART)
    for kernels in (native, kernels_for(wanted="numpy")):
        before, _ = CHART.encode(X, region, kernels)
        after, status = CHART.encode(Y, region, kernels)
        good = np.setdiff1d(np.arange(50), [*bad, 8])
        np.testing.assert_array_equal(after[good], before[good])
        assert {i: int(code) for i, code in enumerate(status) if code} == bad
        assert (after[list(bad)] == 0).all()


@pytest.mark.parametrize("k", [1, 2, 3, 5, 6, 9, 13])
def test_a_code_is_its_records_own(native, random_spd, k):
    """Alone or among others of any kind, in any place, and however they are stored."""
    X = random_spd(77, k, condition=1e3)
    X[5::9] *= 1.0 + 1e-12 * np.triu(np.ones((k, k)), 1)  # asymmetric by rounding
    X[7::9], X[8::9] = X[7::9] * 1e-290, 0.0
    X[1::9] = X[1::9, :, :1] * X[1::9, :, :1].transpose(0, 2, 1)  # rank one
    X[2::9] *= 1e3  # far outside
    region = EigenvalueBounds(0.01, 100.0).region(k, CHART)
    together, status = CHART.encode(X, region, native)
    for i, record in enumerate(X):
        alone, own = CHART.encode(record[None], region, native)
        np.testing.assert_array_equal(alone[0], together[i])
        assert own[0] == status[i]
    turned, _ = CHART.encode(np.asfortranarray(X[::-1]), region, native)
    np.testing.assert_array_equal(turned[::-1], together)
    total, _ = CHART.lattice_sum(X, region, native)
    np.testing.assert_array_equal(total, together.sum(axis=0))
    assert (status != Status.OK).any()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_singular_only_by_rounding_is_usable(dtype):
    """Rank one, as stored: no matter which way its pivots were rounded."""
    rng = np.random.default_rng(3)
    v = rng.standard_normal((300, 6))
    X = (v[:, :, None] * v[:, None, :]).astype(dtype)
    for kernels in (kernels_for(), kernels_for(wanted="numpy")):
        Y, status = CHART.vectors(X, EigenvalueBounds(1e-3, 1e2).region(6, CHART), kernels)
        assert (status == Status.OK).all()
        assert np.isfinite(Y).all()


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_ball_of_eigenvalue_bounds_holds_them_all(random_spd, k):
    low, high = 0.3, 4.0
    region = CHART.bounded(low, high, k)
    rng = np.random.default_rng(0)
    w = rng.choice([low, high], (4000, k))
    Q, _ = np.linalg.qr(rng.standard_normal((4000, k, k)))
    X = (Q * w[:, None, :]) @ Q.transpose(0, 2, 1)
    far = np.linalg.norm(log_cholesky(0.5 * (X + X.transpose(0, 2, 1))) - region.center, axis=1)
    assert far.max() <= region.radius * (1 + 1e-12)
    assert far.max() > 0.5 * region.radius
    middle = CHART.vector(np.sqrt(low * high) * np.eye(k))
    np.testing.assert_allclose(region.center, middle, atol=1e-12)


def test_the_ball_of_a_bounded_trace_holds_them_all_and_is_smaller():
    rng, k, low, trace = np.random.default_rng(1), 4, 0.1, 4.0
    region = TraceBounds(low, trace).region(k, CHART)
    w = low + (trace - k * low) * rng.dirichlet(np.full(k, 0.3), 4000)
    Q, _ = np.linalg.qr(rng.standard_normal((4000, k, k)))
    X = (Q * w[:, None, :]) @ Q.transpose(0, 2, 1)
    far = np.linalg.norm(log_cholesky(0.5 * (X + X.transpose(0, 2, 1))) - region.center, axis=1)
    assert far.max() <= region.radius
    assert region.radius < CHART.bounded(low, trace - (k - 1) * low, k).radius
    assert len(region.center) == dimension(k)
