"""Flat metrics beside their peers: speed, and the error of a private connectome.

    python benchmarks/metrics.py [--data FOLDER] [--geomstats PYTHON] [--runs RUNS]

One thread, seconds of the processor. The connectomes are those of ABIDE in the data
folder (not part of the project); their table is left out where they are not there.
"""

import argparse
import json
import os
import subprocess
import time
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

# ruff: noqa: E402
import numpy as np
import threadpoolctl
from pyriemann.geometry.mean import mean_logchol as pyriemann_mean

from spdp import CorrelationBounds, EigenvalueBounds, private_mean
from spdp.charts import CHARTS

DATA = Path(__file__).parents[2] / "shared" / "data"
OFFLOG = CHARTS["offlog"]
SHRINKAGE = 0.05
EPSILONS, WANTED = (0.5, 1.0, 2.0), (0.040, 0.018, 0.010)

GEOMSTATS = """
import json, sys, time, numpy as np
from geomstats.geometry.full_rank_correlation_matrices import FullRankCorrelationMatrices
from geomstats.geometry.full_rank_correlation_matrices import OffLogMetric
C = np.load(sys.argv[1])
space = FullRankCorrelationMatrices(C.shape[1], equip=False)
space.equip_with_metric(OffLogMetric)
start = time.process_time()
Y = space.metric.diffeo(C) if hasattr(space.metric, "diffeo") else None
print(json.dumps([time.process_time() - start, np.asarray(Y).tolist()]))
"""


def covariances(n, k):
    A = np.random.default_rng(0).standard_normal((n, k, 2 * k))
    return A @ A.transpose(0, 2, 1) / (2 * k)


def best(function, *arguments, repeats=5):
    """Seconds of the processor, the best of several runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function(*arguments)
        times.append(time.process_time() - start)
    return min(times)


def release(X, metric, domain):
    return private_mean(X, epsilon=1.0, delta=1e-6, domain=domain, metric=metric, method="oneshot")


def numpy_offlog(C):
    """The mean of off-log coordinates, as NumPy users would write it."""
    w, V = np.linalg.eigh(C)
    L = (V * np.log(w)[:, None, :]) @ V.transpose(0, 2, 1)
    i, j = np.triu_indices(C.shape[1], 1)
    return (np.sqrt(2.0) * L[:, i, j]).mean(axis=0)


def log_cholesky():
    print("\nlog-Cholesky means of matrices beyond the caches, ns per matrix\n")
    print("| k | n | pyRiemann | spdp, private | ratio |\n|---|---|---|---|---|")
    for k, n in ((3, 1_000_000), (3, 4_000_000), (9, 50_000), (9, 200_000), (9, 1_000_000)):
        X = covariances(n, k)
        domain = EigenvalueBounds(1e-2, 10.0)
        theirs = best(pyriemann_mean, X)
        ours = best(release, X, "logchol", domain)
        numbers = (f"{1e9 * seconds / n:.1f}" for seconds in (theirs, ours))
        print(f"| {k} | {n:,} | {' | '.join(numbers)} | {theirs / ours:.1f} |")


def off_log(geomstats, k=20, n=20_000):
    X = covariances(n, k)
    s = 1.0 / np.sqrt(np.diagonal(X, axis1=1, axis2=2))
    C = X * s[:, :, None] * s[:, None, :]
    C[:, range(k), range(k)] = 1.0
    theirs = best(numpy_offlog, C)
    ours = best(release, C, "offlog", CorrelationBounds(1e-3))
    print(f"\noff-log at k = {k}, µs per matrix: NumPy {1e6 * theirs / n:.1f}, ", end="")
    print(f"spdp (private mean) {1e6 * ours / n:.1f}: {theirs / ours:.1f} times")
    if geomstats:
        beside_geomstats(geomstats, C[:500])


def beside_geomstats(python, C):
    file = Path("correlations.tmp.npy")
    np.save(file, C)
    try:
        done = subprocess.run(
            [python, "-c", GEOMSTATS, str(file)], capture_output=True, text=True, check=True
        )
    except subprocess.CalledProcessError as error:
        print("geomstats: " + error.stderr.strip().splitlines()[-1])
        return
    finally:
        file.unlink()
    seconds, Y = json.loads(done.stdout.splitlines()[-1])
    i, j = np.triu_indices(C.shape[1], 1)
    theirs = np.sqrt(2.0) * np.asarray(Y)[:, i, j]
    gap = np.abs(theirs - OFFLOG.vector(C)).max()
    print(f"geomstats: {1e6 * seconds / len(C):.1f} µs, coordinates agree to {gap:.1e}")


def connectomes(data, runs):
    file = data / "abide" / "connectomes20.npz"
    if not file.exists():
        print("\nno connectomes in the data folder")
        return
    C = np.load(file)["matrices"].astype(np.float64)
    n, k = C.shape[:2]
    i, j = np.triu_indices(k, 1)
    domain = CorrelationBounds(SHRINKAGE)
    print(f"\nABIDE, n = {n}, k = {k}, shrinkage {SHRINKAGE}: mean |error| of one correlation\n")
    print("| ε | off-log, adaptive | wanted | one shot |\n|---|---|---|---|")
    truth = OFFLOG.matrices(OFFLOG.vector(domain.clip(C, OFFLOG)).mean(axis=0))
    for epsilon, wanted in zip(EPSILONS, WANTED, strict=True):
        errors = {}
        for method in ("adaptive", "oneshot"):
            found = [
                private_mean(
                    C, epsilon=epsilon, delta=1e-6, domain=domain, metric="offlog", method=method
                ).value
                for _ in range(runs)
            ]
            for M in found:
                assert (np.diagonal(M) == 1.0).all()
                assert (M == M.T).all()
                assert np.linalg.eigvalsh(M)[0] > 0
            errors[method] = np.mean([np.abs(M - truth)[i, j].mean() for M in found])
        print(f"| {epsilon} | {errors['adaptive']:.4f} | {wanted} | {errors['oneshot']:.4f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("SPDP_DATA", DATA)))
    parser.add_argument("--geomstats")
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    with threadpoolctl.threadpool_limits(1):
        log_cholesky()
        off_log(options.geomstats)
        connectomes(options.data, options.runs)


if __name__ == "__main__":
    main()
