r"""Mechanisms for any SPD-valued summary f with a stated sensitivity Δ.

====================  =========================  ============  =====================
mechanism             noise                      guarantee     squared error
====================  =========================  ============  =====================
TangentGaussian       Gaussian on φ(f)           (ε, δ)-DP     σ²·χ²_d in ρ²
RiemannianLaplace     ℓ2 Laplace on the same     ε-DP          σ²·Gamma(d)² in ρ²
ExtrinsicGaussian     Gaussian on vecd f         (ε, δ)-DP     σ²·χ²_d in Euclidean
====================  =========================  ============  =====================

φ is the isometry of a flat metric to R^d, ρ its distance; for the log-Euclidean one, φ
is vecd Logm.

*Enforced.* The summary is rounded to an integer lattice of public step g and noise is
added there by an :class:`~spdp.privacy.account.Account`; the calibration uses the
lattice sensitivity Δ/g + √d, which pays for the rounding. *Assumed.*
``sensitivity`` bounds the distance between the coordinates of the summaries of any two
adjacent datasets, as computed in float64 (φ of the matrix for the first two, vecd of it
for the third): the logarithm of an ill-conditioned matrix is itself off by rounding. A
clipped mean is better released by :func:`~spdp.statistics.mean.private_mean`, which
assumes nothing of the kind.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from spdp.blocks import matrix_stack
from spdp.charts import chart_of
from spdp.choices import positive
from spdp.errors import ParameterError
from spdp.geometry import invvecd, vecd
from spdp.lattice import quantize
from spdp.privacy.account import Account, Seed, noise_scale
from spdp.privacy.bounds import Bound
from spdp.privacy.calibration import analytic_sigma, classical_sigma, laplace_scale
from spdp.privacy.costs import Budget
from spdp.privacy.laws import Spec, chi2_law, gamma_square_law, law_of
from spdp.privacy.ledger import Ledger
from spdp.publishing import publish
from spdp.queries import Stated, stated_step
from spdp.release import Release
from spdp.statements import ASSUMED, EXACT_LAW, MOVED, SUMMARY

__all__ = ["ExtrinsicGaussian", "RiemannianLaplace", "TangentGaussian"]

Array = NDArray[np.float64]

LARGEST_SENSITIVITY = 1e100


class _Mechanism(ABC):
    """The shared face: calibrate at construction, then ``release``."""

    name: str
    sigma: float

    def __init__(self, sensitivity: float, budget: Budget, metric: str) -> None:
        self.chart = chart_of(metric)
        self.metric, self.distance = self.chart.name, self.chart.distance
        self.sensitivity = positive("sensitivity", sensitivity)
        if self.sensitivity > LARGEST_SENSITIVITY:
            raise ParameterError(
                f"sensitivity must be at most {LARGEST_SENSITIVITY:g}, got {sensitivity!r}"
            )
        self.budget = budget
        self.epsilon, self.delta = budget.epsilon, budget.delta
        self.calibration = budget.calibration

    @property
    def step(self) -> float:
        """Lattice step: a power of two near Δ/2³⁰."""
        return stated_step(self.sensitivity)

    @property
    def mu(self) -> float | None:
        """The mechanism is μ-Gaussian-DP; None where that notion does not apply."""
        return self.budget.mu

    def _query(self, d: int) -> Stated:
        """The summary as a query of sensitivity Δ/g + √d, rounded up."""
        return Stated.of(self.sensitivity, self.step, d)

    def _variance(self, k: int) -> float:
        """Squared scale of the noise of k×k matrices, a coordinate."""
        return (
            noise_scale(self.budget, self._query(self.chart.dimension(k)).bound) * self.step
        ) ** 2

    @abstractmethod
    def _law(self, k: int) -> Spec:
        """Law of the squared error for k×k matrices."""

    def _coordinates(self, summary: NDArray[Any]) -> Array:
        return self.chart.vector(summary)

    def _value(self, y: Array) -> tuple[Array, float]:
        """The matrix of noisy coordinates, and how far they had to be moved for it."""
        z = self.chart.representable(y)
        return self.chart.matrices(z), float(np.linalg.norm(z - y))

    def squared_error(self, k: int) -> Any:
        """Law of the squared distance between summary and release for k×k matrices.

        Known before any data is read.
        """
        if k < 1:
            raise ParameterError(f"k must be at least 1, got {k}")
        return law_of(self._law(k))

    def release(
        self,
        summary: ArrayLike,
        random_state: Seed = None,
        ledger: Ledger | None = None,
        label: str | None = None,
    ) -> Release:
        """Release a summary (k, k).

        Operating-system entropy and a private result by default; a seed means
        simulation. With a ``ledger``, the cost is committed to it before any noise is
        drawn.
        """
        A = matrix_stack(summary, "summary", self.chart.kinds)
        if A.ndim != 2:
            raise ParameterError(f"summary has shape {A.shape}; expected one matrix (k, k)")
        k = len(A)
        q = quantize(self._coordinates(A), self.step)
        account = Account(
            self.budget,
            ledger=ledger,
            label=label,
            random_state=random_state,
            mechanism=self.name,
            unit=None,
        )
        noisy, scale = account.measure(self._query(len(q)), q)
        value, shift = self._value(noisy * self.step)
        law = self._law(k)
        return publish(
            account,
            value,
            Bound.shifted(law, shift) if shift else law,
            adjacency=ASSUMED,
            metric=self.metric,
            estimand=SUMMARY,
            distance=self.distance,
            k=k,
            sensitivity=self.sensitivity,
            sigma=scale * self.step,
            lattice_step=self.step,
            error_statement=MOVED if shift else EXACT_LAW,
        )

    def simulate_noise(self, k: int, random_state: int | np.random.Generator) -> Array:
        """One seeded draw of the noise vector.

        Its squared norm follows ``squared_error(k)``.
        """
        zero = np.zeros(self.chart.dimension(k), np.int64)
        account = Account(self.budget, random_state=np.random.default_rng(random_state))
        return account.measure(self._query(len(zero)), zero).values * self.step


class TangentGaussian(_Mechanism):
    """Tangent Gaussian mechanism: X ~ LN(f(D), σ²I).

    The paper's definition 2, and its theorem 2, corrected.

    Parameters
    ----------
    sensitivity : float
        Bound on ρ(f(D), f(D')) over adjacent datasets.
    epsilon, delta : float
    calibration : "analytic" or "classical"
        Classical is proven for ε < 1 only and refused elsewhere.
    metric : str
        The flat metric of ρ.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import TangentGaussian
    >>> mechanism = TangentGaussian(sensitivity=0.01, epsilon=1.0, delta=1e-6)
    >>> release = mechanism.release(np.eye(3))
    >>> release.value.shape, release.certificate["private"]
    ((3, 3), True)
    """

    name = "tangent-gaussian"

    def __init__(
        self,
        sensitivity: float,
        epsilon: float,
        delta: float,
        calibration: str = "analytic",
        metric: str = "logeuclid",
    ) -> None:
        super().__init__(sensitivity, Budget.gaussian(epsilon, delta, calibration), metric)
        formula = analytic_sigma if calibration == "analytic" else classical_sigma
        self.sigma = formula(self.sensitivity, epsilon, delta)

    def _law(self, k: int) -> Spec:
        return chi2_law(self.chart.dimension(k), self._variance(k))

    def privacy_loss(self, rho: float) -> Any:
        """Law N(ρ²/2σ², ρ²/σ²) of the privacy loss at distance ρ (theorem 1)."""
        ratio = positive("rho", rho) / self.sigma
        return stats.norm(0.5 * ratio**2, ratio)


class ExtrinsicGaussian(TangentGaussian):
    """Gaussian noise on the matrix itself, a baseline.

    ``sensitivity`` bounds ‖f(D) − f(D')‖_F. The paper's 2(e^r − 1)/n is too small for
    log-Euclidean means; e^r·2r/n is valid.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import ExtrinsicGaussian
    >>> mechanism = ExtrinsicGaussian(sensitivity=0.01, epsilon=1.0, delta=1e-6)
    >>> mechanism.release(np.eye(3)).value.shape
    (3, 3)
    """

    name = "extrinsic-gaussian"

    def __init__(self, sensitivity: float, epsilon: float, delta: float) -> None:
        super().__init__(sensitivity, epsilon, delta)
        self.metric, self.distance = "euclid", "Frobenius"

    @property
    def step(self) -> float:
        return stated_step(self.sensitivity, 0.0)

    def _coordinates(self, summary: NDArray[Any]) -> Array:
        return vecd(summary)

    def _value(self, y: Array) -> tuple[Array, float]:
        return invvecd(y), 0.0


class RiemannianLaplace(_Mechanism):
    """Riemannian Laplace mechanism, pure ε-DP, exactly sampled.

    From Reimherr, Bharath and Soto (2021).

    Parameters
    ----------
    sensitivity : float
        Bound on ρ(f(D), f(D')) over adjacent datasets.
    epsilon : float
    metric : str
        The flat metric of ρ.

    Examples
    --------
    >>> from spdp import RiemannianLaplace
    >>> mechanism = RiemannianLaplace(sensitivity=0.01, epsilon=0.5)
    >>> round(float(mechanism.squared_error(2).mean()), 6)  # (Δ/ε)²·d(d + 1), d = 3
    0.0048
    """

    name = "riemannian-laplace"

    def __init__(self, sensitivity: float, epsilon: float, metric: str = "logeuclid") -> None:
        super().__init__(sensitivity, Budget.pure(epsilon), metric)
        self.sigma = laplace_scale(self.sensitivity, epsilon)

    def _law(self, k: int) -> Spec:
        return gamma_square_law(self.chart.dimension(k), self._variance(k))
