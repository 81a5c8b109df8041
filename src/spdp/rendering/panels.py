"""Panels: the pictures of a release, and how they are drawn on matplotlib's axes."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.charts import Chart
from spdp.errors import DataError, ParameterError, need

Array = NDArray[Any]
Values = Mapping[str, Array]

MOST = 12  # matrices of an array that are drawn
LONGEST = 64  # numbers in a row that is drawn
SOLIDS = 4  # matrices, at most, whose ellipsoids are drawn
VALUE = "value"  # scale of released matrices
REAL, IMAGINARY = "real part", "imaginary part"
SOLID = {2: "ellipse", 3: "ellipsoid"}  # by the size of the matrix


class Panel(NamedTuple):
    """One picture.

    Attributes
    ----------
    kind : "matrix", "solid" or "bars"
        A heat map, the ellipse or ellipsoid of a matrix, or a row of numbers.
    title : str
    data : array
    scale : str
        Panels of one kind and scale share their axes' or colours' range.
    labels : tuple of str
        Names of the numbers in a row, where they have any.
    """

    kind: str
    title: str
    data: Array
    scale: str
    labels: tuple[str, ...] = ()


def matrix_panels(stack: Array, titles: list[str], scale: str = VALUE) -> list[Panel]:
    """Heat maps, two of each complex matrix, and ellipsoids of a few small ones."""
    some = list(zip(stack[:MOST], titles, strict=False))
    flat = [part for matrix, title in some for part in _parts(matrix, title)]
    drawn = [Panel("matrix", title, matrix, scale) for matrix, title in flat]
    if len(stack) <= SOLIDS:
        drawn += [
            Panel("solid", f"{title}: {SOLID[len(matrix)]}", matrix, scale)
            for matrix, title in some
            if _has_shape(matrix)
        ]
    return drawn


def _parts(matrix: Array, title: str) -> list[tuple[Array, str]]:
    if not np.iscomplexobj(matrix):
        return [(matrix, title)]
    return [(matrix.real, f"{title}: {REAL}"), (matrix.imag, f"{title}: {IMAGINARY}")]


def _has_shape(matrix: Array) -> bool:
    real = not np.iscomplexobj(matrix) and matrix.shape in ((2, 2), (3, 3))
    return real and bool(np.linalg.eigvalsh(matrix)[0] > 0)


def stacked(value: Array, title: str) -> tuple[Array, list[str]]:
    """A matrix, or the matrices of one record, as a stack with titles."""
    if value.ndim == 2:
        return value[None], [title]
    return value, [f"{title} {i}" for i in range(len(value))]


def changes(base: Array, steps: Array, titles: list[str], chart: Chart) -> list[Panel]:
    """How a matrix changes along vectors v of its chart: (M(y + v) − M(y − v)) / 2."""
    y = chart.vector(base)

    def at(vector: Array) -> Array:
        return np.asarray(chart.matrices(chart.representable(vector)))

    changed = [(at(y + step) - at(y - step)) / 2 for step in steps[:MOST]]
    stacks = [stacked(change, title) for change, title in zip(changed, titles, strict=False)]
    return [
        panel
        for stack, names in stacks
        for panel in matrix_panels(stack, names, "change")
        if panel.kind == "matrix"
    ]


def row(numbers: Array, title: str, scale: str, labels: tuple[str, ...] = ()) -> list[Panel]:
    """A row of numbers as bars, if there are at least 2 and at most LONGEST."""
    if numbers.ndim != 1 or not 1 < len(numbers) <= LONGEST or np.iscomplexobj(numbers):
        return []
    return [Panel("bars", title, numbers, scale, labels)]


def everything(values: Values) -> list[Panel]:
    """Panels of all arrays that have the shape of matrices or of a row."""
    drawn: list[Panel] = []
    for name, array in values.items():
        if array.ndim in (2, 3) and array.shape[-1] == array.shape[-2]:
            drawn += matrix_panels(*stacked(array, name), scale=name)
        else:
            drawn += row(array, name, name)
    return drawn


Names = Sequence[str] | None

COLOURS = "RdBu_r"  # from blue through white, which is zero, to red
LARGEST_LABELLED = 11  # matrices up to this size have their entries written into the map
LARGEST_SPACIOUS = 5  # up to this size there is room for three digits of each
MOST_NAMES = 40  # rows that can be named one by one
MOST_NUMBERS = 10  # rows that are numbered
COLUMNS, SIDE = 3, 3.6  # panels beside each other, and inches of each
ROOM = 190.0  # points for the letters of all rows' names, one below the other
BESIDE = 30  # letters of all labels of bars that fit beside each other
WIDE, NARROW = 380.0, 290.0  # points of letters in a row: on a page, in a panel


def top_of(matrices: Sequence[Array]) -> float:
    """The largest absolute entry, which ends a colour scale that is white at zero."""
    return max((float(np.abs(matrix).max()) for matrix in matrices), default=0.0) or 1.0


def paint_matrix(
    axes: Any, matrix: Array, top: float, names: Names = None, width: float = WIDE
) -> tuple[Any, float]:
    """Entries from blue to red, with their values if they fit.

    Returns the mesh, for a colour bar, and the unit that values are written in.
    ``width`` is the room for a row of values, in points of letters.
    """
    k = len(matrix)
    labelled = k <= LARGEST_LABELLED
    look = {"edgecolors": "white", "linewidth": 0.8} if labelled else {"rasterized": True}
    mesh = axes.pcolormesh(matrix, cmap=COLOURS, vmin=-top, vmax=top, **look)
    axes.set(aspect="equal")
    axes.invert_yaxis()
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    _name_rows(axes, k, names)
    if not labelled:
        return mesh, 1.0
    texts, unit = _labels(matrix, top)
    _write(axes, matrix, texts, top, width)
    return mesh, unit


def _name_rows(axes: Any, k: int, names: Names) -> None:
    step = 1 if names and k <= MOST_NAMES else -(-k // MOST_NUMBERS)
    rows = np.arange(0, k, step)
    texts = [str(i) if names is None else names[i] for i in range(0, k, step)]
    small = {"fontsize": min(9 if k <= MOST_NUMBERS else 6, ROOM / k)} if names else {}
    axes.set_yticks(rows + 0.5, texts, **small)
    axes.set_xticks(rows + 0.5, texts, **small, **({"rotation": 90} if names else {}))


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


def _write(axes: Any, matrix: Array, texts: list[list[str]], top: float, width: float) -> None:
    longest = max(len(text) for row in texts for text in row)
    size = min(12.0, width / (len(matrix) * max(longest, 3)))
    for (i, j), value in np.ndenumerate(matrix):
        ink = "#ffffff" if abs(value) > 0.6 * top else "#222222"
        place = {"ha": "center", "va": "center", "color": ink, "fontsize": size}
        axes.text(j + 0.5, i + 0.5, texts[i][j], **place)


def paint_outline(axes: Any, matrix: Array, reach: float, **look: Any) -> None:
    """The ellipse xᵀM⁻¹x = 1 of a 2×2 matrix."""
    angle = np.linspace(0.0, 2 * np.pi, 121)
    x, y = _root(matrix) @ np.stack([np.cos(angle), np.sin(angle)])
    axes.fill(x, y, **look)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")


def _root(matrix: Array) -> Array:
    """A matrix that takes the unit ball to the ellipsoid xᵀM⁻¹x ≤ 1."""
    w, V = np.linalg.eigh(matrix)
    return np.asarray(V * np.sqrt(np.maximum(w, 0.0)))


def paint_bars(axes: Any, panel: Panel, colour: str = "#2166ac") -> None:
    """A row of numbers."""
    places = np.arange(len(panel.data))
    axes.bar(places, panel.data, color=colour)
    axes.axhline(0.0, color="0.6", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    if panel.labels:
        long = sum(map(len, panel.labels)) > BESIDE
        axes.set_xticks(places, panel.labels, rotation=90 if long else 0)
    else:
        axes.xaxis.get_major_locator().set_params(integer=True)


def _paint_solid(axes: Any, matrix: Array, reach: float) -> None:
    """An ellipsoid in perspective with its axes, or an ellipse, and its eigenvalues."""
    w = ", ".join(f"{value:.3g}" for value in np.linalg.eigvalsh(matrix)[::-1])
    axes.set_title(f"{axes.get_title()}\neigenvalues {w}", fontsize=10)
    if len(matrix) == 2:
        paint_outline(axes, matrix, reach, facecolor="#cfe0f1", edgecolor="#2166ac")
        return
    polar, around = np.mgrid[0 : np.pi : 25j, 0 : 2 * np.pi : 49j]
    ball = np.stack([np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar)])
    root = _root(matrix)
    x, y, z = np.einsum("ij,jab->iab", root, ball)
    axes.plot_surface(x, y, z, color="#92c5de", alpha=0.75, linewidth=0, rcount=25, ccount=49)
    for end in root.T:
        axes.plot(*np.stack([-end, end]).T, color="#053061", linewidth=1.5)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), zlim=(-reach, reach))
    axes.set_box_aspect((1, 1, 1))
    axes.locator_params(nbins=4)


def paint(drawn: list[Panel], axes: Any = None, names: Names = None) -> Any:
    """Draw panels on axes; see :meth:`spdp.release.Release.plot`."""
    if not drawn:
        raise DataError("this release holds nothing that can be drawn")
    given = _axes(drawn) if axes is None else list(np.atleast_1d(np.asarray(axes, object)).flat)
    if len(given) < len(drawn):
        if len(given) != 1:
            raise ParameterError(f"{len(drawn)} axes are needed, one per picture: got {len(given)}")
        drawn = drawn[:1]
    places = list(zip(given, drawn, strict=False))
    for place, panel in places:
        place.set_title(panel.title, fontsize=10)
        if panel.kind == "bars":
            paint_bars(place, panel)
    _paint_shared(places, names)
    return given[0] if len(places) == 1 else np.array(given[: len(places)], object)


def _axes(drawn: list[Panel]) -> list[Any]:
    pyplot = need("matplotlib.pyplot", "plots", "a picture")
    columns = min(COLUMNS, len(drawn))
    rows = -(-len(drawn) // columns)
    figure = pyplot.figure(figsize=(SIDE * columns + 0.8, SIDE * rows), layout="constrained")
    space = ["3d" if panel.kind == "solid" and len(panel.data) == 3 else None for panel in drawn]
    return [figure.add_subplot(rows, columns, i + 1, projection=p) for i, p in enumerate(space)]


def _paint_shared(places: list[tuple[Any, Panel]], names: Names) -> None:
    """Matrices and their shapes, those of one scale alike, with one colour bar each."""
    for scale in dict.fromkeys(panel.scale for _, panel in places):
        maps = [(at, p.data) for at, p in places if p.kind == "matrix" and p.scale == scale]
        solids = [(at, p.data) for at, p in places if p.kind == "solid" and p.scale == scale]
        if maps:
            top = top_of([matrix for _, matrix in maps])
            painted = [paint_matrix(at, matrix, top, names, NARROW) for at, matrix in maps]
            mesh, unit = painted[0]
            bar = mesh.figure.colorbar(mesh, ax=[at for at, _ in maps], shrink=0.8)
            bar.outline.set_visible(False)
            bar.set_label("" if unit == 1.0 else f"entries are written in units of {unit:g}")
        reach = 1.1 * max((float(np.sqrt(np.diagonal(M).max())) for _, M in solids), default=1.0)
        for at, matrix in solids:
            _paint_solid(at, matrix, reach)
