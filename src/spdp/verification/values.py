"""What is released: matrices of the stated domain, and numbers that agree."""

from collections.abc import Iterator, Mapping
from math import inf, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.privacy.laws import chi2_tail
from spdp.verification.base import CLOSE, Check, Fields, chart_in, region_in, same
from spdp.verification.stated import EUCLID

__all__ = ["Values", "agree", "at_edge", "matrices", "released_vectors", "tolerance"]

Array = NDArray[np.float64]
Values = Mapping[str, NDArray[Any]]

OF = {"difference": "means", "class-means": "means"}  # where the value is no matrix, or many
MOVED = ("mean", "dispersion", "pca", "class-means")  # whose bounds count such moves
HARDLY = 1e10  # ratio of eigenvalues from which matrices may have been moved
EPS = float(np.finfo(np.float64).eps)
ROUNDING = 1e-7  # of a vector, over its domain's radius: matrices hold it only so well
NEAR = 1.01  # times as far from the centre: beyond the domain, for a point of its edge


def main_name(c: Fields) -> str:
    return str(OF.get(c["statistic"], next(iter(c["arrays"]))))


def released_vectors(c: Fields, values: Values) -> Array:
    """Vectors (m, d) of the matrices released; one that is no such matrix raises."""
    M = values[main_name(c)]
    return np.atleast_2d(chart_in(c).vector(M))


def tolerance(c: Fields, M: NDArray[Any]) -> float:
    """What rounding of matrices may move their vectors by.

    One that float64 numbers hardly hold was moved: by what its bound says, if it does.
    """
    ratio = _seen_ratio(c, M)
    rounding = ROUNDING * region_in(c).radius + 16.0 * EPS * c["k"] * _coarseness(c, M, ratio)
    if ratio <= HARDLY:
        return float(rounding)
    parts = c["error_bound_parts"] if c["statistic"] in MOVED else None
    return inf if parts is None else float(parts["shift"] + rounding)


def _coarseness(c: Fields, M: NDArray[Any], ratio: float) -> float:
    """Size of the numbers whose rounding moves a vector, eigenvalues included."""
    Y = released_vectors(c, {main_name(c): M})
    size = float(np.linalg.norm(Y, axis=1).max(initial=0.0))
    if c["metric"] == "logchol":  # entries of a factor are as coarse as they are large
        return ratio * max(1.0, size)
    return ratio + size + abs(log(float(np.abs(M).max())))  # seen from the identity, too


def _seen_ratio(c: Fields, M: NDArray[Any]) -> float:
    """That of the eigenvalues; seen from a public point, of that point, too."""
    point = c["reference_point"]
    return _ratio(M) * (1.0 if point is None else _ratio(np.asarray(point, float)))


def _ratio(M: NDArray[Any]) -> float:
    """The largest over the smallest eigenvalue."""
    values = np.linalg.eigvalsh(M)
    return float((1.0 / np.maximum(values[..., 0] / values[..., -1], 1e-300)).max())


def matrices(c: Fields, values: Values) -> Iterator[Check]:
    """Matrices are of their metric's space, symmetric, and lie in the stated domain."""
    M = values[main_name(c)]
    ok = bool(np.isfinite(M).all()) and bool((np.conj(np.swapaxes(M, -1, -2)) == M).all())
    yield Check("matrices", ok, "finite, and symmetric")
    if c["metric"] == EUCLID[0]:
        return
    Y = released_vectors(c, values)
    if c["domain"] is None:
        return
    chart, region = chart_in(c), region_in(c)
    inside = np.array([chart.project(y, region) for y in Y])
    off = float(np.abs(inside - Y).max())
    limit = tolerance(c, M)
    held = float(np.abs(chart.representable(inside) - inside).max())
    yield Check("in the domain", off <= limit + held, f"off by {off:.3g}, allowed {limit:.3g}")


def at_edge(c: Fields, y: Array) -> bool:
    """Whether a point lies at its domain's edge, where projection may have put it."""
    region = region_in(c)
    beyond = region.center + NEAR * (y - region.center)
    gap = np.linalg.norm(chart_in(c).project(beyond, region) - beyond)
    return bool(gap > 1e-3 * np.linalg.norm(beyond - y))


def agree(c: Fields, values: Values) -> Iterator[Check]:
    """Other numbers are possible, and follow from each other."""
    ok = all(np.isfinite(array).all() for array in values.values())
    yield Check("numbers", ok, "finite")
    yield from {
        "dispersion": _spread,
        "pca": _components,
        "class-means": _counts,
        "difference": _difference,
        "regression": _regression,
    }.get(c["statistic"], _nothing)(c, values)


