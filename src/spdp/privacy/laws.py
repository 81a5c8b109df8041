"""Laws of squared errors.

Specifications for certificates, and the laws they describe.
"""

from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from sys import float_info
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from spdp.errors import ParameterError

__all__ = [
    "chi2_law",
    "chi2_tail",
    "gamma_square_law",
    "law_of",
    "mean_law",
    "mean_of",
    "quantile",
    "quantiles",
    "stretched_laplace_law",
    "weighted_chi2_law",
    "weighted_tails",
]

Array = NDArray[np.float64]
Law = Any  # a frozen SciPy distribution
Spec = dict[str, Any]

LEVELS = (50, 90, 95, 99)
LARGEST_JACOBI = 200.0  # beyond, the weights of SciPy's rule overflow
NODES = 48  # of the quadrature in the stretched Laplace law: its error is below 1e-12


def chi2_law(d: int, scale: float) -> Spec:
    """‖N‖² for N ~ N(0, scale·I_d)."""
    return {"family": "chi2", "df": d, "scale": float(scale)}


def chi2_tail(square: float, freedom: float) -> float:
    """Probability beyond a value: the least normal number, where it would underflow."""
    return max(float(special.chdtrc(freedom, square)), float_info.min)


def gamma_square_law(d: int, scale: float) -> Spec:
    """R² for R ~ Gamma(d, √scale): the squared radius of the ℓ2 Laplace law on R^d.

    Its mean is scale·d(d+1).
    """
    return {"family": "gamma-square", "df": d, "scale": float(scale)}


def weighted_chi2_law(weights: Array) -> Spec:
    """Σ w_j Z_j² for independent standard normal Z_j, w_j > 0."""
    w = np.asarray(weights, dtype=np.float64)
    if np.ptp(w) <= 1e-12 * w.max():
        return chi2_law(len(w), float(w.max()))
    return {"family": "weighted-chi2", "weights": w.tolist()}


def stretched_laplace_law(d: int, scale: float, stretch: float) -> Spec:
    """‖N − N'·a‖² for (N, N') of the ℓ2 Laplace law on R^(d+1), ‖a‖² = stretch.

    In polar coordinates scale·R²·(1 − t + stretch·s), with R ~ Gamma(d + 1) and (s, t)
    two squared coordinates of a uniform direction; its mean is scale·(d + 2)(d +
    stretch).
    """
    return {"family": "stretched-laplace", "df": d, "scale": scale, "stretch": stretch}


def mean_law(laplace: bool, d: int, unit: float, stretch: float) -> Spec:
    """‖N − N'·a‖² of a noisy mean.

    N has variance (or squared scale) ``unit`` a coordinate. N' is the noise of its
    noisy count, ‖a‖² = stretch; stretch = 0 where the count is public.
    """
    if laplace:
        return stretched_laplace_law(d, unit, stretch) if stretch else gamma_square_law(d, unit)
    if not stretch:
        return chi2_law(d, unit)
    return weighted_chi2_law(unit * np.append(1.0 + stretch, np.ones(d - 1)))


class _Family(NamedTuple):
    mean: Callable[[Spec], float]
    quantile: Callable[[Spec, Array], Any]
    law: Callable[[Spec], Law]


def _family(spec: Spec) -> _Family:
    name = spec.get("family")
    if name not in FAMILIES:
        raise ParameterError(f"unknown law {name!r}")
    return FAMILIES[name]


def law_of(spec: Spec) -> Law:
    """The frozen distribution a specification describes."""
    return _family(spec).law(spec)


def mean_of(spec: Spec) -> float:
    """Expectation of a law, without building it."""
    return float(_family(spec).mean(spec))


def quantile(spec: Spec, levels: Array) -> Array:
    """Quantiles of a law, without building it where there is a formula."""
    return np.asarray(_family(spec).quantile(spec, levels))


def quantiles(spec: Spec) -> dict[str, float]:
    """The quantiles every certificate states."""
    if "scale" not in spec:
        return _quantiles(spec)
    unit = _unit_quantiles(tuple({**spec, "scale": 1.0}.items()))
    return {level: value * spec["scale"] for level, value in unit.items()}


