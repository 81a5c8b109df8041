r"""Synthetic records of a release: post-processing, which costs no privacy budget.

X = φ⁻¹(φ(M) + L·g) with a released mean M, a released covariance LLᵀ of the vectors in
the metric's chart φ, and g standard normal: a log Gaussian law (Schwartzman 2016),
projected to the public domain. Whatever is computed from such records is a function of
(M, LLᵀ): they represent means, variances and correlations of the records' coordinates
and nothing else (no further moments, clusters, outliers or persons), and are no more
accurate than these. If only deviations of coordinates were released, they are drawn
without correlations. Records of classes are drawn about the means of their classes, all
with the released covariance within classes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.errors import ParameterError
from spdp.kernels.arrays import Array
from spdp.release.certificate import Certificate
from spdp.release.declaration import Values

Seed = int | np.random.Generator | None


def draw(
    values: Values, certificate: dict[str, Any], size: int, random_state: Seed, classes: Any = None
) -> Any:
    """``size`` synthetic matrices (size, k, k) from released values.

    For class means also their classes, (size,): those of ``classes``, one for all or
    one each, or else drawn in proportion to the released counts.
    """
    if size < 1:
        raise ParameterError(f"size must be at least 1, got {size!r}")
    f, rng = (Certificate.read(certificate), np.random.default_rng(random_state))
    sampled = f.declaration.sampled(f, values)
    centers, names = f.chart.vector(sampled.means), sampled.classes
    place = None
    if names is None and classes is not None:
        raise ParameterError("classes are for releases of class means")
    if names is not None:
        assert sampled.counts is not None
        place = _places(names, sampled.counts, size, classes, rng)
        centers = centers[place]
    Y = centers + rng.standard_normal((size, len(sampled.root))) @ sampled.root.T
    if f.domain is not None:
        Y = f.chart.project(Y, f.space.region)
    X = f.chart.matrices(f.chart.representable(Y))
    return X if place is None else (X, np.array(names)[place])


def _places(
    names: list[Any], counts: Array, size: int, classes: Any, rng: np.random.Generator
) -> NDArray[np.intp]:
    """The class of each record, by its place in the public list."""
    if classes is None:
        return rng.choice(len(names), size, p=counts / counts.sum())
    wanted = [classes] * size if np.ndim(classes) == 0 else list(classes)
    if len(wanted) != size:
        raise ParameterError(f"classes names {len(wanted)} classes for {size} records")
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ParameterError(f"classes names {unknown[0]!r}, which is none of {names}")
    return np.array([names.index(name) for name in wanted], np.intp)


def covariance_root(C: Array) -> Array:
    """L with LLᵀ a covariance (d, d), or its diagonal (d,)."""
    if C.ndim == 1:
        return np.diag(np.sqrt(np.maximum(C, 0.0)))
    variances, V = np.linalg.eigh(C)
    return np.asarray(V * np.sqrt(np.maximum(variances, 0.0)))
