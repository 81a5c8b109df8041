r"""Mechanisms for any SPD-valued summary f with a stated sensitivity Δ: calibrate at construction, then release.

========================  ==================================  =======================  =====================
mechanism                 noise                               guarantee                squared error
========================  ==================================  =======================  =====================
TangentGaussian           Gaussian on vecd Logm f(D)          (ε, δ)-DP                σ²·χ²_d in ρ²
RiemannianLaplace         ℓ2 Laplace on vecd Logm f(D)        ε-DP                     σ²·Gamma(d)² in ρ²
ExtrinsicGaussian         Gaussian on vecd f(D)               (ε, δ)-DP                σ²·χ²_d in Euclidean
========================  ==================================  =======================  =====================

*Enforced.* The summary is rounded to an integer lattice of public step g and noise is added there (:mod:`spdp.lattice`); the calibration
uses the lattice sensitivity Δ/g + √d, which pays for the rounding.
*Assumed.* ``sensitivity`` bounds the distance (ρ for the first two, Frobenius for the third) between the summaries of any two adjacent
datasets, as computed; a clipped mean is better released by :func:`spdp.mean.private_mean`, which assumes nothing of the kind.
"""

from abc import ABC, abstractmethod
from math import nextafter, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from spdp import lattice
from spdp.errors import ParameterError
from spdp.geometry import expm, invvecd, logm, matrix_stack, vecd
from spdp.laws import chi2_law, gamma_square_law, law_of
from spdp.ledger import Ledger
from spdp.privacy import analytic_sigma, check_positive, classical_sigma, gaussian_mu, laplace_scale
from spdp.release import Purse, Release, certify

__all__ = ["ExtrinsicGaussian", "RiemannianLaplace", "TangentGaussian", "matrix_of"]

Array = NDArray[np.float64]
Seed = int | np.random.Generator | None

LARGEST_LOG = 700.0  # log-eigenvalues beyond ±700 leave the range of float64


def matrix_of(y: Array) -> Array:
    """Expm(invvecd y), with log-eigenvalues clamped to ±700 so that no noise, however large, can overflow."""
    S = invvecd(y)
    if np.abs(S).max() * len(S) > LARGEST_LOG:
        w, V = np.linalg.eigh(S)
        S = (V * np.clip(w, -LARGEST_LOG, LARGEST_LOG)) @ V.T
        S = 0.5 * (S + S.T)
    return expm(S)


