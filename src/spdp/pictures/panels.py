"""What of a release can be drawn: matrices, changes of them, and rows of numbers."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.charts import chart_of
from spdp.words import found_of

__all__ = ["MOST", "VALUE", "Panel", "panels"]

Array = NDArray[Any]
Values = Mapping[str, Array]
Certificate = dict[str, Any]

MOST = 12  # matrices that are drawn of an array
LONGEST = 64  # of a row of numbers that is drawn
SOLIDS = 4  # matrices whose ellipsoids are drawn
VALUE = "value"  # scale of what is released itself
REAL, IMAGINARY = "real part", "imaginary part"


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


def panels(values: Values, certificate: Certificate) -> list[Panel]:
    """The pictures of a release, the main one first, shapes of matrices last."""
    draw, needs = PANELS.get(certificate["statistic"], (_everything, set()))
    drawn = draw(values, certificate) if needs <= set(values) else _everything(values, certificate)
    return sorted(drawn, key=lambda panel: panel.kind == "solid")


def _matrices(stack: Array, titles: list[str], scale: str = VALUE) -> list[Panel]:
    """Heat maps, two of each complex matrix, and the shapes of few small ones."""
    some = list(zip(stack[:MOST], titles, strict=False))
    flat = [part for matrix, title in some for part in _parts(matrix, title)]
    drawn = [Panel("matrix", title, matrix, scale) for matrix, title in flat]
    if len(stack) <= SOLIDS:
        drawn += [
            Panel("solid", f"{title}: {_shape(matrix)}", matrix, scale)
            for matrix, title in some
            if _has_shape(matrix)
        ]
    return drawn


def _parts(matrix: Array, title: str) -> list[tuple[Array, str]]:
    if not np.iscomplexobj(matrix):
        return [(matrix, title)]
    return [(matrix.real, f"{title}: {REAL}"), (matrix.imag, f"{title}: {IMAGINARY}")]


def _shape(matrix: Array) -> str:
    return "ellipse" if len(matrix) == 2 else "ellipsoid"


def _has_shape(matrix: Array) -> bool:
    real = not np.iscomplexobj(matrix) and matrix.shape in ((2, 2), (3, 3))
    return real and bool(np.linalg.eigvalsh(matrix)[0] > 0)


def _stacked(value: Array, title: str) -> tuple[Array, list[str]]:
    """A matrix, or the matrices of one record, as a stack with titles."""
    if value.ndim == 2:
        return value[None], [title]
    return value, [f"{title} {i}" for i in range(len(value))]


def _value(values: Values, c: Certificate, title: str) -> list[Panel]:
    return _matrices(*_stacked(next(iter(values.values())), title))


def _mean(values: Values, c: Certificate) -> list[Panel]:
    return _value(values, c, "Mean" if c["unit"] else "Matrix")


def _median(values: Values, c: Certificate) -> list[Panel]:
    return _value(values, c, "Median")


def _classes(values: Values, c: Certificate) -> list[Panel]:
    pairs = zip(_classes_of(c, len(values["means"])), values["counts"], strict=True)
    titles = [f"Mean of class {name} (about {count:,.0f})" for name, count in pairs]
    return _matrices(values["means"], titles)


def _classes_of(c: Certificate, count: int) -> list[Any]:
    """Names of the classes, as the certificate's last step has them; else numbers."""
    found = c["steps"][-1].get("classes") if c["steps"] else None
    right = isinstance(found, list) and len(found) == count
    return found if right and found is not None else list(range(count))


def _difference(values: Values, c: Certificate) -> list[Panel]:
    first, second = values["means"]
    one, two = _classes_of(c, 2)
    titles = [f"Mean of class {name}" for name in (one, two)]
    title = f"Class {one} less class {two}: {found_of(c)}"
    change = _matrices((first - second)[None], [title], "change")
    return _matrices(values["means"], titles) + change[:1]


def _dispersion(values: Values, c: Certificate) -> list[Panel]:
    title = "Standard deviation of each coordinate"
    return _mean(values, c) + _row(values["deviations"], title, "deviation")


def _pca(values: Values, c: Certificate) -> list[Panel]:
    """The mean, and half of what changes between one deviation to either side of it."""
    variance = np.maximum(values["explained_variance"], 0.0)
    steps = np.sqrt(variance)[:, None] * values["components"]
    titles = [f"Direction {i + 1}: one standard deviation" for i in range(len(steps))]
    explained = _row(variance, "Variance along each direction", "variance")
    return _mean(values, c) + _changes(values["mean"], steps, titles, c) + explained


def _regression(values: Values, c: Certificate) -> list[Panel]:
    at = ", ".join(f"{x:.4g}" for x in values["at"])
    end = ":" if values["fitted"].ndim == 3 else ""  # before the number of a matrix
    fitted = _matrices(*_stacked(values["fitted"], f"Fitted where the covariates are {at}{end}"))
    titles = [f"Change with one unit of covariate {i}" for i in range(len(values["slopes"]))]
    return fitted + _changes(values["fitted"], values["slopes"], titles, c)


def _changes(base: Array, steps: Array, titles: list[str], c: Certificate) -> list[Panel]:
    """How a matrix changes along vectors v of its chart: (M(y + v) − M(y − v)) / 2."""
    chart = chart_of(c["metric"], c["reference_point"], c["parts"])
    y = chart.vector(base)

    def at(vector: Array) -> Array:
        return np.asarray(chart.matrices(chart.representable(vector)))

    changed = [(at(y + step) - at(y - step)) / 2 for step in steps[:MOST]]
    stacks = [_stacked(change, title) for change, title in zip(changed, titles, strict=False)]
    return [
        panel
        for stack, names in stacks
        for panel in _matrices(stack, names, "change")
        if panel.kind == "matrix"
    ]


def _row(numbers: Array, title: str, scale: str, labels: tuple[str, ...] = ()) -> list[Panel]:
    if numbers.ndim != 1 or not 1 < len(numbers) <= LONGEST or np.iscomplexobj(numbers):
        return []
    return [Panel("bars", title, numbers, scale, labels)]


def _everything(values: Values, c: Certificate) -> list[Panel]:
    """Whatever has the shape of matrices or of a row, of a statistic not known here."""
    drawn: list[Panel] = []
    for name, array in values.items():
        if array.ndim in (2, 3) and array.shape[-1] == array.shape[-2]:
            drawn += _matrices(*_stacked(array, name), scale=name)
        else:
            drawn += _row(array, name, name)
    return drawn


# How a statistic is drawn, and the arrays that it takes.
PANELS: dict[str, tuple[Callable[[Values, Certificate], list[Panel]], set[str]]] = {
    "mean": (_mean, set()),
    "median": (_median, set()),
    "class-means": (_classes, {"means", "counts"}),
    "difference": (_difference, {"means"}),
    "dispersion": (_dispersion, {"mean", "deviations"}),
    "pca": (_pca, {"mean", "components", "explained_variance"}),
    "regression": (_regression, {"fitted", "slopes", "at"}),
}
