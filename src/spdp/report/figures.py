"""Pictures with matplotlib: SVG to be set into a page, files of plans and ledgers."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError, reason
from spdp.pictures.painting import Names, paint_bars, paint_matrix, paint_outline, top_of
from spdp.pictures.panels import Panel
from spdp.privacy.balance import Balance
from spdp.report.svg import FAINT, FILL, LINE, MAP, MAP_INK, MARK, figure_of, svg_of

__all__ = [
    "bars",
    "ellipses",
    "error_curve",
    "heat_map",
    "ledger_picture",
    "plan_curves",
    "plan_picture",
]

Array = NDArray[np.float64]

# Colours that can be told apart by most eyes, on white and on black.
HUES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9")
MARKERS = "osD^vP"


def heat_map(
    matrix: Array, top: float | None = None, names: Names = None, name: str = "heat"
) -> str:
    """Entries from blue through white (zero) to red, with their values if they fit.

    ``top`` ends the colour scale, which matrices that are compared share.
    """
    k, top = len(matrix), top_of([matrix]) if top is None else top

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        mesh, unit = paint_matrix(axes, matrix, top, names)
        bar = figure.colorbar(mesh, ax=axes, orientation="horizontal", aspect=30, pad=0.02)
        bar.solids.set_edgecolor("face")  # no hairlines between its steps
        bar.outline.set_visible(False)
        bar.ax.locator_params(axis="x", nbins=5)
        bar.set_label("" if unit == 1.0 else f"entries are written in units of {unit:g}")
        for artist in (mesh, bar.solids):
            artist.set_gid(MAP)
        for text in axes.texts:
            text.set_gid(MAP_INK)

    return svg_of(name, f"heat map of the {k}×{k} matrix", 4.2, paint)


def ellipses(matrix: Array, name: str = "ellipses", reach: float | None = None) -> str:
    """Shadows of the ellipsoid xᵀM⁻¹x ≤ 1 on each pair of axes.

    The shadow on axes i and j is the ellipse of M's 2×2 submatrix (i, j).
    """
    k, reach = len(matrix), reach or 1.1 * float(np.sqrt(np.diagonal(matrix).max()))

    def paint(figure: Any) -> None:
        grid = figure.subplots(k - 1, k - 1, squeeze=False)
        for (row, column), axes in np.ndenumerate(grid):
            if column > row:
                axes.set_visible(False)
                continue
            part = matrix[np.ix_([column, row + 1], [column, row + 1])]
            paint_outline(axes, part, reach, facecolor=FILL, edgecolor=LINE, linewidth=1.8)
            axes.set(xlabel=f"axis {column}", ylabel=f"axis {row + 1}")
            axes.label_outer()
            axes.locator_params(nbins=4)

    return svg_of(name, f"ellipses of the {k}×{k} matrix", 4.0, paint)


def bars(panel: Panel, name: str = "bars") -> str:
    """A row of numbers."""

    def paint(figure: Any) -> None:
        paint_bars(figure.subplots(), panel, LINE)

    return svg_of(name, panel.title, 3.4, paint)


def error_curve(bounds: dict[int, float], distance: str) -> str:
    """Bounds on the error by probability in percent; 50 and 95 % are marked."""
    x, p = np.array(list(bounds.values())), np.array(list(bounds)) / 100
    right = 1.05 * float(x.max())

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        axes.plot(x, p, color=LINE, linewidth=2)
        for level in (50, 95):
            _mark(axes, bounds[level], level, right)
        axes.set(xlim=(0, right), ylim=(0, 1.02), ylabel="probability")
        axes.set_xlabel(f"{distance} distance")
        axes.spines[["top", "right"]].set_visible(False)
        axes.locator_params(axis="x", nbins=5)

    return svg_of("law", "error law", 3.8, paint)


def _mark(axes: Any, at: float, level: int, right: float) -> None:
    """A dot on the curve; its text stands where an increasing curve leaves room."""
    p = level / 100
    axes.plot([at, at], [0, p], color=FAINT, linestyle="--", linewidth=1)
    axes.plot([at], [p], marker="o", color=MARK)
    before = at > 0.45 * right
    place = {"xytext": (-8, 2) if before else (8, -10), "ha": "right" if before else "left"}
    text = f"{level} %: {at:.3g}"
    axes.annotate(text, (at, p), textcoords="offset points", **place)


def ledger_picture(
    path: str | Path, history: list[dict[str, Any]], epsilon: float, delta: float
) -> Path:
    """Plot the budget spent over the releases of a ledger."""
    spent = spent_over_time(history, epsilon, delta)
    figure = figure_of(6.4, 4.2)
    axes = figure.subplots()
    axes.step(range(len(spent)), spent, where="post", marker="o", label="spent")
    budget = f"budget ε = {epsilon:g}"
    axes.axhline(epsilon, color="tab:red", linestyle="--", label=budget)
    axes.set(xlabel="releases", ylabel=f"ε at δ = {delta:g}", title="Privacy budget")
    axes.set_ylim(0, 1.08 * max(epsilon, spent[-1]))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.legend()
    return _save(figure, path)


def spent_over_time(history: list[dict[str, Any]], epsilon: float, delta: float) -> list[float]:
    """ε spent before the first release of a ledger and after each."""
    mus, pures = ([entry[name] for entry in history] for name in ("mu", "pure"))
    balances = (Balance(epsilon, delta, mus[:i], pures[:i]) for i in range(len(history) + 1))
    return [balance.spent() for balance in balances]


def plan_picture(
    path: str | Path,
    n_grid: Array,
    errors: dict[str, Array],
    chosen: int,
    distance: str,
    counted: str = "records",
) -> Path:
    """Plot rms error against the number of records, with a line per mechanism."""
    figure = figure_of(6.4, 4.8)
    _paint_curves(figure, n_grid, errors, chosen, distance, counted)
    figure.axes[0].set_title("Expected error of a private mean")
    return _save(figure, path)


def plan_curves(
    n_grid: Array, errors: dict[str, Array], chosen: int, distance: str, counted: str
) -> str:
    """The same picture for a page."""

    def paint(figure: Any) -> None:
        _paint_curves(figure, n_grid, errors, chosen, distance, counted)

    return svg_of("curves", f"rms error by number of {counted}", 4.6, paint)


def _paint_curves(
    figure: Any, n_grid: Array, errors: dict[str, Array], chosen: int, distance: str, counted: str
) -> None:
    """A line per method; the legend stands below them and covers nothing."""
    axes = figure.subplots()
    for i, (name, values) in enumerate(errors.items()):
        look = {"color": HUES[i % len(HUES)], "marker": MARKERS[i % len(MARKERS)], "markersize": 4}
        axes.loglog(n_grid, values, label=name, **look)
    axes.axvline(chosen, color=FAINT, linestyle=":", label=f"n = {chosen:,}")
    axes.set(xlabel=f"number of {counted}", ylabel=f"rms error, {distance} distance")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:g}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter("")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)


def _save(figure: Any, path: str | Path) -> Path:
    """Write in the format that the name ends in, PNG if it has no ending."""
    try:
        figure.savefig(path, dpi=150, format=Path(path).suffix[1:] or "png")
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: the picture cannot be written ({reason(error)})") from None
    return Path(path)
