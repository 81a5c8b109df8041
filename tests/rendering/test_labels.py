"""Labels of pictures on pages: none covers another, none leaves its picture."""

from itertools import combinations

import numpy as np
import pytest

from spdp.rendering import figures
from spdp.rendering.panels import Panel

pytest.importorskip("matplotlib")
SCALES = (1e-7, 1e-3, 37.0, 1e12)
DIGITS = tuple("abc")
LONG = tuple(f"class number {i}" for i in range(8))


@pytest.fixture
def labels(monkeypatch):
    """The places of all labels of a picture, which is drawn and not written."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    found = []

    def drawn(name, label, height, paint):
        figure = figures.figure_of(figures.WIDTH, height)
        with rc_context(figures.STYLE):
            paint(figure)
            canvas = FigureCanvasAgg(figure)
            canvas.draw()
            for axes in figure.axes:
                if axes.get_visible():
                    found.extend(boxes(axes, canvas.get_renderer()))
        return figure.bbox

    monkeypatch.setattr(figures, "svg_of", drawn)
    return drawn, found


def boxes(axes, renderer):
    for axis, place in ((axes.xaxis, 0), (axes.yaxis, 1)):
        low, high = sorted(axis.get_view_interval())
        room = 1e-9 * (high - low)
        for label in axis.get_ticklabels():
            at = label.get_position()[place]
            if label.get_text() and label.get_visible() and low - room <= at <= high + room:
                box = label.get_window_extent(renderer)
                if box.width:
                    yield label.get_text(), box


def meet(a, b):
    return a.x0 < b.x1 and b.x0 < a.x1 and a.y0 < b.y1 and b.y0 < a.y1


def check(labels, picture):
    _, found = labels
    found.clear()
    whole = picture()
    assert found
    for (one, a), (other, b) in combinations(found, 2):
        assert not meet(a, b), (one, other)
    for text, box in found:
        assert box.x0 > -1 < box.y0, text
        assert box.x1 < whole.width + 1, text
        assert box.y1 < whole.height + 1, text


@pytest.mark.parametrize("scale", SCALES)
def test_numbers_of_any_size_stand_beside_each_other(labels, scale):
    rng = np.random.default_rng(0)
    for k in (2, 3):
        A = rng.standard_normal((k, k))
        A = scale * (A @ A.T + np.eye(k))
        check(labels, lambda A=A: figures.ellipses(A))
    for k in (3, 64):
        check(labels, lambda k=k: figures.heat_map(scale * np.eye(k)))
    bounds = {5: 0.5 * scale, 50: scale, 95: 1.7 * scale, 99: 2 * scale}
    check(labels, lambda: figures.error_curve(bounds, "log-Euclidean"))
    row = Panel("bars", "x", scale * rng.standard_normal(11), "v")
    check(labels, lambda: figures.bars(row))


@pytest.mark.parametrize("k", [10, 20, 40])
def test_names_stand_beside_each_other(labels, k):
    names = [f"region {i} left" for i in range(k)]
    check(labels, lambda: figures.heat_map(np.eye(k), names=names))


@pytest.mark.parametrize("names", [DIGITS, LONG])
def test_names_of_bars_stand_beside_each_other(labels, names):
    row = Panel("bars", "x", np.arange(1.0, len(names) + 1), "v", names)
    check(labels, lambda: figures.bars(row))


def test_labels_that_meet_are_noticed(labels, monkeypatch):
    monkeypatch.setattr("spdp.rendering.panels.ROOM", 1e9)
    names = [f"region {i} left" for i in range(40)]
    with pytest.raises(AssertionError):
        check(labels, lambda: figures.heat_map(np.eye(40), names=names))
