"""How far real descriptors are from the bounds of theorem 5."""

from typing import Any

import numpy as np

from spdp.datasets import DATASETS
from spdp.descriptors import descriptor_bounds, paper_radius
from spdp.geometry import logm
from spdp.paper.common import Row, Settings, at_hand, descriptors, small_multiples

NAME = "tightness"
TITLE = "Tightness of the bound of theorem 5"
CLAIM = "Theorem 5 bounds the geodesic radius of covariance descriptors by √9·|ln η| (gray) and √11·|ln η| (RGB)."


def cells(settings: Settings) -> list[Row]:
    return [{"dataset": name} for name in at_hand(DATASETS, settings.data)]


def measure(cell: Row, settings: Settings) -> list[Row]:
    rows = []
    for label in (0,) if settings.quick else (0, 1):
        X, channels = descriptors(cell["dataset"], label, settings.data)
        region = descriptor_bounds(channels).region(X.shape[1])
        L = logm(X)
        norm = np.linalg.norm(L, axis=(1, 2))
        centred = np.linalg.norm(L - region.center[0] * np.eye(X.shape[1]), axis=(1, 2))
        spread = np.linalg.norm(L - L.mean(axis=0), axis=(1, 2))
        facts = {"class": label, "n": len(X), "theorem_5": paper_radius(channels), "largest_norm": float(norm.max())}
        facts |= {"tight_radius": region.radius, "largest_from_centre": float(centred.max()), "spread_90": float(np.quantile(spread, 0.9))}
        rows.append(
            {**facts, "largest_eigenvalue": float(np.exp(np.linalg.eigvalsh(L)[:, -1].max())), "bound": descriptor_bounds(channels).high}
        )
    return rows


def draw(rows: list[Row]) -> Any:
    figure, (ax,) = small_multiples(1)
    figure.set_size_inches(7.6, 4.2)
    place = np.arange(len(rows))
    for shift, (name, label) in enumerate(
        {
            "theorem_5": "theorem 5",
            "largest_norm": "largest ‖Logm R‖",
            "tight_radius": "tight radius",
            "spread_90": "90 % of the class",
        }.items()
    ):
        ax.bar(place + 0.2 * (shift - 1.5), [r[name] for r in rows], 0.2, label=label)
    ax.set_xticks(place, [f"{r['dataset']} {r['class']}" for r in rows], rotation=60, ha="right", fontsize=7)
    ax.set(ylabel="log-Euclidean radius", title=TITLE)
    ax.legend(fontsize=8)
    return figure


def verdict(rows: list[Row]) -> str:
    worst = max(r["largest_norm"] / r["theorem_5"] for r in rows)
    spread = np.median([r["theorem_5"] / r["spread_90"] for r in rows])
    return (
        f"Holds (12 and 14, as the appendix has it; the main text's 14 and 16 are misprints) and is loose: real "
        f"descriptors reach at most {worst:.0%} of it, "
        f"and 90 % of a class lie within a ball {spread:.0f} times smaller (median). This is what the adaptive method exploits."
    )
