"""Two pictures: error against resolution by method, bound against realised error."""

from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure
from sets import HELD_OUT, SYNTHETIC, TUNED
from tables import geometric

__all__ = ["draw"]

METHODS = {
    "adaptive": ("C0", "-"),
    "version 0.1": ("C1", "-"),
    "one shot": ("C7", "-"),
    "CoinPress": ("C4", "--"),
    "Huang–Liang–Yi": ("C2", "--"),
    "iso": ("C3", ":"),
}
LABELS = {"iso": "oracle with round noise"}
USES = {HELD_OUT: "C0", TUNED: "C1", SYNTHETIC: "C2"}
EDGES = np.geomspace(0.4, 10_000.0, 15)
LARGEST = 1e5  # of the drawn ratios: CoinPress leaves the picture at small resolutions


def draw(rows, output):
    error(rows).savefig(output / "utility-error.png", dpi=100)
    bound(rows).savefig(output / "utility-bound.png", dpi=100)


def error(rows):
    """Squared error over the full-shape oracle's, geometric means over cells."""
    figure = Figure(figsize=(9.0, 3.9), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    parts = {"held-out sets": (HELD_OUT,), "tuned and synthetic sets": (TUNED, SYNTHETIC)}
    for axes, (title, uses) in zip(panels, parts.items(), strict=True):
        here = [r for r in rows if r["use"] in uses]
        for name, (color, style) in METHODS.items():
            points = [means(here, name, *edges) for edges in pairwise(EDGES)]
            x, y = np.array([p for p in points if p is not None] or [(np.nan, np.nan)]).T
            axes.loglog(x, y, style, color=color, marker=".", label=LABELS.get(name, name))
        axes.axhline(1.0, color="black", linewidth=0.8)
        axes.set(xlabel="resolution n·μ/√d", title=title, ylim=(0.5, LARGEST))
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("squared error / full-shape oracle's")
    panels[1].legend(fontsize=8)
    return figure


def means(rows, name, low, high):
    """Mean resolution and mean ratio of the cells between two resolutions."""
    some = [r for r in rows if low <= r["resolution"] < high]
    if not some:
        return None
    ratio = geometric(r[name] / r["full"] for r in some)
    return geometric(r["resolution"] for r in some), ratio


def bound(rows):
    """Mean 95 % bound of a cell against its rms error."""
    figure = Figure(figsize=(5.4, 4.2), layout="constrained")
    axes = figure.subplots()
    for use, color in USES.items():
        here = [r for r in rows if r["use"] == use]
        x = [np.sqrt(r["adaptive"]) for r in here]
        axes.loglog(x, [r["bound 95"] for r in here], ".", color=color, label=use)
    x = np.array([np.sqrt(r["adaptive"]) for r in rows])
    ends = np.array([x.min(), x.max()])
    for factor in (1, 10):
        axes.loglog(ends, factor * ends, color="black", linewidth=0.8)
        axes.annotate(f"{factor}×", (ends[1], factor * ends[1]), fontsize=8)
    axes.set(xlabel="realised rms error", ylabel="stated 95 % bound (mean)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return figure
