"""Hostile records: no input breaks the norm bound, none influences another."""

import numpy as np
import pytest

from spdp import Ball, EigenvalueBounds, TraceBounds
from spdp.charts import CHARTS
from spdp.errors import ParameterError
from spdp.kernels import kernels_for, reference
from spdp.kernels.base import RECORD_NORM

try:
    from spdp.kernels import _native

    BACKENDS = ["numpy", *_native.instruction_sets()]
except ImportError:  # built without a compiler
    BACKENDS = ["numpy"]

DOMAINS = [
    Ball(1e-3),
    Ball(5.0),
    Ball(1e4),
    Ball(1e100),
    EigenvalueBounds(1e-6, 3.0),
    EigenvalueBounds(1e-300, 1e300),
    TraceBounds(1e-6, 3.0),
    TraceBounds(1e-300, 1e300),
    TraceBounds(1.0, 13.0 * (1 + 1e-12)),
]


@pytest.fixture(params=BACKENDS)
def backend(request):
    """One implementation, in one instruction set."""
    if request.param == "numpy":
        yield reference
        return
    best = _native.instruction_set()
    _native.set_instruction_set(request.param)
    yield kernels_for(wanted="native")
    _native.set_instruction_set(best)


def hostile(rng, n, k, dtype):
    """Matrices chosen to break things: any bits, any scale, asymmetry, garbage."""
    A = rng.standard_normal((n, k, k))
    X = A @ A.transpose(0, 2, 1) * 10.0 ** rng.uniform(-300, 300, (n, 1, 1))
    kind = rng.integers(0, 10, n)
    w = 10.0 ** rng.uniform(-300, 300, (n, k))
    Q, _ = np.linalg.qr(A)
    with np.errstate(all="ignore"):
        graded = (Q * w[:, None, :]) @ Q.transpose(0, 2, 1)
        X[kind == 0] = graded[kind == 0]
        X[kind == 1] = (w[:, :, None] * np.eye(k))[kind == 1]
        X[kind == 2] = np.sign(X[kind == 2]) * 10.0 ** rng.uniform(-324, 308)
        X[kind == 3] = rng.choice([0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], (n, k, k))[kind == 3]
        X[kind == 4] += X[kind == 4] * rng.uniform(-1e-5, 1e-5, (n, k, k))[kind == 4]
        X[kind == 5] = 1.0 + 1e-16 * A[kind == 5]
        bits = rng.integers(-(2**63), 2**63 - 1, (n, k, k), dtype=np.int64)
        X[kind == 6] = bits.view(np.float64)[kind == 6]
        X[kind == 7] = np.eye(k) * 10.0 ** rng.uniform(-320, 308)
        upper = kind == 8  # half of any triangle, a classic mistake
        X[upper] = np.triu(X[upper])
        return X.astype(dtype)


def records(rng, n, k, chart):
    """Hostile records of a dtype that the chart takes."""
    dtype = rng.choice([np.float32, np.float64])
    X = hostile(rng, n, k, dtype)
    if "c" not in chart.kinds or rng.random() < 0.3:
        return X
    Z = X.astype(np.complex64 if dtype is np.float32 else np.complex128)
    Z.imag = hostile(rng, n, k, dtype)  # mostly not Hermitian
    skew = np.triu(Z.imag, 1) * 10.0 ** rng.uniform(-20, 0, (n, 1, 1))
    fine = rng.random(n) < 0.7
    Z.imag[fine] = (skew - skew.transpose(0, 2, 1))[fine]
    phase = np.exp(2j * np.pi * rng.random((n, k))).astype(Z.dtype)  # a positive one stays so
    turned = rng.random(n) < 0.5
    Z[turned] = (phase[:, :, None] * X * phase[:, None, :].conj())[turned]
    return Z


def exact_squares(q):
    """Σ q² of each row as Python integers, from halves whose sums cannot overflow."""
    high, low = np.abs(q) >> 15, np.abs(q) & 0x7FFF
    sums = [(x * y).sum(axis=1).tolist() for x, y in ((high, high), (high, low), (low, low))]
    return [(a << 30) + (b << 16) + c for a, b, c in zip(*sums, strict=True)]


def region_of(rng, k, chart):
    """One of the domains, of those in which the chart has matrices."""
    while True:
        try:
            return DOMAINS[rng.integers(len(DOMAINS))].region(k, chart)
        except ParameterError:
            continue


def attack(backend, chart, count, seed):
    """Encode ``count`` hostile records; check them alone and in company."""
    rng, done = np.random.default_rng(seed), 0
    with np.errstate(all="ignore"):
        while done < count:
            k, n = int(rng.choice([1, 2, 3, 4, 5, 7, 9, 11, 13])), int(rng.integers(300, 1500))
            X = records(rng, n, k, chart)
            if chart.dimension(k) == 0:
                continue
            region = region_of(rng, k, chart)
            q, status = chart.encode(X, region, backend)
            assert int(np.abs(q).max()) <= RECORD_NORM
            assert max(exact_squares(q)) <= RECORD_NORM**2
            total, _ = chart.lattice_sum(X, region, backend)
            np.testing.assert_array_equal(total, q.sum(axis=0))
            order = rng.permutation(n)
            again, _ = chart.encode(X[order], region, backend)
            np.testing.assert_array_equal(again, q[order])
            for i in rng.integers(0, n, 5):
                alone, code = chart.encode(X[i : i + 1], region, backend)
                np.testing.assert_array_equal(alone[0], q[i])
                assert code[0] == status[i]
            done += n
    return done


@pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
def test_hostile_records(backend, chart):
    attack(backend, chart, 4_000, 1)


@pytest.mark.audit
@pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
def test_a_hundred_thousand_hostile_records(backend, chart, request):
    count = attack(backend, chart, 100_000, 2)
    print(f"{request.node.callspec.id}: {count:,} hostile records, no norm broken, none swayed")


def vectors(rng, n, d):
    Y = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-300, 300, (n, 1))
    Y[rng.random(n) < 0.2] = rng.choice([0.0, 1e308, -1e308, 5e-324, 1.0])
    return Y


@pytest.mark.parametrize("absolute", [False, True])
def test_hostile_vectors(backend, absolute):
    """Sums over vectors, one row at a time: each row's code is within the bound."""
    rng = np.random.default_rng(3)
    with np.errstate(all="ignore"):
        for _ in range(60):
            d = int(rng.integers(1, 50))
            Y, center = vectors(rng, 20, d), vectors(rng, 1, d)[0]
            width = 10.0 ** rng.uniform(-3, 3, d)
            radius = 10.0 ** rng.uniform(-100, 100)
            rows = [backend.vector_sum(y[None], center, width, radius, absolute) for y in Y]
            for q in rows:
                assert sum(int(v) ** 2 for v in q) <= RECORD_NORM**2
            total = backend.vector_sum(Y, center, width, radius, absolute)
            np.testing.assert_array_equal(total, np.sum(rows, axis=0))
