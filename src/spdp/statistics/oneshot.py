"""One noisy sum over the whole domain: noise, scale and error law from public numbers.

Also predicts whether one shot or a search errs less.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from spdp.charts import LOGEUCLID, Chart
from spdp.domain.base import Domain, check_domain
from spdp.error.laws import AnyLaw, mean_law
from spdp.errors import ParameterError, named
from spdp.options import Adjacency, Mechanism, Method, Noise, choose, positive_int, remembered
from spdp.privacy.account import noise_scale
from spdp.privacy.budget import Budget
from spdp.queries.sums import VectorSum, count_weight, share_sum, whole_domain_sum
from spdp.statistics.reference import Reference

SEARCHED = 1.6  # a search errs by about this × spread/radius of what Gaussian one shot does


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
        """Sensitivity of the sum, in lattice units."""
        return self.query.sensitivity(self.adjacency)

    @cached_property
    def scale(self) -> float:
        """Scale of the noise, in lattice units."""
        return noise_scale(self.budget, self.sensitivity)

    def law(self, n: float) -> AnyLaw:
        """Law of the squared distance of the release to the mean of n clipped records.

        Exact under replace-one. Under add-remove n is the released estimate n̂, and the
        error is (N − N'·m)/n̂ with the count's noise N' and the offset m of the mean
        from the centre, ‖m‖ ≤ r. The law for ‖m‖ = r is given: an upper bound.
        """
        unit = (self.scale * self.query.step / n) ** 2
        d = len(self.query.frame.center)
        return mean_law(self.noise is Noise.LAPLACE, d, unit, self.query.stretch)

    def expected_squared_error(self, n: float) -> float:
        return self._error_of_sum / n**2

    @cached_property
    def _error_of_sum(self) -> float:
        return self.law(1.0).mean()

    @lru_cache(maxsize=16)  # noqa: B019 - plans of the same numbers are kept anyway
    def of_gaussian(self, epsilon: float, delta: float) -> "OneShot":
        """The same sum with Gaussian noise."""
        return replace(self, budget=Budget.gaussian(epsilon, delta))


@remembered  # many releases share their public numbers
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
    asks for pure differential privacy. With ``max_records`` persons are weighted by the
    number of their records, up to that; the sum of the weights is then released, too.
    """
    neighbours = choose(Adjacency, adjacency, "adjacency")
    region = check_domain(domain).region(k, chart)
    private = neighbours is Adjacency.ADD_REMOVE  # the number of records
    query: VectorSum = whole_domain_sum(region, count_weight(len(region.center)) if private else 0)
    if max_records is not None:
        max_records = positive_int("max_records", max_records)
        query = share_sum(region, neighbours)
    possible, refusal = [], ParameterError("no noise is possible")
    for budget in _budgets(choose(Mechanism, mechanism, "mechanism"), epsilon, delta):
        shot = OneShot(budget, neighbours, domain, k, query, chart, max_records)
        try:  # its noise may not fit the integers
            possible.append((shot.expected_squared_error(1.0), shot))
        except ParameterError as error:
            refusal = error
    if not possible:
        raise refusal
    return min(possible, key=lambda pair: pair[0])[1]


def _budgets(wanted: Mechanism, epsilon: float, delta: float) -> list[Budget]:
    """The budgets among which the mechanism may choose."""
    if delta == 0 and wanted is Mechanism.GAUSSIAN:
        raise ParameterError(
            f"{named('delta', '0')} asks for pure DP, which Gaussian noise cannot give"
        )
    if delta == 0:
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
    method: str,
    reference: Reference | None = None,
) -> Method:
    """The method that will run when ``method`` is asked for.

    Only a search uses a ``reference``: where none can run, a reference is refused.
    """
    gaussian = delta > 0 and mechanism != Mechanism.LAPLACE
    adapts = gaussian and shot.adjacency is Adjacency.REPLACE_ONE and not shot.max_records
    if reference is not None and (method == Method.ONESHOT or not adapts):
        raise ParameterError(
            f"{named('reference')} is for the adaptive method, which needs {named('delta')} above "
            f"0, {named('mechanism')} 'auto' or 'gaussian', {named('method')} 'auto' or "
            f"'adaptive', replace-one adjacency and no {named('max_records')}"
        )
    if method == Method.AUTO:
        spread = None if reference is None else reference.spread
        return _better(shot, n, epsilon, delta, spread) if adapts else Method.ONESHOT
    if method == Method.ADAPTIVE and shot.max_records is not None:
        raise ParameterError(f"{named('max_records')} goes with {named('method', 'oneshot')}")
    if method == Method.ADAPTIVE and not adapts:
        raise ParameterError(
            f"{named('method', 'adaptive')} needs Gaussian noise: {named('delta')} above 0, "
            f"{named('mechanism')} 'auto' or 'gaussian', replace-one adjacency"
        )
    return Method(method)


def _better(
    shot: OneShot, n: int | None, epsilon: float, delta: float, spread: float | None
) -> Method:
    """The method that public numbers predict to be better.

    A smaller ball, or shrinkage where noise is too large to find one, gains in three
    dimensions or more. But where Laplace noise is far better in one shot (small k), a
    search, which needs Gaussian noise, would lose on data that fill the domain. The
    ``spread`` of a public reference predicts the error of the search, which then runs
    unless the error of one shot is smaller.
    """
    if spread is None and (not n or shot.k == 1):
        return Method.ONESHOT
    if not n:  # not known before reading, so nothing is predicted; a reference asks for a search
        return Method.ADAPTIVE
    loss, radius = shot.expected_squared_error(n), shot.query.radius
    if loss > 0.5 * radius**2:
        return Method.ADAPTIVE
    searched = shot.of_gaussian(epsilon, delta).expected_squared_error(n)
    gain = 0.5 if spread is None else min(1.0, SEARCHED * spread / radius) ** 2
    return Method.ONESHOT if loss < gain * searched else Method.ADAPTIVE
