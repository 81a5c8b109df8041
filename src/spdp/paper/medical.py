"""Utility on medical images: PathMNIST and OCTMNIST, four classes each."""

from itertools import product
from typing import Any

import numpy as np

from spdp.descriptors import descriptor_bounds
from spdp.paper import common
from spdp.paper.common import Row, Settings

NAME = "medical"
TITLE = "Private means of medical images (covariance descriptors)"
CLAIM = (
    "On PathMNIST and OCTMNIST the tangent Gaussian mechanism beats the Riemannian Laplace "
    "mechanism for all ε and δ shown."
)
DATASETS: tuple[str, ...] = ("pathmnist", "octmnist")
EPSILONS, DELTAS = (0.1, 0.3, 0.5, 0.7, 0.9), (1e-5, 1e-7, 1e-9)
NOISES = (("laplace", 0.0), *(("analytic", delta) for delta in DELTAS))
DRAWN = 1e-7  # the δ of the verdict
# what is drawn: radius, mechanism, δ; colour, marker and label
SERIES = {
    ("theorem 5", "laplace", 0.0): (common.VERMILION, "x", "Riemannian Laplace"),
    ("theorem 5", "analytic", 1e-5): (common.SKY, "o", "tangent Gaussian, δ = 1e-5"),
    ("theorem 5", "analytic", 1e-7): (common.BLUE, "s", "tangent Gaussian, δ = 1e-7"),
    ("theorem 5", "analytic", 1e-9): (common.PURPLE, "^", "tangent Gaussian, δ = 1e-9"),
    ("tight", "analytic", 1e-7): (common.GREEN, "D", "the same, δ = 1e-7, tight radius (ours)"),
}


def cells(settings: Settings) -> list[Row]:
    return grid(settings, DATASETS)


def grid(settings: Settings, names: tuple[str, ...]) -> list[Row]:
    """A cell for each of the first classes of each dataset that was found."""
    classes = (0, 1) if settings.quick else (0, 1, 2, 3)
    found = common.at_hand(names, settings.data)
    return [{"dataset": name, "class": label} for name, label in product(found, classes)]


def measure(cell: Row, settings: Settings) -> list[Row]:
    X, channels = common.descriptors(cell["dataset"], cell["class"], settings.data)
    n, k = X.shape[:2]
    sensitivities = {
        "theorem 5": common.theorem_5_sensitivity(channels, n),
        "tight": descriptor_bounds(channels, bound="tight").sensitivity(n, k),
    }
    rng = np.random.default_rng(common.seed(NAME, cell))
    rows, whole = [], common.official(cell["dataset"], settings.data)
    for radius, epsilon, (name, delta) in product(sensitivities, EPSILONS, NOISES):
        mechanism = common.calibrate(name, sensitivities[radius], epsilon, delta)
        errors = common.squared_errors(mechanism, k, settings.repeats, rng)
        facts = {
            "n": n,
            "official": whole,
            "radius": radius,
            "epsilon": epsilon,
            "delta": delta,
            "mechanism": name,
        }
        rows.append({**facts, **common.agreement(errors, mechanism.squared_error(k))})
    return rows


def draw(rows: list[Row]) -> Any:
    panels = list(dict.fromkeys((row["dataset"], row["class"], row["n"]) for row in rows))
    figure, axes = common.small_multiples(len(panels))
    for ax, (name, label, n) in zip(axes, panels, strict=True):
        mine = [r for r in rows if (r["dataset"], r["class"]) == (name, label)]
        for series, (color, marker, words) in SERIES.items():
            here = [r for r in mine if (r["radius"], r["mechanism"], r["delta"]) == series]
            common.band(ax, EPSILONS, here, color, words, marker)
        ax.set(yscale="log", title=f"{name} {label} (n = {n:,})", xlabel="ε")
    figure.supylabel("squared log-Euclidean distance ρ²", fontsize=10)
    common.explain(figure, axes[0])
    return figure


def verdict(rows: list[Row]) -> str:
    return verdict_on(rows, DATASETS)


def verdict_on(rows: list[Row], wanted: tuple[str, ...]) -> str:
    """What was measured, on which datasets, and which were not found."""

    def median(radius: str, delta: float) -> float:
        mine = (radius, delta)
        return float(np.median([r["law"] for r in rows if (r["radius"], r["delta"]) == mine]))

    laplace, gaussian = median("theorem 5", 0.0), median("theorem 5", DRAWN)
    tight = median("tight", DRAWN)
    found = {r["dataset"]: r["official"] for r in rows}
    names = ", ".join(name if whole else f"{name} (unofficial)" for name, whole in found.items())
    absent = ", ".join(name for name in wanted if name not in found)
    return (
        f"Agrees on the sets run, {names}"
        + (f" (not run, not at hand: {absent})" if absent else "")
        + f": at δ = 1e-7 the Laplace error is {laplace / gaussian:.1f} times the "
        "tangent Gaussian one. The tight bound and the centred ball cut the squared error by a "
        f"further {gaussian / tight:.2f} at no cost. {sum(r['inside'] for r in rows)} of "
        f"{len(rows)} cells lie inside the 99.9 % interval of their exact law."
    )
