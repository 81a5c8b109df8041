r"""The only door from exact to noisy.

Every draw of noise is priced, paid for and logged here.

*Claim.* All that an :class:`Account` answers is together μ-GDP, hence (ε, δ)-DP, or
ε-DP with Laplace noise, for the adjacency it was opened for.

*Enforced.* (1) A Gaussian answer is the exact total plus OpenDP's discrete Gaussian of
parameter s, s² ≥ (Δ/μᵢ)² + 16 in exact rational arithmetic, with Δ the query's own
sensitivity. (2) That very μᵢ is charged, before the draw, so that an interrupted one is
spent; Σ μᵢ² ≤ μ² is kept in exact arithmetic, and a query that does not fit is not
drawn. (3) Laplace noise has scale exactly Δ/ε, and answers once. (4) With a ledger, the
price is committed before the first draw. (5) Nothing else in the package may import the
samplers (the import contract). A seeded account is a simulation and says so.

*Assumed.* Each query's sensitivity bounds the change of its exact total between
adjacent datasets, as argued beside the query; the exact totals, and which query is
asked next, depend on the data through nothing but earlier answers (the replay audit
tests both); one thread uses an account; OpenDP's sampler and Arb's ball arithmetic are
exact; time and memory are not observed.

*Therefore.* The continuous mechanism N(q, s0²·I) with s0 = Δ/μᵢ is μᵢ-GDP (theorem 2).
Round z ~ N(q, s0²) at random to j ∈ ℤ with probability ∝ exp(−(j − z)²/2τ²), τ = 4. By
Poisson summation Σ_j exp(−(j − z)²/2τ²) is constant in z up to a factor
1 ± 2.1·exp(−2π²τ²), so j has, up to that factor, the discrete Gaussian law of parameter
s0² + τ²: the sampler is post-processing of the continuous mechanism but for
η < d·10⁻¹³⁰, which calibrating to the next double below δ pays for. Adaptive
composition of μᵢ-GDP answers is μ-GDP with μ² = Σ μᵢ² (Dong, Roth, Su 2022). And
P(q) ∝ exp(−‖q‖/s) is ε-DP by the triangle inequality.
"""

from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, inf, nextafter, sqrt
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from spdp.choices import Adjacency, Noise, Unit
from spdp.errors import LedgerError, NotKept, ParameterError, warn
from spdp.privacy import noise
from spdp.privacy.costs import Budget, sqrt_upward
from spdp.privacy.ledger import Ledger, check_ledger

__all__ = ["Account", "Answer", "Seed", "laplace_scale_exact", "lattice_scale", "noise_scale"]

Seed = int | np.random.Generator | None

ROUNDING_VARIANCE = 16  # τ² of the proof
# above, scales are rounded up to whole numbers: OpenDP draws 5 % faster, for at most
# 6e-8 more noise
WHOLE_FROM = 2.0**24
SQUARE_BITS = 2 * 1074  # no double has more binary places than half of these
# beyond, noise would saturate int64: still private, but useless
LARGEST_SCALE = 2.0**57
NOTHING = 1e-9  # a share of μ² that is left over by rounding, not to be spent
NAMES = {Noise.GAUSSIAN: "tangent-gaussian", Noise.LAPLACE: "riemannian-laplace"}


class Priced(Protocol):
    """What an account needs to know of a query."""

    @property
    def name(self) -> str: ...

    def sensitivity(self, adjacency: Adjacency) -> int:
        """Bound on the ℓ2 change of the exact total between adjacent datasets."""


class Answer(NamedTuple):
    """Noisy integers, as floats, and the scale of their noise, in the same units."""

    values: NDArray[np.float64]
    scale: float


@lru_cache(maxsize=1024)
def lattice_scale(sensitivity: int, mu: float) -> float:
    """Smallest double s with s² ≥ (Δ/μ)² + 16, in exact arithmetic; whole if large."""
    try:
        s = sqrt_upward((Fraction(sensitivity) / Fraction(mu)) ** 2 + ROUNDING_VARIANCE)
    except OverflowError:
        raise _too_small() from None
    return float(ceil(s)) if s > WHOLE_FROM else s


