r"""Private spread: Fréchet variance, deviations of the coordinates, distances.

The Fréchet variance of records y_i with mean ȳ is V = (1/n)·Σ ‖y_i − ȳ‖², the sum of
the variances of all coordinates. With a released centre c and records pulled to within
r of it, g(y) = c + (y − c)·min(1, r/‖y − c‖), one query
(:class:`spdp.queries.SpreadSum`) gives noisy means of g − c and of ‖g − c‖²; hence

    V̂ = mean of ‖g − c‖² − ‖mean of (g − c)‖² + d·σ²,

the last term for the noise σ of the mean. g is the projection onto a ball, so
‖g(x) − g(y)‖ ≤ ‖x − y‖, and V = (1/2n²)·Σ ‖y_i − y_j‖² of the pulled records never
exceeds that of all: V̂ is a *lower estimate*. What pulling takes off is what r must keep
small: r is larger than for a mean, from a histogram of distances, and what it takes off
the squares of records within 2r is measured.

Deviations of coordinates come from noisy means of absolute values, whose noise is far
smaller than that of squares: they are taken to be in the same ratio to each other, and
scaled such that their squares add up to V̂.

*A private number.* Where records may be added or removed, their number is asked first,
for a share of 1 % (:mod:`.counted`), which steers the search; the last query counts
them again at no more sensitivity than a record replaced has, and its sums are divided
by that n̂. Through it V̂ varies by a further |‖v‖² − V̂|·sd(n̂)/n̂.

*Enforced.* Queries are asked through the account, in the order of :class:`Spreads`;
the choice of c and r depends on earlier answers only. *Assumed*, *therefore*: as in
:mod:`spdp.statistics.mean`.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.certificate import SPREAD_TOO, mean_estimand
from spdp.domain import Domain
from spdp.engines import Engine
from spdp.frame import Frame
from spdp.privacy.account import Seed
from spdp.privacy.bounds import UPPER, along_one_axis
from spdp.privacy.ledger import Ledger
from spdp.queries import RECORD_NORM, AbsoluteSum, SpreadSum
from spdp.queries.spread import COUNTED
from spdp.release import Release
from spdp.statements import DISTANCES, SPREAD, TAKEN
from spdp.statistics.counted import countable
from spdp.statistics.pulled import Pulled, publish_with_mean
from spdp.statistics.search import Search
from spdp.statistics.search.run import CENTRE_BALL, CENTRE_SHARES, MAX_ROUNDS, ROUNDS_FROM
from spdp.statistics.search.shape import spreads
from spdp.statistics.search.state import Outside
from spdp.statistics.search.taken import SQUARE_SHARE, Taken, ask_taken, bounded
from spdp.statistics.setting import Setting, prepare

__all__ = ["LEVELS", "private_dispersion"]

Array = NDArray[np.float64]

LEVELS = np.array(DISTANCES)  # of the distances that are released
CENTRE_FROM = 18.0  # resolution from which a better centre pays
TAIL_SHARE, RATIO_SHARE = 0.05, 0.05


@dataclass(frozen=True, eq=False)
class Spread(Pulled):
    """What :class:`Spreads` found, in the records' own coordinates."""

    variance: float
    variance_sd: float
    deviations: Array
    distances: Array


