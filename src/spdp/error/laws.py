"""Laws of squared errors: typed, as certificates state them, and their quantiles."""

from abc import abstractmethod
from functools import cached_property, lru_cache
from sys import float_info
from typing import Annotated, Any

import msgspec
import numpy as np
from scipy import special

from spdp.errors import DataError
from spdp.kernels.arrays import Array

Frozen = Any  # a frozen SciPy distribution; scipy.stats takes longer to import than a release
Dimension = Annotated[int, msgspec.Meta(ge=1)]
Scale = Annotated[float, msgspec.Meta(ge=0)]

LEVELS = (50, 90, 95, 99)  # of the quantiles that certificates state, in percent
STATED = {"95%": 0.95, "99%": 0.99}  # levels of the bounds that they state
LARGEST_JACOBI = 200.0  # beyond, the weights of SciPy's rule overflow
NODES = 48  # of the quadrature in the stretched Laplace law: its error is below 1e-12

# Of the integral for weighted sums: what its value is off by at most; where its line
# crosses the real axis, in standard deviations' inverses, and at most; the strip's half
# width over that; the digits kept (natural logarithm), and how far it may grow in the
# strip (likewise); places at which to look for its end, in steps; weights at a time.
ACCURACY = 1e-9
CROSSING, RIGHTMOST, STRIP = 2.5, 0.2, 0.85
DIGITS, GROWTH = 24.0, 10.0
LOOKS = np.split(2.0 * 1.25 ** np.arange(48), 4)
PART = 256


class Law(msgspec.Struct, frozen=True, tag_field="family", forbid_unknown_fields=True):
    """The law of a squared error, as plain numbers; ``family`` names it in JSON."""

    def mean(self) -> float:
        """Its expectation, without a SciPy distribution."""
        raise NotImplementedError

    def quantile(self, levels: Array) -> Array:
        """Its quantiles, by a formula where there is one."""
        raise NotImplementedError

    def distribution(self) -> Frozen:
        """The frozen SciPy distribution."""
        raise NotImplementedError


class Chi2(Law, frozen=True, tag="chi2"):
    """‖N‖² for N ~ N(0, scale·I_d), d = ``df``."""

    df: Dimension
    scale: Scale

    def mean(self) -> float:
        return self.scale * self.df

    def quantile(self, levels: Array) -> Array:
        return np.asarray(2.0 * special.gammaincinv(self.df / 2, levels) * self.scale)

    def distribution(self) -> Frozen:
        from scipy import stats

        return stats.chi2(self.df, scale=self.scale)


class GammaSquare(Law, frozen=True, tag="gamma-square"):
    """R² for R ~ Gamma(d, √scale): the squared radius of the ℓ2 Laplace law on R^d."""

    df: Dimension
    scale: Scale

    def mean(self) -> float:
        return self.scale * self.df * (self.df + 1)

    def quantile(self, levels: Array) -> Array:
        return np.asarray(special.gammaincinv(self.df, levels) ** 2 * self.scale)

    def distribution(self) -> Frozen:
        from scipy import stats

        return stats.gengamma(a=self.df, c=0.5, scale=self.scale)


class WeightedChi2(Law, frozen=True, tag="weighted-chi2"):
    """Σ w_j Z_j² for independent standard normal Z_j, w_j ≥ 0."""

    weights: tuple[Scale, ...]

    def mean(self) -> float:
        return float(np.sum(self.weights))

    def quantile(self, levels: Array) -> Array:
        top, law = self._scaled()
        return law.quantile(levels) * top

    def distribution(self) -> Frozen:
        from spdp.error.frozen import frozen

        top, law = self._scaled()
        return frozen(law, "weighted_chi2", top)

    def _scaled(self) -> "tuple[float, WeightedSum]":
        """The largest weight, and the law of the sum over it."""
        weights = np.asarray(self.weights)
        top = float(weights.max(initial=0.0))
        return top, WeightedSum(weights / (top or 1.0))


