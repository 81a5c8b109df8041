r"""The only door from exact to noisy.

Every draw of noise is priced, paid for and logged here.

*Claim.* All that an :class:`Account` answers is together μ-GDP, hence (ε, δ)-DP, or
ε-DP with Laplace noise (δ = 0), for the adjacency it was opened for.

*Enforced.* (1) A Gaussian answer is the exact total plus an exact discrete Gaussian of
parameter s, s² ≥ (Δ/μᵢ)² + 16 in exact rational arithmetic, with Δ the query's own
sensitivity. (2) That very μᵢ is charged, before the draw, so that an interrupted one is
spent; Σ μᵢ² ≤ μ² is kept in exact arithmetic, and a query that does not fit is not
drawn. (3) Laplace noise has scale exactly Δ/εᵢ; that very εᵢ is charged, before the
draw, and Σ εᵢ ≤ ε is kept in exact arithmetic. (4) With a ledger, the price of the
whole release is committed before the first draw. (5) Nothing else in the package may
import the samplers (the import contract). A seeded account is a simulation and says so.

*Assumed.* Each query's sensitivity bounds the change of its exact total between
adjacent datasets, as argued beside the query; the exact totals, and which query is
asked next, depend on the data through nothing but earlier answers (the replay audit
tests both); one thread uses an account; what the samplers assume, or OpenDP's where it
is chosen; time and memory are not observed.

*Therefore.* The continuous mechanism N(q, s0²·I) with s0 = Δ/μᵢ is μᵢ-GDP (theorem 2).
Round z ~ N(q, s0²) at random to j ∈ ℤ with probability ∝ exp(−(j − z)²/2τ²), τ = 4. By
Poisson summation Σ_j exp(−(j − z)²/2τ²) is constant in z up to a factor
1 ± 2.1·exp(−2π²τ²), so j has, up to that factor, the discrete Gaussian law of parameter
s0² + τ²: the sampler is post-processing of the continuous mechanism up to
η < d·10⁻¹³⁰ in δ. Noise is calibrated to the next double below δ, a gap that is wider
than η. Adaptive composition of μᵢ-GDP answers is μ-GDP with μ² = Σ μᵢ² (Dong, Roth,
Su 2022). And P(q) ∝ exp(−‖q‖/s) is εᵢ-DP by the triangle inequality: its privacy loss
never exceeds εᵢ. The loss of a transcript is the sum of its answers' losses, each given
the answers before it, hence at most Σ εᵢ ≤ ε for every transcript, although later
queries and their εᵢ depend on earlier answers: a privacy filter (Rogers, Roth, Ullman,
Vadhan 2016).

*Shares of several sites* (:mod:`spdp.federated`). Where h sites add up their totals,
each draws a share of parameter s₁, s₁² ≥ (Δ/μᵢ)²/h + 16 and s₁ ≥ 16, so that their sum
has the variance that the argument above needs. A sum of discrete Gaussians is nearly
one (Kairouz, Liu, Steinke 2021): the log-probabilities of X₁ + … + X_h and of
N_ℤ(0, h·s₁²) differ by at most η = 5·(h − 1)·exp(−π²s₁²) per coordinate. *Enforced:*
s₁ ≥ 16, at most 256 rounds, at most 200 sites: η < 2⁻³⁶⁰⁰, and all rounds together add
3·T·d·η·e^ε to δ, far less than the gap to the next double below it. Prices are chosen
by whoever asks, from earlier answers; Σ μᵢ² ≤ μ² is then a valid filter, too (Smith,
Thakurta 2022). A share is drawn for zeros and added modulo 2⁶⁴, as a share that
saturates would be no function of the sum.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, inf, nextafter, sqrt
from operator import index
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from spdp.errors import LedgerError, ParameterError, ReleaseNotStored, warn
from spdp.options import Adjacency, Noise, Unit
from spdp.privacy import noise
from spdp.privacy.budget import Budget, sqrt_upward

Seed = int | np.random.Generator | None

ROUNDING_VARIANCE = 16  # τ² of the proof
# above, scales are rounded up to whole numbers, for at most 6e-8 more noise: OpenDP,
# where it is chosen, draws 5 % faster
WHOLE_FROM = 2.0**24
SQUARE_BITS = 2 * 1074  # no double has more binary places than half of these
# beyond, noise would saturate int64: still private, but useless
LARGEST_SCALE = 2.0**57
LARGEST_RADIUS = 2.0**61  # of Laplace noise, which is Gamma(d): its mean and some 60 sd
NOTHING = 1e-9  # a share of the budget that is left over by rounding, not to be spent
SMALLEST_SHARE = 16.0  # of the noise that one of several sites draws
DISTRIBUTED = "distributed-gaussian"  # name of the noise of several sites
NAMES = {Noise.GAUSSIAN: "tangent-gaussian", Noise.LAPLACE: "riemannian-laplace"}


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S", bound="Step")


class Asked(Protocol[T_co]):
    """The part of a query that an account uses."""

    @property
    def name(self) -> str: ...

    def sensitivity(self, adjacency: Adjacency) -> int:
        """Bound on the ℓ2 change of the exact total between neighbouring datasets."""

    def estimate(self, answer: NDArray[np.float64], sd: float, n: float) -> T_co:
        """The estimate from a total over n records plus noise, in real units."""


class Store(Protocol):
    """Where exact totals are: they go from here into an account and nowhere else."""

    n: int  # number of records: public, or released
    m: int  # number in the current subsample

    def total(self, query: Any, subsampled: bool = False) -> NDArray[np.int64]:
        """Exact total of a query over the subsample, or over all records."""


class Payer(Protocol):
    """The part of a ledger that an account uses (:class:`spdp.Ledger`)."""

    @property
    def spend(self) -> Callable[..., int]:
        """Commit the cost of a release, durably, or refuse; its entry's number."""

    def store(self, entry: int, value: Any, certificate: dict[str, Any]) -> None:
        """Keep a release with its entry."""


