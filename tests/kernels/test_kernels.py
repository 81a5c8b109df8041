"""All kernels, on every instruction set this machine has, keep the same promises."""

import os
import subprocess
import sys

import mpmath
import numpy as np
import pytest
import threadpoolctl

from spdp import EigenvalueBounds
from spdp.charts import CHARTS
from spdp.errors import ParameterError
from spdp.kernels import backend, constants, kernels_for, reference
from spdp.kernels.base import Region, Status
from spdp.kernels.vecd import dimension
from spdp.queries import Rows
from spdp.queries.moments import CorrelationSum
from spdp.queries.sums import COUNT_UNIT, Frame, Histogram

try:
    from spdp.kernels import _native, native
except ImportError:
    _native = native = None

needs_native = pytest.mark.skipif(native is None, reason="the native kernels are not built")
SETS = ["any"] if _native is None else _native.instruction_sets()
ALL_K = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 20, 30, 33, 47, 48, 70, 129]
EVERYWHERE = (-np.inf, np.inf)  # log-eigenvalues that are not clipped


@pytest.fixture(
    params=["numpy", *(pytest.param(f"native {name}", marks=needs_native) for name in SETS)]
)
def kernels(request):
    """One implementation, the native one with each instruction set."""
    wanted, _, instructions = request.param.partition(" ")
    if not instructions:
        yield kernels_for(wanted=wanted)
        return
    best = _native.instruction_set()
    _native.set_instruction_set(instructions)
    yield kernels_for(wanted=wanted)
    _native.set_instruction_set(best)


@pytest.fixture
def threads():
    """Sets the number of native threads, and restores it."""
    before = _native.get_num_threads()
    yield _native.set_num_threads
    _native.set_num_threads(before)


def transposed(X):
    return X.transpose(0, 2, 1)


def symmetric(X):
    return 0.5 * (X + transposed(X))


def families(rng, n, k):
    """Matrices that trouble eigensolvers, positive semidefinite up to rounding."""
    Q, _ = np.linalg.qr(rng.standard_normal((n, k, k)))
    one, above, below = np.eye(k), np.eye(k, k=1), np.eye(k, k=-1)
    pairs = 0.3 * (np.arange(k - 1) % 2)
    wilkinson = np.diag(np.abs(np.arange(k) - k // 2) + 1.0) + 0.3 * (above + below)
    floor = np.where(np.arange(k) == 0, 1.0, 1e-6)
    D = 10.0 ** rng.uniform(-5, 5, (n, k))

    def spectrum(w):
        return symmetric((Q * w[:, None, :]) @ transposed(Q))

    def repeated(A):
        return np.broadcast_to(A, (n, k, k)).copy()

    yield "random", spectrum(rng.uniform(0.1, 2.0, (n, k)))
    yield "clustered", spectrum(1.0 + 1e-9 * rng.standard_normal((n, k)))
    yield "repeated", spectrum(rng.choice([1.0, 2.0], (n, k)))
    yield "identity", repeated(one)
    yield "diagonal", rng.uniform(0.1, 2.0, (n, k))[:, :, None] * one
    yield "rank one plus floor", spectrum(floor * np.ones((n, 1)))
    yield "condition 1e12", spectrum(10.0 ** rng.uniform(-12, 0, (n, k)))
    yield "block diagonal", repeated(one + np.diag(pairs, 1) + np.diag(pairs, -1))
    yield "tridiagonal", repeated(2 * one - above - below)
    yield "glued Wilkinson", repeated(wilkinson)
    scaled = spectrum(rng.uniform(0.5, 2.0, (n, k)))
    yield "badly scaled", D[:, :, None] * scaled * D[:, None, :]
    yield "tiny", 1e-280 * spectrum(rng.uniform(0.1, 2.0, (n, k)))
    yield "huge", 1e280 * spectrum(rng.uniform(0.1, 2.0, (n, k)))


def ordinary(n, k, seed):
    """Well-conditioned matrices: the first family."""
    return next(families(np.random.default_rng(seed), n, k))[1]


def largest_entries(X):
    return np.abs(X).max(axis=(1, 2))


def check_eigen(X, w, V):
    """Backward error and orthogonality as LAPACK promises, for entries up to 1."""
    k, top = X.shape[1], largest_entries(X)
    S, W = X / top[:, None, None], w / top[:, None]
    tolerance = 2e-15 * k**1.2 + 2e-15
    assert (np.diff(w, axis=1) >= 0).all()
    assert np.abs(S @ V - V * W[:, None, :]).max() < tolerance
    assert np.abs(transposed(V) @ V - np.eye(k)).max() < tolerance


@pytest.mark.parametrize("k", ALL_K)
def test_eigh_is_backward_stable_on_every_family(kernels, k):
    for name, X in families(np.random.default_rng(k), 40 if k < 70 else 9, k):
        w, V, status = kernels.eigh(X)
        assert (status == Status.OK).all(), name
        check_eigen(X, w, V)
        top = largest_entries(X)[:, None]
        exact = np.linalg.eigvalsh(X / top[:, :, None]) * top
        assert (np.abs(w - exact) <= 1e-14 * k * top).all(), name


@needs_native
@pytest.mark.audit
@pytest.mark.parametrize("k", [2, 3, 5, 9, 16])
def test_millions_converge(k):
    """More than a million matrices per size, none given up on."""
    for seed in range(4):
        for _, X in families(np.random.default_rng(seed), 25_000, k):
            w, V = np.empty(X.shape[:2]), np.empty(X.shape)
            _, status = native._run(native.EIGH, X, out=V, values=w)
            assert (status == Status.OK).all()
            check_eigen(X[:500], w[:500], V[:500])


def layouts(k, dtype):
    """The same kind of matrices with all kinds of strides, and as plain arrays."""
    X = ordinary(60 if k < 30 else 20 if k < 70 else 9, k, seed=k).astype(dtype)
    for A in (X, np.asfortranarray(X), X[::-2], transposed(X)):
        yield A, np.ascontiguousarray(A)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 9, 13, 30, 48, 70, 129])
