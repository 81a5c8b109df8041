"""The GPU's kernels keep the promises of the others; skipped where there is no GPU."""

import numpy as np
import pytest

import spdp
from spdp import Ball, CorrelationBounds, EigenvalueBounds, private_mean
from spdp.charts import chart_of
from spdp.data import source as source_module
from spdp.data.source import as_source
from spdp.engines import engine_for
from spdp.errors import InvalidMatrixError, ParameterError
from spdp.kernels import kernels_for, reference
from spdp.kernels.base import RECORD_NORM
from spdp.lattice import exact_sum
from spdp.options import OnInvalid
from spdp.queries import Rows
from spdp.queries.moments import CorrelationSum
from spdp.queries.sums import (
    COUNT_UNIT,
    AbsoluteSum,
    ClippingBias,
    DistanceSum,
    EdgeCount,
    Frame,
    Histogram,
    VectorSum,
    whole_domain_sum,
)

cupy = pytest.importorskip("cupy", reason="needs CuPy and an NVIDIA GPU")
try:
    cupy.zeros(1).sum()
except Exception as error:  # no driver, no device
    pytest.skip(f"no usable GPU: {error}", allow_module_level=True)

from spdp.engines.gpu import GpuEngine  # noqa: E402
from spdp.kernels import cuda  # noqa: E402

SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 20, 30, 32, 33, 48, 64, 70]
DOMAIN = EigenvalueBounds(1e-3, 1e2)


def covariances(rng, n, k):
    A = rng.standard_normal((n, k, 2 * k))
    return A @ A.transpose(0, 2, 1) / (2 * k)


def hostile(rng, n, k, dtype):
    X = covariances(rng, n, k) * 10.0 ** rng.uniform(-300, 300, (n, 1, 1))
    kind = rng.integers(0, 7, n)
    with np.errstate(all="ignore"):
        X[kind == 0] = rng.choice([0.0, 1.0, -1.0, np.inf, np.nan], (n, k, k))[kind == 0]
        X[kind == 1] = -X[kind == 1]
        X[kind == 2] = np.triu(X[kind == 2])
        X[kind == 3] = np.eye(k) * 10.0 ** rng.uniform(-320, 308)
        X[kind == 4] = 1.0 + 1e-16 * rng.standard_normal((n, k, k))[kind == 4]
        return X.astype(dtype)


def exact_squares(q):
    return [sum(int(v) ** 2 for v in row) for row in q]


@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_vectors_agree_with_the_reference(k, dtype):
    X = covariances(np.random.default_rng(k), 203, k).astype(dtype)
    X = 0.5 * (X + X.transpose(0, 2, 1))
    Y, status = cuda.log_vectors(cupy.asarray(X), -np.inf, np.inf)
    wanted, codes = reference.log_vectors(X, -np.inf, np.inf)
    np.testing.assert_array_equal(status.get(), codes)
    np.testing.assert_allclose(Y.get(), wanted, rtol=1e-11, atol=2e-12)


@pytest.mark.parametrize("k", SIZES)
def test_a_sum_is_that_of_the_records_whatever_the_launch(k, monkeypatch):
    X = cupy.asarray(covariances(np.random.default_rng(k), 517, k))
    region = DOMAIN.region(k)
    q, status = cuda.encode(X, region)
    assert not status.any()
    total, _ = cuda.lattice_sum(X, region)
    np.testing.assert_array_equal(total, q.get().sum(axis=0))
    monkeypatch.setattr(cuda, "_resident", lambda *_: 1)  # another grid
    np.testing.assert_array_equal(cuda.lattice_sum(X, region)[0], total)
    wanted, _ = reference.encode(X.get(), region)
    assert np.abs(q.get() - wanted).max() <= 64


@pytest.mark.parametrize("k", [1, 2, 3, 5, 9, 11, 20, 33])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("domain", [DOMAIN, Ball(1e-3), Ball(5.0)])
def test_hostile_records(k, dtype, domain):
    rng = np.random.default_rng(k)
    n = 400
    X, region = hostile(rng, n, k, dtype), domain.region(k)
    q, status = (a.get() for a in cuda.encode(cupy.asarray(X), region))
    _, wanted = reference.encode(X, region)
    np.testing.assert_array_equal(status, wanted)
    assert max(exact_squares(q)) <= RECORD_NORM**2
    order = rng.permutation(n)
    again, _ = cuda.encode(cupy.asarray(X[order]), region)
    np.testing.assert_array_equal(again.get(), q[order])
    for i in rng.integers(0, n, 5):
        alone, code = cuda.encode(cupy.asarray(X[i : i + 1]), region)
        np.testing.assert_array_equal(alone.get()[0], q[i])
        assert int(code[0]) == status[i]
    np.testing.assert_array_equal(cuda.lattice_sum(cupy.asarray(X), region)[0], q.sum(axis=0))


