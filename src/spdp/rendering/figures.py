"""Pictures with matplotlib: SVG for pages, and files for plans and ledgers.

Pictures in pages have no background and take their colours from the page, so that they
can be read on light and on dark ones: they are drawn in placeholder colours, which are
then replaced by the page's CSS variables. Heat maps keep their colours, and are marked
so that a dark page can invert them.
"""

import re
from collections.abc import Callable
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from spdp.errors import DataError, need, reason
from spdp.kernels.arrays import Array
from spdp.rendering.panels import Names, Panel, paint_bars, paint_matrix, paint_outline, top_of

INK, FAINT, LINE, FILL, MARK = "#010203", "#010204", "#010205", "#010206", "#010207"
PALETTE = {
    INK: "currentColor",
    FAINT: "var(--faint)",
    LINE: "var(--line)",
    FILL: "var(--fill)",
    MARK: "var(--mark)",
}
STYLE = {
    "svg.fonttype": "none",
    "font.size": 10.0,
    "text.parse_math": False,
    "text.usetex": False,
    **dict.fromkeys(("axes.facecolor", "legend.facecolor"), "none"),
    **dict.fromkeys(("axes.edgecolor", "legend.edgecolor", "xtick.color", "ytick.color"), FAINT),
    **dict.fromkeys(("text.color", "axes.labelcolor"), INK),
    **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor"), INK),
}
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
MAP, MAP_INK = "map", "map-ink"  # classes of heat maps, and of the texts on them
WIDTH = 4.0  # inches


def figure_of(width: float, height: float) -> Any:
    """An empty figure; its sides are in inches."""
    module = need("matplotlib.figure", "plots", "a picture")
    return module.Figure(figsize=(width, height), layout="constrained")


def svg_of(name: str, label: str, height: float, paint: Callable[[Any], None]) -> str:
    """An ``<svg>`` element for a page; ``name`` makes its ids unique there."""
    figure, buffer = figure_of(WIDTH, height), StringIO()
    from matplotlib import rc_context

    style: Any = STYLE | {"svg.hashsalt": name}
    with rc_context(style):
        paint(figure)
        figure.savefig(buffer, format="svg", transparent=True, metadata=NO_METADATA)
    found = re.search(r'<svg\b[^>]*(viewBox="[^"]*")[^>]*>(.*)', buffer.getvalue(), re.DOTALL)
    assert found is not None  # matplotlib writes it
    box, body = found.groups()
    body = re.sub(r"<(metadata|style)\b.*?</\1>", "", body, flags=re.DOTALL)
    for kind in (MAP, MAP_INK):
        body = body.replace(f' id="{kind}"', f' class="{kind}"')
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", body)
    for stand_in, colour in PALETTE.items():
        body = body.replace(stand_in, colour)
    return f'<svg role="img" aria-label="{escape(label)}" {box}>{body}'


# Colours that most people can tell apart, on white and on black.
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
    """Projections of the ellipsoid xᵀM⁻¹x ≤ 1 to each pair of axes.

    The projection to axes i and j is the ellipse of M's 2×2 submatrix (i, j).
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
            axes.locator_params(nbins=4 if k == 2 else 2)  # fewer where they are narrow
            axes.tick_params(labelsize=10 if k == 2 else 8)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter("{x:g}")

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
    """A dot on the curve, with its text where an increasing curve leaves room."""
    p = level / 100
    axes.plot([at, at], [0, p], color=FAINT, linestyle="--", linewidth=1)
    axes.plot([at], [p], marker="o", color=MARK)
    before = at > 0.45 * right
    place = {"xytext": (-8, 2) if before else (8, -10), "ha": "right" if before else "left"}
    text = f"{level} %: {at:.3g}"
    axes.annotate(text, (at, p), textcoords="offset points", **place)


def ledger_picture(path: str | Path, spent: list[float], epsilon: float, delta: float) -> Path:
    """Plot the budget spent over the releases of a ledger."""
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


def plan_picture(
    path: str | Path,
    n_grid: Array,
    errors: dict[str, Array],
    chosen: int,
    distance: str,
    counted: str = "records",
) -> Path:
    """Plot rms error against the number of records, with a line per method."""
    figure = figure_of(6.4, 4.8)
    _paint_curves(figure, n_grid, errors, chosen, distance, counted)
    figure.axes[0].set_title("Expected error of a private release")
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
    """A line per method, and the legend below them."""
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
    """Write in the format of the file's suffix, PNG if it has none."""
    try:
        figure.savefig(path, dpi=150, format=Path(path).suffix[1:] or "png")
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: the picture cannot be written ({reason(error)})") from None
    return Path(path)
