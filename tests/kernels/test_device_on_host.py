"""The arithmetic of the GPU's kernels, without a GPU.

The same sources are compiled for the host, where one thread plays all lanes of a
matrix, and are held to the promises of the other kernels.
"""

import ctypes
import os
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from spdp import Ball, EigenvalueBounds
from spdp.kernels import reference
from spdp.kernels.base import RECORD_NORM, Region, Status
from spdp.kernels.launch import MAX_K, constants_header, launch_for, source
from spdp.kernels.vecd import dimension, vecd
from spdp.queries import Rows
from spdp.queries.sums import ClippingBias, DistanceSum, Frame, Histogram

COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")

SIZES = [1, 2, 3, 4, 5, 8, 9, 11, 12, 13, 20, 33, 41]
DOMAINS = [Ball(1e-3), Ball(5.0), Ball(1e100), EigenvalueBounds(1e-6, 3.0)]
LOGVEC, ENCODE, LATTICE_SUM = range(3)
EVERYWHERE = (-np.inf, np.inf)


class OnHost:
    """The kernels' face over the library that was compiled."""

    def __init__(self, library):
        self.library = library

    def records(self, mode, X, region):
        X = np.ascontiguousarray(X)
        m, k = X.shape[:2]
        d = dimension(k)
        out = np.full((m if mode == LOGVEC else 0, d), np.nan)
        codes = np.zeros((1 if mode == LATTICE_SUM else m, d), np.int64)
        status = np.full(m, 99, np.uint8)
        center = np.ascontiguousarray(region.center, np.float64)
        bounds = map(ctypes.c_double, (region.log_low, region.log_high, region.radius))
        arrays = map(pointer, (center, out, codes, status))
        single = int(X.dtype == np.float32)
        size = ctypes.c_longlong(m)
        assert self.library.records(k, single, mode, pointer(X), size, *bounds, *arrays)
        return (out if mode == LOGVEC else codes[0] if mode == LATTICE_SUM else codes), status

    def log_vectors(self, X, low, high):
        return self.records(LOGVEC, X, Region(low, high, np.zeros(dimension(X.shape[1])), 1.0))

    def encode(self, X, region):
        return self.records(ENCODE, X, region)

    def lattice_sum(self, X, region):
        return self.records(LATTICE_SUM, X, region)

    def encode_vectors(self, Y, center, width, radius):
        q = np.empty(Y.shape, np.int64)
        self.rows("row_codes", Y, (center, width), ctypes.c_double(radius), pointer(q))
        return q

    def vector_norms(self, Y, center, width):
        norms = np.empty(len(Y))
        self.rows("row_norms", Y, (center, width), pointer(norms))
        return norms

    def rows(self, name, Y, frame, *rest, more=()):
        """A pass over vectors: what stands in numbers is handed over together."""
        self.last, (center, width) = name, frame
        numbers = np.concatenate([center, 1.0 / np.asarray(width), more])
        first = ctypes.c_longlong(len(Y)), Y.shape[1], pointer(Y), pointer(numbers)
        getattr(self.library, name)(*first, *rest)

    def distance_sum(self, Y, center, width, cap):
        total = np.zeros(1, np.int64)
        self.rows("row_distances", Y, (center, width), ctypes.c_double(cap), pointer(total))
        return total

    def histogram(self, Y, center, width, edges):
        counts = np.zeros(len(edges) + 1, np.int64)
        self.rows("row_counts", Y, (center, width), len(edges), pointer(counts), more=edges)
        return counts

    def clipping_bias(self, Y, center, width, radius, reaches):
        sums = np.zeros(len(reaches), np.int64)
        rest = ctypes.c_double(radius), len(reaches), pointer(sums)
        self.rows("row_excess", Y, (center, width), *rest, more=np.ravel(reaches))
        return sums

    def between(self, Y, k, low, high):
        found = np.zeros(len(Y), np.uint8)
        bounds = map(ctypes.c_double, (low, high))
        size = ctypes.c_longlong(len(Y))
        self.library.row_between(size, k, pointer(Y), *bounds, pointer(found))
        return found.astype(bool)

    @property
    def FUSED(self):
        return {
            name: getattr(self, name) for name in ("distance_sum", "histogram", "clipping_bias")
        }


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    """The device's kernels, compiled for the host."""
    folder = tmp_path_factory.mktemp("device")
    (folder / "constants.hpp").write_text(constants_header(), encoding="utf-8")
    launches = map(launch_for, SIZES)
    sizes = " ".join(f"SIZE({each.k}, {each.lanes})" for each in launches)
    command = [COMPILER, "-std=c++17", "-O1", "-shared", "-fPIC", "-Wno-unknown-pragmas"]
    command += [f"-I{folder}", f"-I{files('spdp.kernels').joinpath('device')}"]
    command += [f"-DSPDP_SIZES={sizes}", str(Path(__file__).with_name("device_on_host.cpp"))]
    subprocess.run([*command, "-o", str(folder / "device.so")], check=True)
    return OnHost(ctypes.CDLL(str(folder / "device.so")))


