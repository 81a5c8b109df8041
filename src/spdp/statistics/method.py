"""Which method runs, one shot or a search, and with which noise.

:class:`Rule` chooses; :class:`OneShot` is one noisy sum over the whole domain, whose
noise and error law are known before any data is read. All of it is a function of
public numbers; where the number of records is private, not of that number.
docs/explanation/accuracy.md has the rule as a table.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import inf, sqrt
from typing import NamedTuple

from spdp.charts import LOGEUCLID, Chart
from spdp.domain.base import Domain, check_domain
from spdp.error.laws import AnyLaw, mean_law
from spdp.errors import ParameterError, named
from spdp.options import Adjacency, Mechanism, Method, Noise, choose, positive_int, remembered
from spdp.privacy.account import noise_scale
from spdp.privacy.budget import LARGEST_PURE, Budget
from spdp.queries.sums import VectorSum, count_weight, share_sum, whole_domain_sum
from spdp.statistics.reference import Reference

# rms error of a search from a public reference, over that of one shot with Gaussian
# noise: so many times the reference's spread over the radius
SEARCHED = 1.6
# Resolution is n·ε/√(d(d + 1)): twice the radius over the rms error of Laplace noise
# in one shot.
FEWEST = 3  # dimensions from which a search, or shrinkage, gains
SMALL, TENSORS = 4, 6  # dimensions of 2×2 (Hermitian: 4) and of 3×3 matrices
BETTER = 0.5  # squared error of Laplace over Gaussian noise from which it is far better
# For 3×3 matrices a search with Gaussian noise errs less at middle resolutions: below,
# neither finds a ball, and the smaller noise wins. How far up depends on the squared
# error of Laplace over Gaussian noise. It errs less again at the highest resolutions,
# where the records' shape, which it finds, counts more than noise does: Laplace noise
# errs a tenth less there on average, but at worst 3.5 times as much. Chosen on shapes
# that benchmarks/utility/small.py names, and on DTI.
GAUSSIAN_FROM, SHAPE_FROM = 15.0, 5000.0
GAUSSIAN_TO = ((0.36, 60.0), (0.43, 140.0), (BETTER, inf))


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


class Choice(NamedTuple):
    """A method, its budget and so its noise, and why it was chosen."""

    method: Method
    budget: Budget
    reason: str


@dataclass(frozen=True)
class Rule:
    """Which method runs, and with which noise, from public numbers alone."""

    shot: OneShot  # the better noise of those that are allowed
    epsilon: float
    delta: float
    mechanism: str
    reference: Reference | None = None
    once: bool = False  # whether records can be read only once

    @property
    def d(self) -> int:
        return len(self.shot.query.frame.center)

    def choose(self, n: int | None, method: str) -> Choice:
        """The method and noise where ``method`` is asked for, of n records.

        n is None where it is private, or not known before reading.
        """
        if method == Method.ONESHOT and self.reference is None:
            return Choice(Method.ONESHOT, self.shot.budget, "as asked")
        budget = self.search_budget(n)
        self.check(method, budget.noise)
        found, reason = Method(method), "as asked"
        if found is Method.AUTO:
            found, reason = self.better(n, budget.noise)
        return Choice(found, self.shot.budget if found is Method.ONESHOT else budget, reason)

    def check(self, method: str, noise: Noise) -> None:
        """Refuse what cannot be combined."""
        if self.shot.max_records is not None and method == Method.ADAPTIVE:
            raise ParameterError(f"{named('max_records')} goes with {named('method', 'oneshot')}")
        if self.reference is None:
            return
        searches = method != Method.ONESHOT and self.shot.max_records is None
        if not searches or noise is Noise.LAPLACE:
            raise ParameterError(
                f"{named('reference')} is for the adaptive method with Gaussian noise, which needs "
                f"{named('delta')} above 0, {named('mechanism')} 'auto' or 'gaussian', "
                f"{named('method')} 'auto' or 'adaptive', and no {named('max_records')}"
            )

    def resolution(self, n: int) -> float:
        """2R over the rms error of one shot with Laplace noise; 0 where ε is 0."""
        return n * self.epsilon / sqrt(self.d * (self.d + 1.0))

    def search_budget(self, n: int | None) -> Budget:
        """The budget, and so the noise, that a search has.

        In few dimensions Laplace noise is small, and a search needs few steps. In more,
        and for 3×3 matrices at some resolutions, Gaussian noise errs less.
        """
        if self.delta == 0 or self.mechanism == Mechanism.LAPLACE:
            return Budget.pure(self.epsilon)
        gaussian = Budget.gaussian(self.epsilon, self.delta)
        pure = 0 < self.epsilon <= LARGEST_PURE
        if self.mechanism == Mechanism.GAUSSIAN or self.reference is not None or not pure:
            return gaussian
        ratio = (self.d + 1) * gaussian.whole**2 / self.epsilon**2
        if ratio > BETTER or self.d > TENSORS:
            return gaussian
        if self.d <= SMALL or n is None:
            return Budget.pure(self.epsilon)
        resolution, to = self.resolution(n), next(to for most, to in GAUSSIAN_TO if ratio <= most)
        shaped = GAUSSIAN_FROM <= resolution < to or resolution >= SHAPE_FROM
        return gaussian if shaped else Budget.pure(self.epsilon)

    def better(self, n: int | None, noise: Noise) -> tuple[Method, str]:
        """The method that public numbers predict to be better, and why."""
        one_shot, adaptive = Method.ONESHOT, Method.ADAPTIVE
        if self.shot.max_records is not None:
            return one_shot, "persons are weighted"
        if self.d < FEWEST:
            return one_shot, f"in {self.d} dimension(s) a search gains nothing"
        if self.reference is not None and n is not None:
            return self.from_reference(n, self.reference), "by the reference's spread"
        if n is None:
            if self.reference is not None:
                return adaptive, "a reference is for a search"
            if self.once or self.shot.adjacency is Adjacency.REPLACE_ONE:
                return one_shot, "the number of records is not known before they are read"
            return adaptive, "the number of records is private, and counted first"
        resolution = f"a resolution n·ε/√(d(d + 1)) of {self.resolution(n):.3g}"
        about = f"at {resolution} a search with {noise.capitalize()} noise errs least on average"
        return adaptive, f"{about} over many kinds of data"

    def from_reference(self, n: int, reference: Reference) -> Method:
        """The spread of a public reference predicts the error of the search."""
        loss, radius = self.shot.expected_squared_error(n), self.shot.query.radius
        gaussian = self.shot.of_gaussian(self.epsilon, self.delta).expected_squared_error(n)
        predicted = min(1.0, SEARCHED * reference.spread / radius) ** 2 * gaussian
        few = loss > 0.5 * radius**2
        return Method.ADAPTIVE if few or loss >= predicted else Method.ONESHOT