def test_functions_agree_with_the_reference(kernels, k, dtype):
    for A, plain in layouts(k, dtype):
        for name in ("logm", "expm"):
            ours, theirs = getattr(kernels, name)(A), getattr(reference, name)(plain)
            np.testing.assert_allclose(ours[0], theirs[0], rtol=0, atol=3e-13)
            np.testing.assert_array_equal(ours[0], transposed(ours[0]))
            np.testing.assert_array_equal(ours[1], theirs[1])
        for w in (None, np.random.default_rng(k).random(len(A))):
            ours, theirs = kernels.log_sum(A, w)[0], reference.log_sum(plain, w)[0]
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-11)
        ours, theirs = kernels.log_vectors(A, -1.0, 0.2), reference.log_vectors(plain, -1.0, 0.2)
        np.testing.assert_allclose(ours[0], theirs[0], atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 9, 13, 30, 48, 70, 129])
def test_lattice_points_agree_with_the_reference_and_their_sum(kernels, k, dtype):
    region = Region(-1.0, 0.2, np.full(dimension(k), 0.01), 0.9)
    for A, plain in layouts(k, dtype):
        q, status = kernels.encode(A, region)
        assert np.abs(q - reference.encode(plain, region)[0]).max() <= 1 + 2**30 * 1e-13
        total, again = kernels.lattice_sum(A, region)
        np.testing.assert_array_equal(total, q.sum(axis=0))
        np.testing.assert_array_equal(status, again)


@pytest.mark.parametrize("d", [1, 3, 6, 45, 200])
def test_sums_and_norms_of_vectors_agree_with_the_reference(kernels, d):
    """A lattice point may round the other way, by one unit in each coordinate."""
    rng = np.random.default_rng(d)
    Y, center, width = rng.standard_normal((500, d)), rng.standard_normal(d), rng.random(d) + 0.1
    ours, theirs = (f.vector_norms(Y, center, width) for f in (kernels, reference))
    np.testing.assert_allclose(ours, theirs, rtol=1e-13)
    radius = float(np.median(theirs))  # half of them are clipped
    for absolute in (False, True):
        ours, theirs = (
            f.vector_sum(Y, center, width, radius, absolute) for f in (kernels, reference)
        )
        assert np.abs(ours - theirs).max() <= len(Y)


