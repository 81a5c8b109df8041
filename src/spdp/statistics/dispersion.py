r"""Private spread: Fréchet variance, deviations of the coordinates, distances.

The Fréchet variance of records y_i with mean ȳ is V = (1/n)·Σ ‖y_i − ȳ‖², the sum of
the variances of all coordinates. With a released centre c and records pulled to within
r of it, g(y) = c + (y − c)·min(1, r/‖y − c‖), one query
(:class:`spdp.queries.SpreadSum`) gives noisy means of g − c, of its squares, coordinate
by coordinate, and of ‖g − c‖²; hence

    V̂ = mean of ‖g − c‖² − ‖mean of (g − c)‖² + d·σ²,

the last term for the noise σ of the mean. g is the projection onto a ball, so
‖g(x) − g(y)‖ ≤ ‖x − y‖, and V = (1/2n²)·Σ ‖y_i − y_j‖² of the pulled records never
exceeds that of all: V̂ is a *lower estimate*. What pulling takes off is what r must keep
small: r is larger than for a mean, from a histogram of distances, and what it takes off
the squares of records within 2r is measured.

*Enforced.* Queries are asked through the account, in the order of :class:`Spreads`;
the choice of c and r depends on earlier answers only. *Assumed*, *therefore*: as in
:mod:`spdp.statistics.mean`.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.certificate import mean_estimand
from spdp.domain import Domain
from spdp.engines import Engine
from spdp.frame import Frame
from spdp.privacy.account import Seed
from spdp.privacy.bounds import Bound
from spdp.privacy.ledger import Ledger
from spdp.queries import RECORD_NORM, ExcessSum, SpreadSum
from spdp.release import Release, publish
from spdp.statistics.population import along_one_axis, population_bound
from spdp.statistics.search import Search
from spdp.statistics.search.outside import warn_outside
from spdp.statistics.search.run import MAX_ROUNDS, ROUNDS_FROM
from spdp.statistics.setting import Setting, prepare

__all__ = ["LEVELS", "private_dispersion"]

Array = NDArray[np.float64]

LEVELS = np.array([0.1, 0.25, 0.5, 0.75, 0.9, 0.95])  # of the distances that are released
CENTRE_FROM = 18.0  # resolution from which a better centre pays
TAIL_SHARE = 0.05
SQUARE_SHARE, SQUARE_REACH = 0.03, 2.0  # of what pulling takes off, and how far it is seen
UPPER = 2.0  # standard deviations of noise by which a variance is taken to be larger

STATEMENT = (
    "the mean: the whole error (noise and clipping), with at least the stated probability over "
    "the noise, whatever the records are. The variance and the deviations are lower estimates, "
    "for the {unit}s were pulled to within {radius:.4g} of a released centre; the noise of the "
    "variance has a standard deviation of {sd:.3g}"
)
TAKEN = (
    ", and what pulling took off it is about {taken:.3g} ± {taken_sd:.2g} for {unit}s within "
    "{reach:.4g}"
)


@dataclass(frozen=True, eq=False)
class Taken:
    """What pulling records to a ball takes off: distances, and squares within reach."""

    distance: float = 0.0
    distance_sd: float = 0.0
    square: float = 0.0
    square_sd: float = 0.0
    reach: float = 0.0


@dataclass(frozen=True, eq=False)
class Spread:
    """What :class:`Spreads` found, in the records' own coordinates."""

    y: Array
    sigma: float  # noise of y, per coordinate
    radius: float
    bound: Bound
    variance: float
    variance_sd: float
    deviations: Array
    distances: Array
    taken: Taken


