"""Predicted errors of releases, from public numbers."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache, partial
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from spdp.charts import chart_of
from spdp.data.progress import track
from spdp.domain.base import Domain, Space, check_domain
from spdp.engines.store import MAX_RECORDS
from spdp.error.informative import UNINFORMATIVE
from spdp.error.laws import quantiles
from spdp.errors import ParameterError, named
from spdp.kernels.arrays import Array
from spdp.options import Adjacency, Covariance, Mechanism, Method, Noise, Unit, choose, positive
from spdp.planning.population import COARSE_SAMPLE, LARGEST_SAMPLE, Population
from spdp.privacy.account import Account
from spdp.privacy.budget import Budget
from spdp.statistics import STATISTICS, find
from spdp.statistics.base import DISTANCE, Context, Settled, Statistic
from spdp.statistics.mean import Mean
from spdp.statistics.method import TENSORS, OneShot, plan_one_shot
from spdp.statistics.reference import Reference
from spdp.statistics.refusal import fewest_records

Advance = Callable[[float], None]

SPREADS = (0.05, 0.1, 0.2, 0.5)  # over the radius, unless a spread is given
OFFSET = 0.3  # over the radius, unless the distance of the mean from the centre is given
# Options of some statistics, and the option of these that they stand for.
OWN = {name: name for name in ("mechanism", "method", "covariance", "n_components", "classes")}
OWN |= {"effect": "classes", "covariates": "ranges"}
EFFECT = 0.5  # over the spread, unless the distance of class means is given
RUNS = 12  # simulated releases
COARSE_RUNS = 16  # simulated releases for other numbers of records, or budgets
TEST_RUNS = 40  # simulated releases for a share, such as a test's power
REACH, POINTS = 30.0, 4  # curves show n/30 to n, and n to 30·n, in so many points


class Prediction(NamedTuple):
    """What a statistic is predicted to reach on data of one spread.

    Attributes
    ----------
    spread : float or None
        Root mean square distance of records from their mean; None where the error does
        not depend on it (one shot).
    offset : float
        Distance of that mean from the domain's centre: the error of returning the
        centre.
    rms : float
        Root mean square error; ``measure`` says of what.
    bound : float or None
        The 95 % bound on the error that a certificate will state; the median over
        simulated releases, since a few that retreat to the whole domain state far
        larger ones.
    measure : str
        What ``rms`` is an error of.
    numbers : dict
        Further predictions, by name.
    """

    spread: float | None
    offset: float
    rms: float
    bound: float | None
    measure: str = DISTANCE
    numbers: dict[str, float] = {}  # noqa: RUF012 - never changed

    @property
    def uninformative(self) -> bool:
        """Whether the domain's centre, which costs no privacy, is about as good."""
        return self.measure == DISTANCE and self.rms >= UNINFORMATIVE * self.offset

    @property
    def hopeless(self) -> bool:
        """:attr:`uninformative`, as it was called in version 0.2."""
        return self.uninformative

    def describe(self) -> dict[str, Any]:
        """JSON-ready."""
        return {**self._asdict(), "uninformative": self.uninformative}


