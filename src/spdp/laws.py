"""Laws of squared errors, as frozen SciPy distributions that can be written into a certificate and read back."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from spdp.errors import ParameterError

__all__ = ["chi2_law", "gamma_square_law", "law_of", "mean_of", "quantiles", "weighted_chi2_law"]

Law = Any  # a frozen SciPy distribution
Spec = dict[str, Any]

LEVELS = (50, 90, 95, 99)


def chi2_law(d: int, scale: float) -> Spec:
    """‖N‖² for N ~ N(0, scale·I_d)."""
    return {"family": "chi2", "df": d, "scale": float(scale)}


def gamma_square_law(d: int, scale: float) -> Spec:
    """R² for R ~ Gamma(d, √scale): the squared radius of the ℓ2 Laplace law on R^d; its mean is scale·d(d+1)."""
    return {"family": "gamma-square", "df": d, "scale": float(scale)}


def weighted_chi2_law(weights: NDArray[np.float64]) -> Spec:
    """Σ w_j Z_j² for independent standard normal Z_j, w_j > 0."""
    w = np.asarray(weights, dtype=np.float64)
    if np.ptp(w) <= 1e-12 * w.max():
        return chi2_law(len(w), float(w.max()))
    return {"family": "weighted-chi2", "weights": w.tolist()}


def law_of(spec: Spec) -> Law:
    """The frozen distribution a specification describes."""
    family = spec["family"]
    if family == "chi2":
        return stats.chi2(spec["df"], scale=spec["scale"])
    if family == "gamma-square":
        return stats.gengamma(a=spec["df"], c=0.5, scale=spec["scale"])
    if family == "weighted-chi2":
        weights = np.asarray(spec["weights"], dtype=np.float64)
        top = float(weights.max())
        return _WeightedChi2(weights / top)(scale=top)
    raise ParameterError(f"unknown law {family!r}")


def mean_of(spec: Spec) -> float:
    """Expectation of a law, without building it."""
    if spec["family"] == "weighted-chi2":
        return float(np.sum(spec["weights"]))
    d = spec["df"]
    return float(spec["scale"] * (d if spec["family"] == "chi2" else d * (d + 1)))


def quantiles(spec: Spec) -> dict[str, float]:
    """The quantiles every certificate states."""
    p = np.array(LEVELS) / 100
    if spec["family"] == "chi2":
        values = 2.0 * special.gammaincinv(spec["df"] / 2, p) * spec["scale"]
    elif spec["family"] == "gamma-square":
        values = special.gammaincinv(spec["df"], p) ** 2 * spec["scale"]
    else:
        values = law_of(spec).ppf(p)
    return {f"{level}%": float(value) for level, value in zip(LEVELS, values, strict=True)}


class _WeightedChi2(stats.rv_continuous):  # type: ignore[misc]
    """Σ w_j Z_j² with max w = 1; its distribution function by inversion of the characteristic function (Davies 1980).

    F(x) = 1/2 − Σ_j Im[e^(−i t_j x) φ(t_j)] / (π(j + 1/2)) at t_j = (j + 1/2)·h. The step h puts the aliases of F beyond 30 standard
    deviations, where the tail is below 1e-10.
    """

    def __init__(self, weights: NDArray[np.float64]) -> None:
        super().__init__(a=0.0, name="weighted_chi2")
        self._weights = weights
        self._reach = float(weights.sum() + 30.0 * np.sqrt(2.0 * (weights**2).sum()))
        step = np.pi / (2.0 * self._reach)
        terms = 1 << 8
        while terms < 1 << 13 and self._log_modulus(terms * step) - np.log(terms) > np.log(1e-10):
            terms *= 2
        j = np.arange(terms) + 0.5
        self._t = j * step
        phase = np.zeros(terms)
        log_modulus = np.zeros(terms)
        for w in weights:
            phase += 0.5 * np.arctan(2.0 * w * self._t)
            log_modulus -= 0.25 * np.log1p((2.0 * w * self._t) ** 2)
        self._phase = phase
        self._factor = np.exp(log_modulus) / (np.pi * j)

    def _log_modulus(self, t: float) -> float:
        return float(-0.25 * np.log1p((2.0 * self._weights * t) ** 2).sum())

    def _updated_ctor_param(self) -> dict[str, Any]:
        return {"weights": self._weights}  # what SciPy needs to freeze a copy

    def _below(self, x: float) -> float:
        return float(np.clip(0.5 - (np.sin(self._phase - self._t * x) * self._factor).sum(), 0.0, 1.0))

    def _cdf(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.vectorize(self._below, otypes=[np.float64])(np.minimum(x, self._reach)))

    def _ppf(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        root = np.vectorize(lambda q: optimize.brentq(lambda x: self._below(x) - q, 0.0, self._reach, rtol=1e-9), otypes=[np.float64])
        return np.asarray(root(p))

    def _stats(self) -> tuple[float, float, None, None]:
        w = self._weights
        return float(w.sum()), float(2.0 * (w * w).sum()), None, None

    def _rvs(self, size: Any = None, random_state: Any = None) -> NDArray[np.float64]:
        shape = () if size is None else tuple(np.atleast_1d(size))
        return np.asarray((self._weights * random_state.standard_normal((*shape, len(self._weights))) ** 2).sum(-1))
