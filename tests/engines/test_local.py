"""Files larger than memory, read in blocks."""

import os
import subprocess
import sys

import numpy as np
import pytest

from spdp import EigenvalueBounds, kernels, private_difference, private_median
from spdp.charts import chart_of
from spdp.data.columns import with_columns
from spdp.data.source import as_source
from spdp.engines.local import LocalEngine, LocalStore
from spdp.engines.store import thinned
from spdp.options import OnInvalid
from spdp.queries.covariates import CrossSum, Trend
from spdp.queries.moments import MomentSum
from spdp.queries.sums import Frame

LIMITED = """
import resource, sys, numpy as np
resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[3]),) * 2)
from spdp import EigenvalueBounds, private_mean
from spdp.data import open_records
domain = EigenvalueBounds(0.01, 100.0)
options = {'epsilon': 1.0, 'delta': 1e-6, 'domain': domain, 'method': sys.argv[2]}
release = private_mean(open_records(sys.argv[1]), **options)
anonymous = next(line for line in open('/proc/self/status') if line.startswith('RssAnon'))
print(release.certificate['n'], anonymous.split()[1])
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """430 MB of tensors in a file, or as many as the reference is fast enough for."""
    n = 6_000_000 if kernels.backend() == "native" else 1_000_000
    file = tmp_path_factory.mktemp("large") / "x.npy"
    X = np.lib.format.open_memmap(file, "w+", np.float64, (n, 3, 3))
    rng = np.random.default_rng(0)
    A = rng.standard_normal((100_000, 3, 6))
    B = A @ A.transpose(0, 2, 1) / 6
    for start in range(0, n, 100_000):
        X[start : start + 100_000] = B
    X.flush()
    yield file, n
    file.unlink()


@pytest.mark.parametrize("method", ["oneshot", "adaptive"])
def test_a_file_larger_than_the_memory_limit(large, method):
    """In a process whose heap may not exceed 400 MB, of which the libraries take a
    part.
    """
    file, n = large
    env = {**os.environ, "SPDP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(file), method, str(400 << 20)],
        capture_output=True,
        text=True,
        env=env,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    records, kilobytes = map(int, done.stdout.split())
    assert records == n
    assert kilobytes < 400_000


@pytest.mark.parametrize("n", [0, 1])
def test_no_records_are_a_dataset_where_their_number_is_private(n):
    """None and one must not be told apart by an exception."""
    X, options = np.tile(np.eye(2), (n, 1, 1)), {"epsilon": 1.0, "delta": 1e-6}
    domain = EigenvalueBounds(0.1, 10.0)
    release = private_median(X, domain=domain, adjacency="add-remove", **options)
    assert release.value.shape == (2, 2)


class Joined(LocalEngine):
    """Makes one block of all, as the engine of a GPU does."""

    def hold(self, source, task, keep_bytes):
        store = LocalStore(self, source, task, keep_bytes)
        store._kept = [thinned(store._kept, [np.arange(len(rows.Y)) for rows in store._kept])]
        return store


def test_blocks_are_joined_with_all_that_stands_beside_them(monkeypatch):
    """Labels and covariates too: a query sums the same integers over either."""
    monkeypatch.setattr("spdp.data.source.BLOCK_BYTES", 1 << 12)
    rng = np.random.default_rng(0)
    A, label = rng.standard_normal((2000, 2, 5)), rng.integers(0, 2, 2000)
    X = A @ A.swapaxes(1, 2) / 5 + 0.2 * np.eye(2)
    source = with_columns(as_source(X), label=label, x=rng.uniform(0.0, 1.0, 2000))
    chart, totals = chart_of("logeuclid"), []
    region = EigenvalueBounds(0.05, 20.0).region(2, chart)
    trend = Trend(np.zeros(1), np.ones(1), np.zeros((2, 3)))
    for engine in (LocalEngine(), Joined()):
        task = engine.task(source, chart, region, OnInvalid.RAISE, (0, 1), np.array([[0.0, 1.0]]))
        store = engine.hold(source, task, 1 << 30)
        moments = MomentSum("", Frame.plain(region.center), region.radius, 2)
        crossed = CrossSum("", trend, region.radius)
        totals.append([store.total(query) for query in (moments, crossed)])
        assert store.m == store.n == 2000
    for one, other in zip(*totals, strict=True):
        np.testing.assert_array_equal(one, other)


def test_classes_survive_joining(monkeypatch):
    monkeypatch.setattr("spdp.data.source.BLOCK_BYTES", 1 << 12)
    X, y = np.tile(np.eye(2), (900, 1, 1)), np.arange(900) % 3 // 2
    options = {"epsilon": 4.0, "delta": 1e-6, "domain": EigenvalueBounds(0.1, 10.0)}
    release = private_difference(X, y, classes=(0, 1), engine=Joined(), **options)
    np.testing.assert_allclose(release.values["counts"], [600, 300], atol=60)