class Step(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One noisy answer, as certificates state it: its price, sensitivity and noise.

    Subclasses have fields for what else was released of the answer.
    """

    step: str
    mu: float | None = None
    epsilon: float | None = None  # of Laplace noise
    sensitivity: int
    scale: float

    def fits(self, facts: Any) -> bool:
        """Whether what was released of the answer is possible, by other facts."""
        return True


class Answer(msgspec.Struct, Generic[T]):
    """The estimate from a noisy answer, and the place of its step in a certificate."""

    estimate: T
    steps: list[Step]
    place: int

    def note(self, kind: type[S], **released: Any) -> S:
        """State in the certificate what was released of this answer."""
        step = self.steps[self.place]
        told = kind(**msgspec.structs.asdict(step), **released)
        self.steps[self.place] = told
        return told


@lru_cache(maxsize=1024)
def lattice_scale(sensitivity: int, mu: float) -> float:
    """Smallest double s with s² ≥ (Δ/μ)² + 16, in exact arithmetic; whole if large."""
    try:
        s = sqrt_upward((Fraction(sensitivity) / Fraction(mu)) ** 2 + ROUNDING_VARIANCE)
    except OverflowError:
        raise _too_small() from None
    return float(ceil(s)) if s > WHOLE_FROM else s


def _exact(price: float, power: int) -> int:
    """μ² or ε in units of 2⁻²¹⁴⁸, in which that of every double is a whole number."""
    top, bottom = price.as_integer_ratio()
    return int((top**power << SQUARE_BITS) // bottom**power)


def root_of_squares(prices: Iterable[float]) -> float:
    """√Σ μᵢ², rounded up."""
    return sqrt_upward(Fraction(sum(_exact(mu, 2) for mu in prices), 1 << SQUARE_BITS))


@lru_cache(maxsize=1024)
def share_scale(sensitivity: int, mu: float, honest: int) -> float:
    """Smallest double s with s² ≥ (Δ/μ)²/honest + 16, at least 16; whole if large."""
    square = (Fraction(sensitivity) / Fraction(mu)) ** 2 / honest
    try:
        s = max(sqrt_upward(square + ROUNDING_VARIANCE), SMALLEST_SHARE)
    except OverflowError:
        raise _too_small() from None
    return float(ceil(s)) if s > WHOLE_FROM else s


def distributed_scale(sensitivity: int, mu: float, sites: int, colluding: int) -> float:
    """Scale of the noise of all sites together, all but some of which are honest."""
    scale = sqrt(sites) * share_scale(sensitivity, mu, sites - colluding)
    if scale > LARGEST_SCALE:
        raise _too_small()
    return scale


@lru_cache(maxsize=1024)
def laplace_scale_exact(sensitivity: int, epsilon: float) -> Fraction:
    """Δ/ε as the rational number it is."""
    scale = Fraction(sensitivity) / Fraction(epsilon)
    if scale > LARGEST_SCALE:
        raise _too_small()
    return scale


def noise_scale(budget: Budget, sensitivity: int) -> float:
    """Scale of the noise of a single query, in lattice units."""
    if budget.mu is None:
        return float(laplace_scale_exact(sensitivity, budget.epsilon))
    return lattice_scale(sensitivity, budget.mu)


def _for_ledger(cost: float, query: Asked[Any], sensitivity: int) -> float:
    """μ or ε of the same noise under a ledger's replace-one, rounded up.

    Noise that is enough for Δ at a cost is enough for Δ' at Δ'/Δ times that cost: its
    scale depends on Δ over the cost alone.
    """
    exact = Fraction(cost) * index(query.sensitivity(Adjacency.REPLACE_ONE)) / sensitivity
    rounded = float(exact)
    while Fraction(rounded) < exact:
        rounded = nextafter(rounded, inf)
    return rounded


def _too_small() -> ParameterError:
    return ParameterError("the privacy budget is too small: its noise exceeds the integer range")


class Account:
    """The account of one release, for one thread.

    Parameters
    ----------
    budget : Budget
        What the release may cost in all.
    adjacency : Adjacency
        The neighbouring datasets that the cost is for.
    ledger : Ledger, optional
        Account of the dataset, charged before the first draw. Its budget is for
        replace-one.
    label : str, optional
        Name of the ledger's entry.
    random_state : None, int or Generator
        None: operating-system entropy. A seed means simulation, which no ledger takes.
    mechanism : str, optional
        Name of the noise in the ledger's entry.
    unit : Unit, optional
        The unit of privacy: a ledger is for one unit. None for a summary whose
        sensitivity is stated.
    """

    def __init__(
        self,
        budget: Budget,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        *,
        ledger: Payer | None = None,
        label: str | None = None,
        random_state: Seed = None,
        mechanism: str | None = None,
        unit: Unit | None = Unit.RECORD,
    ) -> None:
        if ledger is not None and random_state is not None:
            raise ParameterError(
                "a seeded simulation is not private and spends no budget: "
                "leave out the ledger or the seed"
            )
        self.budget, self.adjacency, self.unit = budget, adjacency, unit
        self.mechanism = mechanism or NAMES[budget.noise]
        self.random_state = random_state
        self.before_payment: Callable[[int], None] | None = None  # may refuse, from n alone
        self.steps: list[Step] = []
        self._rng = None if random_state is None else np.random.default_rng(random_state)
        self.sampler = self._sampler()
        self.ledger, self._label = ledger, label
        self._entry: int | None = None
        self._unpaid = ledger is not None  # until its price is committed, once
        self._power = 1 if budget.mu is None else 2  # what adds up: ε, or μ²
        self._whole = budget.whole
        self._total = _exact(self._whole, self._power) or 1
        self._spent = 0  # as `_exact` counts
        self.left = 1.0  # share of μ², or of ε, not yet spent

    def _sampler(self) -> str:
        """What draws the noise; a choice that cannot be had is an error here."""
        return noise.sampler(self.budget.noise, self._rng)

    @property
    def mu(self) -> float:
        """μ of the whole budget; 0 with Laplace noise."""
        return self.budget.mu or 0.0

    spread = 1.0  # how many times the noise of one curator an answer has
    trust: Any = msgspec.UNSET  # who trusted whom, where sites share the noise

    @cached_property
    def key(self) -> int:
        """Key of the secret random subsampling of records; drawn like noise."""
        return noise.key(self._rng)

    def ask(
        self, query: Asked[T], store: Store, share: float = 1.0, subsampled: bool = False
    ) -> Answer[T]:
        """A noisy answer to a query, for a share of μ² or of ε, in real units.

        A query that the budget cannot pay is not asked. Records are read, and refused
        if they are invalid, before anything is paid.
        """
        before, (price, spent) = self._spent, self._afford(share)
        exact = store.total(query, subsampled)
        if self._spent != before:
            raise ParameterError("an account answers one query at a time")
        sensitivity = index(query.sensitivity(self.adjacency))  # NumPy's would overflow
        scale = self._scale(sensitivity, price, len(exact))
        if self.before_payment is not None and not self._spent:
            self.before_payment(store.n)
        if self._unpaid:
            self._commit(query, sensitivity, price)
        self._spent, self.left = spent, (self._total - spent) / self._total  # before the draw
        pure = self.budget.mu is None
        draw: Any = noise.laplace if pure else noise.gaussian
        noisy = draw(exact, scale, self._rng).astype(np.float64)
        price_of = {"epsilon" if pure else "mu": price}
        told = Step(step=query.name, sensitivity=sensitivity, scale=float(scale), **price_of)
        self.steps.append(told)
        sd = told.scale * (sqrt(len(exact) + 1.0) if pure else 1.0)
        estimate = query.estimate(noisy, sd, float(store.m if subsampled else store.n))
        return Answer(estimate, self.steps, len(self.steps) - 1)

    def affords(self, mu: float) -> bool:
        """Whether Σ μᵢ² ≤ μ² still holds, exactly, after a step of this price."""
        return 0 < mu <= self.mu and self._spent + _exact(mu, 2) <= self._total

    def charge(self, mu: float) -> None:
        """Charge a price: of a draw to come, or of one that an earlier process made."""
        if not self.affords(mu):
            raise ParameterError("a release tried to spend more than its budget")
        self._spent += _exact(mu, 2)
        self.left = (self._total - self._spent) / self._total

    def share_of(
        self, query: Asked[Any], store: Store, mu: float, honest: int
    ) -> NDArray[np.uint64]:
        """A site's total and its share of the noise, modulo 2⁶⁴, for a price μᵢ.

        ``honest`` is the number of sites whose shares together are enough for μᵢ. One
        share alone is enough for μᵢ·√honest. The price is charged before the draw.
        """
        if self._rng is not None:
            raise ParameterError("a site's share of the noise is never seeded")
        scale = share_scale(index(query.sensitivity(self.adjacency)), mu, honest)
        self.charge(mu)
        exact = np.ascontiguousarray(store.total(query), np.int64)
        drawn = noise.gaussian(np.zeros(len(exact), np.int64), scale, None)
        wrapped: NDArray[np.uint64] = exact.view(np.uint64) + drawn.view(np.uint64)
        return wrapped

    def keep(self, value: Any, certificate: dict[str, Any]) -> None:
        """Store what was released with the ledger's entry.

        A release that is paid for is returned even if the ledger cannot store it, for
        example because its disk is full: its noise is drawn already.
        """
        if self.ledger is not None and self._entry is not None:
            try:
                self.ledger.store(self._entry, value, certificate)
            except LedgerError as error:
                advice = "this release is the only copy: save it"
                warn(f"{error}; {advice}", ReleaseNotStored)

    def _afford(self, share: float) -> tuple[float, int]:
        """Price of the next step, and what is then spent.

        The price, μᵢ or εᵢ, is trimmed until Σ μᵢ² ≤ μ², or Σ εᵢ ≤ ε, holds exactly.
        """
        whole = self._whole
        if not self._spent and share >= 1.0:
            return whole, self._total
        part, trim = max(0.0, min(share, self.left)), 2.0**-53
        price = whole * (part if self._power == 1 else sqrt(part))
        while (spent := self._spent + _exact(price, self._power)) > self._total and price > 0:
            price, trim = max(0.0, min(nextafter(price, 0.0), price * (1 - trim))), 2 * trim
        if self.left < NOTHING or not price > 0:
            raise ParameterError("a release tried to spend more than its budget")
        return price, spent

    def _scale(self, sensitivity: int, price: float, d: int) -> float | Fraction:
        """Scale of the noise; too small a budget is refused before payment."""
        if self.budget.mu is None:
            scale = laplace_scale_exact(sensitivity, price)
            if scale * (d + 60 * sqrt(d)) > LARGEST_RADIUS:
                raise _too_small()
            if scale < d:  # a draw may take long
                noise.check_scale(d, scale)
            return scale
        if not self._spent and lattice_scale(sensitivity, self._whole) > LARGEST_SCALE:
            raise _too_small()
        return lattice_scale(sensitivity, price)

    def _commit(self, query: Asked[Any], sensitivity: int, price: float) -> None:
        """Charge the ledger for the whole release.

        A release of one answer has a price of its own under the ledger's replace-one;
        for one of several, a replacement is a removal and an addition.
        """
        assert self.ledger is not None
        own, pure = self._whole, self.budget.mu is None
        if price == own:
            cost = _for_ledger(own, query, sensitivity)
        else:
            cost = own * (1.0 if self.adjacency is Adjacency.REPLACE_ONE else 2.0)
        self._entry = self.ledger.spend(
            mechanism=self.mechanism,
            label=self._label,
            mu=None if pure else cost,
            pure=cost if pure else None,
            delta=self.budget.delta,
            factor=max(1.0, cost / own),
            unit=None if self.unit is None else self.unit.value,
        )
        self._unpaid = False
