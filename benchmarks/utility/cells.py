"""One cell of the comparison: every method on one set at one ε."""

import csv
import zlib
from math import nan, sqrt
from pathlib import Path

import numpy as np
from baselines import coinpress, huang_liang_yi, oracles
from sets import CHART, HELD_OUT

from spdp.adaptive import MeanSearch, PureMeanSearch, Search
from spdp.domain.base import Space
from spdp.engines.store import ArrayStore
from spdp.options import Noise
from spdp.privacy.account import Account
from spdp.privacy.budget import Budget
from spdp.queries import Rows
from spdp.statistics.method import Rule, plan_one_shot

__all__ = ["DELTA", "EPSILONS", "cell", "runs_of", "version_0_1"]

EPSILONS, DELTA = (0.1, 0.3, 1.0, 3.0), 1e-6
MANY, VERY_MANY = 4000, 15_000  # records from which there are fewer runs
BASELINE_PART = 8  # of the runs, for the methods of the literature
LEAST = 8
HARD = ("t2", "t3", "bimodal", "outlier1")  # sets on which a bound may fail


def version_0_1():
    """Squared errors of version 0.1 by set, number of records and ε."""
    with (Path(__file__).parent / "version-0.1.csv").open() as table:
        rows = csv.DictReader(line for line in table if not line.startswith("#"))
        return {
            (row["set"], int(row["n"]), float(row["epsilon"])): float(row["squared_error"])
            for row in rows
        }


def runs_of(wanted, n, quick):
    """Runs of a cell: more where coverage is judged, fewer where they take long."""
    if quick:
        return LEAST
    judged = wanted.use == HELD_OUT or wanted.family in HARD
    many, some, few = (200, 100, 40) if judged else (80, 40, 20)
    return many if n < MANY else some if n < VERY_MANY else few


def cell(wanted, records, epsilon, runs, earlier):
    """All figures of a cell, squared errors unless they say otherwise."""
    (n, d), budget = records.Y.shape, Budget.gaussian(epsilon, DELTA)
    best = plan_one_shot(records.k, epsilon=epsilon, delta=DELTA, domain=records.domain)
    pure = Rule(best, epsilon, DELTA, "auto").search_budget(n).noise is Noise.LAPLACE
    own = Budget.pure(epsilon) if pure else budget
    shot = plan_one_shot(
        records.k, epsilon=epsilon, delta=DELTA, domain=records.domain, mechanism="gaussian"
    )
    return {
        "set": wanted.name,
        "group": wanted.group,
        "use": wanted.use,
        "n": n,
        "d": d,
        "epsilon": epsilon,
        "resolution": n * budget.mu / sqrt(d),
        "runs": runs,
        **adaptive(records, own, [seed(wanted.name, n, epsilon, run) for run in range(runs)]),
        "version 0.1": earlier.get((wanted.name, n, epsilon), nan),
        "one shot": shot.expected_squared_error(n),
        "one shot bound 95": sqrt(shot.law(n).quantile(0.95)),
        **oracles(records.Y, budget.mu),
        **literature(records, budget.mu, max(LEAST, runs // BASELINE_PART)),
    }


def seed(name, n, epsilon, run):
    """A generator of its own for every run of every cell."""
    return np.random.default_rng([zlib.crc32(name.encode()), n, round(1000 * epsilon), run])


def adaptive(records, budget, seeds):
    """Errors and bounds of the release: search, then projection onto the domain."""
    Y, region = records.Y, records.region
    store, truth = ArrayStore(Rows(Y)), Y.mean(axis=0)
    space, rows = Space.of(CHART, records.domain, records.k), []
    for rng in seeds:
        account = Account(budget, random_state=rng)
        search = Search(store, account, space)
        run = MeanSearch(search) if budget.mu else PureMeanSearch(search)
        found = run.run()
        y = CHART.project(found.y, region)
        row = {
            "error": ((y - truth) ** 2).sum(),
            "searched": ((found.y - truth) ** 2).sum(),
            "bound 95": found.bound.at(0.95),
            "bound 99": found.bound.at(0.99),
            "within": nan,
            "bound within": nan,
        }
        if found.within is not None:
            last = account.steps[-1]
            target = clipped_mean(Y, np.asarray(last.center), run.looks.reach(last))
            row["within"] = ((y - target) ** 2).sum()
            row["bound within"] = found.within.at(0.95)
        rows.append(row)
    return summary({name: np.array([row[name] for row in rows]) for name in rows[0]})


def summary(all_runs):
    """Means over the runs of a cell; "searched" is the error before the projection."""
    error, within = all_runs["error"], all_runs["within"]
    clipped = np.isfinite(within)
    bound_within = all_runs["bound within"][clipped]
    return {
        "adaptive": error.mean(),
        "relative s.e.": error.std() / sqrt(len(error)) / error.mean(),
        "searched": all_runs["searched"].mean(),
        "bound 95": all_runs["bound 95"].mean(),
        "bound 99": all_runs["bound 99"].mean(),
        "covered 95": int((error <= all_runs["bound 95"] ** 2).sum()),
        "covered 99": int((error <= all_runs["bound 99"] ** 2).sum()),
        "clipped": int(clipped.sum()),
        "covered within": int((within[clipped] <= bound_within**2).sum()),
        "within": within[clipped].mean() if clipped.any() else nan,
        "bound within": bound_within.mean() if clipped.any() else nan,
    }


def clipped_mean(Y, center, reach):
    """Mean of the records clipped to within ``reach`` of ``center``."""
    Z = Y - center
    factor = np.minimum(1.0, reach / np.maximum(np.linalg.norm(Z, axis=1), 1e-300))
    return center + factor @ Z / len(Y)


def literature(records, mu, runs):
    """Mean squared errors of the methods of the literature."""
    region = records.region
    Y = records.Y - region.center
    truth = Y.mean(axis=0)
    sigma = float(np.sqrt(np.linalg.eigvalsh(np.cov(Y.T))[-1]))
    found = {"CoinPress": [], "Huang–Liang–Yi": []}
    for run in range(runs):
        rng = np.random.default_rng(run)
        found["CoinPress"].append(coinpress(Y, region.radius, mu, rng, sigma))
        found["Huang–Liang–Yi"].append(huang_liang_yi(Y, region.radius, mu, rng))
    return {
        name: float(np.mean([((y - truth) ** 2).sum() for y in ys])) for name, ys in found.items()
    }