class Spreads(Search):
    """A ball, a better centre in it, distances, what pulling takes off, the spread."""

    def find(self) -> Spread:
        """All steps; where there is no ball to be found, nothing is pulled."""
        clipped = self.resolution >= ROUNDS_FROM and self.find_ball(MAX_ROUNDS)
        if clipped and self.resolution >= CENTRE_FROM:
            self.find_centre()
        tail = self.ask_tail(TAIL_SHARE)
        seen = tail.quantiles(LEVELS, self.distance, self.m), self.ask_ratios()
        if not clipped:
            return self.measure(Frame.plain(self.home), self.far, Taken(), *seen)
        radius = tail.square_radius(self.distance, self.m, self.square_noise())
        return self.measure(self.frame, radius, ask_taken(self, radius), *seen)

    def later_share(self) -> float:
        asked = TAIL_SHARE + RATIO_SHARE + self.excess_share() + SQUARE_SHARE
        return asked + self.shares(CENTRE_SHARES)

    def ask_ratios(self) -> Array:
        """Deviations of the coordinates, up to a common factor."""
        radius = min(CENTRE_BALL * self.distance, self.far)
        query = AbsoluteSum("spread", self.frame, radius)
        answer = self.account.measure(query, self.held.total(query), RATIO_SHARE)
        unit = radius / RECORD_NORM / self.m
        return spreads(answer.values * unit, answer.scale * unit)

    def square_noise(self) -> float:
        """Noise of a variance in a unit ball, with all that is left."""
        unit, noise = SpreadSum("", Frame.plain(self.home), 1.0).units(1)[1], self.noise()
        return sqrt((noise * RECORD_NORM * unit) ** 2 + 2.0 * self.d * noise**4)

    def measure(
        self, frame: Frame, radius: float, taken: Taken, distances: Array, ratios: Array
    ) -> Spread:
        """The spread with all that is left, debiased for noise."""
        query = SpreadSum("spread moments", frame, radius, 0 if self.public else COUNTED)
        answer = self.account.measure(query, self.held.total(query, True), 1.0)
        number = self.number(answer.values[-1] / COUNTED, answer.scale / COUNTED)
        v, square = query.moments(answer.values, number.value)
        sigma, square_sd = (answer.scale * unit for unit in query.units(number.value))
        length = max(float(v @ v) - self.d * sigma**2, 0.0)
        variance = max(square - float(v @ v) + self.d * sigma**2, 0.0)
        counted = (length - variance) * number.sd / number.value
        sd = sqrt(square_sd**2 + counted**2 + 4.0 * length * sigma**2 + 2.0 * self.d * sigma**4)
        self.account.note(radius=radius, variance_sd=sd)
        self.frame = frame
        noise, taken = np.full(self.d, sigma**2), taken.times(self.n / number.value)
        y, bound = bounded(self, v, noise, radius, taken, number)
        sampling = along_one_axis(
            self.d,
            noise[0] * number.stretch**2,
            (variance + UPPER * sd) * number.stretch / number.value,
        )
        spread = ratios * sqrt(variance / float(ratios @ ratios))
        return Spread(
            y=y,
            radius=radius,
            bound=bound,
            taken=taken,
            sampling=sampling,
            number=number,
            variance=variance,
            variance_sd=sd,
            deviations=spread,
            distances=distances,
        )


def private_dispersion(
    X: Any,
    *,
    epsilon: float,
    delta: float,
    domain: Domain,
    metric: str = "logeuclid",
    reference_point: Any = None,
    adjacency: str = "replace-one",
    groups: Any = None,
    on_invalid: str = "raise",
    ledger: Ledger | None = None,
    label: str | None = None,
    random_state: Seed = None,
    engine: Engine | None = None,
) -> Release:
    """Release mean, Fréchet variance and spread of matrices, under one budget.

    The options are those of :func:`spdp.private_mean`. Under "add-remove" the number of
    records (or persons) is private, and released with the rest.

    Returns
    -------
    Release
        ``values["mean"]`` (k, k); ``"variance"``, a number, the sum of the variances of
        all coordinates; ``"deviations"`` (d,), the standard deviation of each
        coordinate of the metric's chart; ``"distances"``, quantiles at
        :data:`LEVELS` of the distance to the centre that the search had found.
        Variance and deviations are lower estimates (this module's text);
        ``population_bound`` bounds the distance to the population's mean.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds, private_dispersion
    >>> scales = np.exp(np.random.default_rng(0).normal(0.0, 0.5, 2000))
    >>> X = scales[:, None, None] * np.eye(2)
    >>> domain = EigenvalueBounds(0.01, 100.0)
    >>> release = private_dispersion(X, epsilon=2.0, delta=1e-6, domain=domain)
    >>> bool(0.4 < release.values["variance"] < 0.6)  # 2·0.5²
    True
    """
    setting = prepare(
        X,
        epsilon=epsilon,
        delta=delta,
        domain=domain,
        metric=metric,
        reference_point=reference_point,
        adjacency=adjacency,
        groups=groups,
        on_invalid=on_invalid,
        ledger=ledger,
        label=label,
        random_state=random_state,
        engine=engine,
    )
    held = countable(setting.gather(), setting.account, setting.region)
    search = Spreads(held, setting.account, setting.region, setting.chart)
    outside = search.ask_outside()
    spread = search.find()
    return _publish(setting, spread, outside)


def _publish(setting: Setting, found: Spread, outside: Outside | None) -> Release:
    unit = setting.source.unit
    values = {
        "variance": np.array(found.variance),
        "deviations": found.deviations,
        "distances": found.distances,
    }
    return publish_with_mean(
        setting,
        found,
        outside,
        values,
        statistic="dispersion",
        estimand=mean_estimand(setting.chart.distance, unit) + SPREAD_TOO,
        error_statement=_statement(found, unit.value),
    )


def _statement(found: Spread, unit: str) -> str:
    text = SPREAD.format(unit=unit, radius=found.radius, sd=found.variance_sd)
    if found.taken.reach == 0.0:
        return text
    taken = found.taken
    return text + TAKEN.format(
        unit=unit, taken=taken.square, taken_sd=taken.square_sd, reach=taken.reach
    )