@pytest.mark.parametrize("d", [1, 3, 6, 45, 66, 465])
def test_vector_passes(d):
    rng = np.random.default_rng(d)
    Y, center, width = rng.standard_normal((700, d)), rng.standard_normal(d), rng.uniform(0.5, 2, d)
    Z = cupy.asarray(Y)
    norms = cuda.vector_norms(Z, center, width).get()
    np.testing.assert_allclose(norms, reference.vector_norms(Y, center, width), rtol=1e-13)
    for radius in (0.3, 3.0, 300.0):
        q = cuda.encode_vectors(Z, center, radius).get()
        assert np.abs(q - reference.encode_vectors(Y, center, radius)).max() <= 2
        assert max(exact_squares(q)) <= RECORD_NORM**2
        for absolute in (False, True):
            total = cuda.vector_sum(Z, center, width, radius, absolute)
            wanted = reference.vector_sum(Y, center, width, radius, absolute)
            assert np.abs(total - wanted).max() <= 2 * len(Y)
            parts = [
                cuda.vector_sum(Z[a], center, width, radius, absolute)
                for a in (slice(0, 300), slice(300, None))
            ]
            np.testing.assert_array_equal(sum(parts), total)


@pytest.mark.parametrize("d", [3, 45, 130])
def test_a_turned_row_depends_on_that_row_alone(d):
    rng = np.random.default_rng(d)
    Y, center = rng.standard_normal((333, d)), rng.standard_normal(d)
    axes, _ = np.linalg.qr(rng.standard_normal((d, d)))
    Z = cuda.rotate(cupy.asarray(Y), center, axes).get()
    np.testing.assert_allclose(Z, reference.rotate(Y, center, axes), atol=1e-13)
    for i in (0, 17, 332):
        alone = cuda.rotate(cupy.asarray(Y[i : i + 1]), center, axes).get()
        np.testing.assert_array_equal(alone[0], Z[i])


@pytest.mark.parametrize("d", [6, 45])
def test_queries_run_where_the_vectors_lie(d):
    rng = np.random.default_rng(d)
    Y, center, width = rng.standard_normal((900, d)), np.zeros(d), rng.uniform(0.5, 2.0, d)
    axes, _ = np.linalg.qr(rng.standard_normal((d, d)))
    for frame in (Frame(center, width), Frame(center, width, axes)):
        for query in (
            VectorSum("q", frame, 2.0),
            AbsoluteSum("q", frame, 2.0),
            DistanceSum("q", frame, 3.0),
            Histogram("q", frame, np.array([0.5, 1.0, 2.0, 4.0])),
            CorrelationSum("q", frame, 2.0),
            ClippingBias("q", frame, 1.0, (9.0, 5.0), (1 << 29, 1 << 28)),
            ClippingBias("q", frame, 1.0, (9.0, 5.0), (1 << 29, 1 << 28), (1, 2)),
        ):
            there = query.total(Rows(cupy.asarray(Y)), cuda)
            here = query.total(Rows(Y), reference)
            assert isinstance(there, np.ndarray)
            slack = 1e-4 * np.abs(here).max() if isinstance(query, CorrelationSum) else 2 * len(Y)
            assert np.abs(there - here).max() <= slack


@pytest.mark.parametrize("k", [2, 3, 9, 20])
def test_the_edge_is_seen_where_the_vectors_lie(k):
    """Of records, some of which clipping has put there."""
    chart = chart_of("logeuclid")
    X = covariances(np.random.default_rng(k), 500, k)
    lowest = float(np.median(np.linalg.eigvalsh(X)[:, 0]))
    farthest = float(np.median(np.linalg.norm(chart.vector(X), axis=1)))
    for domain in (EigenvalueBounds(lowest, 1e3), Ball(farthest)):
        region = domain.region(k)
        Y, _ = chart.vectors(X, region, reference)
        query = EdgeCount("edge", chart, region)
        here = query.total(Rows(Y), reference)
        assert 0 < here[0] < len(Y) * COUNT_UNIT
        np.testing.assert_array_equal(query.total(Rows(cupy.asarray(Y)), cuda), here)


def test_blocks_of_stored_vectors_are_looked_at_together(monkeypatch):
    """Thinned ones are one block on the host; all stay the blocks they were read in."""
    monkeypatch.setattr(source_module, "DEVICE_BYTES", 1 << 16)
    X = cupy.asarray(covariances(np.random.default_rng(2), 5_000, 3))
    chart, region, source = chart_of("logeuclid"), DOMAIN.region(3), as_source(X)
    engine = GpuEngine()
    store = engine.hold(source, engine.task(source, chart, region, OnInvalid.RAISE), 1 << 30)
    query = VectorSum("mean", Frame.plain(region.center), region.radius)
    Y, _ = cuda.log_vectors(X, region.log_low, region.log_high)
    np.testing.assert_array_equal(store.total(query), query.total(Rows(Y), cuda))
    store.subsample(7)
    thin = store._thinned(store._places)
    assert store.m == len(thin.Y)
    assert len(store._kept) > 1
    assert isinstance(thin.Y, np.ndarray)  # so few are looked at here
    least = query.total(thin, reference)
    np.testing.assert_array_equal(store.total(query, subsampled=True), least)
    axes, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 6)))
    rotated = store.rotated(axes)
    there = rotated.total(DistanceSum("q", Frame.plain(np.zeros(6)), 5.0))
    here = DistanceSum("q", Frame.plain(np.zeros(6)), 5.0).total(Rows(Y.get()), reference)
    assert abs(int(there[0]) - int(here[0])) <= 2 * len(X)


