"""Both implementations of the kernels, and every instruction set this machine has, against the same expectations."""

import numpy as np
import pytest
import threadpoolctl

from spdp import kernels
from spdp.kernels import Region, Status, reference

native = pytest.importorskip("spdp.kernels.native") if kernels.backend() == "native" else None
SETS = native._native.instruction_sets() if native else []
ALL_K = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 20, 30, 33, 70]


@pytest.fixture(params=["numpy", *SETS])
def implementation(request):
    if request.param == "numpy":
        yield reference
        return
    best = native._native.instruction_set()
    native._native.set_instruction_set(request.param)
    yield native
    native._native.set_instruction_set(best)


@pytest.fixture
def threads():
    """Sets the number of native threads, and restores it."""
    if native is None:
        pytest.skip("native kernels are not in use")
    before = native._native.get_num_threads()
    yield native._native.set_num_threads
    native._native.set_num_threads(before)


def families(rng, n, k):
    """Matrices that trouble eigensolvers, all symmetric positive semidefinite up to rounding."""
    Q, _ = np.linalg.qr(rng.standard_normal((n, k, k)))

    def from_eigenvalues(w):
        X = (Q * w[:, None, :]) @ Q.transpose(0, 2, 1)
        return 0.5 * (X + X.transpose(0, 2, 1))

    yield "random", from_eigenvalues(rng.uniform(0.1, 2.0, (n, k)))
    yield "clustered", from_eigenvalues(1.0 + 1e-9 * rng.standard_normal((n, k)))
    yield "repeated", from_eigenvalues(rng.choice([1.0, 2.0], (n, k)))
    yield "identity", np.broadcast_to(np.eye(k), (n, k, k)).copy()
    yield "diagonal", rng.uniform(0.1, 2.0, (n, k))[:, :, None] * np.eye(k)
    yield "rank one plus floor", from_eigenvalues(np.where(np.arange(k) == 0, 1.0, 1e-6) * np.ones((n, 1)))
    yield "condition 1e12", from_eigenvalues(10.0 ** rng.uniform(-12, 0, (n, k)))
    yield (
        "block diagonal",
        np.kron(np.ones((n, 1, 1)), np.eye(k)) + np.diag(np.arange(k - 1) % 2 * 0.3, 1) + np.diag(np.arange(k - 1) % 2 * 0.3, -1),
    )
    yield "tridiagonal", np.broadcast_to(2 * np.eye(k) - np.eye(k, k=1) - np.eye(k, k=-1), (n, k, k)).copy()
    yield (
        "glued Wilkinson",
        np.broadcast_to(np.diag(np.abs(np.arange(k) - k // 2) + 1.0) + 0.3 * np.eye(k, k=1) + 0.3 * np.eye(k, k=-1), (n, k, k)).copy(),
    )
    D = 10.0 ** rng.uniform(-5, 5, (n, k))
    yield "badly scaled", D[:, :, None] * from_eigenvalues(rng.uniform(0.5, 2.0, (n, k))) * D[:, None, :]
    yield "tiny", 1e-280 * from_eigenvalues(rng.uniform(0.1, 2.0, (n, k)))
    yield "huge", 1e280 * from_eigenvalues(rng.uniform(0.1, 2.0, (n, k)))


def check_eigen(X, w, V):
    """Backward error and orthogonality, as LAPACK promises them, in units of the largest eigenvalue."""
    k = X.shape[1]
    top = np.abs(X).max(axis=(1, 2))
    S, W = X / top[:, None, None], w / top[:, None]
    assert (np.diff(w, axis=1) >= 0).all()
    assert np.abs(S @ V - V * W[:, None, :]).max() < 2e-15 * k**1.2 + 2e-15
    assert np.abs(V.transpose(0, 2, 1) @ V - np.eye(k)).max() < 2e-15 * k**1.2 + 2e-15


@pytest.mark.parametrize("k", ALL_K)
def test_eigh_is_backward_stable_on_every_family(implementation, k):
    for name, X in families(np.random.default_rng(k), 40, k):
        w, V, status = implementation.eigh(X)
        assert (status == 0).all(), name
        check_eigen(X, w, V)
        exact = np.linalg.eigvalsh(X / np.abs(X).max(axis=(1, 2))[:, None, None]) * np.abs(X).max(axis=(1, 2))[:, None]
        assert (np.abs(w - exact) <= 1e-14 * k * np.abs(X).max(axis=(1, 2))[:, None]).all(), name


@pytest.mark.audit
@pytest.mark.parametrize("k", [2, 3, 5, 9, 16])
def test_millions_converge(k):
    """More than a million matrices per size, none given up on."""
    if native is None:
        pytest.skip("native kernels are not in use")
    for seed in range(4):
        for _, X in families(np.random.default_rng(seed), 25_000, k):
            w, V = np.empty(X.shape[:2]), np.empty(X.shape)
            _, status = native._run(native.EIGH, X, out=V, values=w)
            assert (status == 0).all()
            check_eigen(X[:500], w[:500], V[:500])


@pytest.mark.parametrize("k", [1, 2, 3, 5, 9, 13, 30, 70])
def test_functions_agree_with_the_reference(implementation, k):
    rng = np.random.default_rng(k)
    X = next(families(rng, 60, k))[1]
    for dtype in (np.float64, np.float32):
        for A in (X.astype(dtype), np.asfortranarray(X.astype(dtype)), X.astype(dtype)[::-2], X.astype(dtype).transpose(0, 2, 1)):
            for name in ("logm", "expm"):
                ours, theirs = getattr(implementation, name)(A), getattr(reference, name)(A)
                np.testing.assert_allclose(ours[0], theirs[0], rtol=0, atol=3e-13)
                assert (ours[0] == ours[0].transpose(0, 2, 1)).all()
                np.testing.assert_array_equal(ours[1], theirs[1])
            weights = rng.random(len(A))
            for w in (None, weights):
                np.testing.assert_allclose(implementation.log_sum(A, w)[0], reference.log_sum(A, w)[0], rtol=0, atol=1e-11)
            np.testing.assert_allclose(implementation.log_vectors(A, -1.0, 0.2)[0], reference.log_vectors(A, -1.0, 0.2)[0], atol=1e-12)
            d = k * (k + 1) // 2
            region = Region(-1.0, 0.2, np.full(d, 0.01), 0.9)
            q, status = implementation.encode(A, region)
            assert np.abs(q - reference.encode(A, region)[0]).max() <= 1 + 2**30 * 1e-13
            total, again = implementation.lattice_sum(A, region)
            np.testing.assert_array_equal(total, q.sum(axis=0))
            np.testing.assert_array_equal(status, again)


@pytest.mark.parametrize("k", [3, 9])
def test_exponentials_over_the_whole_range(implementation, k):
    x = np.linspace(-760, 705, 1001)
    S = x[:, None, None] * np.eye(k)
    E, status = implementation.expm(S)
    assert (status == 0).all()
    np.testing.assert_allclose(E[:, 0, 0], np.exp(x), rtol=1e-14, atol=1e-320)
    w = 10.0 ** np.linspace(-300, 300, 1001)
    L, _, smallest = implementation.logm(w[:, None, None] * np.eye(k))
    np.testing.assert_allclose(L[:, k - 1, k - 1], np.log(w), rtol=4e-16, atol=4e-16)
    np.testing.assert_allclose(smallest, w, rtol=1e-15)


@pytest.mark.parametrize("k", [1, 2, 3, 9, 13])
def test_a_bad_lane_is_told_and_harms_no_neighbour(implementation, k):
    X = next(families(np.random.default_rng(0), 50, k))[1]
    region = Region(-np.inf, np.inf, np.zeros(k * (k + 1) // 2), 0.5)
    clean = [implementation.logm(X)[0], implementation.encode(X, region)[0], implementation.eigh(X)[0], implementation.expm(X)[0]]
    bad = {
        3: (np.nan, Status.NOT_FINITE),
        17: (np.inf, Status.NOT_FINITE),
        30: (-np.eye(k), Status.NOT_POSITIVE),
        49: (0.0, Status.NOT_POSITIVE),
    }
    Y = X.copy()
    for i, (value, _) in bad.items():
        Y[i] = value
    if k > 1:
        Y[40, 0, 1] += 1.0
        bad[40] = (None, Status.NOT_SYMMETRIC)
    good = np.setdiff1d(np.arange(50), list(bad))
    log, encode = implementation.logm(Y), implementation.encode(Y, region)
    for result, expected in zip([log[0], encode[0], implementation.eigh(Y)[0], implementation.expm(Y)[0]], clean, strict=True):
        np.testing.assert_array_equal(result[good], expected[good])
    for status in (log[1], encode[1], implementation.lattice_sum(Y, region)[1], implementation.log_vectors(Y, -1.0, 1.0)[1]):
        assert (status[good] == Status.OK).all()
        assert {i: status[i] for i in bad} == {i: code for i, (_, code) in bad.items()}
    assert (encode[0][list(bad)] == 0).all()
    np.testing.assert_array_equal(implementation.lattice_sum(Y, region)[0], clean[1][good].sum(axis=0))


def test_relative_accuracy_of_the_smallest_eigenvalue(implementation):
    """Graded matrices of condition 1e12 in either direction: log λ_min no worse than LAPACK's."""
    import mpmath

    rng = np.random.default_rng(5)
    B = rng.standard_normal((40, 5, 10))
    for D in (10.0 ** np.linspace(-6, 0, 5), 10.0 ** np.linspace(0, -6, 5), None):
        if D is None:
            Q, _ = np.linalg.qr(rng.standard_normal((40, 5, 5)))
            X = (Q * 10.0 ** np.linspace(-12, 0, 5)) @ Q.transpose(0, 2, 1)
        else:
            X = D[:, None] * (B @ B.transpose(0, 2, 1)) * D
        X = 0.5 * (X + X.transpose(0, 2, 1))
        with mpmath.workdps(40):
            truth = np.array([float(mpmath.log(min(mpmath.eigsy(mpmath.matrix(A.tolist()), eigvals_only=True)))) for A in X])
        ours = np.abs(np.log(implementation.eigh(X)[0][:, 0]) - truth)
        lapack = np.abs(np.log(np.abs(np.linalg.eigh(X)[0][:, 0])) - truth)
        assert np.median(ours) <= 2 * np.median(lapack) + 1e-14
        assert ours.max() <= 3 * lapack.max() + 1e-12


@pytest.mark.parametrize("k", [2, 3, 9, 20])
def test_results_do_not_depend_on_threads_or_neighbours(threads, k):
    X = next(families(np.random.default_rng(1), 9000, k))[1]
    region = Region(-np.inf, np.inf, np.zeros(k * (k + 1) // 2), 1.0)
    results = []
    for count in (1, 2, 3, 7):
        threads(count)
        results.append((native.lattice_sum(X, region)[0], native.log_sum(X)[0], native.logm(X)[0]))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
    alone = np.concatenate([native.encode(X[i : i + 1], region)[0] for i in range(30)])
    np.testing.assert_array_equal(alone, native.encode(X, region)[0][:30])


def test_limits_on_threads_are_respected(threads):
    threads(4)
    with threadpoolctl.threadpool_limits(limits=1):
        assert native._native.get_num_threads() == 1
    assert native._native.get_num_threads() == 4
    with threadpoolctl.threadpool_limits(limits=2, user_api="spdp"):
        assert native._native.get_num_threads() == 2


def test_environment(monkeypatch):
    import subprocess
    import sys

    code = "import spdp.kernels as k; print(k.backend())"
    for wanted in ("numpy", "native") if native else ("numpy",):
        result = subprocess.run([sys.executable, "-c", code], env={"SPDP_KERNELS": wanted}, capture_output=True, text=True, check=True)
        assert result.stdout.strip() == wanted
    result = subprocess.run([sys.executable, "-c", code], env={"SPDP_KERNELS": "cuda"}, capture_output=True, text=True, check=False)
    assert "SPDP_KERNELS must be" in result.stderr
    if native:
        code = "from spdp.kernels import _native, native; print(_native.get_num_threads())"
        result = subprocess.run([sys.executable, "-c", code], env={"SPDP_NUM_THREADS": "3"}, capture_output=True, text=True, check=True)
        assert result.stdout.strip() == "3"


def test_wrong_arguments_do_not_crash():
    if native is None:
        pytest.skip("native kernels are not in use")
    with pytest.raises(ValueError, match="wrong size"):
        native._native.run(native.LOGM, np.ones((2, 3, 3)), np.empty(2, np.uint8), out=np.empty((1, 3, 3)), values=np.empty(2))
    with pytest.raises(ValueError, match="float32 or float64"):
        native._native.run(native.LOGM, np.ones((2, 3, 3), np.int32), np.empty(2, np.uint8), out=np.empty((2, 3, 3)), values=np.empty(2))
