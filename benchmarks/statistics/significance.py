"""Level and power of the test of two class means, on synthetic laws of equal means.

    python benchmarks/statistics/significance.py level|power [--runs N] [--k 2 3 6]

prints a table and writes it to benchmarks/results/statistics-significance-NAME.md.
Records are vectors of the chart; noise is seeded: these are simulations.

Laws: Gaussian classes whose spreads have the ratio r; *skewed*: the smaller class has
one centred exponential coordinate of sd 0.8, the other is Gaussian; *narrow*: the same
with an sd of 0.4, which is harder to see among the distances; domain: Ball(5).
"""

import argparse
import multiprocessing
import os
from math import sqrt
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from scipy import stats

from spdp import Ball
from spdp.charts import LOGEUCLID, clip_to_ball
from spdp.domain.base import Space
from spdp.options import Adjacency
from spdp.planning.population import SyntheticRecords
from spdp.privacy.account import Account
from spdp.queries import Rows
from spdp.statistics.base import Context
from spdp.statistics.difference import Difference

RESULTS = Path(__file__).parents[1] / "results"
DELTA, RADIUS = 1e-6, 5.0
RATIOS = (1, 2, 3, 10)
LAWS = (*RATIOS, "skewed", "narrow")
SHARES = (0.5, 0.1, 0.02)
EPSILONS = (0.5, 1.0, 8.0)


def draw(law, n, d, share, rng, shift=0.0):
    """Vectors and labels of two classes whose means are ``shift`` apart."""
    y = (rng.random(n) < share).astype(np.intp)
    if law in ("skewed", "narrow", "opposite", "lognormal"):
        V = rng.normal(0.0, 0.2, (n, d))
        sd = 0.4 if law == "narrow" else 0.8
        tail = rng.exponential(sd, n) - sd
        if law == "lognormal":
            tail = 0.3 * (np.exp(rng.normal(0.0, 1.0, n)) - np.exp(0.5))
        other = -tail if law == "opposite" else rng.normal(0.0, 0.2, n)
        V[:, 0] += np.where(y == 1, tail, other)
    else:
        base = 0.25 if law < 5 else 0.1
        V = rng.normal(0.0, base, (n, d)) * np.where(y == 1, float(law), 1.0)[:, None]
    V += shift * y[:, None] / sqrt(d)
    return clip_to_ball(V, np.zeros(d), RADIUS), y


def release(V, y, k, epsilon, seed):
    """p-value (NaN where withheld) and radii of one release."""
    space = Space.of(LOGEUCLID, Ball(RADIUS), k)
    statistic, records = Difference((0, 1)), SyntheticRecords(space, Rows(V, y), 1)
    options = {"adjacency": Adjacency.REPLACE_ONE, "ledger": None}
    settled = statistic.settle(records, epsilon, DELTA, **options)
    account = Account(settled.budget, random_state=seed)
    outcome = statistic.run(Context(space, account, records, settled))
    return float(outcome.numbers["p_value"]), account.steps[-1].radii


def exact(V, y):
    """p-value of the same test without privacy."""
    A, B = V[y == 1], V[y == 0]
    S = np.cov(A.T) / len(A) + np.cov(B.T) / len(B)
    D, trace, square = A.mean(axis=0) - B.mean(axis=0), np.trace(S), (S * S).sum()
    return stats.chi2.sf(D @ D * trace / square, trace**2 / square)


