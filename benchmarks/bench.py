"""Speed of spdp beside its peers, in one run on one machine.

    python benchmarks/bench.py [--geomstats PYTHON] [--gpu] [--quick] [--output FOLDER]

µs per matrix, ratios, growth with n and peak memory. Writes bench.md and bench.json,
into benchmarks/results by default. ``--geomstats`` names an interpreter whose
environment has geomstats, which does not import on current NumPy; ``make bench`` makes
one.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# one thread for everyone; spdp is also run on all
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

# ruff: noqa: E402
import numpy as np
import scipy.linalg
import threadpoolctl
from pyriemann.geometry.base import logm as pyriemann_logm
from pyriemann.geometry.distance import distance_logeuclid as pyriemann_distance
from pyriemann.geometry.mean import mean_logeuclid as pyriemann_mean

from spdp import EigenvalueBounds, private_mean
from spdp.geometry import distance_logeuclid, logm, mean_logeuclid
from spdp.kernels import backend

THOUSANDS = {2: 100, 3: 100, 5: 100, 9: 100, 11: 100, 20: 20, 30: 10, 64: 1}
LARGE = (64, 100, 116, 200, 400)  # k, each with many and with few matrices
MANY, FEW = 500, 100
RESULTS = Path(__file__).parent / "results"
DOMAIN = EigenvalueBounds(1e-3, 1e2)
NARROW = EigenvalueBounds(0.3, 2.0)  # clips eigenvalues of every record
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

GEOMSTATS = """
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

GROWTH = """
import sys, time, numpy as np
from spdp import EigenvalueBounds, private_mean

def anonymous():
    lines = open("/proc/self/status")
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1])

def release(X):
    domain = EigenvalueBounds(1e-3, 1e2)
    private_mean(
        X,
        epsilon=1.0,
        delta=1e-6,
        domain=domain,
        mechanism="gaussian",
        method="oneshot",
        anyway=True,
    )

release(np.stack([np.eye(3)] * 100))
before = anonymous()
X = np.load(sys.argv[1], mmap_mode="r")
start = time.perf_counter()
release(X)
print(time.perf_counter() - start, anonymous() - before)
"""


def covariances(n, k, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, k, 2 * k))
    return A @ A.transpose(0, 2, 1) / (2 * k)


def best_of(repeats, function, *arguments):
    """µs per matrix of the first argument, the best of several runs.

    The machine's noise only ever adds.
    """
    function(*arguments)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - start)
    return min(times) / len(arguments[0]) * 1e6


def release(X, domain=DOMAIN):
    return private_mean(
        X,
        epsilon=1.0,
        delta=1e-6,
        domain=domain,
        mechanism="gaussian",
        method="oneshot",
        anyway=True,
    )


def release_clipped(X):
    return release(X, NARROW)


def release_auto(X):
    return private_mean(X, epsilon=1.0, delta=1e-6, domain=DOMAIN, anyway=True)


def numpy_mean(X):
    def apply(f, A):
        w, V = np.linalg.eigh(A)
        return (V * f(w)[..., None, :]) @ V.swapaxes(-1, -2)

    return apply(np.exp, apply(np.log, X).mean(axis=0))


def scipy_logm(X):
    return [scipy.linalg.logm(A) for A in X]


def in_process(python, script, argument):
    """What a script prints in a process of its own."""
    command = [python, "-c", script, argument]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def geomstats_times(python, sizes):
    """The same inputs in the interpreter that has geomstats."""
    if python is None:
        return {}
    printed = in_process(python, GEOMSTATS, json.dumps(sizes))
    return {int(k): v for k, v in json.loads(printed.splitlines()[-1]).items()}