def covariances(rng, n, k):
    A = rng.standard_normal((n, k, 2 * k))
    return A @ A.transpose(0, 2, 1) / (2 * k)


def hostile(rng, n, k, dtype):
    """Any scale, any bits, singular, indefinite, asymmetric, not finite."""
    X = covariances(rng, n, k) * 10.0 ** rng.uniform(-300, 300, (n, 1, 1))
    Q, _ = np.linalg.qr(rng.standard_normal((n, k, k)))
    w = 10.0 ** rng.uniform(-300, 300, (n, k))
    kind = rng.integers(0, 10, n)
    with np.errstate(all="ignore"):
        X[kind == 0] = rng.choice([0.0, 1.0, -1.0, np.inf, np.nan], (n, k, k))[kind == 0]
        X[kind == 1] = -X[kind == 1]
        X[kind == 2] = np.triu(X[kind == 2])
        X[kind == 3] = np.eye(k) * 10.0 ** rng.uniform(-320, 308)
        X[kind == 4] = 1.0 + 1e-16 * rng.standard_normal((n, k, k))[kind == 4]
        X[kind == 5] = ((Q * w[:, None, :]) @ Q.transpose(0, 2, 1))[kind == 5]
        X[kind == 6] = (w[:, :, None] * np.eye(k))[kind == 6]
        bits = rng.integers(-(2**63), 2**63 - 1, (n, k, k), dtype=np.int64)
        X[kind == 7] = bits.view(np.float64)[kind == 7]
        return X.astype(dtype)