class _Mechanism(ABC):
    """The shared face: ``sensitivity``, ``epsilon``, ``delta``, ``sigma``, ``release`` and ``squared_error``."""

    name: str
    calibration: str
    float_safe: bool

    def __init__(self, sensitivity: float, epsilon: float, delta: float) -> None:
        self.sensitivity = check_positive("sensitivity", sensitivity)
        self.epsilon = float(epsilon)
        self.delta = float(delta)

    @property
    def step(self) -> float:
        """Lattice step: Δ/2³⁰, but never so fine that logarithms of float64 numbers leave int64."""
        return max(self.sensitivity * 2.0**-30, 2.0**-50)

    def _lattice_sensitivity(self, d: int) -> float:
        """Δ/g + √d, rounded up."""
        return (self.sensitivity / self.step + sqrt(d)) * (1 + 1e-15)

    @abstractmethod
    def _lattice_scale(self, d: int) -> float:
        """Noise parameter in lattice units."""

    def _noise(self, q: NDArray[np.int64], scale: float, random_state: Seed) -> NDArray[np.int64]:
        return lattice.gaussian_noise(q, scale, random_state)

    def _coordinates(self, summary: NDArray[Any]) -> Array:
        return vecd(logm(summary))

    def _value(self, y: Array) -> Array:
        return matrix_of(y)

    def _law(self, k: int) -> dict[str, Any]:
        d = k * (k + 1) // 2
        return chi2_law(d, (self._lattice_scale(d) * self.step) ** 2)

    def squared_error(self, k: int) -> Any:
        """Law of the squared distance between summary and release for k×k matrices, known before any data is read."""
        if k < 1:
            raise ParameterError(f"k must be at least 1, got {k}")
        return law_of(self._law(k))

    def release(self, summary: ArrayLike, random_state: Seed = None, ledger: Ledger | None = None, label: str | None = None) -> Release:
        """Release a summary (k, k). Operating-system entropy and a private result by default; a seed means simulation.

        With a ``ledger``, the cost is committed to it before any noise is drawn.
        """
        A = matrix_stack(summary, "summary")
        if A.ndim != 2:
            raise ParameterError(f"summary has shape {A.shape}; expected one matrix (k, k)")
        k = len(A)
        scale = self._lattice_scale(k * (k + 1) // 2)
        q = lattice.quantize(self._coordinates(A), self.step)
        purse = Purse(ledger, label, random_state)
        purse.pay(self.name, mu=self.mu, pure=self.epsilon if self.mu is None else None)
        noisy = self._noise(q, scale, random_state)
        certificate = certify(
            law=self._law(k),
            random_state=random_state,
            float_safe=self.float_safe,
            mechanism=self.name,
            calibration=self.calibration,
            epsilon=self.epsilon,
            delta=self.delta,
            mu=self.mu,
            adjacency="as assumed by the stated sensitivity",
            k=k,
            sensitivity=self.sensitivity,
            sigma=scale * self.step,
            lattice_step=self.step,
        )
        return purse.keep(Release(self._value(noisy.astype(np.float64) * self.step), certificate))

    def simulate_noise(self, k: int, random_state: int | np.random.Generator) -> Array:
        """One seeded draw of the noise vector for k×k matrices, for simulation: its squared norm follows ``squared_error(k)``."""
        d = k * (k + 1) // 2
        noise = self._noise(np.zeros(d, np.int64), self._lattice_scale(d), np.random.default_rng(random_state))
        return np.asarray(noise * self.step)

    @property
    def mu(self) -> float | None:
        """The mechanism is μ-Gaussian-DP; None where that notion does not apply."""
        return None


class TangentGaussian(_Mechanism):
    """Tangent Gaussian mechanism: X ~ LN(f(D), σ²I) (the paper's definition 2 and theorem 2, corrected).

    Parameters
    ----------
    sensitivity : float
        Bound on ρ(f(D), f(D')) over adjacent datasets.
    epsilon, delta : float
    calibration : "analytic" or "classical"
        Classical is proven for ε < 1 only and refused elsewhere.
    """

    name = "tangent-gaussian"
    float_safe = True

    def __init__(self, sensitivity: float, epsilon: float, delta: float, calibration: str = "analytic") -> None:
        super().__init__(sensitivity, epsilon, delta)
        if calibration not in ("analytic", "classical"):
            raise ParameterError(f"calibration must be 'analytic' or 'classical', got {calibration!r}")
        self.calibration = calibration
        formula = analytic_sigma if calibration == "analytic" else classical_sigma
        self.sigma = formula(self.sensitivity, epsilon, delta)

    def _lattice_scale(self, d: int) -> float:
        sensitivity = self._lattice_sensitivity(d)
        if self.calibration == "analytic":
            return lattice.gaussian_scale(sensitivity, self.epsilon, self.delta)
        return lattice.widen(classical_sigma(sensitivity, self.epsilon, self.delta))

    @property
    def mu(self) -> float:
        """Δ/σ, rounded as the calibration was."""
        if self.calibration == "analytic":
            return gaussian_mu(self.epsilon, nextafter(self.delta, 0.0))
        return self.sensitivity / self.sigma

    def privacy_loss(self, rho: float) -> Any:
        """Law N(ρ²/2σ², ρ²/σ²) of the privacy loss between datasets whose summaries are ρ apart (theorem 1)."""
        ratio = check_positive("rho", rho) / self.sigma
        return stats.norm(0.5 * ratio**2, ratio)


class ExtrinsicGaussian(TangentGaussian):
    """Gaussian noise on the matrix itself: the result is symmetric but need not be positive definite (a baseline).

    ``sensitivity`` bounds ‖f(D) − f(D')‖_F. The paper's 2(e^r − 1)/n is too small for log-Euclidean means; e^r·2r/n is valid.
    """

    name = "extrinsic-gaussian"

    def __init__(self, sensitivity: float, epsilon: float, delta: float) -> None:
        super().__init__(sensitivity, epsilon, delta)

    @property
    def step(self) -> float:
        return self.sensitivity * 2.0**-30

    def _coordinates(self, summary: NDArray[Any]) -> Array:
        return vecd(summary)

    def _value(self, y: Array) -> Array:
        return invvecd(y)


class RiemannianLaplace(_Mechanism):
    """Riemannian Laplace mechanism with the exact sampler (Reimherr, Bharath, Soto 2021): pure ε-DP.

    Parameters
    ----------
    sensitivity : float
        Bound on ρ(f(D), f(D')) over adjacent datasets.
    epsilon : float
    """

    name = "riemannian-laplace"
    calibration = "laplace"
    float_safe = False

    def __init__(self, sensitivity: float, epsilon: float) -> None:
        super().__init__(sensitivity, epsilon, 0.0)
        self.sigma = laplace_scale(self.sensitivity, epsilon)

    def _lattice_scale(self, d: int) -> float:
        return laplace_scale(self._lattice_sensitivity(d), self.epsilon)

    def _noise(self, q: NDArray[np.int64], scale: float, random_state: Seed) -> NDArray[np.int64]:
        return lattice.laplace_noise(q, scale, random_state)

    def _law(self, k: int) -> dict[str, Any]:
        d = k * (k + 1) // 2
        return gamma_square_law(d, (self._lattice_scale(d) * self.step) ** 2)
