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
clipped mean is better released by :func:`spdp.private_mean`, which
assumes nothing of the kind.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, frexp, isqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spdp.charts import chart_of
from spdp.data.batching import matrix_stack
from spdp.error.bound import Bound
from spdp.error.laws import AnyLaw, Chi2, GammaSquare, mean_law
from spdp.errors import ParameterError
from spdp.geometry import invvecd, vecd
from spdp.kernels.arrays import Array, Ints
from spdp.kernels.base import RECORD_NORM, Kernels
from spdp.kernels.vecd import dimension
from spdp.lattice import quantize
from spdp.ledger import Ledger, check_ledger
from spdp.options import Adjacency, Noise, positive
from spdp.privacy.account import NAMES, Account, Seed, Step, noise_scale
from spdp.privacy.budget import Budget
from spdp.privacy.calibration import analytic_sigma, classical_sigma, laplace_scale
from spdp.queries import Query, Rows
from spdp.release import Release
from spdp.release.certificate import Facts
from spdp.release.declaration import LAW, MATRIX, MOVED, PARTS, Check, Declaration, Values
from spdp.release.publishing import publish
from spdp.release.verify import EUCLID, equal
from spdp.rendering.panels import Panel, matrix_panels, stacked

LARGEST = 1e100
FINEST_STEP = 2.0**-50  # logarithms of float64 numbers stay within int64
ASSUMED = "as assumed by the stated sensitivity"  # adjacency of a summary
EXTRINSIC = "extrinsic-gaussian"
EXACT_LAW = "the whole error; its law is exact"


@dataclass(frozen=True, eq=False)
class Stated(Query[Array]):
    """A summary computed elsewhere: its sensitivity is stated, not enforced."""

    bound: int

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        raise TypeError("a stated summary is not computed from records")

    def sensitivity(self, adjacency: Adjacency) -> int:
        return self.bound

    def estimate(self, answer: Array, scale: float, n: float) -> Array:
        """The noisy integers."""
        return answer

    @classmethod
    def of(cls, sensitivity: float, step: float, d: int) -> "Stated":
        """A summary of d coordinates on a lattice: Δ/step + √d, rounded up."""
        return cls("summary", ceil(Fraction(sensitivity) / Fraction(step)) + isqrt(d) + 1)


def stated_step(sensitivity: float, finest: float = FINEST_STEP) -> float:
    """Lattice step of a stated summary: the largest power of two up to Δ/2³⁰.

    Dividing by it is exact. Never finer than what logarithms can use.
    """
    return max(2.0 ** (frexp(sensitivity / RECORD_NORM)[1] - 1), finest)


class GivenStore:
    """Exact coordinates of a summary, to be answered once."""

    n = m = 1

    def __init__(self, q: Ints) -> None:
        self._q = q

    def total(self, query: Any, subsampled: bool = False) -> Ints:
        return self._q


class Summary(Declaration):
    """A summary whose sensitivity the caller states; all else follows from that."""

    name = "summary"
    title = "matrix"
    target = "the stated summary"
    releases: ClassVar = {"mean": MATRIX}
    steps: ClassVar = {"summary": Step}
    order: ClassVar = "summary;"
    forms: ClassVar = {None: (LAW, PARTS)}

    def _is_flat(self, facts: Facts) -> bool:
        return facts.metric == EUCLID

    def _d(self, facts: Facts) -> int:
        return dimension(facts.k) if self._is_flat(facts) else facts.d

    def _query(self, facts: Facts) -> Stated:
        return Stated.of(facts.sensitivity, facts.unit_step, self._d(facts))

    def estimand(self, facts: Facts) -> str:
        return self.target

    def noise_name(self, facts: Facts) -> str:
        return EXTRINSIC if self._is_flat(facts) else NAMES[facts.budget.noise]

    def distance(self, facts: Facts) -> str:
        return "Frobenius" if self._is_flat(facts) else facts.chart.distance

    def shapes(self, facts: Facts) -> dict[str, list[int]]:
        return {"mean": [*([] if facts.parts is None else [facts.parts]), facts.k, facts.k]}

    def last_radius(self, facts: Facts) -> float:
        finest = 0.0 if self._is_flat(facts) else FINEST_STEP
        return stated_step(facts.sensitivity, finest) * RECORD_NORM

    def sensitivity(self, facts: Facts) -> float:
        return facts.sensitivity

    def sigma(self, facts: Facts) -> float:
        return noise_scale(facts.budget, self._query(facts).bound) * facts.unit_step

    def law(self, facts: Facts) -> AnyLaw:
        laplace = facts.budget.noise is Noise.LAPLACE
        return mean_law(laplace, self._d(facts), facts.noise_scale**2, 0.0)

    def statement(self, facts: Facts) -> str:
        return EXACT_LAW if facts.bound is None else MOVED

    def expected_bound(self, facts: Facts) -> Bound | None:
        return None if facts.bound is None else Bound.shifted(self.law(facts), facts.bound.shift)

    def check(self, facts: Facts) -> Iterator[Check]:
        f = facts
        yield equal("unit", (f.unit, f.n, f.domain, f.parts), (None, None, None, None))
        yield equal("adjacency", f.adjacency, ASSUMED)
        yield equal("sensitivity of the summary", f.last.sensitivity, self._query(f).bound)

    def heading(self, facts: Facts) -> str:
        return f"{facts.k}×{facts.k} matrix"

    def panels(self, facts: Facts, values: Values) -> list[Panel]:
        return matrix_panels(*stacked(values["mean"], "Matrix"))


