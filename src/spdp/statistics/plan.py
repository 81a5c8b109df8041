"""One noisy sum over the whole domain, planned from public numbers.

Noise, scale, error law.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from spdp.charts import LOGEUCLID, Chart
from spdp.choices import Adjacency, Mechanism, Method, Noise, choose, positive_int, real
from spdp.domain import KINDS, Domain, check_domain
from spdp.errors import ParameterError, named
from spdp.privacy.account import noise_scale
from spdp.privacy.costs import Budget
from spdp.privacy.laws import Spec, mean_law, mean_of
from spdp.privacy.ledger import Ledger, check_ledger
from spdp.queries import VectorSum, count_weight, share_sum, whole_domain_sum
from spdp.statistics.reference import Reference

__all__ = ["OneShot", "choose_method", "plan_one_shot", "settle_mechanism", "settle_method"]

SEARCHED = 1.6  # rms error of a search over that of Gaussian one shot, by spread over radius


@dataclass(frozen=True)
class OneShot:
    """One noisy sum of k×k records: what it asks, for which budget, and its error."""

    budget: Budget
    adjacency: Adjacency
    domain: Domain
    k: int
    query: VectorSum
    chart: Chart = LOGEUCLID
    max_records: int | None = None

    @property
    def noise(self) -> Noise:
        return self.budget.noise

    @cached_property
    def sensitivity(self) -> int:
        """In lattice units."""
        return self.query.sensitivity(self.adjacency)

    @cached_property
    def scale(self) -> float:
        """Of the noise, in lattice units."""
        return noise_scale(self.budget, self.sensitivity)

    def law(self, n: float) -> Spec:
        """Law of the squared distance from mean of n clipped records to release.

        Exact under replace-one. Under add-remove, where n is the released estimate n̂,
        the error is (N − N'·m)/n̂ with the count's noise N' and the offset ‖m‖ ≤ r of
        the mean from the centre: the law at the largest ‖m‖ is given, which is never
        too small.
        """
        unit = (self.scale * self.query.step / n) ** 2
        d = len(self.query.frame.center)
        return mean_law(self.noise is Noise.LAPLACE, d, unit, self.query.stretch)

    def expected_squared_error(self, n: float) -> float:
        return self._error_of_sum / n**2

    @cached_property
    def _error_of_sum(self) -> float:
        return mean_of(self.law(1.0))


def plan_one_shot(
    k: int,
    *,
    epsilon: float,
    delta: float,
    domain: Domain,
    mechanism: str = "auto",
    adjacency: str = "replace-one",
    chart: Chart = LOGEUCLID,
    max_records: int | None = None,
) -> OneShot:
    """Choose and calibrate the noise of a one-shot release from public numbers only.

    ``mechanism="auto"`` takes the law with the smaller expected squared error; δ = 0
    asks for pure differential privacy. With ``max_records`` a person counts by the
    number of their records up to that: what all count is then released too.
    """
    asked = k, epsilon, delta, domain, mechanism, adjacency, chart, max_records
    if type(domain) in KINDS.values():
        with suppress(TypeError):  # what cannot be kept is told by name below
            return _kept_plan(*asked)
    return _plan(*asked)


def _plan(
    k: int,
    epsilon: float,
    delta: float,
    domain: Domain,
    mechanism: str,
    adjacency: str,
    chart: Chart,
    max_records: int | None,
) -> OneShot:
    wanted = choose(Mechanism, mechanism, "mechanism")
    neighbours = choose(Adjacency, adjacency, "adjacency")
    region = check_domain(domain).region(k, chart)
    private = neighbours is Adjacency.ADD_REMOVE  # the number of records
    weight = count_weight(len(region.center)) if private else 0
    query = whole_domain_sum(region, weight)
    if max_records is not None:
        positive_int("max_records", max_records)
        query = share_sum(region, neighbours)
    shots = [
        OneShot(budget, neighbours, domain, k, query, chart, max_records)
        for budget in _budgets(wanted, epsilon, delta)
    ]
    possible = _possible(shots)
    if len(possible) == 1:
        return possible[0]
    return min(possible, key=lambda shot: shot.expected_squared_error(1.0))


# Plans of the same public numbers, which many releases share.
_kept_plan = lru_cache(maxsize=256, typed=True)(_plan)


def settle_mechanism(mechanism: str, delta: float, ledger: Ledger | None) -> str:
    """What "auto" means beside a ledger of δ > 0: Gaussian noise.

    A pure release counts there as its Gaussian equivalent, five times the price of a
    Gaussian one at ε = 1, δ = 1e-6: most of a budget, for a smaller error once.
    """
    wanted, pure = choose(Mechanism, mechanism, "mechanism"), not real("delta", delta) > 0
    account = check_ledger(ledger)
    if wanted is Mechanism.AUTO and not pure and account is not None and account.delta > 0:
        return Mechanism.GAUSSIAN.value
    return wanted.value


def _possible(shots: list[OneShot]) -> list[OneShot]:
    """Those whose noise fits the integers; if none does, the error that says so."""
    fits, refusal = [], None
    for shot in shots:
        try:
            _ = shot.scale
            fits.append(shot)
        except ParameterError as error:
            refusal = error
    if not fits and refusal is not None:
        raise refusal
    return fits


def _budgets(wanted: Mechanism, epsilon: float, delta: float) -> list[Budget]:
    """The budgets among which the mechanism may choose."""
    if delta == 0:
        if wanted is Mechanism.GAUSSIAN:
            raise ParameterError(
                f"{named('delta', '0')} asks for pure differential privacy, which Gaussian noise "
                "cannot give"
            )
        return [Budget.pure(epsilon)]
    gaussian = Budget.gaussian(epsilon, delta)
    if wanted is Mechanism.GAUSSIAN:
        return [gaussian]
    if wanted is Mechanism.LAPLACE:
        return [Budget.pure(epsilon)]
    try:
        return [gaussian, Budget.pure(epsilon)]
    except ParameterError:  # ε = 0, or beyond what pure noise can do
        return [gaussian]


def choose_method(
    shot: OneShot,
    n: int | None,
    epsilon: float,
    delta: float,
    mechanism: str,
    spread: float | None = None,
) -> str:
    """The method that public numbers predict to be better: "adaptive" or "oneshot".

    A smaller ball, or shrinkage where noise is too large to find one, gains in three
    dimensions or more. But where the Laplace law is far better in one shot (small k),
    data that fill the domain would lose by the change to Gaussian noise. A public
    reference tells how wide the data may be, ``spread``: the search's error is then
    foreseen, and wins unless one shot's is smaller.
    """
    if not _can_adapt(shot, delta, mechanism) or (spread is None and (not n or shot.k == 1)):
        return "oneshot"
    if not n:  # not counted yet, so nothing is foreseen; the reference was given to be used
        return "adaptive"
    loss, radius = shot.expected_squared_error(n), shot.domain.radius_for(shot.k, shot.chart)
    if loss > 0.5 * radius**2:
        return "adaptive"
    gaussian = replace(shot, budget=Budget.gaussian(epsilon, delta))
    gain = 0.5 if spread is None else min(1.0, SEARCHED * spread / radius) ** 2
    return "oneshot" if loss < gain * gaussian.expected_squared_error(n) else "adaptive"


def _can_adapt(shot: OneShot, delta: float, mechanism: str) -> bool:
    """Whether a search can run at all."""
    gaussian = delta > 0 and mechanism != Mechanism.LAPLACE
    return gaussian and shot.adjacency is Adjacency.REPLACE_ONE and not shot.max_records


def settle_method(
    method: str,
    shot: OneShot,
    n: int | None,
    epsilon: float,
    delta: float,
    mechanism: str,
    reference: Reference | None = None,
) -> Method:
    """The method that will run where ``method`` is asked for, if it can.

    A ``reference`` is for the search alone, so one that no search can use is refused.
    """
    wanted = choose(Method, method, "method")
    if reference is not None:
        _check_usable(wanted, _can_adapt(shot, delta, mechanism))
    if wanted is Method.AUTO:
        spread = None if reference is None else reference.spread
        return Method(choose_method(shot, n, epsilon, delta, mechanism, spread))
    if wanted is Method.ADAPTIVE and shot.max_records is not None:
        raise ParameterError(
            f"{named('max_records')} goes with {named('method', 'oneshot')} (or 'auto')"
        )
    if wanted is Method.ADAPTIVE and not _can_adapt(shot, delta, mechanism):
        raise ParameterError(
            f"{named('method', 'adaptive')} needs Gaussian noise: {named('delta')} above 0, "
            f"{named('mechanism')} 'auto' or 'gaussian', replace-one adjacency"
        )
    return wanted


def _check_usable(wanted: Method, possible: bool) -> None:
    """Refuse a reference that nothing would look at."""
    if wanted is Method.ONESHOT or not possible:
        raise ParameterError(
            f"{named('reference')} is for the adaptive method, which needs {named('delta')} above "
            f"0, {named('mechanism')} 'auto' or 'gaussian', {named('method')} 'auto' or "
            f"'adaptive', replace-one adjacency and no {named('max_records')}"
        )
