"""Time of noise: our samplers beside OpenDP's and the entropy, on one thread.

    SPDP_NUM_THREADS=1 python benchmarks/noise.py

Best of several runs, CPU time of this thread, so that a shared machine matters little.
"""

import os
import time
from fractions import Fraction
from importlib.util import find_spec

import numpy as np

from spdp.privacy import discrete_gaussian, discrete_gaussian_numpy, laplace_mixture, noise
from spdp.privacy.laplace_rounding import laplace_vector

SCALES = {"4": 4.0, "100": 100.0, "2³⁰": 2.0**30 + 1, "2⁵⁰": 2.0**50}
LAPLACE = Fraction(3 * 2**31)


def best(call, repeat=1, times=9):
    """Microseconds of one call."""
    spent = []
    for _ in range(times):
        start = time.thread_time()
        for _ in range(repeat):
            call()
        spent.append((time.thread_time() - start) / repeat)
    return min(spent) * 1e6


def zeros(d):
    return np.zeros(d, np.int64)


def anew(d, scale):
    discrete_gaussian.kept_table.cache_clear()
    discrete_gaussian.gaussian(zeros(d), scale)


def gaussian():
    theirs = find_spec("opendp") is not None
    print("| scale | strips, ns a number | NumPy | OpenDP | OpenDP over strips |")
    print("|---|---|---|---|---|")
    draw = discrete_gaussian.gaussian
    for name, scale in SCALES.items():
        table = discrete_gaussian_numpy.Table.of(scale)
        ours = best(lambda s=scale: draw(zeros(100_000), s)) / 100
        plain = best(lambda s=scale, t=table: draw(zeros(100_000), s, table=t)) / 100
        other = (
            best(lambda s=scale: noise._opendp_gaussian(s)(zeros(2000)), 1, 5) / 2 if theirs else 0
        )
        print(f"| {name} | {ours:.0f} | {plain:.0f} | {other:,.0f} | {other / ours:.0f} |")
    entropy = best(lambda: os.urandom(800_000)) / 100
    print(f"\nThe operating system's entropy: {entropy:.0f} ns a word.\n")
    print("| one call at 2³⁰, µs | table known | made anew | OpenDP |\n|---|---|---|---|")
    scale = SCALES["2³⁰"]
    for d in (1, 6, 100, 1000, 2080):
        repeat = max(1, 4000 // d)
        known = best(lambda d=d: discrete_gaussian.gaussian(zeros(d), scale), repeat)
        made = best(lambda d=d: anew(d, scale), repeat)
        other = best(lambda d=d: noise._opendp_gaussian(scale)(zeros(d)), 1, 5) if theirs else 0
        print(f"| d = {d} | {known:.1f} | {made:.1f} | {other:,.0f} |")


def laplace():
    print("\n| Laplace, µs a vector | mixture | rounding |\n|---|---|---|")
    for d in (6, 21, 32, 66, 465, 2080):
        mixed = best(lambda d=d: laplace_mixture.laplace(zeros(d), LAPLACE), 1, 60)
        rounded = best(lambda d=d: laplace_vector(d, LAPLACE), 1, 20)
        print(f"| d = {d} | {mixed:.0f} | {rounded:.0f} |")


if __name__ == "__main__":
    gaussian()
    laplace()
