"""Utility of the paper's chain against its burn-in: how far it is from its law."""

from itertools import product
from typing import Any

import numpy as np

from spdp.paper import common
from spdp.paper.common import Row, Settings

NAME = "burn_in"
TITLE = "Utility of the Riemannian Laplace mechanism against the chain's burn-in (ε = 0.1)"
CLAIM = "A burn-in of 50,000 steps suffices for the chain to reach its stationary law."
SIZES, QUICK_SIZES = (5, 10, 20), (5, 10)
PAPERS = 50_000  # steps in the paper's claim
STEPS, QUICK_STEPS = (10, 100, 1_000, 10_000, 30_000, PAPERS), (10, 100, 1_000, 3_000)


def cells(settings: Settings) -> list[Row]:
    sizes, steps = (QUICK_SIZES, QUICK_STEPS) if settings.quick else (SIZES, STEPS)
    return [{"k": k, "burn_in": burn_in} for k, burn_in in product(sizes, steps)]


def measure(cell: Row, settings: Settings) -> list[Row]:
    k = cell["k"]
    mechanism = common.calibrate("laplace-mcmc", common.synthetic_sensitivity(k), 0.1, 0.0)
    rng = np.random.default_rng(common.seed(NAME, cell))
    repeats = 2 * settings.repeats
    errors = common.chain_errors(mechanism, common.synthetic_mean(k), repeats, rng, cell["burn_in"])
    return [common.agreement(errors, mechanism.squared_error(k))]


def excess(row: Row) -> float:
    """Squared error of the chain over that of the exact law."""
    return float(row["mean"] / row["law"])


def draw(rows: list[Row]) -> Any:
    figure, (ax,) = common.small_multiples(1)
    figure.set_size_inches(6.4, 4.2)
    for k in dict.fromkeys(r["k"] for r in rows):
        mine = [r for r in rows if r["k"] == k]
        steps = [r["burn_in"] for r in mine]
        ax.loglog(steps, [excess(r) for r in mine], marker="o", label=f"k = {k}")
    ax.axhline(1.0, color="black", linestyle=":", label="exact law")
    ax.set(xlabel="burn-in", ylabel="mean ρ² over that of the exact law")
    ax.set_title("The chain starts at a random point")
    figure.legend(loc="outside right center", fontsize=8)
    return figure


def verdict(rows: list[Row]) -> str:
    longest = max(r["burn_in"] for r in rows)
    last = [r for r in rows if r["burn_in"] == longest]
    ratios = ", ".join(f"{excess(r):.2f} (k = {r['k']})" for r in last)
    early = [excess(r) for r in rows if r["burn_in"] == 100]
    checked = "Agrees" if longest >= PAPERS else f"Not checked, a quick run has no {PAPERS:,} steps"
    return (
        f"{checked}: after {longest:,} steps the squared error is {ratios} of the exact law's. "
        f"After 100 steps it is {min(early):.2g} to {max(early):.2g} of it: a chain stopped "
        "early follows another law, for which no guarantee was proven. Where the chain starts "
        "matters: begun at the private mean itself it does not move for large k, and would "
        "publish that mean."
    )