@pytest.mark.parametrize("d", [1, 3, 6, 8, 45])
@pytest.mark.parametrize("stride", [1, 3])
def test_products_and_counts_agree_with_the_reference(kernels, d, stride):
    """Numbers without rounding, so that both are the same to the last bit."""
    rng = np.random.default_rng(d)
    for m in (0, 1, 7, 8, 200):
        Y = rng.integers(-99, 99, (stride * m, d))[::stride] / 64.0
        frame = Frame(np.ones(d), np.full(d, 0.5))
        norms = reference.vector_norms(Y, frame.center, frame.width)
        edges = np.sort([0.0, 2.0, *norms[:3], 1e3])
        for query in (CorrelationSum("c", frame, 64.0), Histogram("h", frame, edges)):
            ours, theirs = (query.total(Rows(Y), f) for f in (kernels, reference))
            np.testing.assert_array_equal(ours, theirs)


def test_a_vector_that_is_no_number_is_beyond_all_edges(kernels):
    Y = np.array([[np.nan, 1.0], [0.1, 0.2], [np.inf, 0.0]])
    query = Histogram("h", Frame.plain(np.zeros(2)), np.array([0.5, 1.0]))
    np.testing.assert_array_equal(query.total(Rows(Y), kernels) / COUNT_UNIT, [1, 0, 2])


@pytest.mark.parametrize("d", [1, 3, 6, 8, 45, 66])
def test_rows_are_turned_each_on_its_own(kernels, d):
    rng = np.random.default_rng(d)
    Y, center = rng.standard_normal((37, d)), rng.standard_normal(d)
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    turned = kernels.rotate(Y, center, axes)
    np.testing.assert_allclose(turned, (Y - center) @ axes, atol=1e-13)
    for i in (0, 7, 36):
        np.testing.assert_array_equal(kernels.rotate(Y[i : i + 1], center, axes)[0], turned[i])
    np.testing.assert_array_equal(kernels.rotate(Y, center, axes, out=Y), turned)


@pytest.mark.parametrize("k", [3, 9, 50, 130])
def test_exponentials_and_logarithms_over_the_whole_range(kernels, k):
    many = 1001 if k < 100 else 101
    x = np.linspace(-760, 705, many)
    E, status = kernels.expm(x[:, None, None] * np.eye(k))
    assert (status == Status.OK).all()
    np.testing.assert_allclose(E[:, 0, 0], np.exp(x), rtol=1e-14, atol=1e-320)
    w = 10.0 ** np.linspace(-300, 300, many)
    L, _, smallest = kernels.logm(w[:, None, None] * np.eye(k))
    few = 4e-16 if k < 48 else 2e-14  # large ones are sums of resolvents near 20
    np.testing.assert_allclose(L[:, k - 1, k - 1], np.log(w), rtol=4e-16, atol=few)
    np.testing.assert_allclose(smallest, w, rtol=1e-15)