def _nothing(_: Fields, __: Values) -> Iterator[Check]:
    yield from ()


def _spread(c: Fields, v: Values) -> Iterator[Check]:
    variance, deviations, distances = (v[n] for n in ("variance", "deviations", "distances"))
    yield Check("variance", bool(variance >= 0), "not negative")
    square = float(deviations @ deviations)
    yield same("deviations", float(variance), square, "their squares add up to the variance")
    ok = bool((deviations >= 0).all() and (np.diff(np.append(0.0, distances)) >= 0).all())
    yield Check("distances", ok, "rising; no deviation is negative")


def _components(c: Fields, v: Values) -> Iterator[Check]:
    P, C, variances = v["components"], v["covariance"], v["explained_variance"]
    off = float(np.abs(P @ P.T - np.eye(len(P))).max())
    yield Check("components", off <= 1e-9, f"orthonormal: off by {off:.3g}")
    yield _positive(C)
    along = np.einsum("ij,jk,ik->i", P, C, P)
    ok = np.allclose(along, variances, rtol=1e-7, atol=CLOSE * float(np.trace(C)))
    yield Check("explained variance", bool(ok), "the covariance along the components")
    falling = bool((np.diff(variances) <= CLOSE * float(np.trace(C))).all())
    yield Check("explained variance", falling, "falling")


def _positive(C: Array) -> Check:
    """A covariance, or its diagonal, without negative eigenvalues."""
    least = float(C.min()) if C.ndim == 1 else float(np.linalg.eigvalsh(C)[0])
    size = float(np.abs(C).max())
    ok = least >= -1e-9 * size and (C.ndim == 1 or bool(np.abs(C - C.T).max() <= 1e-9 * size))
    return Check("covariance", ok, f"symmetric, its least eigenvalue {least:.3g}")


def _counts(c: Fields, v: Values) -> Iterator[Check]:
    same_counts = c["steps"][-1]["counts"] == v["counts"].tolist()
    yield Check("counts", same_counts, "of the classes, as in the last step")
    if "covariance" in v:
        yield _positive(v["covariance"])


def _difference(c: Fields, v: Values) -> Iterator[Check]:
    """The difference is that of its means, and the test is of that difference."""
    test, D = c["steps"][-1]["test"], v["difference"]
    yield same("test", test["statistic"], float(D @ D), "the squared length")
    p = chi2_tail(test["statistic"] / test["scale"], test["freedom"])
    yield same("p-value", test["p_value"], p, "of the test's own numbers")
    yield same("p-value", float(v["p_value"]), p, "as in the last step")
    limit = 4.0 * tolerance(c, v["means"])
    for u, w, sign in zip(*_pairs(released_vectors(c, v)), (1.0, -1.0), strict=True):
        if not at_edge(c, u):  # it was not moved, so that the other follows from it
            other = chart_in(c).project(u - sign * D, region_in(c))
            off = float(np.abs(other - w).max())
            yield Check("difference", off <= limit, f"of the means: off by {off:.3g}")


def _pairs(Y: Array) -> tuple[Array, Array]:
    return Y, Y[::-1]


def _regression(c: Fields, v: Values) -> Iterator[Check]:
    """Noise of predictions and mean of covariates follow from Gram matrix, ranges."""
    last, seen = c["steps"][-1], c["steps"][[s["step"] for s in c["steps"]].index("deviations")]
    at, S, limits = (np.asarray(last[name], float) for name in ("at", "gram", "ranges"))
    low, high = (np.asarray(seen[name], float) for name in ("low", "high"))
    half, p = 0.5 * (limits[:, 1] - limits[:, 0]), len(at)
    place = limits.mean(axis=1) + half * (0.5 * (low + high) + 0.5 * (high - low) * at)
    T, solve = np.eye(1 + p), np.eye(1 + p)
    T[1:, 0], solve[1:, 1:] = -at, np.linalg.inv(S)
    unscale = np.diag(np.append(1.0, 1.0 / (0.5 * (high - low) * half)))
    A = unscale @ solve @ T
    noise = c["sigma"] ** 2 * (A @ A.T)
    yield Check("at", bool(np.allclose(v["at"], place, rtol=1e-7, atol=1e-12)), "by the ranges")
    ok = np.abs(v["noise"] - noise).max() <= 1e-7 * np.abs(noise).max()
    yield Check("noise of predictions", bool(ok), "from σ, Gram matrix and ranges")
    size = float(np.abs(v["noise"] - noise)[0, 0])
    yield Check("noise of the fit", size <= 1e-7 * noise[0, 0], "from σ")
    yield Check("ranges", bool((half > 0).all() and (np.abs(at) <= 1).all()), "low < high")
