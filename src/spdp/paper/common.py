"""What the figures share: settings, seeds, exact laws, resuming, tables, drawing."""

import csv
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from spdp.datasets import load_images, synthetic_spd
from spdp.descriptors import covariance_descriptors, paper_radius
from spdp.distributions import LogLaplace
from spdp.errors import DataError
from spdp.geometry import mean_logeuclid
from spdp.mechanisms import RiemannianLaplace, TangentGaussian
from spdp.progress import track

__all__ = [
    "Row",
    "Settings",
    "agreement",
    "at_hand",
    "band",
    "calibrate",
    "chain_errors",
    "descriptors",
    "explain",
    "official",
    "run",
    "seed",
    "small_multiples",
    "squared_errors",
    "synthetic_mean",
    "synthetic_sensitivity",
    "theorem_5_sensitivity",
]

Array = NDArray[np.float64]
Row = dict[str, Any]

N, R = 500, 0.25  # records and radius of the paper's synthetic experiments
# Okabe and Ito's colours, told apart by colour-blind readers, too.
ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = (
    "#e69f00",
    "#56b4e9",
    "#009e73",
    "#0072b2",
    "#d55e00",
    "#cc79a7",
)


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


def calibrate(
    name: str, sensitivity: float, epsilon: float, delta: float
) -> RiemannianLaplace | TangentGaussian:
    """The mechanism that a figure calls by its noise, or by its calibration.

    Laplace noise is pure, so δ counts for the tangent Gaussian only.
    """
    if name.startswith("laplace"):
        return RiemannianLaplace(sensitivity, epsilon)
    return TangentGaussian(sensitivity, epsilon, delta, calibration=name)


def squared_errors(
    mechanism: RiemannianLaplace | TangentGaussian,
    k: int,
    repeats: int,
    rng: np.random.Generator,
) -> Array:
    """ρ² of seeded releases of a k×k summary.

    Taken in log coordinates: the noise of the paper's radius at small n leaves the
    range of float64 matrices.
    """
    noise = np.stack([mechanism.simulate_noise(k, rng) for _ in range(repeats)])
    return np.asarray((noise**2).sum(axis=1))


def chain_errors(
    mechanism: RiemannianLaplace | TangentGaussian,
    f: Array,
    repeats: int,
    rng: np.random.Generator,
    burn_in: int,
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
    """Whether a dataset's file is the official one, or a part or copy of it."""
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
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise DataError(
            "the figures need matplotlib; install it with: pip install 'spdp[plots]'"
        ) from None
    across = min(columns, panels)
    down = -(-panels // across)
    figure = Figure(figsize=(3.4 * across + 0.4, 2.9 * down + 0.3), layout="constrained")
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
    """A legend below all panels, where it covers nothing; it explains bands, too."""
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