class Spreads(Search):
    """A ball, a better centre in it, distances, what pulling takes off, the spread."""

    def find(self) -> Spread:
        """All steps; where there is no ball to be found, nothing is pulled."""
        clipped = self.resolution >= ROUNDS_FROM and self.find_ball(MAX_ROUNDS)
        if clipped and self.resolution >= CENTRE_FROM:
            self.find_centre()
        tail = self.ask_tail(TAIL_SHARE)
        distances = tail.quantiles(LEVELS, self.m)
        self.account.note(levels=LEVELS.tolist(), distances=distances.tolist())
        if not clipped:
            return self.measure(Frame.plain(self.home), self.far, Taken(), distances)
        radius = tail.square_radius(self.distance, self.m, self.square_noise())
        return self.measure(self.frame, radius, self.ask_taken(radius), distances)

    def later_share(self) -> float:
        return TAIL_SHARE + self.excess_share() + SQUARE_SHARE + self.shares((9.0, 0.03, 0.10))

    def square_noise(self) -> float:
        """Noise of a mean of squares in a unit ball, with all that is left."""
        unit = SpreadSum("", Frame.plain(self.home), 1.0).units(1)[2]
        return self.noise() * RECORD_NORM * unit

    def ask_taken(self, radius: float) -> Taken:
        """What pulling to ``radius`` takes off, all records looked at."""
        far = max(self.reach(), radius)
        near = min(SQUARE_REACH * radius, far)
        shares = self.excess_share(), SQUARE_SHARE
        weights = tuple(int(RECORD_NORM * sqrt(share / sum(shares))) for share in shares)
        query = ExcessSum("excess", self.frame, radius, (far, near), weights, (1, 2))
        answer = self.account.measure(query, self.held.total(query, True), sum(shares))
        units = np.array([far, near**2]) / weights / self.n
        (one, two), (sd, square_sd) = answer.values * units, answer.scale * units
        self.account.note(excess=[one, two], reach=[far, near])
        return Taken(float(one), float(sd), float(two), float(square_sd), near)

    def measure(self, frame: Frame, radius: float, taken: Taken, distances: Array) -> Spread:
        """The spread with all that is left, debiased for noise."""
        query = SpreadSum("spread moments", frame, radius)
        answer = self.account.measure(query, self.held.total(query, True), 1.0)
        v, squares, square = query.moments(answer.values, self.n)
        sigma, each, all_ = (answer.scale * unit for unit in query.units(self.n))
        length = max(float(v @ v) - self.d * sigma**2, 0.0)
        variance = max(square - float(v @ v) + self.d * sigma**2, 0.0)
        sd = sqrt(all_**2 + 4.0 * length * sigma**2 + 2.0 * self.d * sigma**4)
        self.account.note(radius=radius, variance_sd=sd, deviation_sd=each)
        self.frame = frame
        y = self.inside(frame.center + v)
        bound = self.bound(
            y, np.full(self.d, sigma**2), 0.0, radius, taken.distance, taken.distance_sd
        )
        deviations = np.sqrt(_on_simplex(squares - v**2 + sigma**2, variance))
        return Spread(y, sigma, radius, bound, variance, sd, deviations, distances, taken)


def _on_simplex(v: Array, total: float) -> Array:
    """The nearest vector without negative entries whose sum is ``total``."""
    falling = np.sort(v)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(v) + 1)
    last = int(np.flatnonzero(falling - excess >= 0.0)[-1])
    return np.maximum(v - excess[last], 0.0)


def private_dispersion(
    X: Any,
    *,
    epsilon: float,
    delta: float,
    domain: Domain,
    metric: str = "logeuclid",
    groups: Any = None,
    on_invalid: str = "raise",
    ledger: Ledger | None = None,
    label: str | None = None,
    random_state: Seed = None,
    engine: Engine | None = None,
) -> Release:
    """Release mean, Fréchet variance and spread of matrices, under one budget.

    The options are those of :func:`spdp.private_mean`; neighbours replace one record
    (or person), whose number is public.

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
        groups=groups,
        on_invalid=on_invalid,
        ledger=ledger,
        label=label,
        random_state=random_state,
        engine=engine,
    )
    search = Spreads(setting.gather(), setting.account, setting.region, setting.chart)
    outside = search.ask_outside()
    spread = search.find()
    if outside is not None and outside.clearly:
        warn_outside(outside.share, setting.unit)
    facts = {"outside": None if outside is None else outside.describe()}
    return _publish(setting, search, spread, facts)


def _publish(setting: Setting, search: Spreads, found: Spread, facts: dict[str, Any]) -> Release:
    chart, account, unit = setting.chart, setting.account, setting.unit
    y = chart.project(found.y, setting.region)
    z = chart.representable(y)
    bound = found.bound.moved(float(np.linalg.norm(z - y)))
    upper = found.variance + UPPER * found.variance_sd + max(found.taken.square, 0.0)
    variances = along_one_axis(search.d, found.sigma**2, upper / search.n)
    values = {
        "mean": chart.matrices(z),
        "variance": np.array(found.variance),
        "deviations": found.deviations,
        "distances": found.distances,
    }
    return publish(
        account,
        values,
        bound,
        statistic="dispersion",
        method="adaptive",
        estimand=mean_estimand(chart.distance, unit) + ", and their spread",
        error_statement=_statement(found, unit.value),
        error_bound_population=population_bound(bound, variances, chart.distance, unit),
        n=search.n,
        sensitivity=2.0 * found.radius / search.n,
        sigma=found.sigma,
        lattice_step=found.radius / RECORD_NORM,
        **setting.facts(),
        **facts,
    )


def _statement(found: Spread, unit: str) -> str:
    text = STATEMENT.format(unit=unit, radius=found.radius, sd=found.variance_sd)
    if found.taken.reach == 0.0:
        return text
    taken = found.taken
    return text + TAKEN.format(
        unit=unit, taken=taken.square, taken_sd=taken.square_sd, reach=taken.reach
    )
