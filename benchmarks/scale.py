"""Scale: a file larger than memory under a memory limit, and one against two Dask workers.

    python benchmarks/scale.py [--tensors 10000000] [--matrices 1000000]

Prints a table; docs/scale.md quotes it.
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
from spdp.io import open_records
domain = EigenvalueBounds(1e-3, 1e2)
options = dict(epsilon=1.0, delta=1e-6, domain=domain, mechanism="gaussian", method=sys.argv[2])
X = np.load(sys.argv[1], mmap_mode="r")
small = np.array(X[:500_000])
private_mean(small, **{**options, "method": "oneshot"})
start = time.perf_counter()
private_mean(small, **{**options, "method": "oneshot"})
kernel = len(small) / (time.perf_counter() - start)
start = time.perf_counter()
with open(sys.argv[1], "rb", buffering=0) as file:
    buffer = bytearray(1 << 24)
    while file.readinto(buffer):
        pass
disk = len(X) / (time.perf_counter() - start)
start = time.perf_counter()
private_mean(open_records(sys.argv[1]), **options)
rate = len(X) / (time.perf_counter() - start)
anonymous = int(next(l for l in open("/proc/self/status") if l.startswith("RssAnon")).split()[1])
print(json.dumps({"kernel": kernel, "disk": disk, "rate": rate, "anonymous_mib": anonymous / 1024}))
"""


ROWS = 125_000


def fill(path, n, k):
    X = np.lib.format.open_memmap(path, "w+", np.float64, (n, k, k))
    A = np.random.default_rng(0).standard_normal((50_000, k, 2 * k))
    B = A @ A.transpose(0, 2, 1) / (2 * k)
    for start in range(0, n, len(B)):
        X[start : start + len(B)] = B[: n - start]
    X.flush()


def cluster_seconds(path, workers):
    from distributed import Client, LocalCluster

    from spdp import EigenvalueBounds
    from spdp.io import dask_records
    from spdp.lattice import exact_sum

    os.environ["SPDP_NUM_THREADS"] = "1"
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster,
        Client(cluster) as client,
    ):
        domain = EigenvalueBounds(1e-3, 1e2)
        exact_sum(dask_records(path, client, rows=ROWS), domain)  # imports and the page cache
        times = []
        for _ in range(3):
            start = time.perf_counter()
            total = exact_sum(dask_records(path, client, rows=ROWS), domain)
            times.append(time.perf_counter() - start)
        return min(times), total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tensors", type=int, default=10_000_000)
    parser.add_argument("--matrices", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tensors.npy"
        fill(file, options.tensors, 3)
        for method in ("oneshot", "adaptive"):
            done = subprocess.run([sys.executable, "-c", LIMITED, str(file), method], capture_output=True, text=True, check=True)
            print(f"{options.tensors:,} 3×3 tensors, 1 GiB limit, {method}: {json.loads(done.stdout)}", flush=True)
        file.unlink()
        file = Path(folder) / "matrices.npy"
        fill(file, options.matrices, 9)
        (one, a), (two, b) = cluster_seconds(file, 1), cluster_seconds(file, 2)
        same = bool((a == b).all())
        print(f"{options.matrices:,} 9×9 matrices on Dask: 1 worker {one:.2f} s, 2 workers {two:.2f} s, ratio {one / two:.2f}")
        print(f"the same sum to the bit: {same}")


if __name__ == "__main__":
    main()
