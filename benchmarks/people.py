"""Persons with many records: accuracy beside the two ways around it, and what it costs.

    python benchmarks/people.py --data ../shared/data [--runs 20] [--large]

Accuracy: MNIST's 60,000 training images as the records of 3,000 invented persons of 20
images each, dealt at random. *persons* is ``private_mean(groups=...)``; *group privacy*
takes records for persons and divides the budget, μ/20, so that a person is protected
all the same; *one each* uses a single image of each person. Errors are distances to the
mean of all records. ``--large`` times 10⁷ 3×3 matrices of 10⁵ persons in random order.
"""

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from spdp import EigenvalueBounds, private_mean
from spdp.datasets import load_images
from spdp.descriptors import covariance_descriptors, descriptor_bounds
from spdp.geometry import distance_logeuclid, mean_logeuclid
from spdp.privacy import gaussian_epsilon, gaussian_mu

PERSONS, EACH, DELTA = 3000, 20, 1e-6


def accuracy(runs: int) -> None:
    images = load_images("mnist").images
    X, domain = covariance_descriptors(images), descriptor_bounds(1)
    truth = mean_logeuclid(domain.clip(X))
    rng = np.random.default_rng(0)
    print(f"MNIST mean, {PERSONS:,} persons of {EACH} images, {runs} runs, rms error\n")
    print("| ε | persons | group privacy | one each | ratios |\n|---|---|---|---|---|")
    for epsilon in (1.0, 3.0):
        squares = []
        for _ in range(runs):
            groups = rng.permutation(np.repeat(np.arange(PERSONS), EACH))
            first = np.unique(groups, return_index=True)[1]
            small = gaussian_epsilon(DELTA, gaussian_mu(epsilon, DELTA) / EACH)
            options = {"delta": DELTA, "domain": domain, "anyway": True}
            ways = (
                private_mean(X, groups=groups, epsilon=epsilon, **options),
                private_mean(X, epsilon=small, **options),
                private_mean(X[first], epsilon=epsilon, **options),
            )
            values = np.stack([release.value for release in ways])
            squares.append(distance_logeuclid(values, truth, squared=True))
        persons, group, one = np.sqrt(np.mean(squares, axis=0))
        ratios = f"{group / persons:.1f}, {one / persons:.1f}"
        print(f"| {epsilon:g} | {persons:.4f} | {group:.4f} | {one:.4f} | {ratios} |", flush=True)


def large(n: int = 10**7, persons: int = 10**5) -> None:
    rng = np.random.default_rng(1)
    options = {"epsilon": 1.0, "delta": DELTA, "domain": EigenvalueBounds(0.01, 100.0)}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "records.npy"
        X = np.lib.format.open_memmap(file, "w+", np.float64, (n, 3, 3))
        A = rng.standard_normal((n // 10, 3, 6))
        part = A @ A.transpose(0, 2, 1) / 6 + 0.1 * np.eye(3)
        for i in range(10):
            X[i * len(part) : (i + 1) * len(part)] = part
        del X, A, part
        groups = Path(folder) / "groups.npy"
        np.save(groups, rng.integers(0, persons, n).astype(np.int32))
        print(f"\n{n:,} 3×3 records of {persons:,} persons in random order, one shot\n")
        X, ids = np.load(file, mmap_mode="r"), np.load(groups, mmap_mode="r")
        times: dict[str, list[float]] = {"records": [], "persons": []}
        for _ in range(5):
            for name, column in (("records", None), ("persons", ids)):
                start = time.perf_counter()
                private_mean(X, groups=column, method="oneshot", **options)
                times[name].append(time.perf_counter() - start)
        alone, grouped = (min(seconds) for seconds in times.values())
        print(f"without groups {alone:.2f} s, with groups {grouped:.2f} s: {grouped / alone:.2f}")
        print(f"memory beyond the mapped files: {anonymous_memory():.0f} MiB")


def anonymous_memory() -> float:
    """Resident memory that is no file's, in MiB; the peak where that is not told."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) / 1024


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    if arguments.data is not None:
        os.environ["SPDP_DATA"] = str(arguments.data)
        accuracy(arguments.runs)
    if arguments.large:
        large()
