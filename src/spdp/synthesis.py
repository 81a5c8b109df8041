r"""Made-up records of what was released: post-processing, which costs nothing.

X = φ⁻¹(φ(M) + L·g) with a released mean M, a released covariance LLᵀ of the vectors in
the metric's chart φ, and g standard normal: a log Gaussian law (Schwartzman 2016),
brought into the public domain. Whatever is computed from such records is a function of
(M, LLᵀ): they stand for means, variances and correlations of the records' coordinates
and for nothing else (no further moments, clusters, outliers or persons), and are no
more accurate than these. Where only deviations of coordinates were released, they are
drawn without correlations. Records of classes lie about the means of their classes, all
with the covariance within them.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.charts import chart_of
from spdp.domain import domain_of
from spdp.errors import ParameterError

__all__ = ["draw"]

RELEASES = ("pca", "class-means")  # that may hold a covariance
NEEDED = {
    "mean": "sampling needs a released covariance: private_pca and private_dispersion release one "
    "with the mean",
    "class-means": "sampling needs a released covariance: pass covariance='diagonal' or 'full' to "
    "private_class_means",
    "regression": "a regression cannot be sampled: the spread of records about its trend was not "
    "released. spdp.statistics.regression.predict gives the trend at any covariates",
}

Array = NDArray[np.float64]
Seed = int | np.random.Generator | None


def draw(
    values: Mapping[str, Array],
    c: dict[str, Any],
    size: int,
    random_state: Seed,
    classes: Any = None,
) -> Any:
    """``size`` matrices (size, k, k) of the released values of a certificate.

    For means of classes also their classes, (size,): as given, one for all or one each,
    or in proportion to the released counts.
    """
    if size < 1:
        raise ParameterError(f"size must be at least 1, got {size!r}")
    rng, root = np.random.default_rng(random_state), _root(values, c["statistic"])
    chart = chart_of(c["metric"], c["reference_point"], c["parts"])
    if c["statistic"] != "class-means":
        if classes is not None:
            raise ParameterError("classes are for releases of class means")
        return _around(chart.vector(values["mean"]), root, size, c, rng)
    names = c["steps"][-1]["classes"]
    place = _places(names, values["counts"], size, classes, rng)
    centers = chart.vector(values["means"])[place]
    return _around(centers, root, size, c, rng), np.array(names)[place]


def _around(centers: Array, root: Array, size: int, c: dict[str, Any], rng: Any) -> Array:
    """Matrices of Gaussian vectors about some centres, brought into the domain."""
    chart = chart_of(c["metric"], c["reference_point"], c["parts"])
    Y = centers + rng.standard_normal((size, len(root))) @ root.T
    if c["domain"] is not None:
        Y = chart.project(Y, domain_of(c["domain"]).region(c["k"], chart))
    return chart.matrices(chart.representable(Y))


def _places(
    names: list[Any], counts: Array, size: int, classes: Any, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Which class each record is of, by its place in the public list."""
    if classes is None:
        return rng.choice(len(names), size, p=counts / counts.sum())
    wanted = [classes] * size if np.ndim(classes) == 0 else list(classes)
    if len(wanted) != size:
        raise ParameterError(f"classes names {len(wanted)} classes for {size} records")
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ParameterError(f"classes names {unknown[0]!r}, which is none of {names}")
    return np.array([names.index(name) for name in wanted], np.intp)


def _root(values: Mapping[str, Array], statistic: str) -> Array:
    """L with LLᵀ the released covariance."""
    if statistic in RELEASES and "covariance" in values:
        if values["covariance"].ndim == 1:
            return np.diag(np.sqrt(np.maximum(values["covariance"], 0.0)))
        variances, V = np.linalg.eigh(values["covariance"])
        return np.asarray(V * np.sqrt(np.maximum(variances, 0.0)))
    if statistic == "dispersion":
        return np.diag(values["deviations"])
    raise AttributeError(NEEDED.get(statistic, NEEDED["mean"]))