@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_vectors_agree_with_the_reference(device, k, dtype):
    X = covariances(np.random.default_rng(k), 50, k).astype(dtype)
    X = 0.5 * (X + X.transpose(0, 2, 1))
    Y, status = device.log_vectors(X, *EVERYWHERE)
    wanted, codes = reference.log_vectors(X, *EVERYWHERE)
    np.testing.assert_array_equal(status, codes)
    np.testing.assert_allclose(Y, wanted, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("k", SIZES)
def test_repeated_and_close_eigenvalues(device, k):
    rng = np.random.default_rng(k)
    Q, _ = np.linalg.qr(rng.standard_normal((40, k, k)))
    for w in (np.ones((40, k)), rng.choice([1.0, 3.0], (40, k)), 1 + 1e-9 * rng.random((40, k))):
        X = (Q * w[:, None, :]) @ Q.transpose(0, 2, 1)
        X = 0.5 * (X + X.transpose(0, 2, 1))
        Y, _ = device.log_vectors(X, *EVERYWHERE)
        np.testing.assert_allclose(Y, reference.log_vectors(X, *EVERYWHERE)[0], atol=1e-12)


@pytest.mark.parametrize("k", SIZES)
def test_clipped_eigenvalues(device, k):
    X = covariances(np.random.default_rng(k), 40, k)
    Y, _ = device.log_vectors(X, -0.3, 0.2)
    np.testing.assert_allclose(Y, reference.log_vectors(X, -0.3, 0.2)[0], atol=1e-12)


@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_hostile_records(device, k, dtype, domain):
    """The norm rule holds in integers, and no record sways another."""
    rng = np.random.default_rng(k)
    X, region = hostile(rng, 120, k, dtype), domain.region(k)
    q, status = device.encode(X, region)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(status, reference.encode(X, region)[1])
    assert max(sum(int(v) ** 2 for v in row) for row in q) <= RECORD_NORM**2
    assert not q[status != Status.OK].any()
    order = rng.permutation(len(X))
    np.testing.assert_array_equal(device.encode(X[order], region)[0], q[order])
    for i in range(3):
        np.testing.assert_array_equal(device.encode(X[i : i + 1], region)[0][0], q[i])
    np.testing.assert_array_equal(device.lattice_sum(X, region)[0], q.sum(axis=0))


@pytest.mark.parametrize("k", [3, 9, 11, 33])
def test_codes_agree_with_the_reference_but_for_the_last_digits(device, k):
    X = covariances(np.random.default_rng(k), 60, k)
    for domain in (Ball(1.0), EigenvalueBounds(1e-2, 1e2)):
        region = domain.region(k)
        gap = np.abs(device.encode(X, region)[0] - reference.encode(X, region)[0])
        assert gap.max() <= 8


def test_the_rule_of_the_lattice_shrinks_what_is_over_it(device):
    """A vector of equal coordinates rounds onto the sphere, or beyond it."""
    for d in (1, 3, 4, 9, 16, 100):
        Y = np.full((1, d), 2.0 / np.sqrt(d))
        q = device.encode_vectors(Y, np.zeros(d), np.ones(d), 1.0)[0]
        assert RECORD_NORM**2 * (1 - 1e-6) < sum(int(v) ** 2 for v in q) <= RECORD_NORM**2


def test_vector_passes(device):
    rng = np.random.default_rng(0)
    for _ in range(60):
        d = int(rng.integers(1, 60))
        Y = rng.standard_normal((20, d)) * 10.0 ** rng.uniform(-300, 300, (20, 1))
        Y[rng.random(20) < 0.2] = rng.choice([0.0, 1e308, 5e-324, np.inf, np.nan])
        center, width = rng.standard_normal(d), 10.0 ** rng.uniform(-3, 3, d)
        radius = 10.0 ** rng.uniform(-100, 100)
        q = device.encode_vectors(Y, center, width, radius)
        assert max(sum(int(v) ** 2 for v in row) for row in q) <= RECORD_NORM**2
    Y, center, width = rng.standard_normal((50, 9)), rng.standard_normal(9), rng.uniform(1, 2, 9)
    norms = device.vector_norms(Y, center, width)
    np.testing.assert_allclose(norms, reference.vector_norms(Y, center, width), rtol=1e-13)
    wanted = reference.encode_vectors((Y - center) / width, np.zeros(9), 1.5)
    assert np.abs(device.encode_vectors(Y, center, width, 1.5) - wanted).max() <= 2


@pytest.mark.parametrize("d", [1, 6, 45])
def test_queries_of_the_search_in_one_pass(device, d):
    """Within rounding of what the queries themselves compute, and in their bounds."""
    rng = np.random.default_rng(d)
    Y = rng.standard_normal((300, d))
    frame = Frame(rng.standard_normal(d), rng.uniform(0.5, 2.0, d))
    far, near = 40.0, 6.0
    for query, kernel in (
        (DistanceSum("q", frame, 0.8 * np.sqrt(d)), "row_distances"),
        (Histogram("q", frame, np.array([0.5, 1.0, 2.0, 4.0, 8.0])), "row_counts"),
        (ClippingBias("q", frame, 1.0, (far, near), (1 << 29, 1 << 28)), "row_excess"),
        (ClippingBias("q", frame, 1.0, (far, near), (1 << 29, 1 << 28), (1, 2)), "row_excess"),
        (ClippingBias("q", frame, 1e9, (2e9,), (RECORD_NORM,)), "row_excess"),
    ):
        there, here = query.total(Rows(Y), device), query.total(Rows(Y), reference)
        assert device.last == kernel
        assert there.shape == here.shape
        assert np.abs(there - here).max() <= 2 * len(Y)
    wide = DistanceSum("q", frame, 1e-9).total(Rows(Y), device)
    np.testing.assert_array_equal(wide, len(Y) * RECORD_NORM)


@pytest.mark.parametrize("value", [0.0, 1e308, np.inf, -np.inf, np.nan])
def test_no_row_adds_more_than_its_query_allows(device, value):
    rows, frame = Rows(np.full((1, 3), value)), Frame(np.zeros(3), np.full(3, 0.1))
    assert 0 <= DistanceSum("q", frame, 2.0).total(rows, device)[0] <= RECORD_NORM
    assert Histogram("q", frame, np.array([1.0, 2.0])).total(rows, device).sum() == 1 << 20
    weights = (1 << 29, 1 << 28)
    for powers in (None, (1, 2)):
        bias = ClippingBias("q", frame, 1.0, (9.0, 5.0), weights, powers).total(rows, device)
        assert (bias >= 0).all()
        assert (bias <= weights).all()


@pytest.mark.parametrize("k", [1, 2, 3, 9, 20])
def test_eigenvalues_between_bounds(device, k):
    rng = np.random.default_rng(k)
    S = rng.standard_normal((400, k, k))
    S = 0.5 * (S + S.transpose(0, 2, 1))
    w = np.linalg.eigvalsh(S)
    for low, high in ((-1.0, 1.5), (-0.1, 9.0), (-9.0, 0.2), (-99.0, 99.0)):
        wanted = (w[:, 0] > low) & (w[:, -1] < high)
        np.testing.assert_array_equal(device.between(vecd(S), k, low, high), wanted)


@pytest.mark.parametrize("k", [1, 9, 10, 12, 32, 33, MAX_K])
def test_a_launch_fits_a_processor(k):
    """Shared memory and registers of every block that should fit, on any recent GPU."""
    launch = launch_for(k)
    assert launch.lanes == 1 or launch.lanes * -(-k // launch.lanes) >= k
    assert launch.blocks * (launch.bytes + 1024) <= 228 << 10
    assert launch.together >= 1
    assert "records" in source()
    assert "#include" not in source().replace("#include <cmath>", "").replace(
        "#include <cstring>", ""
    )
