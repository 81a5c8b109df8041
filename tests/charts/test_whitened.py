"""A public reference point: records whitened by it, results mapped back."""

import numpy as np
import pytest
from pyriemann.geometry.distance import distance_riemann
from pyriemann.tangentspace import TangentSpace

from spdp import Ball, EigenvalueBounds, PrivateFrechetMean, Release, private_mean
from spdp.charts import chart_of
from spdp.errors import InvalidMatrixError, ParameterError
from spdp.geometry import invvecd, vecd
from spdp.kernels import kernels_for
from spdp.kernels.base import RECORD_NORM
from spdp.statistics.partial_sums import LatticeSum
from spdp.statistics.reference import Reference

K = 3
DOMAIN = EigenvalueBounds(0.05, 20.0)
OPTIONS = {"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN}


@pytest.fixture
def point(random_spd):
    return random_spd(1, K, seed=11, condition=50.0)[0]


@pytest.fixture
def chart(point):
    return chart_of("logeuclid", point)


@pytest.fixture(params=["numpy", None])
def kernels(request):
    return kernels_for(wanted=request.param)


def test_vectors_are_those_of_a_tangent_space(chart, point, random_spd):
    """pyRiemann's, in its order: the upper triangle row by row."""
    X = random_spd(20, K)
    space = TangentSpace(metric="riemann")
    space.reference_ = point
    theirs = space.transform(X)
    rows, columns = np.triu_indices(K)
    S = np.zeros((20, K, K))
    S[:, rows, columns] = theirs / np.where(rows == columns, 1.0, np.sqrt(2.0))
    S[:, columns, rows] = S[:, rows, columns]
    np.testing.assert_allclose(chart.vector(X), vecd(S), atol=1e-10)


def test_distances_from_the_point_are_affine_invariant(chart, point, random_spd):
    X = random_spd(20, K)
    np.testing.assert_allclose(
        np.linalg.norm(chart.vector(X), axis=1), distance_riemann(X, point), rtol=1e-9
    )


def test_vectors_and_matrices_are_inverse(chart, kernels, random_spd):
    X = DOMAIN.clip(random_spd(50, K), chart)
    Y, status = chart.vectors(X, DOMAIN.region(K, chart), kernels)
    assert not status.any()
    np.testing.assert_allclose(chart.matrices(Y), X, rtol=1e-9)
    np.testing.assert_allclose(chart.vector(X), Y, atol=1e-9)


@pytest.mark.parametrize("size", [1.0, 30.0, 1e4])
def test_matrices_are_positive_definite_whatever_the_vector(chart, size):
    for v in np.random.default_rng(0).standard_normal((20, 6)) * size:
        M = chart.matrices(v)
        assert (M == M.T).all()
        assert np.linalg.eigvalsh(M)[0] > 0


@pytest.mark.parametrize("size", [1e-280, 1.0, 1e290])
@pytest.mark.parametrize("condition", [1.0, 1e8, 1e13])
def test_what_is_representable_comes_back(random_spd, size, condition):
    """Whatever the vector: its matrix has the vector that is said of it."""
    chart = chart_of("logeuclid", size * random_spd(1, K, seed=5, condition=condition)[0])
    for v in (
        np.random.default_rng(0).standard_normal((40, 6)) * np.geomspace(1.0, 1e20, 40)[:, None]
    ):
        z = chart.representable(v)
        M = chart.matrices(z)
        np.testing.assert_allclose(chart.matrices(v), M, rtol=1e-9, atol=1e-9 * M.max())
        ratio = np.linalg.cond(M) * np.linalg.cond(chart.point)
        assert np.linalg.norm(chart.vector(M) - z) <= min(1.0, 1e-14 * ratio + 1e-11)


def test_a_point_that_float64_hardly_holds_is_refused():
    huge = 1e307 * (np.eye(K) + 16.0)  # of finite entries, but for its largest eigenvalue
    for point in (1e-320 * np.eye(K), 1e307 * np.eye(K), np.diag([1e-15, 1.0, 1.0]), huge):
        with pytest.raises(ParameterError, match="float64 numbers hardly hold"):
            chart_of("logeuclid", point)


def test_the_jacobian_includes_whitening(chart, random_spd):
    X, h = random_spd(1, K, seed=3)[0], 1e-6
    up, down = (chart.vector(X + s * invvecd(np.eye(6))) for s in (h, -h))
    assert chart.log_jacobian(X) == pytest.approx(
        np.linalg.slogdet((up - down) / (2 * h))[1], abs=1e-6
    )


def test_invalid_records_are_the_centre_and_harm_nobody(chart, kernels, random_spd):
    X = random_spd(40, K)
    Y = X.copy()
    Y[3], Y[17], Y[30] = np.nan, -np.eye(K), np.triu(X[30])
    region = DOMAIN.region(K, chart)
    before, _ = chart.encode(X, region, kernels)
    after, status = chart.encode(Y, region, kernels)
    good = np.setdiff1d(np.arange(40), [3, 17, 30])
    np.testing.assert_array_equal(after[good], before[good])
    assert {i: int(code) for i, code in enumerate(status) if code} == {3: 1, 17: 3, 30: 2}
    assert (after[[3, 17, 30]] == 0).all()
    total, _ = chart.lattice_sum(Y, region, kernels)
    np.testing.assert_array_equal(total, after.sum(axis=0))
    assert (np.square(after.astype(float)).sum(axis=1) <= float(RECORD_NORM) ** 2).all()
    with pytest.raises(InvalidMatrixError, match="matrix 3 is not finite"):
        private_mean(Y, reference_point=chart.point, **OPTIONS)


def test_the_identity_changes_nothing(random_spd):
    X = random_spd(200, K)
    plain = private_mean(X, random_state=0, **OPTIONS)
    whitened = private_mean(X, random_state=0, reference_point=np.eye(K), **OPTIONS)
    np.testing.assert_allclose(whitened.value, plain.value, rtol=1e-6)


@pytest.mark.parametrize("method", ["oneshot", "adaptive"])
def test_a_release_names_its_point_and_can_be_verified(point, random_spd, tmp_path, method):
    release = private_mean(random_spd(500, K), method=method, reference_point=point, **OPTIONS)
    assert release.certificate["reference_point"] == point.tolist()
    again = Release.load(release.save(tmp_path / "release"))
    assert all(check.ok for check in again.verify() if check.name != "signature")


def test_other_points_do_not_merge(point, random_spd, tmp_path):
    X = random_spd(20, K)
    mine = LatticeSum.of(X, DOMAIN, reference_point=point)
    for other in (None, np.eye(K)):
        with pytest.raises(ParameterError, match="different reference points"):
            mine + LatticeSum.of(X, DOMAIN, reference_point=other)
    loaded = LatticeSum.load(mine.save(tmp_path / "a.sum"))
    assert loaded.reference_point == mine.reference_point
    (loaded + LatticeSum.of(X, DOMAIN, reference_point=point)).chart.vector(X)


def test_estimators_whiten_too(point, random_spd):
    X = random_spd(300, K)
    fitted = PrivateFrechetMean(1.0, 1e-6, DOMAIN, reference_point=point).fit(X)
    assert fitted.transform(X).shape == (300, 6)
    parts = PrivateFrechetMean(1.0, 1e-6, DOMAIN, reference_point=point).partial_fit(X).release()
    assert parts.certificate_["reference_point"] == point.tolist()


def test_what_does_not_fit_is_refused(point, random_spd):
    X = random_spd(20, K)
    with pytest.raises(ParameterError, match="reference_point.*'logeuclid'"):
        private_mean(X, metric="logchol", reference_point=point, **OPTIONS)
    with pytest.raises(ParameterError, match="the reference point is 2×2"):
        private_mean(X, reference_point=np.eye(2), **OPTIONS)
    with pytest.raises(InvalidMatrixError, match="not positive definite"):
        private_mean(X, reference_point=-np.eye(K), **OPTIONS)
    with pytest.raises(ParameterError, match="the reference is of metric"):
        private_mean(X, reference_point=point, reference=Reference.from_public(X), **OPTIONS)
    assert Ball(1.0).region(K, chart_of("logeuclid", point)).radius == 1.0


def test_a_record_that_overflows_seen_from_the_point_is_named():
    X = np.stack([np.eye(K), 1e305 * np.eye(K)])
    options = {"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN, "anyway": True}
    with pytest.raises(InvalidMatrixError, match="matrix 1 leaves the range of its dtype"):
        private_mean(X, reference_point=1e-6 * np.eye(K), **options)
