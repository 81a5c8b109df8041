r"""What a ledger's releases have cost of its budget, and what still fits.

Shares of one release add up in :mod:`spdp.privacy.account`.

*Composition.* A release is μᵢ-GDP. One with Gaussian noise is so exactly; a pure εᵢ-DP
one is dominated by the Gaussian of :func:`~spdp.privacy.budget.pure_mu`. The condition
Σ μᵢ² ≤ μ²(ε, δ), compared in exact arithmetic, is a valid filter for releases whose
parameters were chosen after earlier results were seen (Smith and Thakurta 2022). So is
Σ εᵢ ≤ ε when every release is pure (Rogers et al. 2016), and so is accepting either:
outcomes of the second kind have a privacy loss of at most ε and add nothing to δ.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context

from spdp.errors import BudgetExceeded
from spdp.options import positive, real
from spdp.privacy import calibration
from spdp.privacy.budget import LARGEST_PURE, Budget, at_most, pld_epsilon, pure_mu, root_of_squares
from spdp.privacy.calibration import gaussian_epsilon, gaussian_mu, next_below

SMALLEST_OFFER = 1e-6  # an ε whose noise can still be drawn
MARGIN = 1 + 1e-12  # of an offer's cost, for the rounding between a release and its price
LARGEST_SHOWN = 1e3  # largest μ whose ε is stated: beyond, ε exceeds 10⁵


def total_budget(epsilon: float, delta: float) -> tuple[float, float]:
    """(ε, δ) of a total budget, as floats; with δ = 0 it takes pure releases only."""
    if real("delta", delta) == 0:
        return positive("epsilon", epsilon), 0.0
    next_below(calibration.check_budget(positive("epsilon", epsilon), delta)[1])
    return float(epsilon), float(delta)


@dataclass(frozen=True)
class Balance:
    """A budget (ε, δ), and the costs of the releases made under it.

    ``pures`` holds the ε of a pure release, None of a Gaussian one, beside its μ in
    ``mus``. A budget with δ = 0 takes pure releases only.
    """

    epsilon: float
    delta: float
    mus: Sequence[float]
    pures: Sequence[float | None]

    @property
    def limit(self) -> float:
        """Largest total μ."""
        return 0.0 if self.delta == 0 else gaussian_mu(self.epsilon, next_below(self.delta))

    @property
    def mu(self) -> float:
        """Total μ of what was released, rounded up."""
        return root_of_squares(self.mus)

    @property
    def mu_left(self) -> float:
        """μ of a release that would use up the budget, rounded down."""
        square = self.limit**2
        rest = math.fsum([square, -1e-15 * square, *(-m * m for m in self.mus)])
        return math.sqrt(max(0.0, rest))

    def fits(self) -> bool:
        """Whether the releases keep within the budget, by either of the two filters."""
        pures = [p for p in self.pures if p is not None]
        if len(pures) == len(self.mus) and at_most(pures, self.epsilon, 1):
            return True
        return self.delta > 0 and at_most(self.mus, self.limit, 2)

    def plus(self, mu: float, pure: float | None = None) -> "Balance":
        """The balance after one more release."""
        return Balance(self.epsilon, self.delta, [*self.mus, mu], [*self.pures, pure])

    def affords(self, budget: Budget, factor: float = 1.0) -> bool:
        """Whether a release fits that costs ``factor`` times its own budget here."""
        if budget.mu is not None:
            return self.plus(budget.mu * factor).fits()
        pure = budget.epsilon * factor
        return self.plus(pure_mu(pure), pure).fits()

    def spent(self) -> float:
        """Smallest known ε that the releases satisfy at the budget's δ.

        Exact for Gaussian releases; with pure ones among them, the least of the valid
        bounds.
        """
        if not self.mus:
            return 0.0
        bounds = [self.epsilon if self.fits() else math.inf]
        pures = [p for p in self.pures if p is not None]
        if len(pures) == len(self.mus):
            bounds.append(math.nextafter(math.fsum(pures), math.inf))
        if self.delta > 0:
            bounds.append(self.at(self.delta))
            gaussian = [m for m, p in zip(self.mus, self.pures, strict=True) if p is None]
            bounds += pld_epsilon(root_of_squares(gaussian), pures, self.delta) if pures else []
        return min(bounds)

    def at(self, delta: float) -> float:
        """ε that the releases satisfy at another δ, by their total μ."""
        return gaussian_epsilon(next_below(delta), self.mu) if self.mus else 0.0

    def largest_gaussian(self, delta: float, factor: float = 1.0) -> float:
        """Largest ε of a Gaussian release at ``delta`` that would fit; 0 if none would.

        ``factor`` is how many times its own μ the release costs this budget.
        """
        mu = self.mu_left / factor
        if mu == 0 or delta == 0:
            return 0.0
        start = min(gaussian_epsilon(next_below(delta), mu), calibration.LARGEST_EPSILON)
        return _largest(start, lambda e: self.affords(Budget.gaussian(e, delta), factor * MARGIN))

    def largest_pure(self, factor: float = 1.0) -> float:
        """Largest ε of a pure release that would fit; 0 if none would."""
        from scipy.special import log_ndtr

        half = self.mu_left / 2
        start = float(log_ndtr(half) - log_ndtr(-half))  # its μ is what is left
        pures = [p for p in self.pures if p is not None]
        if len(pures) == len(self.mus):
            start = max(start, self.epsilon * (1 - 1e-12) - math.fsum(pures))
        start = min(start, LARGEST_PURE / MARGIN) / factor
        return _largest(start, lambda e: self.affords(Budget.pure(e), factor * MARGIN))

    def refusal(
        self, name: str, mu: float, pure: float | None, delta: float | None, factor: float
    ) -> BudgetExceeded:
        """The error for a release that does not fit the ledger ``name``, with an offer.

        ``mu``, or ``pure``, is its cost, ``factor`` times its own; ``delta`` is what
        was asked for, by default the budget's.
        """
        if pure is not None:
            fits, where = self.largest_pure(factor), " (pure: mechanism 'laplace')"
            wanted = f"epsilon = {pure / factor:.4g}{where}"
        else:
            delta, own = self.delta if delta is None else delta, mu / factor
            fits, where = self.largest_gaussian(delta, factor), f" at delta = {delta:g}"
            wanted = f"mu = {own:.4g}"
            if delta > 0 and own < LARGEST_SHOWN:
                wanted += f" (epsilon = {gaussian_epsilon(delta, own):.4g}{where})"
        if factor > 1:
            wanted += f", {factor:.4g} times that under replace-one adjacency,"
        offer = f"a release with epsilon <= {_rounded_down(fits)}{where} would still fit"
        return BudgetExceeded(
            f"{name}: budget exceeded: asked for {wanted} of epsilon = {self.epsilon:g}, "
            f"delta = {self.delta:g}; left is mu = {self.mu_left:.4g}; "
            + (offer if fits > 0 else f"nothing is left for a release{where}"),
            fits,
        )


def _largest(start: float, fits: Callable[[float], bool]) -> float:
    """A number a little below ``start`` that fits: an offer must be accepted."""
    trim = 1e-9
    while trim < 1 and start > SMALLEST_OFFER:
        if fits(start * (1 - trim)):
            return start * (1 - trim)
        trim *= 4
    return 0.0


def _rounded_down(number: float) -> str:
    """Four digits, none of them rounded up: what is offered must be accepted."""
    digits = Context(prec=4, rounding=ROUND_FLOOR).create_decimal_from_float(number)
    return f"{float(digits):g}"