@pytest.mark.parametrize("k", [1, 2, 3, 9, 13, 50, 130])
def test_a_bad_lane_is_told_and_harms_no_neighbour(kernels, k):
    X = ordinary(50, k, seed=0)
    region = Region(*EVERYWHERE, np.zeros(dimension(k)), 0.5)
    Y = X.copy()
    Y[3], Y[17], Y[30], Y[49] = np.nan, np.inf, -np.eye(k), 0.0
    codes = {
        3: Status.NOT_FINITE,
        17: Status.NOT_FINITE,
        30: Status.NOT_POSITIVE,
        49: Status.NOT_POSITIVE,
    }
    if k > 1:
        Y[40, 0, 1] += 1.0
        codes[40] = Status.NOT_SYMMETRIC
    good = np.setdiff1d(np.arange(50), list(codes))

    def results(A):
        lattice = kernels.encode(A, region)[0]
        return kernels.logm(A)[0], lattice, kernels.eigh(A)[0], kernels.expm(A)[0]

    for found, expected in zip(results(Y), results(X), strict=True):
        np.testing.assert_array_equal(found[good], expected[good])
    q, encoded = kernels.encode(Y, region)
    total, summed = kernels.lattice_sum(Y, region)
    vectors, seen = kernels.log_vectors(Y, -1.0, 1.0)
    for status in (kernels.logm(Y)[1], encoded, summed, seen):
        assert (status[good] == Status.OK).all()
        assert {i: status[i] for i in codes} == codes
    assert (q[list(codes)] == 0).all()
    assert (vectors[list(codes)] == 0).all()
    np.testing.assert_array_equal(total, q[good].sum(axis=0))


@pytest.mark.parametrize("k", [1, 2, 3, 9, 50, 130])
def test_zero_is_not_positive_and_subnormal_matrices_are(kernels, k):
    scales = [0.0, 5e-324, 1e-310, 1e-300, 1e300]
    X = np.array(scales)[:, None, None] * np.eye(k)
    expected = [Status.NOT_POSITIVE] + 4 * [Status.OK]
    assert kernels.logm(X)[1].tolist() == expected
    assert kernels.log_vectors(X, *EVERYWHERE)[1].tolist() == expected
    assert kernels.eigh(X)[2].tolist() == 5 * [Status.OK]
    np.testing.assert_array_equal(kernels.eigh(X)[0][:, 0], scales)


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(np.float64, constants.SYMMETRY_DOUBLE), (np.float32, constants.SYMMETRY_SINGLE)],
)
def test_asymmetry_is_forgiven_up_to_the_tolerance(kernels, k, dtype, tolerance):
    """Relative to the largest entry, or to the next power of two."""
    for scale in (1e-30, 1.0, 1e30):
        for factor, expected in ((0.9, Status.OK), (2.2, Status.NOT_SYMMETRIC)):
            X = np.eye(k)[None].copy()
            X[0, 0, 1] = factor * tolerance
            A = (scale * X).astype(dtype)
            assert kernels.logm(A)[1].tolist() == [expected]
            assert kernels.log_vectors(A, -1.0, 1.0)[1].tolist() == [expected]
            assert kernels.eigh(A)[2].tolist() == [expected]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_eigenvalues_are_forgiven_for_rounding_below_zero(kernels, dtype):
    """By records about to be clipped only: a logarithm of them would mean nothing."""
    k = 3
    slack = constants.RANK_SLACK * k * np.finfo(dtype).eps
    for factor, expected in ((0.9, Status.OK), (2.2, Status.NOT_POSITIVE)):
        X = np.diag([1.0, 1.0, -factor * slack]).astype(dtype)[None]
        assert kernels.log_vectors(X, -1.0, 1.0)[1].tolist() == [expected]
        assert kernels.logm(X)[1].tolist() == [Status.NOT_POSITIVE]


def graded(rng):
    """Matrices of condition 1e12: graded in either direction, and not."""
    B, grades = rng.standard_normal((40, 5, 10)), 10.0 ** np.linspace(-6, 0, 5)
    for D in (grades, grades[::-1]):
        yield symmetric(D[:, None] * (B @ transposed(B)) * D)
    Q, _ = np.linalg.qr(rng.standard_normal((40, 5, 5)))
    yield symmetric((Q * grades**2) @ transposed(Q))


def log_smallest_eigenvalue(A):
    with mpmath.workdps(40):
        values = mpmath.eigsy(mpmath.matrix(A.tolist()), eigvals_only=True)
        return float(mpmath.log(min(values)))