SUMMARY = Summary()


class _Mechanism(ABC):
    """What mechanisms share: calibration at construction, then ``release``."""

    name: str
    sigma: float

    def __init__(self, sensitivity: float, budget: Budget, metric: str) -> None:
        self.chart = chart_of(metric)
        self.metric, self.distance = self.chart.name, self.chart.distance
        self.sensitivity = positive("sensitivity", sensitivity)
        if self.sensitivity > LARGEST:
            raise ParameterError(f"sensitivity must be ≤ {LARGEST:g}, got {sensitivity!r}")
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
        """Squared noise scale of each coordinate, for k×k matrices."""
        return (
            noise_scale(self.budget, self._query(self.chart.dimension(k)).bound) * self.step
        ) ** 2

    @abstractmethod
    def _law(self, k: int) -> AnyLaw:
        """Law of the squared error for k×k matrices."""

    def _coordinates(self, summary: NDArray[Any]) -> Array:
        return self.chart.vector(summary)

    def _value(self, y: Array) -> tuple[Array, float]:
        """The matrix of noisy coordinates, and how far float64 made them move."""
        z = self.chart.representable(y)
        return self.chart.matrices(z), float(np.linalg.norm(z - y))

    def squared_error(self, k: int) -> Any:
        """Law of the squared distance between summary and release for k×k matrices.

        Known before any data is read.
        """
        if k < 1:
            raise ParameterError(f"k must be at least 1, got {k}")
        return self._law(k).distribution()

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
        asked: dict[str, Any] = {"label": label, "random_state": random_state, "unit": None}
        payer = check_ledger(ledger)
        account = Account(self.budget, ledger=payer, mechanism=self.name, **asked)
        noisy = account.ask(self._query(len(q)), GivenStore(q)).estimate
        value, shift = self._value(noisy * self.step)
        return publish(
            account,
            SUMMARY,
            {"mean": value},
            method=None,
            adjacency=ASSUMED,
            metric=self.metric,
            k=k,
            sensitivity=self.sensitivity,
            error_bound_parts=Bound.shifted(self._law(k), shift) if shift else None,
        )

    def simulate_noise(self, k: int, random_state: int | np.random.Generator) -> Array:
        """One seeded draw of the noise vector.

        Its squared norm follows ``squared_error(k)``.
        """
        zero = np.zeros(self.chart.dimension(k), np.int64)
        account = Account(self.budget, random_state=np.random.default_rng(random_state))
        return account.ask(self._query(len(zero)), GivenStore(zero)).estimate * self.step


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

    def _law(self, k: int) -> AnyLaw:
        return Chi2(self.chart.dimension(k), self._variance(k))

    def privacy_loss(self, rho: float) -> Any:
        """Law N(ρ²/2σ², ρ²/σ²) of the privacy loss at distance ρ (theorem 1)."""
        ratio = positive("rho", rho) / self.sigma
        from scipy import stats

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

    name = EXTRINSIC

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

    def _law(self, k: int) -> AnyLaw:
        return GammaSquare(self.chart.dimension(k), self._variance(k))
