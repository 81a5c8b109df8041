"""Speed of spdp beside its peers, in one run on one machine: µs per matrix, ratios, growth with n and peak memory.

    python benchmarks/bench.py [--geomstats PYTHON] [--quick]

Writes benchmarks/results/bench.md and bench.json. ``--geomstats`` names an interpreter whose environment has geomstats, which
does not import on current NumPy; ``make bench`` makes one.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# ruff: noqa: B023, E402, SIM115
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # one thread for everyone; spdp is also run on all
    os.environ[name] = "1"

import numpy as np
import scipy.linalg
import threadpoolctl
from pyriemann.geometry.base import logm as pyriemann_logm
from pyriemann.geometry.distance import distance_logeuclid as pyriemann_distance
from pyriemann.geometry.mean import mean_logeuclid as pyriemann_mean

from spdp import EigenvalueBounds, kernels, private_mean
from spdp.geometry import distance_logeuclid, logm, mean_logeuclid

SIZES = {2: 100_000, 3: 100_000, 5: 100_000, 9: 100_000, 11: 100_000, 20: 20_000, 30: 10_000, 64: 1_000}
RESULTS = Path(__file__).parent / "results"
DOMAIN = EigenvalueBounds(1e-3, 1e2)
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def covariances(n, k, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, k, 2 * k))
    return A @ A.transpose(0, 2, 1) / (2 * k)


def best_of(function, n, repeats=5):
    """µs per matrix, the best of several runs: the machine's noise only ever adds."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times) / n * 1e6


def release(X):
    return private_mean(X, epsilon=1.0, delta=1e-6, domain=DOMAIN, mechanism="gaussian", **ONE_SHOT)


ONE_SHOT = {"method": "oneshot"} if "method" in private_mean.__kwdefaults__ else {}


def numpy_mean(X):
    def apply(f, A):
        w, V = np.linalg.eigh(A)
        return (V * f(w)[..., None, :]) @ V.swapaxes(-1, -2)

    return apply(np.exp, apply(np.log, X).mean(axis=0))


def geomstats_times(python, sizes):
    """The same inputs in the interpreter that has geomstats."""
    if python is None:
        return {}
    script = """
import json, sys, time, numpy as np
from geomstats.geometry.spd_matrices import SPDMatrices, SPDLogEuclideanMetric
from geomstats.learning.frechet_mean import FrechetMean
result = {}
for k, n in json.loads(sys.argv[1]).items():
    k, n = int(k), min(n, 20000)
    A = np.random.default_rng(0).standard_normal((n, k, 2 * k))
    X = A @ A.transpose(0, 2, 1) / (2 * k)
    space = SPDMatrices(k, equip=False)
    space.equip_with_metric(SPDLogEuclideanMetric)
    estimator = FrechetMean(space)
    times = []
    for _ in range(2):
        start = time.perf_counter()
        estimator.fit(X)
        times.append(time.perf_counter() - start)
    result[k] = min(times) / n * 1e6
print(json.dumps(result))
"""
    done = subprocess.run([python, "-c", script, json.dumps(sizes)], capture_output=True, text=True, check=True)
    return {int(k): v for k, v in json.loads(done.stdout.splitlines()[-1]).items()}


