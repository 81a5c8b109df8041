"""Records of several matrices: every chart's product takes no rows, one, and many."""

import numpy as np
import pytest

from spdp import EigenvalueBounds, private_mean, private_median
from spdp.charts import CHARTS, chart_of
from spdp.kernels import kernels_for

DOMAIN = EigenvalueBounds(0.05, 20.0)


@pytest.mark.parametrize("metric", [name for name in CHARTS if CHARTS[name].flat])
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_the_edge_of_any_number_of_records(metric, rows):
    chart = chart_of(metric, None, 2)
    region = DOMAIN.region(2, chart)
    far = region.radius * np.eye(len(region.center))[0]
    Y = np.tile(region.center, (rows, 1)) + far * np.arange(rows)[:, None]
    found = chart.at_edge(Y, region, kernels_for(Y))
    np.testing.assert_array_equal(found, np.arange(rows) > 0)


@pytest.mark.parametrize("metric", [name for name in CHARTS if CHARTS[name].flat])
def test_a_stack_is_projected_as_its_vectors_are(metric):
    chart = chart_of(metric, None, 3)
    region = DOMAIN.region(2, chart)
    V = region.center + 9.0 * np.random.default_rng(0).standard_normal((5, len(region.center)))
    each = np.array([chart.project(v, region) for v in V])
    assert np.abs(each - V).max() > 1.0
    np.testing.assert_allclose(chart.project(V, region), each, atol=1e-12)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_persons_of_several_matrices(adjacency):
    """A table of persons is looked at as having no rows at first: nothing crashes."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 2, 2, 6))
    X, ids = A @ A.swapaxes(-1, -2) / 6 + 0.2 * np.eye(2), np.arange(300) // 3
    options = {"epsilon": 8.0, "delta": 1e-6, "domain": DOMAIN, "groups": ids}
    assert private_median(X, adjacency=adjacency, **options).value.shape == (2, 2, 2)
    if adjacency == "replace-one":
        assert private_mean(X, method="adaptive", **options).value.shape == (2, 2, 2)
