"""Every statistic asks for the same integers, to the bit, wherever the records are."""

import numpy as np
import pytest
from replay import run

import spdp.statistics
from spdp import (
    EigenvalueBounds,
    private_anova,
    private_class_means,
    private_difference,
    private_dispersion,
    private_mean,
    private_median,
    private_pca,
    private_regression,
)
from spdp.data import open_records

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")

# of the cluster's own processes and sockets
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*:pytest.PytestUnraisableExceptionWarning"),
]

OPTIONS = {"delta": 1e-6, "domain": EigenvalueBounds(0.01, 100.0)}
STATISTICS = {
    "mean": (private_mean, {"method": "adaptive"}),
    "class-means": (private_class_means, {"classes": [0, 1, 2], "covariance": "full"}),
    "dispersion": (private_dispersion, {}),
    "pca": (private_pca, {"n_components": 2}),
    "median": (private_median, {}),
    "regression": (private_regression, {"ranges": (0.0, 1.0)}),
    "difference": (private_difference, {"classes": [0, 1], "on_invalid": "center"}),
    "anova": (private_anova, {"classes": [0, 1, 2]}),
}
BESIDE = {"class-means": "y", "difference": "y", "anova": "y", "regression": "covariates"}


def test_no_statistic_is_left_out():
    assert set(STATISTICS) == set(spdp.statistics.STATISTICS)


def pieces(X):
    """Records that come in blocks, as from a stream."""
    return iter([X[:100], X[100:101], X[101:]])


def cluster(X):
    return da.from_array(X, chunks=(130, *X.shape[1:]))


def file(X, folder):
    np.save(folder / "X.npy", X)
    return open_records([folder / "X.npy"])


def transcript(name, source, columns, **more):
    statistic, own = STATISTICS[name]
    options = {**OPTIONS, "epsilon": 20.0, **own, **more}
    if name in BESIDE:
        options[BESIDE[name]] = columns["y" if BESIDE[name] == "y" else "x"]
    return run(lambda X: statistic(X, **options), source)


@pytest.mark.parametrize("persons", [False, True], ids=["records", "persons"])
@pytest.mark.parametrize("name", STATISTICS)
def test_integers_are_the_same_everywhere(client, random_spd, tmp_path, name, persons):
    X = random_spd(600, 3, condition=3.0)
    columns = {"y": np.arange(600) % 3, "x": np.linspace(0, 1, 600) ** 2}
    more = {"groups": np.arange(600) // 2} if persons else {}
    here = transcript(name, X, columns, **more)
    for there in (pieces(X), file(X, tmp_path), cluster(X)):
        found = transcript(name, there, columns, **more)
        assert [s.query for s in found.steps] == [s.query for s in here.steps]
        for a, b in zip(here.steps, found.steps, strict=True):
            np.testing.assert_array_equal(a.exact, b.exact)
        assert found.published == here.published


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("persons", [False, True], ids=["records", "persons"])
@pytest.mark.parametrize("place", [np.asarray, cluster], ids=["here", "cluster"])
@pytest.mark.parametrize("name", STATISTICS)
def test_no_records_are_a_dataset_where_their_number_is_private(client, name, place, persons, n):
    """None and one must not be told apart by an exception."""
    X = place(np.tile(np.eye(2), (n, 1, 1)))
    columns = {"y": np.zeros(n, int), "x": np.zeros(n)}
    more = {"adjacency": "add-remove"} | ({"method": "oneshot"} if name == "mean" else {})
    more |= {"groups": np.zeros(n, int)} if persons else {}
    found = transcript(name, X, columns, **more)
    assert found.steps
