"""Records in pieces: sums that travel, and a Dask cluster whose answer is the same to the bit."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.base import clone

from spdp import Ball, EigenvalueBounds, PrivateFrechetMean, kernels, private_mean
from spdp.errors import DataError, InvalidMatrixError, ParameterError
from spdp.io import dask_records, open_records
from spdp.lattice import exact_sum, sum_block
from spdp.mean import release_sum
from spdp.records import DaskRecords, as_records, chain
from spdp.sums import LatticeSum

DOMAIN = EigenvalueBounds(0.01, 100.0)


# --- one abstraction for records in pieces -------------------------------------------------------------------------------


def test_every_source_gives_the_same_sum(random_spd, tmp_path):
    X = random_spd(500, 3)
    expected = exact_sum(X, DOMAIN)
    np.save(tmp_path / "a.npy", X[:200])
    np.save(tmp_path / "b.npy", X[200:])
    files = [open_records(tmp_path / "a.npy"), open_records(tmp_path / "b.npy")]
    sources = {
        "memory map": np.load(_saved(tmp_path, X), mmap_mode="r"),
        "list": list(X),
        "iterator": iter([X[:100], X[100:]]),
        "function": lambda: iter([X[:1], X[1:]]),
        "files": files,
        "single matrices": (A for A in X),
    }
    for name, source in sources.items():
        np.testing.assert_array_equal(exact_sum(source, DOMAIN), expected, err_msg=name)
    assert chain(files).n == 500
    with pytest.raises(DataError, match="different sizes"):
        chain([files[0], as_records(random_spd(3, 2))])
    with pytest.raises(DataError, match="no records"):
        as_records(lambda: iter([]))


def _saved(tmp_path, X):
    np.save(tmp_path / "all.npy", X)
    return tmp_path / "all.npy"


def test_adaptive_reads_a_function_again(random_spd):
    X = random_spd(2000, 3, condition=2.0)
    options = {"epsilon": 1.0, "delta": 1e-6, "domain": Ball(10.0), "method": "adaptive", "random_state": 0}
    expected = private_mean(X, **options).value
    np.testing.assert_array_equal(private_mean(lambda: iter([X[:700], X[700:]]), **options).value, expected)


# --- sums that travel ----------------------------------------------------------------------------------------------------


def test_sums_merge_exactly(random_spd, tmp_path):
    X = random_spd(300, 4)
    parts = [LatticeSum.of(X[:100], DOMAIN), LatticeSum.of(X[100:], DOMAIN)]
    for i, part in enumerate(parts):
        part.save(tmp_path / f"{i}.sum")
    merged = LatticeSum.load(tmp_path / "0.sum") + LatticeSum.load(tmp_path / "1.sum")
    assert (merged.n, merged.k) == (300, 4)
    np.testing.assert_array_equal(merged.total, exact_sum(X, DOMAIN))
    options = {"epsilon": 1.0, "delta": 1e-6, "random_state": 5, "mechanism": "gaussian"}
    whole = private_mean(X, domain=DOMAIN, method="oneshot", **options)
    np.testing.assert_array_equal(release_sum(merged, **options).value, whole.value)
    assert "NOT PRIVATE" in (tmp_path / "0.sum").read_text()
    with pytest.raises(ParameterError, match="different domains"):
        _ = parts[0] + LatticeSum.of(X, Ball(1.0))
    with pytest.raises(ParameterError, match="4×4 and 2×2"):
        _ = parts[0] + LatticeSum.of(random_spd(5, 2), DOMAIN)
    with_center = LatticeSum.of(X, Ball(2.0, 2 * np.eye(4)))
    assert LatticeSum.load(with_center.save(tmp_path / "c.sum")).domain == with_center.domain


def test_damaged_sum_files(random_spd, tmp_path):
    file = LatticeSum.of(random_spd(10, 2), DOMAIN).save(tmp_path / "a.sum")
    content = json.loads(file.read_text())
    for name, change, message in [
        ("tampered", {"n": 11}, "checksum"),
        ("newer", {"version": 9}, "newer version"),
        ("other", {"format": "x"}, "not a sum file"),
    ]:
        (tmp_path / name).write_text(json.dumps({**content, **change}))
        with pytest.raises(DataError, match=f"{name}.*{message}"):
            LatticeSum.load(tmp_path / name)
    (tmp_path / "cut").write_text(file.read_text()[:50])
    with pytest.raises(DataError, match=r"cut: cannot be read"):
        LatticeSum.load(tmp_path / "cut")
    with pytest.raises(DataError, match="absent"):
        LatticeSum.load(tmp_path / "absent")


def test_partial_fit(random_spd):
    X = random_spd(300, 3)
    make = lambda: PrivateFrechetMean(1.0, 1e-5, DOMAIN, method="oneshot", random_state=2)  # noqa: E731
    whole = make().fit(X)
    pieces = make().partial_fit(X[:100])
    pieces.merge(make().partial_fit(X[100:]))
    assert not hasattr(pieces, "mean_")
    np.testing.assert_array_equal(pieces.release().mean_, whole.mean_)
    assert not hasattr(pieces, "sum_")
    assert pieces.certificate_["n"] == 300
    assert not hasattr(clone(pieces), "mean_")
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        pieces.release()


def test_sum_and_merge_on_the_command_line(random_spd, tmp_path):
    spdp = shutil.which("spdp", path=f"{sys.prefix}/bin")
    X = random_spd(60, 3)
    np.save(tmp_path / "a.npy", X[:20])
    np.save(tmp_path / "b.npy", X[20:])

    def call(*words):
        return subprocess.run([spdp, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120)

    bounds = ("--eigenvalues", "0.01", "100")
    for site in "ab":
        done = call("sum", f"{site}.npy", "-o", f"{site}.sum", *bounds)
        assert done.returncode == 0, done.stderr
        assert "NOT private" in done.stdout
    both = call("sum", "a.npy", "b.npy", "-o", "ab.sum", *bounds)
    assert both.returncode == 0, both.stderr
    np.testing.assert_array_equal(LatticeSum.load(tmp_path / "ab.sum").total, exact_sum(X, DOMAIN))
    merged = call("merge", "a.sum", "b.sum", "--epsilon", "1", "--delta", "1e-6", "--json")
    assert json.loads(merged.stdout)["certificate"]["n"] == 60
    assert call("merge", "a.sum", "b.sum", "--epsilon", "1", "--delta", "1e-6", "-o", "out").returncode == 0
    assert (tmp_path / "out" / "certificate.json").exists()
    twice = call("merge", "a.sum", "a.sum", "--epsilon", "1", "--delta", "1e-6")
    assert twice.returncode == 2
    assert "count twice" in twice.stderr


# --- Dask ----------------------------------------------------------------------------------------------------------------

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


pytestmark = pytest.mark.filterwarnings("ignore")  # of the cluster's own processes and sockets


@pytest.mark.parametrize("k", [3, 9, 30])
def test_a_cluster_gives_the_same_sum_to_the_bit(client, random_spd, k):
    X = random_spd(400, k)
    array = da.from_array(X, chunks=(90, k, k))
    assert isinstance(as_records(array), DaskRecords)
    np.testing.assert_array_equal(exact_sum(array, DOMAIN), exact_sum(X, DOMAIN))
    np.testing.assert_array_equal(exact_sum(array.rechunk((33, 1, 2)), DOMAIN), exact_sum(X, DOMAIN))


@pytest.mark.parametrize("method", ["oneshot", "adaptive"])
def test_private_mean_on_a_cluster(client, random_spd, method):
    X = random_spd(3000, 3, condition=2.0)
    options = {"epsilon": 1.0, "delta": 1e-6, "domain": Ball(8.0), "method": method, "mechanism": "gaussian"}
    here = private_mean(X, random_state=4, **options)
    there = private_mean(da.from_array(X, chunks=(700, 3, 3)), random_state=4, **options)
    np.testing.assert_array_equal(there.value, here.value)
    assert private_mean(da.from_array(X, chunks=(700, 3, 3)), **options).certificate["private"] is True


def test_bad_records_on_a_cluster(client, random_spd):
    X = random_spd(100, 3)
    X[77] = -X[77]
    array = da.from_array(X, chunks=(30, 3, 3))
    for method in ("oneshot", "adaptive"):
        with pytest.raises(InvalidMatrixError, match="matrix 77 is not positive definite"):
            private_mean(array, epsilon=1.0, delta=1e-6, domain=DOMAIN, method=method)
        private_mean(array, epsilon=1.0, delta=1e-6, domain=DOMAIN, method=method, on_invalid="center")
    with pytest.raises(InvalidMatrixError, match="expected a Dask array"):
        private_mean(da.ones((4, 2, 3)), epsilon=1.0, delta=1e-6, domain=DOMAIN)


def test_only_small_results_leave_a_worker(client, random_spd):
    """The traffic: everything the client receives for a release is a few kilobytes; the records are megabytes, and are refused."""
    X = random_spd(60_000, 5)
    records = as_records(da.from_array(X, chunks=(20_000, 5, 5)))
    results = list(records.each(sum_block, DOMAIN.region(5)))
    from distributed.protocol import serialize_bytes

    assert sum(len(serialize_bytes(result)) for result in results) < 10_000 < X.nbytes / 1000
    with pytest.raises(DataError, match="not brought here"):
        list(records.blocks())
    sent = []
    gather = client.gather

    def spy(futures, *a, **k):
        result = gather(futures, *a, **k)
        sent.append(len(serialize_bytes(result)))
        return result

    client.gather = spy
    try:
        private_mean(da.from_array(X, chunks=(20_000, 5, 5)), epsilon=1.0, delta=1e-6, domain=DOMAIN, method="adaptive")
    finally:
        del client.gather
    assert all(size < 10_000 for size in sent)


def test_a_worker_killed_in_mid_run_changes_nothing(random_spd, tmp_path):
    X = random_spd(1200, 9)
    np.save(tmp_path / "x.npy", X)
    from dask import delayed

    def slow_rows(path, start, stop):  # nested, so that it travels to the workers by value
        time.sleep(0.3)
        return np.load(path, mmap_mode="r")[start:stop]

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster,
        distributed.Client(cluster) as client,
    ):
        chunks = [delayed(slow_rows)(str(tmp_path / "x.npy"), i, i + 100) for i in range(0, 1200, 100)]
        records = DaskRecords(chunks, 9, 1200, "x", client)
        pid = next(iter(client.run(os.getpid).values()))
        results = records.each(sum_block, DOMAIN.region(9))
        first = next(results)
        os.kill(pid, signal.SIGKILL)
        parts = [first, *results]
    assert sum(m for _, m, _ in parts) == 1200
    np.testing.assert_array_equal(np.sum([p for p, _, _ in parts], axis=0), exact_sum(X, DOMAIN))


@pytest.mark.parametrize("name", ["x.npy", "x.h5", "x.zarr"])
def test_files_on_a_cluster(client, random_spd, tmp_path, name):
    X = random_spd(200, 3)
    if name.endswith("npy"):
        np.save(tmp_path / name, X)
    elif name.endswith("h5"):
        h5py = pytest.importorskip("h5py")
        with h5py.File(tmp_path / name, "w") as f:
            f["cov"] = X
    else:
        pytest.importorskip("zarr").create_array(str(tmp_path / name), data=X)
    np.testing.assert_array_equal(exact_sum(dask_records(tmp_path / name, client, rows=60), DOMAIN), exact_sum(X, DOMAIN))
    with pytest.raises(DataError, match="on a cluster"):
        dask_records(tmp_path / "x.mat", client)


def test_local_cluster_on_the_command_line(random_spd, tmp_path):
    np.save(tmp_path / "x.npy", random_spd(500, 3))
    spdp = shutil.which("spdp", path=f"{sys.prefix}/bin")
    words = [spdp, "mean", "x.npy", "--epsilon", "1", "--delta", "1e-6", "--radius", "5", "--json"]
    done = subprocess.run([*words, "--workers", "2"], cwd=tmp_path, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["certificate"]["n"] == 500
    both = subprocess.run([*words, "--workers", "2", "--dask", "tcp://x"], cwd=tmp_path, capture_output=True, text=True, timeout=180)
    assert both.returncode == 2


def test_a_dask_array_without_a_cluster(random_spd):
    code = (
        "import numpy as np, dask.array as da; from spdp import Ball; from spdp.lattice import exact_sum; "
        "X = np.stack([np.diag([1.0, 2.0 + i]) for i in range(50)]); "
        "assert (exact_sum(da.from_array(X, chunks=(7, 2, 2)), Ball(3.0)) == exact_sum(X, Ball(3.0))).all()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


# --- larger than memory --------------------------------------------------------------------------------------------------

LIMITED = """
import resource, sys, numpy as np
resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[3]),) * 2)
from spdp import EigenvalueBounds, private_mean
from spdp.io import open_records
release = private_mean(open_records(sys.argv[1]), epsilon=1.0, delta=1e-6, domain=EigenvalueBounds(0.01, 100.0), method=sys.argv[2])
anonymous = next(line for line in open('/proc/self/status') if line.startswith('RssAnon'))
print(release.certificate['n'], anonymous.split()[1])
"""


@pytest.mark.parametrize("method", ["oneshot", "adaptive"])
def test_a_file_larger_than_the_memory_limit(tmp_path, method):
    """430 MB of tensors in a process whose heap may not exceed 400 MB, of which the libraries take a part."""
    n = 6_000_000 if kernels.backend() == "native" else 1_000_000  # the reference is too slow for a file of that size here
    X = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float64, (n, 3, 3))
    rng = np.random.default_rng(0)
    A = rng.standard_normal((100_000, 3, 6))
    B = A @ A.transpose(0, 2, 1) / 6
    for start in range(0, n, 100_000):
        X[start : start + 100_000] = B
    X.flush()
    env = {**os.environ, "SPDP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "x.npy"), method, str(400 << 20)],
        capture_output=True,
        text=True,
        env=env,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    records, kilobytes = map(int, done.stdout.split())
    assert records == n
    assert kilobytes < 400_000
