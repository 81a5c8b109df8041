"""Budgets, and sums of what was spent: exact, or rounded to the safe side."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spdp.errors import ParameterError, named
from spdp.options import Noise, positive, real, remembered
from spdp.privacy.calibration import check_budget, classical_mu, gaussian_mu, next_below, precise

SMALLEST_EPSILON = 1e-100
LARGEST_PURE = 700.0  # e^ε is a float64 number


@dataclass(frozen=True)
class Budget:
    """What one release may cost: (ε, δ), and μ where its noise is Gaussian.

    Gaussian noise is (ε, δ)-DP because it is μ-GDP with the largest such μ, for the
    next double below δ (``calibration`` "analytic"), or with the smaller μ of the
    classical formula. Laplace noise is ε-DP, δ = 0.
    """

    noise: Noise
    epsilon: float
    delta: float
    calibration: str
    mu: float | None

    @cached_property
    def whole(self) -> float:
        """What all answers may cost together: μ, of which squares add up, or ε."""
        return self.epsilon if self.mu is None else self.mu

    def sd(self, share: float, d: int) -> float:
        """Standard deviation of each of d noisy numbers, over their sensitivity.

        ``share`` is the share of the budget, μ² or ε, that the answer costs. The radius
        of the ℓ2 Laplace law is Gamma(d), so that a coordinate has variance d + 1.
        """
        if self.mu is None:
            return math.sqrt(d + 1.0) / (share * self.epsilon)
        return 1.0 / (self.mu * math.sqrt(share))

    def share(self, sd: float, d: int) -> float:
        """The share at which :meth:`sd` is ``sd``."""
        if self.mu is None:
            return math.sqrt(d + 1.0) / (sd * self.epsilon)
        return 1.0 / (self.mu * sd) ** 2

    @classmethod
    def gaussian(cls, epsilon: float, delta: float, calibration: str = "analytic") -> "Budget":
        """Budget of Gaussian noise; ``calibration`` is "analytic" or "classical"."""
        return _gaussian(epsilon, delta, calibration)

    @classmethod
    def pure(cls, epsilon: float) -> "Budget":
        """Budget of Laplace noise: pure differential privacy."""
        return _pure(epsilon)


@remembered
def _pure(epsilon: float) -> Budget:
    e = _sensible(positive("epsilon", epsilon))
    if e > LARGEST_PURE:
        raise ParameterError(f"{named('epsilon')} must be ≤ {LARGEST_PURE:g}, got {epsilon!r}")
    return Budget(Noise.LAPLACE, e, 0.0, "laplace", None)


@remembered
def _gaussian(epsilon: float, delta: float, calibration: str) -> Budget:
    e, d = check_budget(_sensible(epsilon), delta)
    formula = {"analytic": gaussian_mu, "classical": classical_mu}
    if calibration not in formula:
        raise ParameterError(f"calibration is 'analytic' or 'classical', got {calibration!r}")
    return Budget(Noise.GAUSSIAN, e, d, calibration, formula[calibration](e, next_below(d)))


def _sensible(epsilon: float) -> float:
    """ε; an error if it is positive but so small that no noise tells it from 0."""
    if 0 < real("epsilon", epsilon) < SMALLEST_EPSILON:
        raise ParameterError(
            f"the privacy budget is too small: {named('epsilon')} must be 0 or at least "
            f"{SMALLEST_EPSILON:g}, got {epsilon!r}"
        )
    return epsilon


def sqrt_upward(square: Fraction) -> float:
    """Smallest double ≥ √square."""
    # scaled to near one, where a root is right to the last bit, and back
    half = (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    root = math.ldexp(math.sqrt(square / Fraction(4) ** half), half)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root


def pure_mu(epsilon: float) -> float:
    """Smallest μ such that every ε-DP mechanism is μ-GDP, rounded up.

    2Φ⁻¹(e^ε/(1 + e^ε)): the trade-off curve of ε-DP is the two chords through the point
    where that Gaussian curve meets the diagonal (Dong, Roth, Su 2022).
    """
    e = Budget.pure(epsilon).epsilon
    with precise(30 + max(0, -math.floor(math.log10(e)))) as mp:  # 1/2 − ε/4 cancels
        tail = 1 / (1 + mp.exp(mp.mpf(e)))
        x = mp.mpf(float(pure_mu_estimate(e))) / 2
        for _ in range(3):  # Newton on ln Φ(−x) = ln tail doubles the estimate's digits
            survival = mp.erfc(x / mp.sqrt(2)) / 2
            x += mp.log(survival / tail) * survival / mp.npdf(x)
        mu = float(2 * x * (1 + mp.mpf(10) ** -17))
    return math.nextafter(mu, math.inf)


def pure_mu_estimate(epsilon: ArrayLike) -> NDArray[np.float64]:
    """:func:`pure_mu` of many ε at once, to about 12 digits."""
    from scipy.special import erfinv, ndtri_exp

    e = np.asarray(epsilon, dtype=np.float64)
    small = 2 * math.sqrt(2) * erfinv(np.tanh(np.minimum(e, 1.0) / 2))
    mu: NDArray[np.float64] = np.where(e < 1, small, -2 * ndtri_exp(-np.logaddexp(0.0, e)))
    return mu


def at_most(values: Sequence[float], bound: float, power: int) -> bool:
    """Σ v^power ≤ bound^power, exactly, for power 1 or 2."""
    squares = [v * v if power == 2 else v for v in (*values, bound)]
    total, limit = math.fsum(squares[:-1]), squares[-1]
    if abs(total - limit) > 1e-14 * limit:  # terms and sum are off by 2⁻⁵³ at most
        return total < limit
    return sum((Fraction(v) ** power for v in values), Fraction(0)) <= Fraction(bound) ** power


def root_of_squares(mus: Sequence[float]) -> float:
    """√Σ μ², rounded up."""
    if len(mus) == 1:
        return mus[0]
    return math.hypot(*mus) * (1 + 1e-15)


def pld_epsilon(mu: float, pure: Sequence[float], delta: float) -> list[float]:
    """ε of a history by privacy loss distributions, if dp-accounting is installed.

    ``mu`` is the total μ of the Gaussian releases. On the safe side: every pure ε is
    rounded up to a grid of 2¹⁶ steps over the range of the loss, which also bounds the
    time, and dp-accounting rounds its distributions up. No answer below δ = 10⁻¹⁰,
    where the errors of its Fourier transforms could show, nor where e^loss overflows.
    """
    largest = math.fsum(pure) + mu * (mu / 2 + 9)
    if delta < 1e-10 or largest > LARGEST_PURE:
        return []
    try:
        from dp_accounting.pld import privacy_loss_distribution as pld
        from dp_accounting.pld.common import DifferentialPrivacyParameters
    except ImportError:
        return []
    step, parts = largest / 2**16, []
    for level, times in Counter(math.ceil(epsilon / step) for epsilon in pure).items():
        part = pld.from_privacy_parameters(DifferentialPrivacyParameters(level * step), step)
        parts.append(part if times == 1 else part.self_compose(times))
    if mu > 0:
        gaussian = pld.from_gaussian_mechanism(1.0, mu, value_discretization_interval=step)
        parts.append(gaussian)
    while len(parts) > 1:  # in pairs: most convolutions are then small
        last = parts[-1:] if len(parts) % 2 else []
        parts = [a.compose(b) for a, b in zip(parts[::2], parts[1::2], strict=False)] + last
    return [float(part.get_epsilon_for_delta(delta)) for part in parts]