def compare(k, n, geomstats):
    """One row of the tables: n matrices of size k."""
    X = covariances(n, k)
    row = {"k": k, "n": n}
    for threads, tag in ((1, "1"), (CORES, "all")):
        with threadpoolctl.threadpool_limits(threads, user_api="spdp"):
            row[f"logm spdp {tag}"] = best_of(5, logm, X)
            row[f"mean spdp {tag}"] = best_of(5, mean_logeuclid, X)
            row[f"private_mean spdp {tag}"] = best_of(5, release, X)
            row[f"distance spdp {tag}"] = best_of(5, distance_logeuclid, X, X[0])
    row["logm pyriemann"] = best_of(2, pyriemann_logm, X)
    row["logm scipy"] = best_of(1, scipy_logm, X[: max(20, n // 200)])
    row["mean numpy"] = best_of(2, numpy_mean, X)
    row["mean pyriemann"] = best_of(3, pyriemann_mean, X)
    row["mean geomstats"] = geomstats.get(k)
    row["distance pyriemann"] = best_of(2, pyriemann_distance, X, X[0])
    row["ratio 1"] = row["mean pyriemann"] / row["private_mean spdp 1"]
    row["ratio all"] = row["mean pyriemann"] / row["private_mean spdp all"]
    row["private / plain"] = row["private_mean spdp 1"] / row["mean spdp 1"]
    return row


def interleaved(repeats, functions, X):
    """µs per matrix of each function on its threads, the best of runs that take turns.

    What else the machine does then meets all of them.
    """
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, (threads, function) in functions.items():
            with threadpoolctl.threadpool_limits(threads, user_api="spdp"):
                start = time.perf_counter()
                function(X)
                elapsed = time.perf_counter() - start
            best[name] = min(best[name], elapsed / len(X) * 1e6)
    return best


def compare_large(k, n, repeats):
    """One row of the table of large matrices."""
    X = np.concatenate([covariances(min(20, n - i), k, i) for i in range(0, n, 20)])
    functions = {
        "mean pyriemann": (1, pyriemann_mean),
        "private_mean spdp 1": (1, release),
        "private_mean spdp all": (CORES, release),
        "clipped spdp 1": (1, release_clipped),
    }
    row = {"k": k, "n": n, **interleaved(repeats, functions, X)}
    for name, of in (("1", "private_mean spdp 1"), ("all", "private_mean spdp all")):
        row[f"ratio {name}"] = row["mean pyriemann"] / row[of]
    row["ratio clipped"] = row["mean pyriemann"] / row["clipped spdp 1"]
    return row


def fixed_costs(n=100, k=3):
    """Milliseconds of one small release, noise included: the median of many.

    Not the best: a search that ends early is no measure of one.
    """
    X = covariances(n, k)
    found = {}
    for name, function in {"one shot": release, "automatic": release_auto}.items():
        times, answers = [], []
        for _ in range(1000):
            start = time.perf_counter()
            done = function(X)
            times.append(time.perf_counter() - start)
            answers.append(len(done.certificate["steps"]))
        found[name] = {"ms": 1e3 * statistics.median(times), "answers": max(answers)}
    return found


def growth(n, k=3):
    """Time and extra memory of a release from a memory map, in a process of its own."""
    step = 10**5
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.npy"
        store = np.lib.format.open_memmap(file, "w+", np.float64, (n, k, k))
        for start in range(0, n, step):
            store[start : start + step] = covariances(min(step, n - start), k, start)
        store.flush()
        del store
        seconds, extra = map(float, in_process(sys.executable, GROWTH, str(file)).split())
    return {
        "n": n,
        "seconds": seconds,
        "us_per_matrix": seconds / n * 1e6,
        "extra_anonymous_kib": extra,
    }


def cpu_model():
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor())


def machine():
    facts = {
        "cpu": cpu_model(),
        "cores": CORES,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "backend": backend(),
    }
    if backend() == "native":
        from spdp.kernels import _native

        facts["instruction_set"] = _native.instruction_set()
    return facts


def table(columns, rows):
    """A Markdown table; columns are pairs (title, how to write a row's cell)."""
    titles = [title for title, _ in columns]
    cells = [titles, *([write(row) for _, write in columns] for row in rows)]
    head, *body = ["| " + " | ".join(line) + " |" for line in cells]
    return [head, "|" + "---|" * len(titles), *body]


def number(name, digits=2, bold=False):
    """How to write a number of a row; a dash where it was not measured."""
    mark = "**" if bold else ""
    return lambda row: "–" if row[name] is None else f"{mark}{row[name]:.{digits}f}{mark}"


def count(name):
    return lambda row: f"{row[name]:,}"


MEANS = [
    ("k", count("k")),
    ("n", count("n")),
    ("private_mean, 1 thread", number("private_mean spdp 1", 3)),
    (f"private_mean, {CORES} threads", number("private_mean spdp all", 3)),
    ("plain mean, 1 thread", number("mean spdp 1", 3)),
    ("NumPy mean", number("mean numpy")),
    ("pyRiemann mean", number("mean pyriemann")),
    ("geomstats mean", number("mean geomstats")),
    ("ratio, 1 thread", number("ratio 1", 1, bold=True)),
    (f"ratio, {CORES} threads", number("ratio all", 1)),
    ("private / plain", number("private / plain")),
]
LOGARITHMS = [
    ("k", count("k")),
    ("logm spdp, 1 thread", number("logm spdp 1", 3)),
    (f"logm spdp, {CORES} threads", number("logm spdp all", 3)),
    ("logm pyRiemann", number("logm pyriemann", 3)),
    ("logm SciPy", number("logm scipy", 3)),
    ("distance spdp, 1 thread", number("distance spdp 1", 3)),
    ("distance pyRiemann", number("distance pyriemann", 3)),
]
LARGER = [
    ("k", count("k")),
    ("n", count("n")),
    ("private_mean, 1 thread", number("private_mean spdp 1", 1)),
    (f"private_mean, {CORES} threads", number("private_mean spdp all", 1)),
    ("all records clipped, 1 thread", number("clipped spdp 1", 1)),
    ("pyRiemann mean", number("mean pyriemann", 1)),
    ("ratio, 1 thread", number("ratio 1", 2, bold=True)),
    (f"ratio, {CORES} threads", number("ratio all", 2)),
    ("ratio, clipped", number("ratio clipped", 2)),
]
GROWING = [
    ("n", count("n")),
    ("seconds", number("seconds", 4)),
    ("µs per matrix", number("us_per_matrix", 3)),
    (
        "extra anonymous memory (MiB)",
        lambda row: f"{row['extra_anonymous_kib'] / 1024:.1f}",
    ),
]


def markdown(facts, rows, large, small, growing):
    lines = [
        "# Benchmarks",
        "",
        ", ".join(f"{name}: {value}" for name, value in facts.items()),
        "",
        "µs per matrix; every peer on one thread. `ratio` is pyRiemann's `mean_logeuclid` over "
        "spdp's `private_mean`",
        "",
        "(which also clips, encodes and adds noise).",
        "",
        *table(MEANS, rows),
        "",
        "Matrix logarithms and distances, µs per matrix:",
        "",
        *table(LOGARITHMS, rows),
        "",
        "Large matrices, µs per matrix, noise included; those who are compared take turns:",
        "",
        *table(LARGER, large),
        "",
        "One release of a hundred 3×3 matrices, medians: "
        + ", ".join(f"{name} {each['ms']:.3f} ms" for name, each in small.items())
        + f" (a search of {small['automatic']['answers']} answers at most)",
        "",
        "`private_mean` of a memory map of 3×3 matrices, all threads:",
        "",
        *table(GROWING, growing),
    ]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--geomstats")
    parser.add_argument("--gpu", action="store_true", help="benchmarks/gpu.py too")
    parser.add_argument("--quick", action="store_true", help="fewer matrices, and none above 116")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    sizes = {k: (100 if options.quick else 1000) * n for k, n in THOUSANDS.items()}
    facts = machine()  # loads the kernels, so that limits on their threads reach them
    geomstats = geomstats_times(options.geomstats, sizes)
    rows = []
    for k, n in sizes.items():
        row = compare(k, n, geomstats)
        rows.append(row)
        one, all_cores = row["ratio 1"], row["ratio all"]
        print(f"k = {k}: {one:.1f} times pyRiemann on one thread, {all_cores:.1f} on {CORES}")
    large = []
    for k in LARGE[:3] if options.quick else LARGE:
        for n in (FEW,) if options.quick else (MANY, FEW):
            row = compare_large(k, n, 3 if k < 400 else 2)
            large.append(row)
            print(f"k = {k}, n = {n}: {row['ratio 1']:.2f} and {row['ratio all']:.2f} times")
    small = fixed_costs()
    growing = [growth(10**power) for power in (3, 4, 5, 6)]
    content = {"machine": facts, "rows": rows, "large": large, "small": small, "growth": growing}
    text = markdown(facts, rows, large, small, growing)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "bench.json").write_text(json.dumps(content, indent=1) + "\n")
    (options.output / "bench.md").write_text(text)
    print(text)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of this process: {peak:.0f} MiB")
    if options.gpu:
        rest = ["--output", str(options.output), *(["--quick"] if options.quick else [])]
        command = [sys.executable, str(Path(__file__).with_name("gpu.py")), *rest]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
