"""Small matrices, pure differential privacy and private counts: which method, how good.

    python benchmarks/utility/small.py [--data DIR] [--quick] [--output DIR]

Writes utility-small.csv and utility-small.md into benchmarks/results by default. Every
cell is one set of vectors in the unit ball, which one shot (by its exact law), a search
with Gaussian and one with Laplace noise release; "auto" is the one that the default
rule takes. Shapes in HELD_OUT were not looked at while constants were chosen.
"""

import argparse
import csv
import os
import zlib
from concurrent.futures import ProcessPoolExecutor
from math import exp, log, sqrt
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy

import numpy as np
from scipy import stats
from sets import data_folder

from spdp import Ball, EigenvalueBounds, private_mean
from spdp.adaptive import MeanSearch, PureMeanSearch, Search, counted
from spdp.charts import LOGEUCLID
from spdp.datasets import synthetic_spd
from spdp.domain.base import Space
from spdp.engines.store import ArrayStore
from spdp.geometry import distance_logeuclid, mean_logeuclid
from spdp.options import Adjacency, Method, Noise
from spdp.privacy.account import Account
from spdp.privacy.budget import Budget
from spdp.queries import Rows
from spdp.statistics.method import Rule, plan_one_shot

RESULTS = Path(__file__).parents[1] / "results"
DELTA, DOMAIN = 1e-6, Ball(1.0)
TUNED = ("gauss", "aniso", "t3", "bimodal", "line", "outlier")
HELD_OUT = ("skew", "shell", "clusters", "uniform", "disc", "lognormal", "cross")
RUNS, RUNS_OF_MANY = 50, 20  # of a cell, and of one of 50,000 records
NS, EPSILONS, WIDTHS = (200, 1000, 5000, 50_000), (0.3, 1.0, 3.0), (0.05, 0.15, 0.4, 0.8)


def vectors(shape, d, n, width, seed):
    """Records of a shape whose rms distance from their mean is ``width``, clipped."""
    rng = np.random.default_rng(zlib.crc32(repr((shape, d, n, width, seed)).encode()))
    Z, v = rng.standard_normal((n, d)), rng.standard_normal(d)
    v /= np.linalg.norm(v)
    if shape == "t3":
        Z /= np.sqrt(rng.chisquare(3, n) / 3)[:, None]
    elif shape == "aniso":
        Z = (Z * np.geomspace(1, 0.1, d)) @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    elif shape == "bimodal":
        Z = Z * (0.4 / sqrt(d)) + np.where(rng.random(n) < 0.2, 2.2, 0.0)[:, None] * v
    elif shape == "skew":
        Z = Z * (0.6 / sqrt(d)) + np.outer(rng.exponential(0.8, n), v)
    elif shape == "shell":
        Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    elif shape == "clusters":
        C = rng.standard_normal((3, d))
        C /= np.linalg.norm(C, axis=1, keepdims=True)
        Z = C[rng.choice(3, n, p=(0.5, 0.35, 0.15))] + Z * (0.4 / sqrt(d))
    elif shape == "uniform":
        Z = rng.uniform(-1, 1, (n, d))
    elif shape == "line":
        Z = np.outer(rng.standard_normal(n), v) + 0.1 * Z / sqrt(d)
    elif shape == "disc":
        plane = np.linalg.qr(rng.standard_normal((d, 2)))[0]
        Z[:, :2] /= np.linalg.norm(Z[:, :2], axis=1, keepdims=True)
        Z = (Z[:, :2] * np.sqrt(rng.random((n, 1)))) @ plane.T + 0.05 * Z / sqrt(d)
    elif shape == "lognormal":
        Z *= np.exp(0.8 * rng.standard_normal((n, 1))) / np.linalg.norm(Z, axis=1, keepdims=True)
    elif shape == "cross":
        lines = np.linalg.qr(rng.standard_normal((d, 2)))[0].T[rng.integers(0, 2, n)]
        Z = lines * rng.standard_normal((n, 1)) + 0.1 * Z / sqrt(d)
    Z -= Z.mean(axis=0)
    Z *= width / sqrt((Z**2).sum(axis=1).mean())
    if shape == "outlier":  # one in a hundred lies far out
        Z[rng.random(n) < 0.01] += 0.7 * v
    u = rng.standard_normal(d)
    Y = Z + u * (min(0.3, 0.95 - width) / np.linalg.norm(u))
    return Y * np.minimum(1.0, 1.0 / np.linalg.norm(Y, axis=1, keepdims=True))