def test_the_smallest_eigenvalue_is_no_worse_than_lapacks(kernels):
    for X in graded(np.random.default_rng(5)):
        truth = np.array([log_smallest_eigenvalue(A) for A in X])
        ours = np.abs(np.log(kernels.eigh(X)[0][:, 0]) - truth)
        lapack = np.abs(np.log(np.abs(np.linalg.eigh(X)[0][:, 0])) - truth)
        assert np.median(ours) <= 2 * np.median(lapack) + 1e-14
        assert ours.max() <= 3 * lapack.max() + 1e-12


@needs_native
@pytest.mark.parametrize("k", [2, 3, 9, 20, 64, 130])
def test_results_do_not_depend_on_threads_or_neighbours(threads, k):
    X = ordinary(9000 if k < 50 else 90, k, seed=1)
    region = Region(*EVERYWHERE, np.zeros(dimension(k)), 1.0)
    results = []
    for count in (1, 2, 3, 7):
        threads(count)
        results.append((native.lattice_sum(X, region)[0], native.log_sum(X)[0], native.logm(X)[0]))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
    alone = np.concatenate([native.encode(X[i : i + 1], region)[0] for i in range(30)])
    np.testing.assert_array_equal(alone, native.encode(X, region)[0][:30])


@pytest.mark.parametrize("k", [50, 64, 130])
def test_a_record_that_is_clipped_changes_no_neighbour(kernels, k):
    """Large matrices take another way where an eigenvalue is clipped, each its own."""
    rng = np.random.default_rng(k)
    X, plain = ordinary(40, k, seed=2), ordinary(40, k, seed=2)
    clipped = rng.random(40) < 0.4
    X[clipped] *= 8.0  # eigenvalues beyond the interval
    region = Region(np.log(0.05), np.log(3.0), np.full(dimension(k), 0.01), 5.0)
    mixed, alone = kernels.encode(X, region)[0], kernels.encode(plain, region)[0]
    np.testing.assert_array_equal(mixed[~clipped], alone[~clipped])
    single = np.concatenate([kernels.encode(X[i : i + 1], region)[0] for i in range(40)])
    np.testing.assert_array_equal(mixed, single)
    assert np.abs(mixed - reference.encode(X, region)[0]).max() <= 2
    np.testing.assert_array_equal(kernels.lattice_sum(X, region)[0], mixed.sum(axis=0))


