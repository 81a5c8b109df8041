"""A record's code depends on that record alone, whatever it travels with.

No record decides how others are read.
"""

import warnings
from collections import UserList, deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spdp import Ball, EigenvalueBounds, private_mean
from spdp.charts import CHARTS
from spdp.data import as_source
from spdp.data.batching import (
    NUMBERS,
    REAL,
    describe_fault,
    in_dtype,
    record_marks,
    split,
)
from spdp.engines.store import Task, sum_block, vectors_of
from spdp.errors import DataError, InvalidMatrixError
from spdp.kernels import MODULES, kernels_for
from spdp.kernels.base import Status
from spdp.lattice import encode, exact_sum
from spdp.statistics.partial_sums import LatticeSum

DOMAIN = EigenvalueBounds(0.05, 20.0)
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN, "anyway": True}
LOGEUCLID = CHARTS["logeuclid"]
DTYPES = ["<f4", ">f4", "<f8", ">f8", "<f2", "<i4", ">i2", "u1", "?"]


def hostile(rng, k):
    """One record, often at the edge of what is usable, in a dtype of its own."""
    A = rng.standard_normal((k, k + int(rng.integers(-1, 3))))
    X = A @ A.T * 10.0 ** rng.uniform(-3, 3) + rng.choice([0.0, 1e-9, 1.0]) * np.eye(k)
    skew = rng.standard_normal((k, k))
    X = X + rng.choice([0.0, 1e-10, 1e-7, 3e-6, 1e-3]) * np.abs(X).max() * (skew - skew.T)
    kind = rng.integers(0, 8)
    if kind == 0:
        X = np.full((k, k), [np.nan, np.inf, -1.0][rng.integers(3)])
    if kind == 1:
        return (X + 1j).astype(np.complex128)
    if kind == 2:
        return X.astype(object)
    dtype = np.dtype(DTYPES[rng.integers(len(DTYPES))])
    with np.errstate(all="ignore"):
        X = np.nan_to_num(X) if dtype.kind in "iu?" else X
        X = np.clip(X, -100, 100) if dtype.kind in "iu" else X
        X = X.astype(dtype)
    if rng.random() < 0.3:
        X = np.asfortranarray(X)
    if rng.random() < 0.3:
        wide = np.zeros((2 * k, 3 * k), X.dtype)
        wide[::2, ::3] = X
        X = wide[::2, ::3]
    return X.tolist() if rng.random() < 0.1 else X


def codes(block, k, kernels):
    """Codes of all records of a block, invalid ones at the centre."""
    region = DOMAIN.region(k)
    q = np.zeros((len(block), LOGEUCLID.dimension(k)), np.int64)
    for part in split(block, (k, k), "X", REAL):
        rows, _ = LOGEUCLID.encode(part.stack, region, kernels)
        q[slice(None) if part.places is None else part.places] = rows
    return q


