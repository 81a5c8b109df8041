"""Utility of the paper's chain against its burn-in: how far it is from the law it aims at."""

from typing import Any

import numpy as np

from spdp.paper.common import N, R, Row, Settings, agreement, seed, small_multiples, squared_errors, synthetic_mean

NAME = "burn_in"
TITLE = "Utility of the Riemannian Laplace mechanism against the chain's burn-in (ε = 0.1)"
CLAIM = "A burn-in of 50,000 steps suffices for the chain to reach its stationary law."
SIZES = (5, 10, 20)


def cells(settings: Settings) -> list[Row]:
    steps = (10, 100, 1_000, 3_000) if settings.quick else (10, 100, 1_000, 10_000, 30_000, 50_000)
    return [{"k": k, "burn_in": b} for k in (SIZES[:2] if settings.quick else SIZES) for b in steps]


def measure(cell: Row, settings: Settings) -> list[Row]:
    k = cell["k"]
    rng = np.random.default_rng(seed(NAME, cell))
    sensitivity = 2.0 * R * np.sqrt(k) / N
    errors, law = squared_errors("laplace-mcmc", synthetic_mean(k), sensitivity, 0.1, 0.0, 2 * settings.repeats, rng, cell["burn_in"])
    return [agreement(errors, law)]


def draw(rows: list[Row]) -> Any:
    figure, (ax,) = small_multiples(1)
    figure.set_size_inches(6.4, 4.2)
    for k in dict.fromkeys(r["k"] for r in rows):
        mine = [r for r in rows if r["k"] == k]
        ax.loglog([r["burn_in"] for r in mine], [r["mean"] / r["law"] for r in mine], marker="o", label=f"k = {k}")
    ax.axhline(1.0, color="black", linestyle=":", label="exact law")
    ax.set(xlabel="burn-in", ylabel="mean ρ² over that of the exact law", title="The chain starts at a random point")
    ax.legend(fontsize=8)
    return figure


def verdict(rows: list[Row]) -> str:
    longest = max(r["burn_in"] for r in rows)
    ratios = ", ".join(f"{r['mean'] / r['law']:.2f} (k = {r['k']})" for r in rows if r["burn_in"] == longest)
    early = [r["mean"] / r["law"] for r in rows if r["burn_in"] == 100]
    return (
        f"Agrees: after {longest:,} steps the squared error is {ratios} of the exact law's. After 100 steps it is {min(early):.2g} to "
        f"{max(early):.2g} of it: a chain stopped early follows another law, for which no guarantee was proven. Where the chain starts "
        "matters: begun at the private mean itself it does not move for large k, and would publish that mean."
    )