def _squared(mu: float) -> int:
    """μ² in units of 2⁻²¹⁴⁸, in which the square of every double is a whole number."""
    top, bottom = mu.as_integer_ratio()
    return (top * top << SQUARE_BITS) // (bottom * bottom)


@lru_cache(maxsize=1024)
def laplace_scale_exact(sensitivity: int, epsilon: float) -> Fraction:
    """Δ/ε as the rational number it is."""
    scale = Fraction(sensitivity) / Fraction(epsilon)
    if scale > LARGEST_SCALE:
        raise _too_small()
    return scale


def noise_scale(budget: Budget, sensitivity: int) -> float:
    """Scale of the noise of an only query, in lattice units."""
    if budget.mu is None:
        return float(laplace_scale_exact(sensitivity, budget.epsilon))
    return lattice_scale(sensitivity, budget.mu)


def _for_ledger(cost: float, query: Priced, sensitivity: int) -> float:
    """μ or ε of the same noise under a ledger's replace-one, rounded up.

    Noise that is enough for Δ at a cost is enough for Δ' at Δ'/Δ times that: its scale
    depends on Δ over the cost alone.
    """
    exact = Fraction(cost) * int(query.sensitivity(Adjacency.REPLACE_ONE)) / sensitivity
    rounded = float(exact)
    while Fraction(rounded) < exact:
        rounded = nextafter(rounded, inf)
    return rounded


def _too_small() -> ParameterError:
    return ParameterError(
        "the privacy budget is too small: the noise it needs exceeds the integer range"
    )


