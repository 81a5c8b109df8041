"""Time of an adaptive release over that of one shot: private_mean end to end."""

import json
import os
import subprocess
import sys

__all__ = ["SIZES", "THREADS", "seconds"]

SIZES, RECORDS, REPEATS, THREADS = (3, 5, 9), 100_000, 5, (1, 2)

RELEASES = """
import json, statistics, sys, time
import numpy as np
from spdp import EigenvalueBounds, private_mean

k, n, repeats = map(int, sys.argv[1:])
A = np.random.default_rng(0).standard_normal((n, k, 2 * k))
X = A @ A.transpose(0, 2, 1) / (2 * k)
options = {"epsilon": 1.0, "delta": 1e-6, "domain": EigenvalueBounds(1e-3, 1e2)}
clocks = {"": time.perf_counter, " cpu": time.process_time}
times = {method + clock: [] for method in ("oneshot", "adaptive") for clock in clocks}
for turn in range(repeats + 1):
    for method in ("oneshot", "adaptive"):
        start = {name: clock() for name, clock in clocks.items()}
        private_mean(X, mechanism="gaussian", method=method, **options)
        for name, clock in clocks.items():
            times[method + name].append(clock() - start[name])
print(json.dumps({name: statistics.median(taken[1:]) for name, taken in times.items()}))
"""


def seconds(k, threads):
    """Median seconds of each method, and of processor time: in its own process."""
    number = str(threads)
    names = ("SPDP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    command = [sys.executable, "-c", RELEASES, str(k), str(RECORDS), str(REPEATS)]
    environment = {**os.environ, **dict.fromkeys(names, number)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return {"k": k, "threads": threads, **json.loads(done.stdout)}
