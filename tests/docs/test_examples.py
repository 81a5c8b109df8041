"""The gallery: every example runs, is private where it says so, and draws a picture."""

import ast
import runpy
import tempfile
from pathlib import Path

import pytest

from spdp import Release

matplotlib = pytest.importorskip("matplotlib")
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))
SAFE = {"viridis", "cividis", "RdBu_r"}  # colour maps that colour-blind readers can read
SEEDED = {"train_test_split"}  # may be seeded: it splits public data


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    """As from a fresh clone: no data of the user's, nothing drawn, nothing left."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.delenv("SPDP_DATA", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with matplotlib.rc_context():
        yield
    plt.close("all")


def releases(found):
    """Releases among the values of a script, in lists and in estimators, too."""
    for value in found:
        if isinstance(value, Release):
            yield value
        elif isinstance(value, dict):
            yield from releases(value.values())
        elif isinstance(value, list):
            yield from releases(value)
        elif isinstance(getattr(value, "release_", None), Release):
            yield value.release_


def check_axes(ax):
    assert ax.get_legend() is None, "a legend inside covers data: use fig.legend outside"
    for image in (*ax.images, *ax.collections):
        if image.get_array() is None:
            continue
        low, high = image.get_clim()
        assert image.get_cmap().name in SAFE
        assert image.get_cmap().name != "RdBu_r" or low == -high


def check_figure(fig):
    titles = [fig.get_suptitle(), *(ax.get_title() for ax in fig.axes)]
    assert any(titles)
    assert any(ax.get_xlabel() for ax in fig.axes) or not all(ax.axison for ax in fig.axes)
    assert any(ax.get_ylabel() for ax in fig.axes)
    for ax in fig.axes:
        check_axes(ax)
    fig.canvas.draw()  # its warnings are errors: a layout that does not fit, a missing glyph


def marked(examples):
    """Those of many processes are left to the audits."""
    slow = {"plot_19_sites_that_trust_nobody"}
    return [pytest.param(e, marks=pytest.mark.audit if e.stem in slow else ()) for e in examples]


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
@pytest.mark.parametrize("example", marked(EXAMPLES), ids=[e.stem for e in EXAMPLES])
def test_runs_and_ends_in_a_picture(example, capsys):
    import matplotlib.pyplot as plt

    found = runpy.run_path(str(example), run_name="__main__")
    numbers = plt.get_fignums()
    assert numbers
    for number in numbers:
        check_figure(plt.figure(number))
    assert all(release.certificate["private"] for release in releases(found.values()))


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.stem for example in EXAMPLES])
def test_says_what_it_is(example):
    tree = ast.parse(example.read_text("utf-8"))
    title, line, _, *text = ast.get_docstring(tree).splitlines()
    assert line == "=" * len(title)
    assert any(word in " ".join(text) for word in ("The data are", "No data are read"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    seeded = {
        ast.unparse(call.func)
        for call in calls
        if any(keyword.arg == "random_state" for keyword in call.keywords)
    }
    assert seeded <= SEEDED


def test_there_are_enough():
    assert len(EXAMPLES) >= 12
    assert len({example.stem.split("_")[1] for example in EXAMPLES}) == len(EXAMPLES)
