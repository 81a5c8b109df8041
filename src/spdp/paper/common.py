"""What the figures share: settings, seeds, exact laws, resuming, tables, drawing."""

import csv
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from scipy import stats

from spdp.data.progress import track
from spdp.datasets import load_images, synthetic_spd
from spdp.descriptors import covariance_descriptors, paper_radius
from spdp.distributions import LogLaplace
from spdp.errors import DataError
from spdp.geometry import mean_logeuclid
from spdp.kernels.arrays import Array
from spdp.paper import FIGURES
from spdp.rendering.figures import figure_of
from spdp.statistics.mechanisms import RiemannianLaplace, TangentGaussian

Row = dict[str, Any]
Mechanism = RiemannianLaplace | TangentGaussian

N, R = 500, 0.25  # records and radius of the paper's synthetic experiments
# Okabe and Ito's colours, told apart by colour-blind readers, too.
COLOURS = "#e69f00 #56b4e9 #009e73 #0072b2 #d55e00 #cc79a7"
ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = COLOURS.split()


@dataclass(frozen=True)
class Settings:
    """Size of a run, and where its data are."""

    quick: bool = False
    data: str | None = None

    @property
    def repeats(self) -> int:
        return 5 if self.quick else 10

    @property
    def sizes(self) -> tuple[int, ...]:
        return (2, 5, 10) if self.quick else (2, 5, 10, 15, 20, 25, 30)

    @property
    def burn_in(self) -> int:
        return 3_000 if self.quick else 50_000


def seed(*parts: Any) -> int:
    """A fixed seed for a cell, from its name."""
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return int.from_bytes(digest[:8], "big")


def synthetic_mean(k: int) -> Array:
    """Mean of the paper's synthetic records of size k."""
    return mean_logeuclid(synthetic_spd(N, k, R, random_state=seed("synthetic", k)))


def synthetic_sensitivity(k: int) -> float:
    """2r√k/n, of the synthetic records' mean: their logs have norm at most r√k."""
    return 2.0 * R * float(np.sqrt(k)) / N


def theorem_5_sensitivity(channels: int, n: int) -> float:
    """2r/n with the paper's radius r of covariance descriptors."""
    return 2.0 * paper_radius(channels) / n


def calibrate(name: str, sensitivity: float, epsilon: float, delta: float) -> Mechanism:
    """The mechanism that a figure calls by its noise, or by its calibration.

    Laplace noise is pure, so δ counts for the tangent Gaussian only.
    """
    if name.startswith("laplace"):
        return RiemannianLaplace(sensitivity, epsilon)
    return TangentGaussian(sensitivity, epsilon, delta, calibration=name)


def squared_errors(mechanism: Mechanism, k: int, repeats: int, rng: np.random.Generator) -> Array:
    """ρ² of seeded releases of a k×k summary.

    Computed in log coordinates: noise for the paper's radius at small n exceeds the
    range of float64 matrices.
    """
    noise = np.stack([mechanism.simulate_noise(k, rng) for _ in range(repeats)])
    return np.asarray((noise**2).sum(axis=1))


def chain_errors(
    mechanism: Mechanism, f: Array, repeats: int, rng: np.random.Generator, burn_in: int
) -> Array:
    """ρ² of the paper's chain around the summary f, stopped after ``burn_in`` steps."""
    noise = LogLaplace(f, mechanism.sigma).offsets(repeats, rng, "mcmc", burn_in)
    return np.asarray((noise**2).sum(axis=1))


def agreement(errors: Array, law: Any) -> Row:
    """Whether the mean of repeats agrees with the law it should follow.

    It does if it lies inside the central 99.9 % interval for so many repeats. The mean
    of m draws is compared with a gamma law of the same mean and variance, which is
    exact for σ²χ².
    """
    mean, variance = float(law.mean()), float(law.var()) / len(errors)
    low, high = stats.gamma(mean**2 / variance, scale=variance / mean).interval(0.999)
    return {
        "repeats": len(errors),
        "mean": float(errors.mean()),
        "sd": float(errors.std()),
        "law": mean,
        "low": low,
        "high": high,
        "inside": bool(low <= errors.mean() <= high),
    }


def descriptors(name: str, label: int, data: str | None) -> tuple[Array, int]:
    """Covariance descriptors of a class of a dataset, and its number of channels."""
    images = load_images(name, data, download=data is None)
    channels = 3 if images.images.ndim == 4 else 1
    return covariance_descriptors(images.of_class(label)), channels


def official(name: str, data: str | None) -> bool:
    """Whether a dataset's file is the official one, not a part or another copy."""
    return load_images(name, data, download=data is None).official


def at_hand(names: Iterable[str], data: str | None) -> list[str]:
    """Those of the datasets that can be loaded."""
    found = []
    for name in names:
        try:
            load_images(name, data, download=False)
            found.append(name)
        except DataError:
            continue
    return found


def run(figure: ModuleType, settings: Settings, output: Path) -> list[Row]:
    """Measure what is missing of a figure, then write its table and pictures.

    Finished cells are kept in a .jsonl file.
    """
    output.mkdir(parents=True, exist_ok=True)
    rows = _measure(figure, settings, output / f"{figure.NAME}.jsonl")
    if rows:
        _write_table(rows, output / f"{figure.NAME}.csv")
        picture = figure.draw(rows)
        for suffix in ("png", "svg"):
            picture.savefig(output / f"{figure.NAME}.{suffix}", dpi=110)
    return rows