@pytest.mark.parametrize("k", [129, 136, 177])
@pytest.mark.parametrize("kind", ["blocks", "diagonal", "chain", "clusters"])
def test_large_matrices_whose_sweeps_differ(kernels, k, kind, rng):
    """Windows of a few rows, and long ones: sweeps that go together, or one by one."""
    X = np.zeros((k, k))
    if kind == "blocks":
        for start in range(0, k, 7):
            A = rng.standard_normal((min(7, k - start), 14))
            X[start : start + 7, start : start + 7] = A @ A.T
    elif kind == "diagonal":
        X = np.diag(np.exp(3.0 * rng.standard_normal(k)))
    elif kind == "chain":
        X = 2.0 * np.eye(k) - np.eye(k, k=1) - np.eye(k, k=-1)
    else:
        Q, _ = np.linalg.qr(rng.standard_normal((k, k)))
        X = (Q * np.repeat([0.1, 1.0, 5.0], [40, 40, k - 80])) @ Q.T
        X = 0.5 * (X + X.T)
    for low, high in ((-1.0, 0.7), (-1e-3, 1e-3)):
        Y, status = kernels.log_vectors(X[None], low, high)
        expected, _ = reference.log_vectors(X[None], low, high)
        assert status[0] == Status.OK
        np.testing.assert_allclose(Y, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("decades", [0, 0.5, 1, 2, 3, 4, 5, 6, 7, 12])
@pytest.mark.parametrize("k", [48, 65, 131])
def test_logarithms_of_large_matrices_for_any_condition(kernels, k, decades):
    """Either way, the error is that of the stored entries."""
    rng = np.random.default_rng(int(10 * decades))
    Q, _ = np.linalg.qr(rng.standard_normal((4, k, k)))
    logs = np.log(10.0) * rng.uniform(-decades, 0, (4, k)) + rng.uniform(-40, 40, (4, 1))
    X = symmetric((Q * np.exp(logs)[:, None, :]) @ transposed(Q))
    expected = symmetric((Q * logs[:, None, :]) @ transposed(Q))
    L, status, smallest = kernels.logm(X)
    assert (status == Status.OK).all()
    tolerance = 1e-13 + 1e-14 * 10.0**decades
    np.testing.assert_allclose(L, expected, rtol=0, atol=tolerance)
    np.testing.assert_allclose(np.log(smallest), logs.min(axis=1), rtol=0, atol=tolerance)


@needs_native
def test_limits_on_threads_are_respected(threads):
    threads(4)
    with threadpoolctl.threadpool_limits(limits=1):
        assert _native.get_num_threads() == 1
    assert _native.get_num_threads() == 4
    with threadpoolctl.threadpool_limits(limits=2, user_api="spdp"):
        assert _native.get_num_threads() == 2


@needs_native
def test_compiled_constants_are_those_of_python():
    codes = ("OK", "NOT_FINITE", "NOT_SYMMETRIC", "NOT_POSITIVE", "NOT_CONVERGED")
    assert _native.LATTICE_BITS == constants.LATTICE_BITS
    assert tuple(_native.STATUS) == tuple(getattr(constants, code) for code in codes)


def test_what_is_wanted_comes_before_the_environment(monkeypatch):
    monkeypatch.setenv("SPDP_KERNELS", "numpy")
    assert backend() == "numpy"
    assert kernels_for(np.eye(2)) is reference
    if native is not None:
        assert kernels_for(wanted="native") is native
        monkeypatch.delenv("SPDP_KERNELS")
        assert backend() == "native"
    monkeypatch.setenv("SPDP_KERNELS", "cuda")
    with pytest.raises(ParameterError, match="'numpy'.* 'cuda'"):
        kernels_for()


@needs_native
def test_the_environment_sets_the_number_of_threads():
    """In a process of its own: it is read once, when the kernels are loaded."""
    code = "from spdp.kernels import _native, native; print(_native.get_num_threads())"
    environment = {**os.environ, "SPDP_NUM_THREADS": "3"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "3"


@needs_native
@pytest.mark.parametrize(
    ("dtype", "rows", "message"),
    [(np.float64, 1, "wrong size"), (np.int32, 2, "float32 or float64")],
)
def test_wrong_arguments_do_not_crash(dtype, rows, message):
    X, status = np.ones((2, 3, 3), dtype), np.empty(2, np.uint8)
    with pytest.raises(ValueError, match=message):
        _native.run(native.LOGM, X, status, out=np.empty((rows, 3, 3)), values=np.empty(2))


@needs_native
@pytest.mark.parametrize("name", ["logeuclid", "logchol"])
@pytest.mark.parametrize("instructions", SETS)
def test_codes_added_in_one_go_are_the_codes(random_spd, threads, instructions, name):
    """Statuses added to rows as they are made, on several threads, -1 being no row."""
    X = random_spd(5001, 3)
    X[17], X[4000] = np.nan, -np.eye(3)
    chart = CHARTS[name]
    region = EigenvalueBounds(0.5, 2.0).region(3, chart)
    rows = np.random.default_rng(0).integers(-1, 40, len(X))
    best = _native.instruction_set()
    _native.set_instruction_set(instructions)
    q, expected = chart.encode(X, region, native)
    table = np.ones((40, 6), np.int64)
    wanted = table.copy()
    np.add.at(wanted, rows[rows >= 0], q[rows >= 0])
    threads(3)
    status = chart.add_codes(X, region, native, rows, table)
    _native.set_instruction_set(best)
    np.testing.assert_array_equal(table, wanted)
    np.testing.assert_array_equal(status, expected)
    for bad in (np.full(len(X), 40), np.full(len(X), -2), rows[1:]):
        with pytest.raises(ValueError, match=r"row|size"):
            chart.add_codes(X, region, native, bad, table)