class StretchedLaplace(Law, frozen=True, tag="stretched-laplace"):
    """‖N − N'·a‖² for (N, N') of the ℓ2 Laplace law on R^(d+1), ‖a‖² = stretch.

    In polar coordinates scale·R²·(1 − t + stretch·s), with R ~ Gamma(d + 1) and (s, t)
    two squared coordinates of a uniform direction.
    """

    df: Dimension
    scale: Scale
    stretch: Scale

    def mean(self) -> float:
        return self.scale * (self.df + 2) * (self.df + self.stretch)

    def quantile(self, levels: Array) -> Array:
        asked = np.asarray(levels)
        found = _stretched(self.df, self.stretch, tuple(asked.ravel().tolist()))
        return np.asarray(found.reshape(asked.shape) * self.scale)

    def distribution(self) -> Frozen:
        from spdp.error.frozen import frozen

        return frozen(StretchedRadius(self.df, self.stretch), "stretched_laplace", self.scale)


AnyLaw = Chi2 | GammaSquare | WeightedChi2 | StretchedLaplace


def law_of(spec: Any) -> AnyLaw:
    """The law that plain data describe."""
    law: AnyLaw = msgspec.convert(spec, AnyLaw)
    return law


def weighted_chi2(weights: Array) -> AnyLaw:
    """Σ w_j Z_j²; the plain χ² law where all weights are equal."""
    w = np.asarray(weights, dtype=np.float64)
    if np.ptp(w) <= 1e-12 * w.max():
        return Chi2(len(w), float(w.max()))
    return WeightedChi2(tuple(w.tolist()))


def mean_law(laplace: bool, d: int, unit: float, stretch: float) -> AnyLaw:
    """‖N − N'·a‖² of a noisy mean.

    N has variance (or squared scale) ``unit`` a coordinate. N' is the noise of its
    noisy count, ‖a‖² = stretch; stretch = 0 where the count is public.
    """
    if laplace:
        return StretchedLaplace(d, unit, stretch) if stretch else GammaSquare(d, unit)
    if not stretch:
        return Chi2(d, unit)
    return weighted_chi2(unit * np.append(1.0 + stretch, np.ones(d - 1)))


def clipped_mean_law(laplace: bool, variances: Array, counted: bool) -> AnyLaw:
    """‖N‖² of the noise in a clipped mean, of these variances (or squared scales).

    Scales of Laplace noise are equal; where the number of records is ``counted`` in the
    same answer, the noise is d coordinates of the law on R^(d+1).
    """
    if not laplace:
        return weighted_chi2(variances)
    d, unit = len(variances), float(variances[0])
    return StretchedLaplace(d, unit, 0.0) if counted else GammaSquare(d, unit)


def chi2_tail(square: float, freedom: float) -> float:
    """Probability beyond a value; where it underflows, the smallest normal double."""
    return max(float(special.chdtrc(freedom, square)), float_info.min)


def quantiles(law: AnyLaw) -> dict[str, float]:
    """The quantiles every certificate states."""
    if isinstance(law, WeightedChi2):
        return _quantiles(law)
    unit = _unit_quantiles(type(law), law.df, getattr(law, "stretch", None))
    return {level: value * law.scale for level, value in unit.items()}


@lru_cache(maxsize=256)
def _unit_quantiles(kind: Any, df: int, stretch: float | None) -> dict[str, float]:
    return _quantiles(kind(df, 1.0, *([] if stretch is None else [stretch])))


def _quantiles(law: AnyLaw) -> dict[str, float]:
    values = law.quantile(np.array(LEVELS) / 100)
    return {f"{level}%": float(value) for level, value in zip(LEVELS, values, strict=True)}


class Inverted:
    """A law on [0, reach] given by its distribution function, inverted by bisection."""

    reach: float

    @abstractmethod
    def below(self, x: Array) -> Array:
        """The distribution function at points (m,)."""

    @abstractmethod
    def moments(self) -> tuple[float, float | None]:
        """Mean and variance, None where it is left to quadrature."""

    @abstractmethod
    def draw(self, shape: tuple[int, ...], rng: Any) -> Array:
        """Independent values, drawn from a NumPy generator."""

    def quantile(self, levels: Array) -> Array:
        from scipy.optimize import brentq

        def root(q: float) -> float:
            def missing(x: float) -> float:
                return float(self.below(np.array([x]))[0] - q)

            return float(brentq(missing, 0.0, self.reach, rtol=1e-9))

        return np.asarray(np.vectorize(root, otypes=[np.float64])(levels))