class Account:
    """The account of one release, for one thread.

    Parameters
    ----------
    budget : Budget
        What the release may cost in all.
    adjacency : Adjacency
        Whose neighbours the cost is for.
    ledger : Ledger, optional
        Account of the dataset, charged before the first draw. Its budget is for
        replace-one.
    label : str, optional
        What the ledger's entry is called.
    random_state : None, int or Generator
        None: operating-system entropy. A seed means simulation, which no ledger takes.
    mechanism : str, optional
        What the ledger's entry and the certificate call the noise.
    unit : Unit, optional
        Whose data the cost is for: a ledger keeps one account, for one unit. None for
        a summary whose sensitivity is stated.
    """

    def __init__(
        self,
        budget: Budget,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        *,
        ledger: Ledger | None = None,
        label: str | None = None,
        random_state: Seed = None,
        mechanism: str | None = None,
        unit: Unit | None = Unit.RECORD,
    ) -> None:
        if check_ledger(ledger) is not None and random_state is not None:
            raise ParameterError(
                "a seeded simulation is not private and spends no budget: "
                "leave out the ledger or the seed"
            )
        self.budget, self.adjacency, self.unit = budget, adjacency, unit
        self.mechanism = mechanism or NAMES[budget.noise]
        self.random_state = random_state
        self.steps: list[dict[str, Any]] = []
        self._rng = None if random_state is None else np.random.default_rng(random_state)
        self._ledger, self._label = ledger, label
        self._entry: int | None = None
        self._spent = 0  # of μ², as `_squared` counts; of pure noise, whether it was drawn

    @cached_property
    def key(self) -> int:
        """Of coins that choose records to look at: drawn like noise, kept secret."""
        return noise.key(self._rng)

    @property
    def mu(self) -> float:
        """Total μ of a Gaussian account."""
        if self.budget.mu is None:
            raise ParameterError("an account of Laplace noise has no mu")
        return self.budget.mu

    @cached_property
    def _total(self) -> int:
        """μ², as `_squared` counts."""
        return _squared(self.mu)

    @property
    def left(self) -> float:
        """Share of μ² not yet spent."""
        return (self._total - self._spent) / self._total

    @property
    def mu_spent(self) -> float | None:
        """√Σ μᵢ² of what was drawn, rounded up; None for Laplace noise."""
        if self.budget.mu is None:
            return None
        if self._spent == self._total:
            return self.mu
        return sqrt_upward(Fraction(self._spent, 1 << SQUARE_BITS))

    def measure(
        self, query: Priced, exact: NDArray[np.int64], share: float = 1.0, **released: Any
    ) -> Answer:
        """The exact total of a query plus noise, for a share of μ².

        ``released`` are released or public values for the step's log.
        """
        sensitivity = int(query.sensitivity(self.adjacency))  # NumPy's would overflow
        if self.budget.noise is Noise.LAPLACE:
            answer, cost = self._laplace(query, sensitivity, exact)
        else:
            answer, cost = self._gaussian(query, sensitivity, exact, share)
        step = {"step": query.name, **cost, "sensitivity": sensitivity, "scale": answer.scale}
        self.steps.append({**step, **released})
        return answer

    @property
    def has_ledger(self) -> bool:
        """Whether a release is to be kept."""
        return self._ledger is not None

    def note(self, **released: Any) -> None:
        """Attach released values to the last step, for the certificate."""
        self.steps[-1].update(released)

    def keep(self, value: Any, certificate: dict[str, Any]) -> None:
        """Store what was released with the ledger's entry.

        What is paid for is released even if the ledger cannot keep it (its disk is
        full): that was settled when the noise was drawn.
        """
        if self._ledger is not None and self._entry is not None:
            try:
                self._ledger.store(self._entry, value, certificate)
            except LedgerError as error:
                advice = "this release is the only copy: save it"
                warn(f"{error}; {advice}", NotKept)

    def _gaussian(
        self, query: Priced, sensitivity: int, exact: NDArray[np.int64], share: float
    ) -> tuple[Answer, dict[str, float]]:
        mu = self._afford(share)
        scale = lattice_scale(sensitivity, mu)
        if not self._spent and lattice_scale(sensitivity, self.mu) > LARGEST_SCALE:
            raise _too_small()
        if self._unpaid and share >= 1.0:  # an only query has its own price for a ledger
            self._commit(mu=_for_ledger(mu, query, sensitivity))
        elif self._unpaid:  # a replacement is a removal and an addition
            self._commit(mu=self.mu * (1.0 if self.adjacency is Adjacency.REPLACE_ONE else 2.0))
        self._spent += _squared(mu)
        noisy = noise.gaussian(exact, scale, self._rng)
        return Answer(noisy.astype(np.float64), scale), {"mu": mu}

    def _afford(self, share: float) -> float:
        """μ of the next step: a share of μ², trimmed until Σ μᵢ² ≤ μ² holds exactly."""
        if not self._spent and share >= 1.0:
            return self.mu
        mu, trim = self.mu * sqrt(max(0.0, min(share, self.left))), 2.0**-53
        while mu > 0 and _squared(mu) + self._spent > self._total:
            mu, trim = max(0.0, min(nextafter(mu, 0.0), mu * (1 - trim))), 2 * trim
        if self.left < NOTHING or not mu > 0:
            raise ParameterError("a release tried to spend more than its budget")
        return mu

    def _laplace(
        self, query: Priced, sensitivity: int, exact: NDArray[np.int64]
    ) -> tuple[Answer, dict[str, float]]:
        if self._spent:
            raise ParameterError("a release tried to spend more than its budget")
        scale, d = laplace_scale_exact(sensitivity, self.budget.epsilon), len(exact)
        if scale * (d + 60 * sqrt(d)) > 2.0**61:  # the radius is Gamma(d): some 60 sd
            raise _too_small()
        noise.check_scale(d, scale)
        if self._unpaid:
            self._commit(pure=_for_ledger(self.budget.epsilon, query, sensitivity))
        self._spent = 1  # all there is, even if the draw is interrupted
        noisy = noise.laplace(exact, scale, self._rng)
        answer = Answer(noisy.astype(np.float64), float(scale))
        return answer, {"epsilon": self.budget.epsilon}

    @property
    def _unpaid(self) -> bool:
        """Whether a ledger waits for its price: once, before anything is drawn."""
        return self._ledger is not None and self._entry is None

    def _commit(self, mu: float | None = None, pure: float | None = None) -> None:
        """Charge the ledger for the whole release."""
        assert self._ledger is not None
        own = self.budget.epsilon if mu is None else self.mu
        factor = max(1.0, (pure if mu is None else mu) / own)  # type: ignore[operator]
        self._entry = self._ledger.spend(
            mechanism=self.mechanism,
            label=self._label,
            mu=mu,
            pure=pure,
            delta=self.budget.delta,
            factor=factor,
            unit=None if self.unit is None else self.unit.value,
        )