def compare(sizes, geomstats):
    rows = []
    for k, n in sizes.items():
        X = covariances(n, k)
        few = X[: max(20, n // 200)]
        row = {"k": k, "n": n}
        for threads, tag in ((1, "1"), (CORES, "all")):
            with threadpoolctl.threadpool_limits(threads, user_api="spdp"):
                row[f"logm spdp {tag}"] = best_of(lambda: logm(X), n)
                row[f"mean spdp {tag}"] = best_of(lambda: mean_logeuclid(X), n)
                row[f"private_mean spdp {tag}"] = best_of(lambda: release(X), n)
                row[f"distance spdp {tag}"] = best_of(lambda: distance_logeuclid(X, X[0]), n)
        row["logm pyriemann"] = best_of(lambda: pyriemann_logm(X), n, 2)
        row["logm scipy"] = best_of(lambda: [scipy.linalg.logm(A) for A in few], len(few), 1)
        row["mean numpy"] = best_of(lambda: numpy_mean(X), n, 2)
        row["mean pyriemann"] = best_of(lambda: pyriemann_mean(X), n, 3)
        row["mean geomstats"] = geomstats.get(k)
        row["distance pyriemann"] = best_of(lambda: pyriemann_distance(X, X[0]), n, 2)
        row["ratio 1"] = row["mean pyriemann"] / row["private_mean spdp 1"]
        row["ratio all"] = row["mean pyriemann"] / row["private_mean spdp all"]
        row["private / plain"] = row["private_mean spdp 1"] / row["mean spdp 1"]
        rows.append(row)
        print(f"k = {k}: {row['ratio 1']:.1f} times pyRiemann on one thread, {row['ratio all']:.1f} on {CORES}", flush=True)
    return rows


def growth(sizes=(10**3, 10**4, 10**5, 10**6), k=3):
    """Time and extra memory of private_mean on a memory map, as n grows; each n in a process of its own."""
    rows = []
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "x.npy"
            store = np.lib.format.open_memmap(file, "w+", np.float64, (n, k, k))
            for start in range(0, n, 10**5):
                store[start : start + 10**5] = covariances(min(10**5, n - start), k, start)
            store.flush()
            del store
            script = (
                "import resource, time, sys, numpy as np; from spdp import EigenvalueBounds, private_mean; "
                "options = dict(epsilon=1.0, delta=1e-6, domain=EigenvalueBounds(1e-3, 1e2), mechanism='gaussian'); "
                f"options.update({ONE_SHOT!r}); "
                "private_mean(np.stack([np.eye(3)] * 100), **options); "
                "rss = lambda: int(next(l for l in open('/proc/self/status') if l.startswith('RssAnon')).split()[1]); "
                "before = rss(); X = np.load(sys.argv[1], mmap_mode='r'); start = time.perf_counter(); private_mean(X, **options); "
                "print(time.perf_counter() - start, rss() - before)"
            )
            done = subprocess.run([sys.executable, "-c", script, str(file)], capture_output=True, text=True, check=True)
            seconds, extra = map(float, done.stdout.split())
            rows.append({"n": n, "seconds": seconds, "us_per_matrix": seconds / n * 1e6, "extra_anonymous_kib": extra})
    return rows


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.processor())
    facts = {"cpu": model, "cores": CORES, "python": platform.python_version(), "numpy": np.__version__, "backend": kernels.backend()}
    if kernels.backend() == "native":
        from spdp.kernels import _native

        facts["instruction_set"] = _native.instruction_set()
    return facts


def markdown(facts, rows, growing):
    lines = ["# Benchmarks", "", ", ".join(f"{k}: {v}" for k, v in facts.items()), ""]
    lines += ["µs per matrix; every peer on one thread. `ratio` is pyRiemann's `mean_logeuclid` over spdp's `private_mean`", ""]
    lines += ["(which also clips, encodes and adds noise).", ""]
    head = ["k", "n", "private_mean, 1 thread", f"private_mean, {CORES} threads", "plain mean, 1 thread", "NumPy mean", "pyRiemann mean"]
    head += ["geomstats mean", "ratio, 1 thread", f"ratio, {CORES} threads", "private / plain"]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for r in rows:
        g = "–" if r["mean geomstats"] is None else f"{r['mean geomstats']:.2f}"
        cells = [r["k"], f"{r['n']:,}", f"{r['private_mean spdp 1']:.3f}", f"{r['private_mean spdp all']:.3f}", f"{r['mean spdp 1']:.3f}"]
        cells += [f"{r['mean numpy']:.2f}", f"{r['mean pyriemann']:.2f}", g, f"**{r['ratio 1']:.1f}**", f"{r['ratio all']:.1f}"]
        lines.append("| " + " | ".join(map(str, [*cells, f"{r['private / plain']:.2f}"])) + " |")
    lines += ["", "Matrix logarithms and distances, µs per matrix:", ""]
    head = [
        "k",
        "logm spdp, 1 thread",
        f"logm spdp, {CORES} threads",
        "logm pyRiemann",
        "logm SciPy",
        "distance spdp, 1 thread",
        "distance pyRiemann",
    ]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for r in rows:
        cells = [r["logm spdp 1"], r["logm spdp all"], r["logm pyriemann"], r["logm scipy"], r["distance spdp 1"], r["distance pyriemann"]]
        lines.append("| " + " | ".join([str(r["k"]), *(f"{c:.3f}" for c in cells)]) + " |")
    lines += ["", "`private_mean` of a memory map of 3×3 matrices, all threads:", ""]
    lines += ["| n | seconds | µs per matrix | extra anonymous memory (MiB) |", "|---|---|---|---|"]
    lines += [f"| {g['n']:,} | {g['seconds']:.4f} | {g['us_per_matrix']:.3f} | {g['extra_anonymous_kib'] / 1024:.1f} |" for g in growing]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--geomstats")
    parser.add_argument("--quick", action="store_true", help="a tenth of the matrices")
    options = parser.parse_args()
    sizes = {k: n // 10 if options.quick else n for k, n in SIZES.items()}
    rows = compare(sizes, geomstats_times(options.geomstats, sizes))
    growing = growth()
    facts = machine()
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "bench.json").write_text(json.dumps({"machine": facts, "rows": rows, "growth": growing}, indent=1) + "\n")
    text = markdown(facts, rows, growing)
    (RESULTS / "bench.md").write_text(text)
    print(text)
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
