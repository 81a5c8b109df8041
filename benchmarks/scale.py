"""A file larger than memory under a memory limit; one against two Dask workers.

    python benchmarks/scale.py [--tensors 10000000] [--matrices 1000000]

Prints what docs/scale.md quotes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

LIMITED = """
import json, resource, sys, time, numpy as np
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30,) * 2)
from spdp import EigenvalueBounds, private_mean
from spdp.data import open_records

file, method = sys.argv[1:]

def seconds(X, method):
    start = time.perf_counter()
    domain = EigenvalueBounds(1e-3, 1e2)
    private_mean(
        X, epsilon=1.0, delta=1e-6, domain=domain, mechanism="gaussian", method=method
    )
    return time.perf_counter() - start

X = np.load(file, mmap_mode="r")
small = np.array(X[:500_000])
kernel = min(seconds(small, "oneshot") for _ in range(2)) / len(small)
start = time.perf_counter()
with open(file, "rb", buffering=0) as stream:
    buffer = bytearray(1 << 24)
    while stream.readinto(buffer):
        pass
disk = (time.perf_counter() - start) / len(X)
rate = len(X) / seconds(open_records(file), method)
lines = open("/proc/self/status")
anonymous = int(next(line for line in lines if line.startswith("RssAnon")).split()[1])
rates = {"kernel": 1 / kernel, "disk": 1 / disk, "rate": rate}
print(json.dumps({**rates, "anonymous_mib": anonymous / 1024}))
"""


def fill(path, n, k):
    X = np.lib.format.open_memmap(path, "w+", np.float64, (n, k, k))
    A = np.random.default_rng(0).standard_normal((50_000, k, 2 * k))
    B = A @ A.transpose(0, 2, 1) / (2 * k)
    for start in range(0, n, len(B)):
        X[start : start + len(B)] = B[: n - start]
    X.flush()


def limited(path, method):
    """Records per second of a release whose process may hold 1 GiB."""
    command = [sys.executable, "-c", LIMITED, str(path), method]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def cluster_seconds(path, workers):
    """Best of three exact sums on a local cluster, and the sum."""
    from distributed import Client, LocalCluster

    from spdp import EigenvalueBounds
    from spdp.data import open_records
    from spdp.engines.dask import DaskEngine
    from spdp.statistics.partial_sums import LatticeSum

    os.environ["SPDP_NUM_THREADS"] = "1"
    options = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    domain = EigenvalueBounds(1e-3, 1e2)
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client:
        engine, times = DaskEngine(client), []
        for _ in range(4):  # the first one imports, and fills the page cache
            start = time.perf_counter()
            found = LatticeSum.of(open_records(path), domain, engine=engine)
            times.append(time.perf_counter() - start)
        return min(times[1:]), found.total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tensors", type=int, default=10_000_000)
    parser.add_argument("--matrices", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tensors.npy"
        fill(file, options.tensors, 3)
        for method in ("oneshot", "adaptive"):
            rates = limited(file, method)
            print(f"{options.tensors:,} 3×3 tensors, 1 GiB limit, {method}: {rates}", flush=True)
        file.unlink()
        file = Path(folder) / "matrices.npy"
        fill(file, options.matrices, 9)
        (one, a), (two, b) = cluster_seconds(file, 1), cluster_seconds(file, 2)
        print(f"{options.matrices:,} 9×9 matrices on Dask: ", end="")
        print(f"1 worker {one:.2f} s, 2 workers {two:.2f} s, ratio {one / two:.2f}")
        print(f"the same sum to the bit: {bool((a == b).all())}")


if __name__ == "__main__":
    main()