class WeightedSum(Inverted):
    r"""Σ w_j Z_j² with max w = 1, from its transform along a bent line.

    With K(s) = −½ Σ ln(1 − 2w_j s), the probability beyond x is the integral of
    exp(K(s) − s·x)/(2πi·s) along a line that crosses the real axis at 0 < c < ½, and
    less the probability below x if c < 0. The line is a parabola s = c + b·u² + iu
    around the singularities s ≥ ½. For 0 ≤ b ≤ 1/(4(½ − c)) a strip |Im u| < 0.85·|c|
    holds neither these nor 0, and the trapezoidal rule's error falls exponentially with
    the step.

    Along it |exp(K(s) − s·x)| never grows: with t_j = 1 − 2w_j·Re s its logarithm has
    the derivative u·[Σ 2w_j(b·t_j − w_j)/|1 − 2w_j s|² − 2b·x], in which only weights
    w_j < b·t_j push upward.
    Such a t_j falls from T = 1 − 2w_j·c on, and t_j/|1 − 2w_j s|² is at most 1/T where
    T ≤ q = 2w_j/b, else 1/(2√(qT) − q). b is halved until these push by less than x.

    Off by less than :data:`ACCURACY`, beside closed forms (of weights in pairs, of
    equal ones up to d = 80,000) and beside the series of Davies (1980).
    """

    def __init__(self, weights: Array) -> None:
        self._weights = weights[weights != 0.0]
        self._mean = float(weights.sum())
        if not (weights >= 0.0).all() or not 0.0 < self._mean < np.inf:
            raise DataError("weights of a law are numbers of 0 or more, not all of them 0")
        sd = float(np.sqrt(2.0 * (weights @ weights)))
        self._near = CROSSING / sd
        self.reach = self._mean + 30.0 * sd

    @cached_property
    def _upper(self) -> tuple[Any, Any, Any]:
        """The line for all x from the mean on."""
        return self._line(min(self._near, RIGHTMOST), self._mean)

    def _line(self, c: float, least: float) -> tuple[Any, Any, Any]:
        """Points s of the line through c, K(s), and factors of exp(K(s) − s·x).

        As many as are needed for x ≥ ``least``.
        """
        bend = self._bend(c, least)
        step = 2.0 * np.pi * STRIP * abs(c) / (DIGITS + GROWTH)
        for ahead in LOOKS:
            u = step * ahead
            real = c + bend * u**2
            logs, _ = self._exponent(real, u)
            enough = np.flatnonzero(logs - real * least < -DIGITS)
            if enough.size:
                break
        last = u[enough[0] if enough.size else -1]
        u = (np.arange(int(last / step) + 1) + 0.5) * step
        s = c + bend * u**2 + 1j * u
        logs, turns = self._exponent(s.real, s.imag)
        return s, logs + 1j * turns, (2.0 * bend * u + 1j) * (step / np.pi) / s

    def _bend(self, c: float, x: float) -> float:
        w, bend = self._weights, 0.25 / (0.5 - c)
        start = 1.0 - 2.0 * w * c
        while True:
            q = 2.0 * w / bend
            falling = np.maximum(2.0 * np.sqrt(q * start) - q, 1e-300)  # more than 0 where q < T
            most = 1.0 / np.where(start <= q, start, falling)
            if float((w * most)[w < bend * start].sum()) <= x:
                return bend
            bend *= 0.5

    def _exponent(self, real: Array, imag: Array) -> tuple[Array, Array]:
        """Real and imaginary part of K(s)."""
        logs, turns = np.zeros(len(real)), np.zeros(len(real))
        for some in np.split(2.0 * self._weights, range(PART, len(self._weights), PART)):
            x, y = 1.0 - np.multiply.outer(some, real), np.multiply.outer(some, imag)
            logs -= 0.25 * np.log(x * x + y * y).sum(axis=0)
            turns += 0.5 * np.arctan2(y, x).sum(axis=0)
        return logs, turns

    def _saddle(self, x: float) -> float:
        """Below the mean: where K(s) − s·x is least, or a little to its left."""
        away = np.geomspace(self._near, max(2.0 * self._near, 0.5 * len(self._weights) / x), 64)
        slopes = np.zeros(len(away))
        for some in np.split(self._weights, range(PART, len(self._weights), PART)):
            slopes += (some[:, None] / (1.0 + 2.0 * some[:, None] * away)).sum(axis=0)
        return -float(away[min(int(np.count_nonzero(slopes > x)), len(away) - 1)])

    def below(self, x: Array) -> Array:
        return np.array([self._below(value) for value in np.ravel(x).tolist()])

    def _below(self, x: float) -> float:
        if x <= 0.0:
            return 0.0
        upper = x >= self._mean
        s, K, factors = self._upper if upper else self._line(self._saddle(x), x)
        beyond = float((factors * np.exp(K - s * x)).imag.sum())
        return min(max(1.0 - beyond if upper else -beyond, 0.0), 1.0)

    def beyond_evenly(self, first: float, step: float, many: int) -> Array:
        """The probability beyond evenly spaced points from the mean on."""
        s, K, factors = self._upper
        turned = np.empty((many, len(s)), np.complex128)
        turned[0], turned[1:] = factors * np.exp(K - s * first), np.exp(-s * step)
        sums = np.multiply.accumulate(turned, axis=0, out=turned).imag.sum(axis=1)
        return np.asarray(np.clip(sums, 0.0, 1.0))

    def moments(self) -> tuple[float, float | None]:
        w = self._weights
        return float(w.sum()), float(2.0 * (w * w).sum())

    def draw(self, shape: tuple[int, ...], rng: Any) -> Array:
        normal = rng.standard_normal((*shape, len(self._weights)))
        return np.asarray((self._weights * normal**2).sum(-1))