@lru_cache(maxsize=256)
def _unit_quantiles(spec: tuple[tuple[str, Any], ...]) -> dict[str, float]:
    return _quantiles(dict(spec))


def _quantiles(spec: Spec) -> dict[str, float]:
    values = quantile(spec, np.array(LEVELS) / 100)
    return {f"{level}%": float(value) for level, value in zip(LEVELS, values, strict=True)}


class _Inverted(stats.rv_continuous):  # type: ignore[misc]
    """A law on [0, reach] given by its distribution function, inverted by bisection."""

    reach: float

    @abstractmethod
    def _below(self, x: Array) -> Array:
        """The distribution function at points (m,)."""

    def _cdf(self, x: Array) -> Array:
        return self._below(np.minimum(x, self.reach).ravel()).reshape(np.shape(x))

    def _ppf(self, p: Array) -> Array:
        def root(q: float) -> float:
            def missing(x: float) -> float:
                return float(self._below(np.array([x]))[0] - q)

            return float(optimize.brentq(missing, 0.0, self.reach, rtol=1e-9))

        return np.asarray(np.vectorize(root, otypes=[np.float64])(p))


class _Waves:
    """Σ w_j Z_j² with max w = 1, by inversion of the characteristic function.

    F(x) = 1/2 − Σ_j Im[e^(−i t_j x) φ(t_j)] / (π(j + 1/2)) at t_j = (j + 1/2)·h (Davies
    1980). The step h puts the aliases of F beyond 30 standard deviations, where the
    tail is below 1e-10.
    """

    def __init__(self, weights: Array, accuracy: float) -> None:
        self._weights = weights
        self.reach = float(weights.sum() + 30.0 * np.sqrt(2.0 * (weights**2).sum()))
        step = np.pi / (2.0 * self.reach)
        terms = 1 << 8
        least = np.log(accuracy)
        while terms < 1 << 13 and self._log_modulus(terms * step) - np.log(terms) > least:
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

    def below(self, x: Array) -> Array:
        """F at points (m,)."""
        waves = np.sin(self._phase - self._t * x[:, None]) @ self._factor
        return np.asarray(np.clip(0.5 - waves, 0.0, 1.0))

    def below_evenly(self, x: Array) -> Array:
        """F at evenly spaced points: waves turn by the same angle each time."""
        wave = np.exp(1j * (self._phase - self._t * x[0]))
        turn = np.exp(-1j * (self._t * (x[1] - x[0])))
        waves = np.empty(len(x))
        for i in range(len(x)):
            waves[i] = wave.imag @ self._factor
            wave *= turn
        return np.asarray(np.clip(0.5 - waves, 0.0, 1.0))


class _WeightedChi2(_Inverted):
    """The law of Σ w_j Z_j² with max w = 1."""

    def __init__(self, weights: Array, accuracy: float = 1e-10) -> None:
        super().__init__(a=0.0, name="weighted_chi2")
        self._weights, self._accuracy = weights, accuracy
        self._waves = _Waves(weights, accuracy)
        self.reach = self._waves.reach

    def _below(self, x: Array) -> Array:
        return self._waves.below(x)

    def _updated_ctor_param(self) -> dict[str, Any]:
        # what SciPy needs to freeze a copy
        return {"weights": self._weights, "accuracy": self._accuracy}

    def _stats(self) -> tuple[float, float, None, None]:
        w = self._weights
        return float(w.sum()), float(2.0 * (w * w).sum()), None, None

    def _rvs(self, size: Any = None, random_state: Any = None) -> Array:
        shape = () if size is None else tuple(np.atleast_1d(size))
        normal = random_state.standard_normal((*shape, len(self._weights)))
        return np.asarray((self._weights * normal**2).sum(-1))