@pytest.mark.parametrize("name", MODULES)
@settings(max_examples=120)
@given(st.integers(1, 7), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_the_code_of_a_record_in_company_is_its_code_alone(name, k, n, seed):
    rng, kernels = np.random.default_rng(seed), kernels_for(wanted=name)
    X = [np.eye(k), *(hostile(rng, k) for _ in range(n - 1))]
    together = codes(X, k, kernels)
    for i, record in enumerate(X):
        np.testing.assert_array_equal(together[i], codes([record], k, kernels)[0])
    order = rng.permutation(n)
    np.testing.assert_array_equal(codes([X[i] for i in order], k, kernels), together[order])
    cut = int(rng.integers(0, n + 1))
    total = sum(
        sum_block(part, Task(LOGEUCLID, DOMAIN.region(k), (k, k), "X", name)).total
        for part in (X[:cut], X[cut:])
        if part
    )
    np.testing.assert_array_equal(total, together.sum(axis=0))


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_code_of_a_row_is_the_code_of_the_record(name, dtype, random_spd):
    """Arrays of any dtype, byte order and strides, against each record by itself."""
    kernels = kernels_for(wanted=name)
    X = random_spd(37, 4, condition=300.0)
    X[5] += np.triu(np.full((4, 4), 2e-6), 1)  # symmetric for float32, not for float64
    A = (20 * X if np.dtype(dtype).kind in "iu" else X).astype(dtype)
    together = codes(A, 4, kernels)
    for i in range(len(A)):
        np.testing.assert_array_equal(together[i], codes(A[i], 4, kernels)[0])
        np.testing.assert_array_equal(together[i], codes([A[i]], 4, kernels)[0])
    np.testing.assert_array_equal(codes(A[::-1], 4, kernels), together[::-1])
    np.testing.assert_array_equal(codes(np.asfortranarray(A), 4, kernels), together)


def test_big_endian_float32_keeps_the_tolerances_of_float32(random_spd):
    X = random_spd(3, 3).astype(np.float32)
    X[1, 0, 1] += np.float32(3e-6) * np.abs(X[1]).max()
    with pytest.raises(InvalidMatrixError, match="not symmetric"):
        encode(X.astype(np.float64), DOMAIN)
    np.testing.assert_array_equal(encode(X.astype(">f4"), DOMAIN), encode(X, DOMAIN))


def test_a_record_of_another_dtype_moves_the_sum_by_one_record_only(random_spd):
    """The attack on a list joined into one array, which changed all tolerances."""
    A = random_spd(200, 3).astype(np.float32)
    A[:, 0, 1] += np.float32(2e-6) * np.abs(A).max(axis=(1, 2))  # usable as float32 only
    X = list(A)
    Y = [A[0].astype(np.float64), *A[1:]]
    moved = exact_sum(X, DOMAIN, "center") - exact_sum(Y, DOMAIN, "center")
    assert sum(int(v) ** 2 for v in moved) <= (2 * 2**30) ** 2
    task = Task(LOGEUCLID, DOMAIN.region(3), (3, 3), "X")
    found = [
        np.concatenate([vectors_of(block, task).rows.Y for block in as_source(data).blocks()])
        for data in (X, Y, iter([Y[:50], Y[50:]]))
    ]
    for rows in found[1:]:
        np.testing.assert_array_equal(rows[1:], found[0][1:])
    assert (found[1][0] != found[0][0]).any()  # as float64 it is not symmetric: the centre


@pytest.mark.parametrize("bad", [np.eye(2) * 1j, np.eye(2).astype(object), None, "text"])
@pytest.mark.parametrize("method", ["oneshot", "adaptive"])
def test_a_record_that_holds_no_real_numbers_is_one_invalid_record(bad, method):
    good = [np.eye(2)] * 30
    options = {"epsilon": 5.0, "delta": 1e-6, "domain": Ball(2.0), "method": method}
    X = [*good[:7], bad, *good[7:]]
    with pytest.raises(InvalidMatrixError, match="matrix 7 has dtype"):
        private_mean(X, **options)
    a = private_mean(X, on_invalid="center", random_state=0, **options)
    b = private_mean([*good, np.eye(2)], on_invalid="center", random_state=0, **options)
    np.testing.assert_array_equal(a.value, b.value)


def test_complex_records_are_for_charts_that_take_them(random_spd):
    """A record of a list is judged alone, an array as a whole before it is read."""
    X = random_spd(4, 2)
    odd = [X[0], X[1].astype(np.complex64), X[2].astype(">c16"), X[3]]
    parts = list(split(odd, (2, 2), "X", REAL))
    assert [part.fault and part.fault[:19] for part in parts] == [
        None,
        "has dtype complex64",
        "has dtype >c16; exp",
    ]
    taken = list(split(odd, (2, 2), "X", NUMBERS))
    assert [part.stack.dtype.str for part in taken] == ["<f8", "<c8", "<c16"]
    assert not any(part.fault for part in taken)
    options = BUDGET
    with pytest.raises(InvalidMatrixError, match="^X: matrix 1 has dtype complex64; .*'hermitian'"):
        private_mean(odd, **options)
    private_mean(odd, on_invalid="center", **options)
    for data in (X * 1j, [as_source(X), as_source(X * 1j)]):
        with pytest.raises(InvalidMatrixError, match="dtype complex128; .*metric='hermitian'"):
            private_mean(data, on_invalid="center", **options)


def test_faults_of_complex_matrices_are_told():
    X = np.array([[2.0, 1j], [-1j, 2.0]])
    asymmetric, rotated, negative = X.copy(), X.copy(), X - 2 * np.eye(2)
    asymmetric[0, 1], rotated[1, 1] = 2j, 2.0 + 0.5j
    told = [describe_fault(Status.NOT_SYMMETRIC, A) for A in (asymmetric, rotated)]
    assert told[0] == "is not Hermitian: entries (0, 1) and conjugate (1, 0) differ by 1"
    assert told[1] == "is not Hermitian: entry (1, 1) is 2+0.5j, not real"
    assert describe_fault(Status.NOT_POSITIVE, negative).endswith("smallest eigenvalue -1")
    X[0, 1] = complex(0.0, np.nan)
    assert "entry (0, 1) is nanj" in describe_fault(Status.NOT_FINITE, X)


def test_shapes_are_public_and_errors_name_the_record(random_spd):
    X = [*random_spd(5, 2), np.eye(3)]
    with pytest.raises(InvalidMatrixError, match=r"matrix 5 has shape \(3, 3\)"):
        private_mean(X, on_invalid="center", **BUDGET)


def wild_records():
    """Records that once left a trace: warnings, or errors that depend on them."""
    yield np.array([[1.0, 1e308], [-1e308, 1.0]])
    yield np.full((2, 2), np.longdouble("1e4000"))
    yield np.array([0x7F800001] * 4, np.uint32).view(np.float32).reshape(2, 2)  # signalling
    yield np.eye(2) * 1j
    yield np.zeros((2, 2), "M8[s]")

    class Stubborn:
        def __array__(self, dtype=None, copy=None):
            raise TypeError("not today")

    yield Stubborn()


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("method", ["oneshot", "adaptive"])
@pytest.mark.parametrize("record", list(wild_records()), ids=range(6))
def test_a_centred_record_leaves_no_trace(name, method, record, monkeypatch):
    """No warning, no error, in lists and in iterators of single records alike."""
    monkeypatch.setenv("SPDP_KERNELS", name)
    options = {"epsilon": 5.0, "delta": 1e-6, "domain": Ball(2.0), "on_invalid": "center"}
    good = [np.eye(2)] * 40
    expected = private_mean([*good, np.eye(2)], method=method, random_state=0, **options).value
    sources = [lambda: [*good, record]]
    if not hasattr(record, "__array__") or isinstance(record, np.ndarray):
        sources.append(lambda: iter([*good, record]))
    for source in sources:
        release = private_mean(source(), method=method, random_state=0, **options)
        np.testing.assert_array_equal(release.value, expected)


def test_masked_arrays_are_refused(random_spd):
    """A masked record would be read as if it were not."""
    X = np.ma.MaskedArray(random_spd(10, 2), mask=False)
    X[3] = np.ma.masked
    for data in (X, iter([X]), X[3]):
        with pytest.raises(DataError, match="masked array"):
            private_mean(data, on_invalid="center", **BUDGET)
    # in a list it is one record's affair
    some = [*random_spd(9, 2), X[3]]
    with pytest.raises(InvalidMatrixError, match="matrix 9 is a masked array"):
        private_mean(some, **BUDGET)
    assert private_mean(some, on_invalid="center", **BUDGET).certificate["n"] == 10


def test_arrays_of_other_dtypes_as_a_whole_are_refused(random_spd):
    for A in (random_spd(4, 2) * 1j, random_spd(4, 2).astype(object)):
        with pytest.raises(InvalidMatrixError, match="expected real"):
            private_mean(A, on_invalid="center", **BUDGET)


def test_fingerprints_see_imaginary_parts(random_spd):
    X, key = random_spd(3, 2), b"0123456789abcdef"
    marks = [record_marks(A, (2, 2), "X", key) for A in (X, X + 1j, X + 2j, (X + 2j)[::-1])]
    assert len(set(marks)) == 3
    assert marks[2] == marks[3]


def test_fingerprints_do_not_depend_on_blocks_order_or_dtype(random_spd):
    X, key = random_spd(50, 3).astype(np.float32), b"0123456789abcdef"
    mark = record_marks(X, (3, 3), "X", key)
    parts = [record_marks(part, (3, 3), "X", key) for part in (X[20:], list(X[:20].astype(float)))]
    assert (sum(p[0] for p in parts) % (1 << 256), 50) == mark
    X[7, 0, 0] = np.nextafter(X[7, 0, 0], np.float32(9))
    assert record_marks(X, (3, 3), "X", key) != mark
    assert record_marks(X, (3, 3), "X", b"another key here") != record_marks(X, (3, 3), "X", key)


def test_masked_pieces_of_a_dask_array_are_refused(random_spd):
    da = pytest.importorskip("dask.array")
    X = np.ma.MaskedArray(random_spd(10, 2), mask=False)
    X[3] = np.ma.masked
    with pytest.raises(DataError, match="masked array"):
        private_mean(da.from_array(X, chunks=(4, 2, 2)), **BUDGET)


def test_a_record_is_read_in_a_dtype_whatever_others_make_of_warnings():
    before, seen = list(warnings.filters), []

    class Watching:
        def __float__(self):
            seen.append(list(warnings.filters))
            return 2.0

    rows = np.empty((1, 2, 2), object)
    rows[0] = [[Watching(), 0.0], [0.0, 1e300]]
    with np.errstate(all="raise"):
        (read,) = in_dtype(rows, (2, 2), np.dtype(np.float32))
    assert read.tolist() == [[2.0, 0.0], [0.0, np.inf]]
    assert seen == [before]


UNIT_BALL = Ball(1.0)
LARGEST = 2 * 2**30  # that one record's code can move
SINGLE = np.array([[2, 3e-6], [0, 2]], np.float32)  # symmetric to float32's rounding only
DOUBLE = np.eye(2)


def moved(X, Y):
    """By how much the exact sum of neighbours differs."""
    a, b = (LatticeSum.of(data, UNIT_BALL, "center").total for data in (X, Y))
    return float(np.linalg.norm((a - b).astype(float)))


class Records:
    """A sequence that says so by its methods alone."""

    def __init__(self, items):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


@pytest.mark.parametrize("kind", [list, tuple, deque, UserList, Records])
def test_records_of_any_sequence_are_read_one_by_one(kind):
    usual, odd = [SINGLE] * 50, [*[SINGLE] * 49, DOUBLE]
    assert LatticeSum.of(kind(usual), UNIT_BALL).n == 50
    assert moved(kind(usual), kind(odd)) <= LARGEST


def stacks(odd, dtype, place=2):
    """Blocks as a loader stacks them: one record may change the dtype of its block."""
    for i in range(4):
        rows = np.stack([SINGLE] * 20).astype(dtype)
        if i == place and odd is not None:
            rows = np.array([*rows.tolist()[:-1], odd])
        yield rows


GONE = [[2.0, None], [None, 2.0]]


@pytest.mark.parametrize("odd", [GONE, [[2.0, "x"], [0.0, 2.0]], [[2.0, [1]], [0.0, 2.0]]])
@pytest.mark.parametrize("place", [0, 2])
def test_a_block_of_objects_is_read_record_by_record(odd, place):
    """In the dtype of the others: with another, the rest would not be symmetric."""
    if odd[0][1] == [1]:
        rows = np.empty((20, 2, 2), object)
        rows[:-1], rows[-1, 0, 1] = SINGLE.tolist(), [1]
        blocks = [rows if i == place else np.stack([SINGLE] * 20) for i in range(4)]
    else:
        blocks = list(stacks(odd, np.float32, place))
    assert blocks[place].dtype.kind in "OU"
    usual = list(stacks(None, np.float32))
    assert moved(lambda: iter(usual), lambda: iter(blocks)) <= LARGEST
    assert moved(iter(usual), iter(blocks)) <= LARGEST


def test_blocks_of_different_dtypes_are_refused():
    blocks = [np.stack([SINGLE] * 5), np.stack([SINGLE] * 5).astype(float)]
    for data in (lambda: iter(blocks), iter(blocks)):
        with pytest.raises(DataError, match="blocks of different dtypes, float32 and float64"):
            LatticeSum.of(data, UNIT_BALL, "center")
    assert LatticeSum.of(lambda: iter([list(b) for b in blocks]), UNIT_BALL, "center").n == 10
    ints = [np.stack([np.eye(2, dtype=np.int32)] * 5), np.stack([DOUBLE] * 5)]
    assert LatticeSum.of(lambda: iter(ints), UNIT_BALL).n == 10  # both are float64 at work


@pytest.mark.parametrize("place", [0, 3])
def test_a_single_matrix_may_be_invalid_wherever_it_stands(place):
    matrices = [DOUBLE] * 9
    matrices[place] = np.array(GONE)
    assert LatticeSum.of(lambda: iter(matrices), UNIT_BALL, "center").n == 9
    assert LatticeSum.of(iter(matrices), UNIT_BALL, "center").n == 9
    with pytest.raises(InvalidMatrixError, match="no block of real or complex numbers"):
        as_source(iter([np.array(GONE)]))


@pytest.mark.parametrize("odd", [GONE, [[2.0, "x"], [0.0, 2.0]], [[2.0, 1j], [0.0, 2.0]], DOUBLE])
def test_a_chunk_of_dask_is_read_in_the_dtype_that_is_stated(odd):
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")

    def array(odd):
        pieces = [dask.delayed(piece) for piece in stacks(odd, np.float32)]
        shape = {"shape": (20, 2, 2), "dtype": np.float32}
        return da.concatenate([da.from_delayed(piece, **shape) for piece in pieces])

    assert moved(array(None), array(odd)) <= LARGEST
