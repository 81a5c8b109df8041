"""Errors of releases not made yet, from public numbers."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from spdp.charts import Chart, chart_of
from spdp.choices import Adjacency, Mechanism, Method, Noise, Unit, choose, positive
from spdp.domain import Domain, check_domain
from spdp.errors import ParameterError, named
from spdp.kernels import Region
from spdp.lattice import MAX_RECORDS
from spdp.privacy.costs import Budget
from spdp.privacy.laws import mean_of, quantiles
from spdp.progress import track
from spdp.statistics.plan import OneShot, plan_one_shot, settle_method
from spdp.statistics.reference import Reference
from spdp.statistics.simulation import (
    COARSE_SAMPLE,
    LARGEST_SAMPLE,
    Population,
    Prediction,
    simulate,
)

__all__ = ["RUNS", "Advance", "Planner"]

Array = NDArray[np.float64]
Advance = Callable[[float], None]

SPREADS = (0.05, 0.1, 0.2, 0.5)  # of the radius, where nobody says how wide the data are
OFFSET = 0.3  # of the radius, where nobody says how far the mean is from the centre
RUNS = 12  # releases that are simulated
COARSE_RUNS = 4  # of predictions for other numbers of records, or budgets
REACH, POINTS = 30.0, 4  # curves show n/30 to n, and n to 30·n, in so many points


@dataclass(frozen=True, eq=False)
class Planner:
    """Predictions for one kind of data; see :func:`spdp.plan` for the parameters."""

    _: KW_ONLY
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
    random_state: int = 0

    def __post_init__(self) -> None:
        for name, value in (("n", self.n), ("k", self.k)):
            if value != int(value) or not 1 <= value <= MAX_RECORDS:
                raise ParameterError(
                    f"{named(name)} must be a whole number from 1 to 2**32, got {value}"
                )
        check_domain(self.domain)
        choose(Mechanism, self.mechanism, "mechanism")
        choose(Adjacency, self.adjacency, "adjacency")
        choose(Unit, self.unit, "unit")
        for public in (self.reference, self.shape):
            if public is not None:
                public.check(self.k, self.metric)
        # raise now for what cannot be used
        _ = self.spreads, self.away, self.shots, self.will_run(self.n, self.epsilon)

    # --- what is asked

    @cached_property
    def chart(self) -> Chart:
        return chart_of(self.metric)

    @cached_property
    def region(self) -> Region:
        return self.domain.region(self.k, self.chart)

    @property
    def radius(self) -> float:
        return float(self.region.radius)

    @property
    def shape(self) -> Reference | None:
        """Public data that the made-up data are shaped like."""
        return self.spread if isinstance(self.spread, Reference) else self.reference

    @cached_property
    def spreads(self) -> list[float]:
        """Spreads of the made-up data."""
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
            step = self.shape.frame.center - self.region.center
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

    # --- one shot

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
            chart=self.chart,
        )

    @cached_property
    def shots(self) -> dict[str, OneShot]:
        """One shot with each noise that mechanism and budget allow."""
        best = self.shot(self.epsilon)
        if self.mechanism != Mechanism.AUTO:
            return {str(best.noise): best}
        noises = [Noise.GAUSSIAN] * (self.delta > 0) + [Noise.LAPLACE] * (self.epsilon > 0)
        return {str(noise): self.shot(self.epsilon, noise) for noise in noises}

    def exact(self) -> dict[str, Prediction]:
        """Errors of one shot with each noise."""
        laws = {name: shot.law(self.n) for name, shot in self.shots.items()}
        return {
            name: Prediction(None, self.away[0], sqrt(mean_of(law)), sqrt(quantiles(law)["95%"]))
            for name, law in laws.items()
        }

    # --- adaptive

    @property
    def can_adapt(self) -> bool:
        """Whether the adaptive method can run at all."""
        gaussian = self.delta > 0 and self.mechanism != Mechanism.LAPLACE
        return gaussian and self.adjacency == Adjacency.REPLACE_ONE

    @cached_property
    def populations(self) -> list[Population]:
        """Made-up data, one set for each spread."""
        return [
            Population.drawn(
                self.region,
                self.chart,
                spread,
                offset=self.away[0],
                shape=self.shape,
                seed=self.random_state,
            )
            for spread in self.spreads
        ]

    @lru_cache(maxsize=4)  # noqa: B019 - a planner is short-lived
    def simulated(self, runs: int) -> tuple[Prediction, ...]:
        """Errors of the adaptive method for each spread."""
        if runs < 1:
            raise ParameterError(f"{named('runs')} must be at least 1, got {runs}")
        if not self.can_adapt:
            return ()
        with track("simulating releases", runs * len(self.spreads)) as advance:
            return tuple(
                self._simulate(made, self.n, self.epsilon, runs, LARGEST_SAMPLE, advance)
                for made in self.populations
            )

    def _simulate(
        self,
        made: Population,
        n: int,
        epsilon: float,
        runs: int,
        most: int,
        advance: Advance,
    ) -> Prediction:
        return simulate(
            made,
            self.chart,
            Budget.gaussian(epsilon, self.delta),
            n,
            runs,
            reference=self.reference,
            most=most,
            seed=self.random_state,
            advance=advance,
        )

    # --- the method that will run, for other numbers

    def will_run(self, n: int, epsilon: float) -> Method:
        """What ``private_mean`` will do."""
        shot = self.shot(epsilon)
        return settle_method(
            self.method, shot, n, epsilon, self.delta, self.mechanism, self.reference
        )

    @property
    def kinds(self) -> list[Population | None]:
        """Made-up data where the search may run; None stands for one shot's own law."""
        adapts = self.can_adapt and self.method != Method.ONESHOT
        return [*self.populations] if adapts else [None]

    def rms(self, n: int, epsilon: float, made: Population | None, advance: Advance) -> float:
        """Error of the method that will run, roughly where it is simulated."""
        if made is None or self.will_run(n, epsilon) is Method.ONESHOT:
            return sqrt(self.shot(epsilon).expected_squared_error(n))
        return self._roughly(made, n, epsilon, advance)

    def _roughly(self, made: Population, n: int, epsilon: float, advance: Advance) -> float:
        """Simulated rms error, from fewer runs and records."""
        return self._simulate(made, n, epsilon, COARSE_RUNS, COARSE_SAMPLE, advance).rms

    def curves(self, kinds: int | None = None, runs: int = RUNS) -> tuple[Array, dict[str, Array]]:
        """Numbers of records around n; rms errors of each noise and each spread.

        At n itself the errors are those of :meth:`exact` and :meth:`simulated`.
        ``kinds`` says how many spreads are enough.
        """
        grid = self._grid()
        errors = {
            f"one shot, {name}": np.sqrt([shot.expected_squared_error(n) for n in grid])
            for name, shot in self.shots.items()
        }
        some = self.populations[:kinds] if self.can_adapt else []
        with track("simulating a curve", len(some) * len(grid) * COARSE_RUNS) as advance:
            for made, here in zip(some, self.simulated(runs), strict=False):
                errors[f"adaptive, spread {made.spread:.3g}"] = np.array(
                    [
                        here.rms
                        if n == self.n
                        else self._roughly(made, int(n), self.epsilon, advance)
                        for n in grid
                    ]
                )
        return grid, errors

    def _grid(self) -> Array:
        """Numbers of records below and above n, and n itself."""
        below = np.geomspace(max(1, self.n / REACH), self.n, POINTS).round()
        above = np.geomspace(self.n, self.n * REACH, POINTS).round()
        grid = np.unique([*below, *above])
        return grid[grid <= MAX_RECORDS]