def errors(Y, k, budget, runs, adjacency=Adjacency.REPLACE_ONE):
    """Errors and 95 % bounds of searches."""
    space, truth, found = Space.of(LOGEUCLID, DOMAIN, k), Y.mean(axis=0), []
    for run in range(runs):
        account = Account(budget, adjacency, random_state=np.random.default_rng([run, len(Y)]))
        search = Search(counted(ArrayStore(Rows(Y)), account), account, space)
        kind = MeanSearch if budget.mu else PureMeanSearch
        one = kind(search).run()
        y = LOGEUCLID.project(one.y, space.region)
        found.append((np.linalg.norm(y - truth), one.bound.at(0.95)))
    return np.array(found).T


def rms(x):
    return float(np.sqrt(np.mean(np.square(x))))


def cell(asked):
    """All figures of one cell."""
    shape, k, n, epsilon, width, runs = asked
    d = k * (k + 1) // 2
    Y, resolution = vectors(shape, d, n, width, 0), n * epsilon / sqrt(d * (d + 1))
    gaussian, pure = Budget.gaussian(epsilon, DELTA), Budget.pure(epsilon)
    figures = {"one shot": 2.0 / resolution}
    covered, bounds = {}, {}
    for name, budget, adjacency in (
        ("gaussian", gaussian, Adjacency.REPLACE_ONE),
        ("laplace", pure, Adjacency.REPLACE_ONE),
        ("gaussian, add-remove", gaussian, Adjacency.ADD_REMOVE),
        ("laplace, add-remove", pure, Adjacency.ADD_REMOVE),
    ):
        error, bound = errors(Y, k, budget, runs, adjacency)
        figures[name] = rms(error)
        covered[name], bounds[name] = int((error <= bound).sum()), float(np.median(bound))
    shot = plan_one_shot(k, epsilon=epsilon, delta=DELTA, domain=DOMAIN)
    choice = Rule(shot, epsilon, DELTA, "auto").choose(n, "auto")
    taken = "one shot" if choice.method is Method.ONESHOT else str(choice.budget.noise)
    one_bound = sqrt(shot.law(n).quantile(0.95))
    return {
        "shape": shape,
        "held out": shape in HELD_OUT,
        "k": k,
        "n": n,
        "epsilon": epsilon,
        "width": width,
        "resolution": resolution,
        "runs": runs,
        "taken": taken,
        "auto": figures[taken],
        **figures,
        "one shot bound": one_bound,
        **{f"{name} bound": value for name, value in bounds.items()},
        **{f"{name} covered": value for name, value in covered.items()},
    }


def cells(quick):
    runs = (lambda n: 8) if quick else (lambda n: RUNS if n < 50_000 else RUNS_OF_MANY)
    for shape in TUNED + HELD_OUT:
        for k in (2, 3):
            for n in NS:
                yield from ((shape, k, n, e, w, runs(n)) for e in EPSILONS for w in WIDTHS)
    for k, n in ((5, 2000), (5, 20_000), (9, 6000), (9, 40_000)):  # for δ = 0
        for shape in ("gauss", "skew"):
            yield from ((shape, k, n, e, w, runs(n)) for e in (1.0, 3.0) for w in (0.05, 0.1, 0.4))


def mean_of(ratios):
    """Geometric mean, and the largest in brackets."""
    logs = [log(r) for r in ratios]
    return f"{exp(np.mean(logs)):.2f} ({max(ratios):.2f})" if logs else "–"


def real(data, quick):
    """Whole releases, by the default rule and in one shot: DTI, and synthetic_spd."""
    runs, rows = 20 if quick else 200, []
    sets = {"synthetic_spd, n = 2,000": (synthetic_spd(2000, 3, random_state=0), (0.1, 10.0))}
    file = None if data is None else data / "dti/small_64D_tensors.npz"
    if file is not None and file.exists():
        with np.load(file) as arrays:
            X = arrays["D"]
        sets[f"DTI, n = {len(X)}"] = (X, (1e-6, 1e-2))
    for name, (X, bounds) in sets.items():
        domain = EigenvalueBounds(*bounds)
        truth = mean_logeuclid(domain.clip(X))
        for epsilon in (0.3, 1.0, 3.0):
            row = [name, f"{epsilon:g}"]
            for more in ({}, {"delta": 0.0}, {"adjacency": "add-remove"}, {"method": "oneshot"}):
                given = {"epsilon": epsilon, "delta": DELTA, "domain": domain} | more
                made = [private_mean(X, **given, random_state=run) for run in range(runs)]
                off = [float(distance_logeuclid(r.value, truth)) for r in made]
                bound = np.median([r.error_bound(0.95) for r in made])
                row.append(f"{rms(off):.4f} (bound {bound:.3f})")
            rows.append(row)
    return rows


