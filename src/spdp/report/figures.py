"""Pictures with matplotlib: SVG to be set into a page, files of plans and ledgers.

SVG pictures have no background and take their ink from the page that holds them, so
that they can be read in light and in dark: they are drawn in stand-in colours, which
are then replaced by the page's CSS variables.
"""

import re
from collections.abc import Callable
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError
from spdp.privacy.balance import Balance

__all__ = ["ellipses", "error_curve", "heat_map", "ledger_picture", "plan_picture"]

Array = NDArray[np.float64]

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
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.parse_math": False,
    "text.usetex": False,
}
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
# matrices up to this size have their entries written into the map
LARGEST_LABELLED = 11
LARGEST_SPACIOUS = 5  # up to this size there is room for three digits of each


def _figure(width: float, height: float) -> Any:
    """An empty figure; its sides are in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise DataError(
            "a picture needs matplotlib; install it with: pip install 'spdp[plots]'"
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


def _svg(name: str, label: str, height: float, paint: Callable[[Any], None]) -> str:
    """An ``<svg>`` element 4 inches wide for a page; ``name`` keeps its ids apart."""
    figure, buffer = _figure(4.0, height), StringIO()
    from matplotlib import rc_context

    style: Any = STYLE | {"svg.hashsalt": name}
    with rc_context(style):
        paint(figure)
        figure.savefig(buffer, format="svg", transparent=True, metadata=NO_METADATA)
    box, body = re.findall(r'<svg\b[^>]*(viewBox="[^"]*")[^>]*>(.*)', buffer.getvalue(), re.DOTALL)[
        0
    ]
    body = re.sub(r"<(metadata|style)\b.*?</\1>", "", body, flags=re.DOTALL)
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", body)
    for stand_in, colour in PALETTE.items():
        body = body.replace(stand_in, colour)
    return f'<svg role="img" aria-label="{escape(label)}" {box}>{body}'


def heat_map(matrix: Array) -> str:
    """Entries from blue through white (zero) to red, with their values if they fit."""
    k, top = len(matrix), float(np.abs(matrix).max()) or 1.0
    labelled = k <= LARGEST_LABELLED

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        look = {"edgecolors": "white", "linewidth": 0.8} if labelled else {"rasterized": True}
        mesh = axes.pcolormesh(matrix, cmap="RdBu_r", vmin=-top, vmax=top, **look)
        axes.set(aspect="equal")
        axes.invert_yaxis()
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        ticks = np.arange(0, k, -(-k // LARGEST_LABELLED))
        axes.set_xticks(ticks + 0.5, ticks)
        axes.set_yticks(ticks + 0.5, ticks)
        bar = figure.colorbar(mesh, ax=axes, orientation="horizontal", aspect=30, pad=0.02)
        bar.solids.set_edgecolor("face")  # no hairlines between its steps
        bar.outline.set_visible(False)
        bar.ax.locator_params(axis="x", nbins=5)
        if labelled:
            texts, unit = _labels(matrix, top)
            _write(axes, matrix, texts, top)
            bar.set_label("" if unit == 1.0 else f"entries are written in units of {unit:g}")

    return _svg("heat", f"heat map of the {k}×{k} matrix", 4.2, paint)


def _labels(matrix: Array, top: float) -> tuple[list[list[str]], float]:
    """The entries as short texts, and the unit they are written in.

    Three digits each where there is room, else as many decimals as the largest needs.
    """
    if len(matrix) <= LARGEST_SPACIOUS:
        return [[_three_digits(value) for value in row] for row in matrix], 1.0
    size = int(np.floor(np.log10(top)))
    unit, decimals = (1.0, 2 - size) if -1 <= size <= 2 else (10.0**size, 2)
    return [[f"{value / unit:z.{decimals}f}" for value in row] for row in matrix], unit


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.3g}"


def _write(axes: Any, matrix: Array, texts: list[list[str]], top: float) -> None:
    longest = max(len(text) for row in texts for text in row)
    size = min(12.0, 380.0 / (len(matrix) * max(longest, 3)))
    for (i, j), value in np.ndenumerate(matrix):
        ink = "#ffffff" if abs(value) > 0.6 * top else "#222222"
        place = {"ha": "center", "va": "center", "color": ink, "fontsize": size}
        axes.text(j + 0.5, i + 0.5, texts[i][j], **place)


def ellipses(matrix: Array) -> str:
    """Shadows of the ellipsoid xᵀM⁻¹x ≤ 1 on each pair of axes.

    The shadow on axes i and j is the ellipse of M's 2×2 submatrix (i, j).
    """
    k, reach = len(matrix), 1.1 * float(np.sqrt(np.diagonal(matrix).max()))

    def paint(figure: Any) -> None:
        grid = figure.subplots(k - 1, k - 1, squeeze=False)
        for (row, column), axes in np.ndenumerate(grid):
            if column > row:
                axes.set_visible(False)
                continue
            x, y = _outline(matrix[np.ix_([column, row + 1], [column, row + 1])])
            axes.fill(x, y, facecolor=FILL, edgecolor=LINE, linewidth=1.8)
            axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
            axes.set(xlabel=f"axis {column}", ylabel=f"axis {row + 1}")
            axes.label_outer()
            axes.locator_params(nbins=4)

    return _svg("ellipses", f"ellipses of the {k}×{k} matrix", 4.0, paint)


def _outline(matrix: Array) -> Array:
    """Points x with xᵀM⁻¹x = 1, as rows of coordinates (2, m)."""
    angle = np.linspace(0.0, 2 * np.pi, 121)
    w, V = np.linalg.eigh(matrix)
    root = V * np.sqrt(np.maximum(w, 0.0))
    return np.asarray(root @ np.stack([np.cos(angle), np.sin(angle)]))


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

    return _svg("law", "error law", 3.8, paint)


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
    figure = _figure(6.4, 4.2)
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
    path: str | Path, n_grid: Array, errors: dict[str, Array], chosen: int, distance: str
) -> Path:
    """Plot rms error against the number of records, with a line per mechanism."""
    figure = _figure(6.4, 4.2)
    axes = figure.subplots()
    for name, values in errors.items():
        axes.loglog(n_grid, values, label=name)
    axes.axvline(chosen, color="0.6", linestyle=":", label=f"n = {chosen:,}")
    axes.set(xlabel="number of records", ylabel=f"rms error, {distance} distance")
    axes.set_title("Expected error of a private mean")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    return _save(figure, path)


def _save(figure: Any, path: str | Path) -> Path:
    """Write in the format that the name ends in, PNG if it has no ending."""
    try:
        figure.savefig(path, dpi=150, format=Path(path).suffix[1:] or "png")
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: the picture cannot be written ({error})") from None
    return Path(path)