def stored_total(X, k, engine):
    chart, region = chart_of("logeuclid"), DOMAIN.region(k)
    source = as_source(X)
    works = engine_for(source, engine)
    store = works.hold(source, works.task(source, chart, region, OnInvalid.RAISE), 1 << 30)
    query = VectorSum("mean", Frame.plain(region.center), region.radius)
    return store.total(query), store.n


@pytest.mark.parametrize("k", [3, 11])
def test_arrays_are_taken_where_they_are(k, tmp_path):
    X = covariances(np.random.default_rng(k), 5_000, k)
    region = DOMAIN.region(k)
    there = cupy.asarray(X)
    total, n = stored_total(there, k, None)
    assert n == len(X)
    np.save(tmp_path / "x.npy", X)
    streamed = [X, np.load(tmp_path / "x.npy", mmap_mode="r"), list(X[:300]) + list(X[300:])]
    for data in streamed:
        again, m = stored_total(data, k, "gpu")
        assert m == n
        np.testing.assert_array_equal(again, total)
    source = as_source(X)
    query = whole_domain_sum(region)
    engine = GpuEngine()
    task = engine.task(source, chart_of("logeuclid"), region, OnInvalid.RAISE)
    found = engine.stream(source, task).total(query)
    np.testing.assert_array_equal(found, exact_sum(there, DOMAIN))
    assert kernels_for(there) is cuda


def test_many_blocks_are_streamed_in_order():
    X = covariances(np.random.default_rng(0), 600_000, 5)  # 120 MB: both buffers, twice
    there, _ = cuda.lattice_sum(cupy.asarray(X), DOMAIN.region(5))
    source = as_source(X)
    query = whole_domain_sum(DOMAIN.region(5))
    engine = GpuEngine()
    task = engine.task(source, chart_of("logeuclid"), DOMAIN.region(5), OnInvalid.RAISE)
    store = engine.stream(source, task)
    np.testing.assert_array_equal(store.total(query), there)
    assert store.n == len(X)
    X[500_003, 0, 0] = np.nan
    with pytest.raises(InvalidMatrixError, match="matrix 500003 is not finite"):
        engine.stream(source, task).total(query)


@pytest.mark.parametrize("method", ["oneshot", "adaptive"])
def test_a_release_is_that_of_the_host(method):
    X = covariances(np.random.default_rng(1), 40_000, 4)
    options = {"epsilon": 2.0, "delta": 1e-6, "domain": DOMAIN, "random_state": 0}
    there = private_mean(cupy.asarray(X), method=method, **options)
    here = private_mean(X, method=method, engine="local", **options)
    np.testing.assert_allclose(there.value, here.value, rtol=1e-5, atol=1e-6)


def test_tensors_of_torch_are_taken_in_place():
    torch = pytest.importorskip("torch")
    X = covariances(np.random.default_rng(0), 100, 4)
    total = exact_sum(torch.asarray(X, device="cuda"), DOMAIN)
    np.testing.assert_array_equal(total, exact_sum(cupy.asarray(X), DOMAIN))


def test_an_unknown_engine_is_refused():
    with pytest.raises(ParameterError, match="engine must be"):
        engine_for(as_source(np.eye(2)[None]), "tpu")


BUDGET = {"epsilon": 3.0, "delta": 1e-6, "anyway": True}
TENSORS = {"domain": DOMAIN}
BESIDE = {"y": np.arange(600) % 2, "classes": [0, 1]}
EVERY = {
    "mean": TENSORS,
    "mean, log-Cholesky": TENSORS | {"metric": "logchol"},
    "mean, affine-invariant": TENSORS | {"metric": "riemann"},
    "mean, off-log": {"domain": CorrelationBounds(0.01), "metric": "offlog"},
    "mean, from a point": TENSORS | {"reference_point": 2.0 * np.eye(3)},
    "median": TENSORS,
    "dispersion": TENSORS,
    "pca": TENSORS | {"n_components": 2},
    "class_means": TENSORS | BESIDE | {"covariance": "full"},
    "difference": TENSORS | BESIDE,
    "anova": TENSORS | BESIDE,
    "regression": TENSORS | {"covariates": np.linspace(-1, 1, 600), "ranges": [(-1.0, 1.0)]},
}


@pytest.mark.parametrize("name", EVERY)
def test_every_statistic_and_metric_takes_records_on_a_device(name):
    X = covariances(np.random.default_rng(4), 600, 3)
    if "off-log" in name:
        s = 1.0 / np.sqrt(np.diagonal(X, axis1=1, axis2=2))
        X = X * s[:, :, None] * s[:, None, :]
        X[:, range(3), range(3)] = 1.0
    function = getattr(spdp, f"private_{name.partition(',')[0]}")
    release = function(cupy.asarray(X), **EVERY[name], **BUDGET)
    assert [check for check in release.verify() if not check.ok] == []