@dataclass(frozen=True, eq=False, kw_only=True)
class Planner:
    """Predictions for one kind of data; see :func:`spdp.plan` for the parameters."""

    statistic: str = "mean"
    n: int
    k: int
    epsilon: float
    delta: float
    domain: Domain
    spread: float | str | Reference | None = None
    offset: float | str | None = None
    reference: Reference | None = None
    metric: str = "logeuclid"
    adjacency: str = "replace-one"
    mechanism: str = "auto"
    method: str = "auto"
    unit: str = "record"
    effect: float | None = None
    classes: int = 2
    covariance: str = "none"
    covariates: int = 1
    n_components: int = 1
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            names = ", ".join(map(repr, STATISTICS))
            raise ParameterError(f"statistic must be one of {names}, got {self.statistic!r}")
        for name, value in (("n", self.n), ("k", self.k)):
            if value != int(value) or not 1 <= value <= MAX_RECORDS:
                raise ParameterError(f"{named(name)} must be an integer from 1 to 2**32: {value}")
        check_domain(self.domain)
        taken = {f.name for f in fields(find(self.statistic))}
        others = [f for f in fields(self) if f.name in OWN and OWN[f.name] not in taken]
        for f in others:
            if getattr(self, f.name) != f.default:
                raise ParameterError(f"{named(f.name)} is not an option of {self.statistic}")
        for kind in (Mechanism, Method, Adjacency, Covariance, Unit):
            choose(kind, getattr(self, name := kind.__name__.lower()), name)
        if self.effect is not None:
            positive("effect", self.effect)
        for public in (self.reference, self.shape):
            if public is not None:
                public.check(self.k, self.metric)
        # raise now for what cannot be used
        self.planned.prepare(_Counted(self.space, self.n))
        _ = self.spreads, self.away, self.shots, self.settled(self.n, self.epsilon)

    # --- what is asked

    @cached_property
    def space(self) -> Space:
        chart = chart_of(self.metric, curved=find(self.statistic).curved)
        return Space.of(chart, self.domain, self.k)

    @property
    def curved(self) -> bool:
        """Whether the metric is: then no error has an exact law."""
        return not self.space.chart.flat

    @property
    def radius(self) -> float:
        return float(self.space.region.radius)

    @property
    def is_mean(self) -> bool:
        return self.statistic == Mean.name

    @cached_property
    def planned(self) -> Statistic:
        """The statistic that would be released."""
        if self.is_mean:
            return Mean(self.mechanism, self.method, reference=self.reference)
        kind: type[Statistic] = type(find(self.statistic))
        return kind.planned(self)

    @cached_property
    def thresholds(self) -> dict[str, int | None]:
        """Numbers of records below which the statistic refuses, or finds nothing."""
        if self.delta <= 0:
            return {}
        mu = Budget.gaussian(self.epsilon, self.delta).mu
        assert mu is not None
        return self.planned.thresholds(len(self.space.region.center), mu)

    @property
    def shape(self) -> Reference | None:
        """Public data that the synthetic records are shaped like."""
        return self.spread if isinstance(self.spread, Reference) else self.reference

    @cached_property
    def spreads(self) -> list[float]:
        """Spreads of the synthetic records."""
        if self.spread is not None and not isinstance(self.spread, Reference):
            return [self._length("spread", self.spread)]
        if self.shape is not None:
            return [self.shape.spread]
        return [share * self.radius for share in SPREADS]

    @cached_property
    def away(self) -> tuple[float, str]:
        """Distance of the data's mean from the domain's centre, and how it is known."""
        if self.offset is not None:
            return self._length("offset", self.offset), "as given"
        if self.shape is not None:
            step = self.shape.frame.center - self.space.region.center
            return min(float(np.linalg.norm(step)), self.radius), "as in the reference"
        return OFFSET * self.radius, f"assumed to be {OFFSET:.0%} of the domain's radius"

    def _length(self, name: str, value: float | str) -> float:
        """A distance, given as one or as a share of the radius."""
        text = value.strip() if isinstance(value, str) else ""
        try:
            if text.endswith("%"):
                length = positive(name, text[:-1]) / 100 * self.radius
            else:
                length = positive(name, text or value)
        except ParameterError:
            raise ParameterError(
                f"{named(name)} must be a positive number, or a share of the domain's radius such "
                f"as '10%', got {value!r}"
            ) from None
        if length > self.radius:
            raise ParameterError(
                f"{named(name)} {length:.4g} is more than the domain's radius {self.radius:.4g}: "
                "no records in the domain have it"
            )
        return length

    @cached_property
    def populations(self) -> list[Population]:
        """Synthetic records, one set for each spread."""
        classes = len(getattr(self.planned, "classes", ())) or 1
        return [
            Population.drawn(
                self.space,
                spread,
                offset=self.away[0],
                shape=self.shape,
                classes=classes,
                effect=EFFECT * spread if self.effect is None else self.effect,
                covariates=len(getattr(self.planned, "ranges", ())) or 1,
                seed=self.random_state,
            )
            for spread in self.spreads
        ]

    # --- the exact law, where there is one

    @lru_cache(maxsize=256)  # noqa: B019 - a planner is short-lived
    def shot(self, epsilon: float, mechanism: str | None = None) -> OneShot:
        """One shot for some ε, with the better noise unless one is named."""
        return plan_one_shot(
            self.k,
            epsilon=epsilon,
            delta=self.delta,
            domain=self.domain,
            mechanism=mechanism or self.mechanism,
            adjacency=self.adjacency,
            chart=self.space.chart,
        )

    @cached_property
    def shots(self) -> dict[str, OneShot]:
        """One shot with each noise that mechanism and budget allow."""
        if not self.is_mean or self.curved:
            return {}
        best = self.shot(self.epsilon)
        if self.mechanism != Mechanism.AUTO:
            return {str(best.noise): best}
        noises = [Noise.GAUSSIAN] * (self.delta > 0) + [Noise.LAPLACE] * (self.epsilon > 0)
        return {str(noise): self.shot(self.epsilon, noise) for noise in noises}

    def exact(self) -> dict[str, Prediction]:
        """Errors of one shot with each noise."""
        laws = {name: shot.law(self.n) for name, shot in self.shots.items()}
        return {
            name: Prediction(None, self.away[0], sqrt(law.mean()), sqrt(quantiles(law)["95%"]))
            for name, law in laws.items()
        }

    # --- simulation

    @property
    def simulates(self) -> bool:
        """Whether a method may run whose error has no exact law."""
        return not self.is_mean or self.curved or self.method != Method.ONESHOT

    @cached_property
    def search_noises(self) -> list[Noise]:
        """Noises that are simulated: the one that would be used first."""
        if not self.simulates:
            return []
        own = self._settled(self._searching(), _Counted(self.space, self.n), self.epsilon)
        first = own.budget.noise
        small = len(self.space.region.center) <= TENSORS  # elsewhere Gaussian noise is far better
        free = self.is_mean and self.mechanism == Mechanism.AUTO and self.reference is None
        if not free or not small or self.delta == 0 or self.epsilon == 0:
            return [first]
        return [first, Noise.GAUSSIAN if first is Noise.LAPLACE else Noise.LAPLACE]

    @lru_cache(maxsize=4)  # noqa: B019 - a planner is short-lived
    def simulated(self, runs: int, noise: Noise | None = None) -> tuple[Prediction, ...]:
        """Simulated errors for each spread; for a mean, of the adaptive method.

        ``noise`` is that of a mean's search, if not the one it would have.
        """
        if runs < 1:
            raise ParameterError(f"{named('runs')} must be at least 1, got {runs}")
        if not self.simulates:
            return ()
        if self.planned.shares:
            runs = max(runs, TEST_RUNS)
        with track("simulating releases", runs * len(self.spreads)) as advance:
            try:
                asked = self._searching(noise)
                return tuple(
                    self.simulate(made, self.n, self.epsilon, runs, LARGEST_SAMPLE, advance, asked)
                    for made in self.populations
                )
            except ParameterError:  # refused: too few records, as the verdict says
                if any(least is None or self.n < least for least in self.thresholds.values()):
                    return ()
                raise

    def _searching(self, noise: Noise | None = None) -> Statistic:
        """The statistic to simulate; for a mean, always with the adaptive method."""
        if self.is_mean:
            once = self.curved and self.method == Method.ONESHOT
            method = Method.ONESHOT if once else Method.ADAPTIVE
            return Mean(noise or self.mechanism, method, reference=self.reference)
        return self.planned

    def simulate(
        self,
        population: Population,
        n: int,
        epsilon: float,
        runs: int,
        most: int,
        advance: Advance = lambda amount: None,
        asked: Statistic | None = None,
    ) -> Prediction:
        """Errors of releases of n such records, at most ``most`` of them distinct."""
        statistic, adjacency = asked or self._searching(), Adjacency(self.adjacency)
        errors: list[dict[str, float]] = []
        bounds: list[float] = []
        records = population.records(n, most, [self.random_state], False)
        for run in range(runs):
            if statistic.shares:
                records = population.records(n, most, [self.random_state, run], True)
            settled = self._settled(statistic, records, epsilon)
            rng = np.random.default_rng([self.random_state, run])
            account = Account(settled.budget, adjacency, random_state=rng)
            outcome = statistic.run(Context(self.space, account, records, settled))
            errors.append(statistic.errors(outcome, records))
            bound = outcome.bound or outcome.within
            if bound is not None:
                bounds.append(bound.at(0.95))
            advance(1)
        told = {name: _told(name in statistic.shares, errors, name) for name in errors[0]}
        measure, *others = told
        middle = float(np.quantile(bounds, 0.5)) if bounds else None
        numbers = {name: told[name] for name in others}
        rms = told[measure]
        return Prediction(population.spread, population.offset, rms, middle, measure, numbers)

    def _settled(self, statistic: Statistic, records: Any, epsilon: float) -> Settled:
        adjacency = Adjacency(self.adjacency)
        return statistic.settle(records, epsilon, self.delta, adjacency=adjacency, ledger=None)

    # --- what will run, for other numbers

    def settled(self, n: int, epsilon: float) -> Settled:
        """Budget and method that the statistic's function will use."""
        return self._settled(self.planned, _Counted(self.space, n), epsilon)

    def will_run(self, n: int, epsilon: float) -> Method:
        """The method that will run."""
        return Method(self.settled(n, epsilon).method)

    @property
    def refused(self) -> bool:
        """Whether the release is refused unless it is asked for ``anyway``."""
        public = self.adjacency == Adjacency.REPLACE_ONE
        return public and self.n < fewest_records(
            self.planned, self, self.settled(self.n, self.epsilon)
        )

    def is_exact(self, n: int, epsilon: float) -> bool:
        """Whether the error of the method that will run has an exact law."""
        return self.will_run(n, epsilon) is Method.ONESHOT

    @property
    def kinds(self) -> list[Population | None]:
        """Synthetic records where a search may run; None stands for an exact law."""
        searches = self.simulates and (self.curved or self.method != Method.ONESHOT)
        return [*self.populations] if searches else [None]

    def rms(self, n: int, epsilon: float, made: Population | None, advance: Advance) -> float:
        """Error of the method that will run: exact, or roughly simulated."""
        if self.is_mean and (made is None or self.will_run(n, epsilon) is Method.ONESHOT):
            return sqrt(self.shot(epsilon).expected_squared_error(n))
        assert made is not None
        return self.roughly(made, n, epsilon, advance).rms

    def roughly(self, made: Population, n: int, epsilon: float, advance: Advance) -> Prediction:
        """A prediction simulated with fewer runs and records."""
        runs = TEST_RUNS if self.planned.shares else COARSE_RUNS
        return self.simulate(made, n, epsilon, runs, COARSE_SAMPLE, advance)

    def curves(self, kinds: int | None = None, runs: int = RUNS) -> tuple[Array, dict[str, Array]]:
        """Numbers of records around n; rms errors of each noise and each spread.

        At n itself the errors are those of :meth:`exact` and :meth:`simulated`.
        ``kinds`` limits the number of spreads.
        """
        grid = self._grid()
        errors = {
            f"one shot, {name}": np.sqrt([shot.expected_squared_error(n) for n in grid])
            for name, shot in self.shots.items()
        }
        some = self.populations[:kinds] if self.simulates else []
        with track("simulating a curve", len(some) * len(grid) * COARSE_RUNS) as advance:
            for made, here in zip(some, self.simulated(runs), strict=False):
                rough = partial(self.roughly, made, epsilon=self.epsilon, advance=advance)
                rms = [here.rms if n == self.n else rough(n=int(n)).rms for n in grid]
                kind = "adaptive" if self.is_mean else self.statistic
                errors[f"{kind}, spread {made.spread:.3g}"] = np.array(rms)
        return grid, errors

    def _grid(self) -> Array:
        """Numbers of records below and above n, and n itself."""
        below = np.geomspace(max(1, self.n / REACH), self.n, POINTS).round()
        above = np.geomspace(self.n, self.n * REACH, POINTS).round()
        grid = np.unique([*below, *above])
        refused = max((least or 0 for least in self.thresholds.values()), default=0)
        return grid[(grid <= MAX_RECORDS) & (grid >= min(refused, self.n))]


@dataclass
class _Counted:
    """Records of which nothing but their number is known."""

    space: Space
    n: int
    grouped: bool = False
    rereadable: bool = True
    max_records: int | None = None
    classes: Any = None
    ranges: Any = None


def _told(share: bool, errors: list[dict[str, float]], name: str) -> float:
    """The root mean square of an error over runs, or the mean of a share."""
    values = np.array([error[name] for error in errors])
    return float(values.mean() if share else np.sqrt(np.mean(values**2)))