@lru_cache(maxsize=256)
def _stretched(d: int, stretch: float, levels: tuple[float, ...]) -> Array:
    """Quantiles of the stretched Laplace law of scale 1."""
    return np.asarray(StretchedRadius(d, stretch).quantile(np.array(levels)))


class StretchedRadius(Inverted):
    """R²·(1 − t + stretch·s): Gauss–Jacobi quadrature over the direction, exact in R.

    (s, t, rest) ~ Dirichlet(1/2, 1/2, (d − 1)/2): s ~ Beta(1/2, d/2), and t is a share
    of 1 − s that is Beta(1/2, (d − 1)/2), or all of it when d = 1.
    """

    def __init__(self, d: int, stretch: float) -> None:
        self._d, self._stretch = d, stretch
        s, mass = _beta_rule(0.5, 0.5 * d)
        if stretch:
            share, part = (np.ones(1), np.ones(1)) if d == 1 else _beta_rule(0.5, 0.5 * (d - 1))
            t = share[None, :] * (1.0 - s)[:, None]
            self._factor = (1.0 - t + stretch * s[:, None]).ravel()
            self._mass = (mass[:, None] * part[None, :]).ravel()
        else:  # t alone, which has the law of s
            self._factor, self._mass = 1.0 - s, mass
        top = float(self._factor.max())
        self.reach = top * float(special.gammaincinv(d + 1, 1.0 - 1e-15)) ** 2

    def below(self, x: Array) -> Array:
        radius = np.sqrt(x[:, None] / np.maximum(self._factor, 1e-300))
        return np.asarray(special.gammainc(self._d + 1, radius) @ self._mass)

    def moments(self) -> tuple[float, float | None]:
        return float((self._d + 2) * (self._d + self._stretch)), None

    def draw(self, shape: tuple[int, ...], rng: Any) -> Array:
        u = rng.standard_normal((*shape, self._d + 1)) ** 2
        u /= u.sum(-1, keepdims=True)
        radius = rng.gamma(self._d + 1, size=shape)
        return np.asarray(radius**2 * (1.0 - u[..., 1] + self._stretch * u[..., 0]))


@lru_cache(maxsize=64)
def _beta_rule(a: float, b: float) -> tuple[Array, Array]:
    """Nodes and masses of a Gauss rule for Beta(a, b)."""
    if b > LARGEST_JACOBI:  # Beta(a, b) is near Gamma(a)/b, as b grows
        x, w = special.roots_genlaguerre(NODES, a - 1.0)
        return x / (b + a - 1.0 + x), w / w.sum()
    x, w = special.roots_jacobi(NODES, b - 1.0, a - 1.0)
    return 0.5 * (1.0 + x), w / w.sum()


def weighted_tails(weights: Array, squares: Array) -> Array:
    """P(Σ w_j Z_j² > x) at evenly spaced x ≥ Σ w_j, plus 2·ACCURACY."""
    top, first = float(weights.max()), float(squares[0])
    step = float(squares[-1] - first) / max(1, len(squares) - 1)
    beyond = WeightedSum(weights / top).beyond_evenly(first / top, step / top, len(squares))
    return np.asarray(beyond + 2.0 * ACCURACY)
