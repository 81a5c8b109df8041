"""Adding up privacy costs, exactly or on the safe side: what the ledger computes with."""

import math
from fractions import Fraction
from typing import Any

import mpmath

from spdp.errors import ParameterError
from spdp.privacy import check_budget, check_positive, gaussian_mu

__all__ = ["at_most", "cost", "pld_epsilon", "pure_mu", "root_of_squares"]


def pure_mu(epsilon: float) -> float:
    """Smallest μ such that every ε-DP mechanism is μ-GDP, 2Φ⁻¹(e^ε/(1 + e^ε)), rounded up."""
    e = check_positive("epsilon", epsilon)
    if e > 700:
        raise ParameterError(f"epsilon must be at most 700, got {epsilon!r}")
    with mpmath.workdps(30):
        tail = 1 / (1 + mpmath.exp(mpmath.mpf(e)))
        # Newton on ln Φ(−x) = ln tail, from SciPy's estimate
        from scipy.special import ndtri_exp

        x = -mpmath.mpf(float(ndtri_exp(float(mpmath.log(tail)))))
        for _ in range(8):
            survival = mpmath.erfc(x / mpmath.sqrt(2)) / 2
            x += mpmath.log(survival / tail) * survival / mpmath.npdf(x)
        mu = float(2 * x * (1 + mpmath.mpf(10) ** -17))
    return math.nextafter(mu, math.inf)


def cost(epsilon: float, delta: float) -> tuple[float, float | None]:
    """(μ, pure ε or None) of a release at (ε, δ)."""
    if float(delta) == 0.0:
        return pure_mu(epsilon), check_positive("epsilon", epsilon)
    return gaussian_mu(epsilon, math.nextafter(check_budget(epsilon, delta)[1], 0.0)), None


def at_most(values: list[float], bound: float, power: int) -> bool:
    """Σ v^power ≤ bound^power, exactly; rational arithmetic only where floating point cannot tell."""
    total, limit = math.fsum(v**power for v in values), bound**power
    if abs(total - limit) > 1e-9 * limit:
        return total < limit
    return sum((Fraction(v) ** power for v in values), Fraction(0)) <= Fraction(bound) ** power


def root_of_squares(mus: list[float]) -> float:
    """√Σ μ², rounded up."""
    return mus[0] if len(mus) == 1 else math.sqrt(math.fsum(m * m for m in mus)) * (1 + 1e-15)


def pld_epsilon(mu: float, pure: list[float], delta: float) -> list[float]:
    """ε of the history by privacy loss distributions, if dp-accounting is installed."""
    try:
        from dp_accounting.pld import privacy_loss_distribution as pld
    except ImportError:
        return []
    step = 1e-4
    total = None if mu == 0 else pld.from_gaussian_mechanism(1.0 / mu, value_discretization_interval=step)
    for epsilon in pure:
        part = pld.from_privacy_parameters(_pure(epsilon), value_discretization_interval=step)
        total = part if total is None else total.compose(part)
    return [] if total is None else [float(total.get_epsilon_for_delta(delta))]


def _pure(epsilon: float) -> Any:
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    return DifferentialPrivacyParameters(epsilon, 0.0)
