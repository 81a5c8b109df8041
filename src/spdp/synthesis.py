r"""Made-up records of what was released: post-processing, which costs nothing.

X = φ⁻¹(φ(M) + L·g) with a released mean M, a released covariance LLᵀ of the vectors in
the metric's chart φ, and g standard normal: a log Gaussian law (Schwartzman 2016),
brought into the public domain. Whatever is computed from such records is a function of
(M, LLᵀ): they stand for means, variances and correlations of the records' coordinates
and for nothing else (no further moments, clusters, outliers or persons), and are no
more accurate than these. Where only deviations of coordinates were released, they are
drawn without correlations.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.charts import chart_of
from spdp.domain import domain_of
from spdp.errors import ParameterError

__all__ = ["draw"]

Array = NDArray[np.float64]
Seed = int | np.random.Generator | None


def draw(values: Mapping[str, Array], c: dict[str, Any], size: int, random_state: Seed) -> Array:
    """``size`` matrices (size, k, k) of the released values of a certificate."""
    if size < 1:
        raise ParameterError(f"size must be at least 1, got {size!r}")
    root = _root(values)
    chart = chart_of(c["metric"], c["reference_point"], c["parts"])
    g = np.random.default_rng(random_state).standard_normal((size, len(root)))
    Y = chart.vector(values["mean"]) + g @ root.T
    if c["domain"] is not None:
        Y = chart.project(Y, domain_of(c["domain"]).region(c["k"], chart))
    return chart.matrices(chart.representable(Y))


def _root(values: Mapping[str, Array]) -> Array:
    """L with LLᵀ the released covariance."""
    if "mean" in values and "covariance" in values:
        variances, V = np.linalg.eigh(values["covariance"])
        return np.asarray(V * np.sqrt(np.maximum(variances, 0.0)))
    if "mean" in values and "deviations" in values:
        return np.diag(values["deviations"])
    raise AttributeError(
        "sampling needs a released covariance: private_pca and private_dispersion release one "
        "with the mean"
    )