class _StretchedLaplace(_Inverted):
    """R²·(1 − t + stretch·s): Gauss–Jacobi quadrature over the direction, exact in R.

    (s, t, rest) ~ Dirichlet(1/2, 1/2, (d − 1)/2): s ~ Beta(1/2, d/2), and t is a share
    of 1 − s that is Beta(1/2, (d − 1)/2), or all of it when d = 1.
    """

    def __init__(self, d: int, stretch: float) -> None:
        super().__init__(a=0.0, name="stretched_laplace")
        self._d, self._stretch = d, stretch
        s, mass = _beta_rule(0.5, 0.5 * d)
        share, part = (np.ones(1), np.ones(1)) if d == 1 else _beta_rule(0.5, 0.5 * (d - 1))
        t = share[None, :] * (1.0 - s)[:, None]
        self._factor = (1.0 - t + stretch * s[:, None]).ravel()
        self._mass = (mass[:, None] * part[None, :]).ravel()
        top = float(self._factor.max())
        self.reach = top * float(special.gammaincinv(d + 1, 1.0 - 1e-15)) ** 2

    def _updated_ctor_param(self) -> dict[str, Any]:
        return {"d": self._d, "stretch": self._stretch}

    def _below(self, x: Array) -> Array:
        radius = np.sqrt(x[:, None] / np.maximum(self._factor, 1e-300))
        return np.asarray(special.gammainc(self._d + 1, radius) @ self._mass)

    def _stats(self) -> tuple[float, None, None, None]:
        return float((self._d + 2) * (self._d + self._stretch)), None, None, None

    def _rvs(self, size: Any = None, random_state: Any = None) -> Array:
        shape = () if size is None else tuple(np.atleast_1d(size))
        u = random_state.standard_normal((*shape, self._d + 1)) ** 2
        u /= u.sum(-1, keepdims=True)
        radius = random_state.gamma(self._d + 1, size=shape)
        return np.asarray(radius**2 * (1.0 - u[..., 1] + self._stretch * u[..., 0]))


@lru_cache(maxsize=64)
def _beta_rule(a: float, b: float) -> tuple[Array, Array]:
    """Nodes and masses of a Gauss rule for Beta(a, b)."""
    if b > LARGEST_JACOBI:  # Beta(a, b) is near Gamma(a)/b, as b grows
        x, w = special.roots_genlaguerre(NODES, a - 1.0)
        return x / (b + a - 1.0 + x), w / w.sum()
    x, w = special.roots_jacobi(NODES, b - 1.0, a - 1.0)
    return 0.5 * (1.0 + x), w / w.sum()


def weighted_tails(weights: Array, squares: Array, accuracy: float) -> Array:
    """P(Σ w_j Z_j² > x) at evenly spaced x, rounded up by twice the accuracy."""
    top = float(weights.max())
    below = _Waves(weights / top, accuracy).below_evenly(squares / top)
    return np.asarray(1.0 - below + 2.0 * accuracy)


def _weighted(spec: Spec) -> Law:
    weights = np.asarray(spec["weights"], dtype=np.float64)
    top = float(weights.max())
    return _WeightedChi2(weights / top)(scale=top)


def _stretched(spec: Spec) -> Law:
    return _StretchedLaplace(spec["df"], spec["stretch"])(scale=spec["scale"])


FAMILIES = {
    "chi2": _Family(
        lambda s: s["scale"] * s["df"],
        lambda s, p: 2.0 * special.gammaincinv(s["df"] / 2, p) * s["scale"],
        lambda s: stats.chi2(s["df"], scale=s["scale"]),
    ),
    "gamma-square": _Family(
        lambda s: s["scale"] * s["df"] * (s["df"] + 1),
        lambda s, p: special.gammaincinv(s["df"], p) ** 2 * s["scale"],
        lambda s: stats.gengamma(a=s["df"], c=0.5, scale=s["scale"]),
    ),
    "weighted-chi2": _Family(
        lambda s: float(np.sum(s["weights"])),
        lambda s, p: _weighted(s).ppf(p),
        _weighted,
    ),
    "stretched-laplace": _Family(
        lambda s: s["scale"] * (s["df"] + 2) * (s["df"] + s["stretch"]),
        lambda s, p: _stretched(s).ppf(p),
        _stretched,
    ),
}