def one(job):
    law, n, k, share, epsilon, shift, seed = job
    V, y = draw(law, n, k * (k + 1) // 2, share, np.random.default_rng([seed, n, k]), shift)
    p, radii = release(V, y, k, epsilon, seed)
    return p, exact(V, y), radii[0] != radii[1]


def cell(pool, runs, *facts):
    """Shares rejected and given, those of the exact test, and of unequal radii."""
    found = np.array(pool.map(one, [(*facts, seed) for seed in range(runs)], chunksize=8), float)
    given = ~np.isnan(found[:, 0])
    rejected = float((found[given, 0] < 0.05).mean()) if given.any() else np.nan
    return rejected, float(given.mean()), float((found[:, 1] < 0.05).mean()), found[:, 2].mean()


def level(pool, args):
    yield "Rejected at a nominal 5 %, of the runs in which a p-value was given (their share in"
    yield "brackets, where not all), with equal means; then the exact, non-private test."
    yield ""
    yield (
        "| k | n | ε | share | "
        + " | ".join(f"{x}:1" for x in RATIOS)
        + " | skewed | narrow | exact |"
    )
    yield "|---|---|---|---|" + "---|" * (len(LAWS) + 1)
    plain, skewed, narrow = [], [], []
    for k in args.k:
        for n in args.n:
            for epsilon in args.epsilon:
                for share in args.share:
                    cells = [cell(pool, args.runs, law, n, k, share, epsilon, 0.0) for law in LAWS]
                    texts = [shown(*found[:2]) for found in cells]
                    free = ", ".join(f"{100 * found[2]:.1f}" for found in cells)
                    yield f"| {k} | {n:,} | {epsilon:g} | {share} | {' | '.join(texts)} | {free} |"
                    plain += [found[0] for found in cells[:-2]]
                    skewed, narrow = [*skewed, cells[-2][0]], [*narrow, cells[-1][0]]
    yield ""
    every = np.array(plain + skewed)
    most = np.nanmax(plain), np.nanmax(skewed)
    yield (
        f"Mean of all cells with a p-value, but for the column *narrow*: "
        f"{100 * np.nanmean(every):.2f} %; largest {100 * most[0]:.1f} % (symmetric), "
        f"{100 * most[1]:.1f} % (skewed); {int((~np.isnan(every)).sum())} of {len(every)} cells."
    )
    yield ""
    yield (
        "*Narrow* is beyond what the test can hold: the tail of one class is clipped before the "
        "noisy histograms show that it is longer. Class means of clipped records then differ, "
        f"which is what is tested: {100 * np.nanmax(narrow):.1f} % at most, in cells in which "
        "the smaller class barely stands out from the noise."
    )


def shown(rejected, given):
    if given == 0:
        return "–"
    return f"{100 * rejected:.1f}" + ("" if given == 1 else f" ({100 * given:.0f} %)")


def power(pool, args):
    yield "Power at 5 % for equal spreads, class means a shift apart; a missing p-value does not"
    yield "reject."
    yield ""
    yield "| k | n | ε | share | shift | power | p-value given |"
    yield "|---|---|---|---|---|---|---|"
    for k in args.k:
        for n in args.n:
            for epsilon in args.epsilon:
                for share in args.share:
                    shift = shift_of(n, k, share, epsilon)
                    found = cell(pool, args.runs, 1, n, k, share, epsilon, shift)
                    rate = 0.0 if np.isnan(found[0]) else found[0] * found[1]
                    cells = f"{shift:.3f} | {100 * rate:.1f} | {100 * found[1]:.0f} %"
                    yield f"| {k} | {n:,} | {epsilon:g} | {share} | {cells} |"


def shift_of(n, k, share, epsilon):
    """A shift that version 0.2 found in about half of the runs."""
    from spdp.privacy import gaussian_mu

    d, a = k * (k + 1) // 2, n * share
    b, R = n - a, 1.3 * 0.25 * sqrt(k * (k + 1) // 2)
    noise = (2 * R / gaussian_mu(epsilon, DELTA)) ** 2 * (a**-2 + b**-2)
    return sqrt((4.0 + 0.75 * d if d < 10 else 15.0) * (0.25**2 * (1 / a + 1 / b) + noise))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["level", "power"])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--k", type=int, nargs="+", default=[2, 3, 6])
    parser.add_argument("--n", type=int, nargs="+", default=[2000, 10000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--share", type=float, nargs="+", default=list(SHARES))
    parser.add_argument("--print", action="store_true", help="write no file")
    args = parser.parse_args()
    lines = [f"# Contrasts: {args.what}", ""]
    lines += [
        f"`python benchmarks/statistics/significance.py {args.what}`, {args.runs} seeded runs.",
        "",
    ]
    with multiprocessing.Pool() as pool:
        for line in {"level": level, "power": power}[args.what](pool, args):
            print(line, flush=True)
            lines.append(line)
    if not args.print:
        (RESULTS / f"statistics-significance-{args.what}.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