def markdown(rows, quick, data):
    """The page."""
    told = [
        "# Small matrices, δ = 0 and private counts",
        "",
        "`python benchmarks/utility/small.py`: rms errors of releases in the unit ball at "
        f"δ = {DELTA:g}, {'8' if quick else f'{RUNS} (n = 50,000: {RUNS_OF_MANY})'} seeded runs a "
        "cell; one shot by its exact law, with Laplace noise. Width: rms distance of "
        "records from their mean, over "
        f"the radius; {', '.join(map(str, WIDTHS))}. n = {', '.join(f'{n:,}' for n in NS)}; "
        f"ε = {', '.join(map(str, EPSILONS))}. Regret: over the best of one shot and the two "
        "searches in that cell. Geometric means, the worst cell in brackets.",
        "",
        f"Constants were chosen on {', '.join(TUNED)} (1 % outliers at 0.7 of the radius), on sets "
        "of two scales, on sets far from the centre and, for where noise is Gaussian, on DTI. "
        f"Held out: {', '.join(HELD_OUT)}.",
        "",
        "| shapes | k | cells | one shot's regret | Gaussian search's | Laplace search's | "
        "**auto's regret** | **auto over one shot** |",
        "|---|---|---|---|---|---|---|---|",
    ]
    groups = [("chosen on", TUNED[:-1]), ("1 % outliers", TUNED[-1:]), ("**held out**", HELD_OUT)]
    small = [r for r in rows if r["k"] in (2, 3)]
    for name, shapes in groups:
        for k in (2, 3):
            some = [r for r in small if r["shape"] in shapes and r["k"] == k]
            best = [min(r["one shot"], r["gaussian"], r["laplace"]) for r in some]
            regret = [
                mean_of([r[m] / b for r, b in zip(some, best, strict=True)])
                for m in ("one shot", "gaussian", "laplace", "auto")
            ]
            over = mean_of([r["auto"] / r["one shot"] for r in some])
            told.append(f"| {name} | {k} | {len(some)} | {' | '.join(regret)} | {over} |")
    told += ["", "Laplace search (δ = 0) over one shot, from resolution 50 on:", ""]
    told += ["| k | width ≤ 0.1 | 0.15 | 0.4 | 0.8 |", "|---|---|---|---|---|"]
    for k in (2, 3, 5, 9):
        some = [r for r in rows if r["k"] == k and r["resolution"] >= 50]
        parts = [
            mean_of([r["laplace"] / r["one shot"] for r in some if low < r["width"] <= high])
            for low, high in ((0, 0.1), (0.1, 0.2), (0.2, 0.5), (0.5, 1))
        ]
        told.append(f"| {k} | {' | '.join(parts)} |")
    told += ["", "add-remove over replace-one, n of 1,000 and more:", ""]
    told += ["| k | Gaussian search | Laplace search |", "|---|---|---|"]
    for k in (2, 3, 5, 9):
        some = [r for r in rows if r["k"] == k and r["n"] >= 1000]
        parts = [mean_of([r[f"{m}, add-remove"] / r[m] for r in some]) for m in Noise]
        told.append(f"| {k} | {' | '.join(parts)} |")
    told += ["", "95 % bounds: how often they held, cells significantly below (at 0.1 % each), "]
    told += ["and the median over the bound of one shot:", ""]
    told += [
        "| search | releases | held | cells below | bound over one shot's |",
        "|---|---|---|---|---|",
    ]
    for m in ("gaussian", "laplace", "gaussian, add-remove", "laplace, add-remove"):
        hits, runs = (sum(r[name] for r in rows) for name in (f"{m} covered", "runs"))
        below = sum(
            stats.binomtest(r[f"{m} covered"], r["runs"], 0.95, alternative="less").pvalue < 1e-3
            for r in rows
        )
        wide = mean_of([r[f"{m} bound"] / r["one shot bound"] for r in rows])
        told.append(f"| {m} | {runs:,} | {hits / runs:.2%} | {below} | {wide} |")
    told += ["", "Whole releases: rms error and median 95 % bound.", ""]
    told += ["| data | ε | auto | δ = 0 | add-remove | one shot |", "|---|---|---|---|---|---|"]
    told += [f"| {' | '.join(row)} |" for row in real(data, quick)]
    return "\n".join(told) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    wanted = list(cells(options.quick))
    with ProcessPoolExecutor(2) as pool:
        rows = []
        for row in pool.map(cell, wanted, chunksize=4):
            rows.append(row)
            if len(rows) % 100 == 0:
                print(f"{len(rows)} of {len(wanted)} cells", flush=True)
    with (options.output / "utility-small.csv").open("w", newline="", encoding="utf-8") as table:
        writer = csv.DictWriter(table, rows[0], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            told = ((k, f"{v:.5g}" if isinstance(v, float) else v) for k, v in row.items())
            writer.writerow(dict(told))
    page = markdown(rows, options.quick, data_folder(options.data))
    (options.output / "utility-small.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