def _measure(figure: ModuleType, settings: Settings, partial: Path) -> list[Row]:
    """Rows of all cells of a figure; ``partial`` holds those measured before."""
    done = _finished(partial)
    cells = figure.cells(settings)
    rows: list[Row] = []
    with track(figure.NAME, len(cells)) as advance, partial.open("a", encoding="utf-8") as file:
        for cell in cells:
            key = json.dumps(cell, sort_keys=True)
            if key not in done:
                done[key] = [{**cell, **row} for row in figure.measure(cell, settings)]
                file.write("\n" + json.dumps({"cell": cell, "rows": done[key]}) + "\n")
                file.flush()
            rows += done[key]
            advance(1)
    return rows


def _finished(partial: Path) -> dict[str, list[Row]]:
    """Rows of an earlier run, by cell."""
    done: dict[str, list[Row]] = {}
    if not partial.exists():
        return done
    for line in partial.read_text(encoding="utf-8").splitlines():
        try:
            record = json.loads(line)
            done[json.dumps(record["cell"], sort_keys=True)] = record["rows"]
        except (ValueError, KeyError):
            # a line cut short by an interruption: its cell is measured again
            continue
    return done


def _write_table(rows: list[Row], file: Path) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with file.open("w", newline="", encoding="utf-8") as table:
        writer = csv.DictWriter(table, columns)
        writer.writeheader()
        writer.writerows(rows)


def small_multiples(panels: int, columns: int = 4) -> tuple[Any, list[Any]]:
    """A figure with a row-wise grid of axes of one vertical scale."""
    across = min(columns, panels)
    down = -(-panels // across)
    figure = figure_of(3.4 * across + 0.4, 2.9 * down + 0.3)
    axes = figure.subplots(down, across, sharey=True, squeeze=False).ravel().tolist()
    for spare in axes[panels:]:
        spare.set_axis_off()
    return figure, axes[:panels]


def band(axes: Any, x: Any, rows: list[Row], color: str, label: str, marker: str = "o") -> None:
    """Mean of the repeats in a band of ± 2 standard deviations, and the law's mean.

    Markers are hollow: series that agree are both seen.
    """
    mean, sd = np.array([r["mean"] for r in rows]), np.array([r["sd"] for r in rows])
    # on a logarithmic axis a band that reaches zero ends at a twentieth of the mean
    low, high = np.maximum(mean - 2 * sd, 0.05 * mean), mean + 2 * sd
    style = {"color": color, "marker": marker, "markerfacecolor": "none", "markersize": 5}
    axes.plot(x, mean, label=label, linewidth=1, **style)
    axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
    if rows and rows[0].get("law") is not None:
        law = [r["law"] for r in rows]
        axes.plot(
            x, law, color="black", linestyle=":", linewidth=0.9, label="mean of the exact law"
        )


def explain(figure: Any, axes: Any) -> None:
    """A legend below all panels, which also explains the bands."""
    from matplotlib.patches import Patch

    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    handles["mean ± 2 standard deviations of the repeats"] = Patch(color="gray", alpha=0.3)
    law = handles.pop("mean of the exact law", None)
    if law is not None:
        handles["mean of the exact law"] = law
    columns = min(4, len(handles))
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=columns, fontsize=8
    )


# --- the results page: each figure's claim, what was measured, statements, misprints

INTRODUCTION = (
    "Generated by `spdp reproduce`, which takes a figure's number (`figure-1`, `figure-4b`) or "
    "`all`. Dotted lines are means of exact laws: σ²χ²_d (tangent Gaussian), σ²·Gamma(d)² "
    "(Laplace). Bands are mean ± 2 standard deviations of the repeats."
)
NUMBERS = {module: number for number, module in FIGURES.items()}
STATEMENTS = Path(__file__).with_name("statements.md").read_text(encoding="utf-8")
NOT_RUN = "*Not run:* its data were not found. Set `SPDP_DATA`, or pass `--data`."


def write_page(results: list[tuple[ModuleType, list[Row]]], output: Path, page: Path) -> Path:
    """Write the page; pictures and tables are in ``output``."""
    where = Path(os.path.relpath(output, page.parent)).as_posix()
    lines = ["# The paper, re-run", "", INTRODUCTION, ""]
    for figure, rows in results:
        number = NUMBERS[figure.NAME].replace("figure-", "Figure ")
        lines += [f"## {number}: {figure.TITLE}", "", f"*Claim.* {figure.CLAIM}", ""]
        lines += _measured(figure, rows, where) if rows else [NOT_RUN, ""]
    page.write_text("\n".join([*lines, STATEMENTS]), encoding="utf-8")
    return page


def _measured(figure: ModuleType, rows: list[Row], where: str) -> list[str]:
    picture = f"![{figure.TITLE}]({where}/{figure.NAME}.png)"
    table = f"[Table]({where}/{figure.NAME}.csv)"
    return [f"*Measured.* {figure.verdict(rows)}", "", picture, "", table, ""]
