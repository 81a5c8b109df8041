"""What of a release is drawn, and how."""

import matplotlib as mpl
import numpy as np
import pytest

from spdp import (
    Ball,
    Release,
    private_class_means,
    private_difference,
    private_mean,
    private_pca,
    private_regression,
)
from spdp.errors import DataError, ParameterError
from spdp.release.declaration import Declaration
from spdp.release.report import panels
from spdp.release.summary import Summary
from spdp.rendering.panels import paint

BUDGET = {"epsilon": 2.0, "delta": 1e-5, "domain": Ball(3.0)}
Y = np.arange(3000) % 2


@pytest.fixture(autouse=True)
def closed():
    """No window is opened, and no figure is left."""
    from matplotlib import pyplot

    mpl.use("Agg")
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def X(random_spd):
    X = random_spd(3000, 3)
    X[Y == 1] *= 2.0
    return X


@pytest.fixture(scope="module")
def classes(X):
    return private_class_means(X, Y, classes=[0, 1], **BUDGET)


def drawn(release):
    return panels(release)


def meshes(axes):
    return [mesh for at in np.atleast_1d(axes) for mesh in at.collections if mesh.get_clim()[0]]


def test_a_small_matrix_is_drawn_with_its_shape(X, random_spd):
    """A map, and an ellipsoid with its axes; one map where the matrix is larger."""
    matrix, solid = private_mean(X, **BUDGET).plot()
    assert matrix.get_title() == "Mean"
    assert (solid.name, len(solid.lines)) == ("3d", 3)
    assert solid.get_title().startswith("Mean: ellipsoid\neigenvalues ")
    flat = private_mean(random_spd(500, 2), **BUDGET).plot()
    assert [at.name for at in flat] == ["rectilinear"] * 2
    one = private_mean(random_spd(500, 5), **BUDGET).plot()
    assert one.get_title() == "Mean"  # axes, and not an array of them


def test_an_ellipsoid_has_the_length_of_its_roots(X):
    release = private_mean(X, **BUDGET)
    _, solid = release.plot()
    ends = [np.asarray(line.get_data_3d()) for line in solid.lines]
    lengths = sorted(np.linalg.norm(end[:, 1] - end[:, 0]) / 2 for end in ends)
    assert lengths == pytest.approx(np.sqrt(np.linalg.eigvalsh(release.value)))


def test_classes_share_a_scale_and_are_named(classes):
    axes = classes.plot(names=["x", "y", "z"])
    titles = [at.get_title() for at in axes[:2]]
    assert titles[0].startswith("Mean of class 0 (about 1,")
    top = np.abs(classes.values["means"]).max()
    assert [mesh.get_clim() for mesh in meshes(axes[:2])] == [(-top, top)] * 2
    for at in axes[:2]:
        assert [text.get_text() for text in at.get_yticklabels()] == ["x", "y", "z"]


def test_a_difference_is_drawn_with_both_means(X):
    release = private_difference(X, Y, classes=(1, 0), **BUDGET)
    *means, change = [p for p in drawn(release) if p.kind == "matrix"]
    assert [panel.title for panel in means] == ["Mean of class 1", "Mean of class 0"]
    assert change.title.startswith("Mean of class 1 less that of class 0")
    np.testing.assert_array_equal(change.data, means[0].data - means[1].data)
    assert change.scale != means[0].scale


def test_directions_are_drawn_as_changes_of_the_mean(X):
    """Records differ by a factor of 2, so along the first direction all grow."""
    release = private_pca(X, n_components=2, **BUDGET)
    mean, *directions = [p for p in drawn(release) if p.kind == "matrix"]
    assert [p.title[:11] for p in directions] == ["Direction 1", "Direction 2"]
    sd = np.sqrt(release.values["explained_variance"][0])
    scale = np.diagonal(directions[0].data) / np.diagonal(mean.data)
    sign = np.sign(scale[0])
    assert sign * scale == pytest.approx(np.full(3, np.sinh(sd / np.sqrt(3))), rel=0.5)
    assert [p.kind for p in drawn(release)][-1] == "solid"


def test_a_trend_is_drawn_for_each_covariate(X):
    covariates = np.stack([Y, np.linspace(0.0, 1.0, len(Y))], 1)
    release = private_regression(X, covariates, ranges=[(0, 1), (0, 1)], **BUDGET)
    fitted, *trends = [p for p in drawn(release) if p.kind == "matrix"]
    assert fitted.title.startswith("Fitted where the covariates are ")
    assert [p.title[-1] for p in trends] == ["0", "1"]
    first, second = (np.trace(p.data) for p in trends)
    assert first > 3 * abs(second)


def test_complex_matrices_are_drawn_in_two_parts(random_spd):
    release = private_mean(random_spd(200, 4), **BUDGET)
    parts = drawn(Release(release.value + 1j, release.certificate))
    assert [p.title for p in parts] == ["Mean: real part", "Mean: imaginary part"]
    np.testing.assert_array_equal(parts[1].data, np.ones((4, 4)))


def test_a_statistic_nobody_drew_yet_is_drawn_by_its_shapes(classes):
    facts, novel = Summary(classes.certificate).c, Declaration()
    found = [(p.kind, p.title) for p in novel.panels(facts, classes.values)]
    assert [panel for panel in found if panel[0] != "solid"] == [
        ("matrix", "means 0"),
        ("matrix", "means 1"),
        ("bars", "counts"),
    ]
    with pytest.raises(DataError, match="nothing that can be drawn"):
        paint(novel.panels(facts, {"p": np.array(0.5)}))


def test_a_certificate_may_speak_of_what_is_not_there(classes):
    short = {"means": classes.values["means"]}
    assert drawn(Release(short, classes.certificate))[0].title == "means 0"


def test_axes_may_be_given(classes):
    from matplotlib.figure import Figure

    figure = Figure()
    one = figure.subplots()
    assert classes.plot(one) is one
    with pytest.raises(ParameterError, match="4 axes are needed"):
        classes.plot(Figure().subplots(1, 2))
    with pytest.raises(ParameterError, match="names: 2 names, .* have 3 rows"):
        classes.plot(names=["a", "b"])
