r"""Probability laws on matrices whose vectors in a flat metric's chart φ follow a law.

X ~ LogGaussian(M, Σ) iff φ(X) ~ N(φ(M), Σ) on R^d; X ~ LogLaplace(M, σ), the Riemannian
Laplace law, iff φ(X) has density ∝ exp(−‖y − φ(M)‖₂/σ). For the log-Euclidean metric φ
is vecd Logm. Densities are with respect to Lebesgue measure on vecd(X), so they carry
the chart's Jacobian, which for that metric is

    J(X) = (1/det X)·Π_{i<j} h(λ_i, λ_j),   h = (ln λ_i − ln λ_j)/(λ_i − λ_j),

with h = 1/λ_i where eigenvalues coincide. (The paper's definition 1 prints h without
its denominator.) Samples come from NumPy generators: for study and simulation, never
for release.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from spdp.charts import LOGEUCLID, chart_of
from spdp.data.batching import matrix_stack, wide
from spdp.data.progress import track
from spdp.errors import ParameterError
from spdp.geometry import logm
from spdp.kernels.arrays import Array
from spdp.options import positive

__all__ = ["LogGaussian", "LogLaplace", "log_jacobian"]

Seed = int | np.random.Generator | None
Size = int | tuple[int, ...] | None

CHUNK = 1024  # chain steps whose proposals are drawn at once


def log_jacobian(X: ArrayLike) -> Any:
    """ln J(X) of the map vecd X ↦ vecd Logm X, stable for coinciding eigenvalues.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp.distributions import log_jacobian
    >>> round(float(log_jacobian(np.diag([1.0, 2.0]))), 4)  # ln(½·ln 2)
    -1.0597
    """
    return LOGEUCLID.log_jacobian(X)


class _LogLaw:
    """What the two laws share: a mean, its vector, and the way to matrices."""

    def __init__(self, mean: ArrayLike, metric: str) -> None:
        self.chart = chart_of(metric)
        M = matrix_stack(mean, "mean", self.chart.kinds)
        if M.ndim != 2:
            raise ParameterError(f"mean has shape {M.shape}; expected one matrix (k, k)")
        self.location = self.chart.vector(M)
        self.mean = wide(M)
        self.dimension = len(self.location)

    def _matrices(self, offsets: Array, size: Size) -> Array:
        shape = () if size is None else (size,) if isinstance(size, int) else tuple(size)
        X = self.chart.matrices(self.location + offsets)
        return X.reshape(*shape, *self.mean.shape)

    def _offsets(self, X: ArrayLike) -> Array:
        A, k = matrix_stack(X, kinds=self.chart.kinds), len(self.mean)
        if A.shape[-1] != k:
            raise ParameterError(f"X has shape {A.shape}; expected (..., {k}, {k})")
        return np.asarray(self.chart.vector(A) - self.location)


def _count(size: Size) -> int:
    return 1 if size is None else int(np.prod(size))


class LogGaussian(_LogLaw):
    """Log Gaussian law LN(M, Σ) on SPD(k) (Schwartzman 2016).

    Parameters
    ----------
    mean : array (k, k)
        SPD matrix M.
    cov : array (d, d) or float
        Covariance Σ of the vector; a number σ² stands for σ²·I.
    metric : str
        A flat metric.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp.distributions import LogGaussian
    >>> law = LogGaussian(np.diag([1.0, 2.0]), 0.04)
    >>> X = law.rvs(100, random_state=0)
    >>> X.shape, law.logpdf(X).shape
    ((100, 2, 2), (100,))
    """

    def __init__(self, mean: ArrayLike, cov: ArrayLike, metric: str = "logeuclid") -> None:
        super().__init__(mean, metric)
        C = np.asarray(cov, dtype=np.float64)
        d = self.dimension
        if C.ndim == 0:
            C = positive("cov", float(C)) * np.eye(d)
        if C.shape != (d, d):
            raise ParameterError(f"cov has shape {C.shape}; expected a number or ({d}, {d})")
        logm(C)  # raises, naming the reason, unless SPD
        self.cov = C
        self._root = np.linalg.cholesky(C)

    def rvs(self, size: Size = None, random_state: Seed = None) -> Array:
        """Random matrices of shape ``(*size, k, k)``."""
        z = np.random.default_rng(random_state).standard_normal((_count(size), self.dimension))
        return self._matrices(z @ self._root.T, size)

    def logpdf(self, X: ArrayLike) -> Any:
        """Log density at X with respect to Lebesgue measure on vecd(X)."""
        d, y = self.dimension, self._offsets(X)
        z = solve_triangular(self._root, y.reshape(-1, d).T, lower=True)
        square = (z * z).sum(axis=0).reshape(y.shape[:-1])
        log_norm = np.log(np.diagonal(self._root)).sum() + 0.5 * d * math.log(2 * math.pi)
        return self.chart.log_jacobian(X) - 0.5 * square - log_norm


class LogLaplace(_LogLaw):
    """Riemannian Laplace law on SPD(k) (Reimherr, Bharath, Soto 2021).

    Its density for the metric's volume is ∝ exp(−ρ(X, M)/σ).

    Parameters
    ----------
    mean : array (k, k)
        SPD matrix M.
    scale : float
        σ > 0.
    metric : str
        A flat metric.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp.distributions import LogLaplace
    >>> LogLaplace(np.eye(2), 0.1).rvs(5, random_state=0).shape
    (5, 2, 2)
    """

    def __init__(self, mean: ArrayLike, scale: float, metric: str = "logeuclid") -> None:
        super().__init__(mean, metric)
        self.scale = positive("scale", scale)

    def rvs(
        self,
        size: Size = None,
        random_state: Seed = None,
        method: str = "exact",
        burn_in: int = 50_000,
    ) -> Array:
        """Random matrices of shape ``(*size, k, k)``.

        ``method="exact"`` draws a radius from Gamma(d, σ) and a uniform direction: by
        the isometry this is the law itself. ``method="mcmc"`` is the paper's random
        walk with the corrected acceptance rule, one chain per draw, started at a random
        point of the manifold. A finite chain only approximates the law, and is kept to
        reproduce the paper. (Started at M itself it would not move for large k: the
        first step is accepted with probability about e^(-√d), and the "release" would
        be M.)
        """
        offsets = self.offsets(_count(size), random_state, method, burn_in)
        return self._matrices(offsets, size)

    def offsets(
        self, m: int, random_state: Seed = None, method: str = "exact", burn_in: int = 50_000
    ) -> Array:
        """Vectors (m, d) of draws, relative to the mean's.

        The draws of :meth:`rvs`, without matrices.
        """
        if method == "exact":
            return laplace_vectors(m, self.dimension, self.scale, random_state)
        if method == "mcmc":
            return self._chains(m, burn_in, random_state)
        raise ParameterError(f"method must be 'exact' or 'mcmc', got {method!r}")

    def _chains(self, m: int, burn_in: int, random_state: Seed) -> Array:
        """End points, relative to the mean, of random walks in log coordinates.

        From x to the candidate x + σ·N(0, I) with probability
        min(1, exp((‖x‖ − ‖candidate‖)/σ)), ``burn_in`` times; in units of σ.
        """
        if burn_in < 1:
            raise ParameterError(f"burn_in must be at least 1, got {burn_in}")
        rng = np.random.default_rng(random_state)
        start = rng.standard_normal((m, self.dimension)) * max(1.0 / self.scale, 1.0)
        x = start - self.location / self.scale
        norm = np.sqrt(np.einsum("ij,ij->i", x, x))
        with track("MCMC burn-in", burn_in) as advance:
            for first in range(0, burn_in, CHUNK):
                steps = min(CHUNK, burn_in - first)
                log_u = -rng.standard_exponential((steps, m))
                for t in range(steps):
                    candidate = x + rng.standard_normal(x.shape)
                    size = np.sqrt(np.einsum("ij,ij->i", candidate, candidate))
                    accept = log_u[t] <= norm - size
                    if accept.all():
                        x, norm = candidate, size
                    elif accept.any():
                        x[accept], norm[accept] = candidate[accept], size[accept]
                advance(steps)
        return np.asarray(self.scale * x)

    def logpdf(self, X: ArrayLike) -> Any:
        """Log density at X with respect to Lebesgue measure on vecd(X)."""
        d, y = self.dimension, self._offsets(X)
        sphere = math.log(2) + 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d)
        log_norm = d * math.log(self.scale) + math.lgamma(d) + sphere
        return self.chart.log_jacobian(X) - np.sqrt((y * y).sum(axis=-1)) / self.scale - log_norm


def laplace_vectors(m: int, d: int, scale: float, random_state: Seed) -> Array:
    """Draws (m, d) of the ℓ2 Laplace law: radius Gamma(d, scale), uniform direction."""
    rng = np.random.default_rng(random_state)
    direction = rng.standard_normal((m, d))
    direction /= np.sqrt(np.einsum("ij,ij->i", direction, direction))[:, None]
    return np.asarray(direction * rng.gamma(d, scale, m)[:, None])
