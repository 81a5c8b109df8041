r"""The private geometric median of a dataset, by noisy Weiszfeld steps.

The geometric median is the point with the least mean distance to the records,

    argmin_M (1/n)·Σ ‖y_i − M‖,   where   Σ u_i(M) = 0,   u_i = (y_i − M)/‖y_i − M‖.

Each record has influence 1, however far away it is: wherever a third of the records is
moved, the median stays within 1.16·r of the centre of any ball of radius r that holds
the others (Minsker 2015). Weiszfeld's step M + Σ u_i / Σ (1/‖y_i − M‖) descends from
any start. Here a few rounds of the search (:meth:`spdp.adaptive.Search.find_ball`) find
a start and a typical distance, then every step is one noisy query (``DirectionSum``)
for both sums. Early steps have small shares of the budget and approach the median;
later ones, at nearly the same place, are averaged.

*Enforced*, *assumed*, *therefore*: as in :mod:`spdp.statistics.base`. Steps, their
number and their size are functions of public and released numbers.

No bound on the whole error holds for all data. The mean distance is convex, but may be
arbitrarily flat: for records on one line its minimum may be a whole segment, and near
such cases the smallest noise moves the median far. A bound would need a lower bound on
the curvature, which is not measured. Only the noise of the averaged steps is known.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, Unpack

import numpy as np

from spdp.adaptive import TUNING, Search
from spdp.adaptive.steps import BALL, ROUNDS_ORDER, START_ORDER, Kinds, Queries, ball_queries
from spdp.kernels.arrays import Array
from spdp.privacy.account import Step
from spdp.queries.sums import DirectionSum
from spdp.release import Release
from spdp.release.certificate import Facts
from spdp.release.declaration import MATRIX, NONE, Check, Values
from spdp.rendering.panels import Panel, matrix_panels, stacked
from spdp.statistics.base import DISTANCE, Context, Outcome, Statistic
from spdp.statistics.options import Options, public

# Chosen on MNIST's class 3, clean and with a third of its records moved to a corner.
WALK = 7  # steps that approach the median, before those that are averaged
AVERAGED = 7  # last steps, whose end points are averaged
WALK_SHARE = 0.3  # of the μ² that the search leaves, for the steps that approach
NEAR = 0.5  # distance up to which a record counts as near, over the step's size
ITERATIONS = 60  # of the exact median, for plans
TRUSTED = 0.1  # relative noise at which a new step size has weight ½, in its logarithm

STATEMENT = (
    "no bound on the whole error: none exists that holds whatever the records are, since the mean "
    "distance may be flat around its minimum (for records along one line the median need not be "
    "unique). The noise of the last steps alone has a root mean square of {rms:.3g}; how far from "
    "the median the steps had come when they ended is not measured"
)


class DirectionStep(Step):
    """Start of a step, the distance that counts as near, and the step's size."""

    center: list[float]
    near: float
    size: float


@dataclass(frozen=True, eq=False)
class Median(Statistic):
    """The geometric median: argmin_M Σ ‖y_i − M‖."""

    name: ClassVar = "median"
    title: ClassVar = "geometric median"
    plain: ClassVar = "Median: a centre that a few unusual records hardly move."
    target: ClassVar = (
        "the geometric median, in the {distance} distance, of {units}, each clipped to the domain"
    )
    releases: ClassVar = {"median": MATRIX}
    steps: ClassVar[Kinds] = BALL | {"direction": DirectionStep}
    order: ClassVar = f"{START_ORDER}{ROUNDS_ORDER}(direction;){{{WALK + AVERAGED}}}"
    forms: ClassVar = {"adaptive": (NONE,)}
    averaged: ClassVar = AVERAGED
    over_sites: ClassVar = ()
    command: ClassVar = "Release the geometric median, for data with outliers."

    def run(self, context: Context) -> Outcome:
        search = context.search(context.gather())
        search.ask_edge()
        search.find_ball(TUNING.max_rounds, search.reserve())
        at, size, left = search.frame.center, search.distance, context.account.left
        for _ in range(WALK):
            place, size = self.step(search, at, size, left * WALK_SHARE / WALK)
            at = search.inside(place)
        total = np.zeros_like(at)
        for taken in range(1, AVERAGED + 1):
            place, size = self.step(search, at, size, left * (1.0 - WALK_SHARE) / AVERAGED)
            total = total + place
            at = search.inside(total / taken)
        return Outcome(search.n, {"median": at})

    def step(self, search: Search, at: Array, size: float, share: float) -> tuple[Array, float]:
        """End point of a noisy step, and its size, a noisy n / Σ (1/‖y − M‖)."""
        near = NEAR * size
        query = DirectionSum("direction", at, near)
        answer = search.account.ask(query, search.store, share)
        value, sd, _ = answer.estimate
        nearness = max(float(value[-1]), float(sd[-1]))
        trust = 1.0 / (1.0 + (float(sd[-1]) / nearness / TRUSTED) ** 2)
        wanted = min(near / nearness, search.distance)  # a harmonic mean is below the mean
        size = size * (wanted / size) ** trust
        answer.note(DirectionStep, center=at.tolist(), near=near, size=size)
        return at + size * value[:-1], size

    def errors(self, outcome: Outcome, records: Any) -> dict[str, float]:
        y = records.space.chart.project(outcome.vectors["median"], records.space.region)
        truth = records.once("median", lambda rows: weiszfeld(rows.Y))
        return {DISTANCE: float(np.linalg.norm(y - truth))}

    # --- what the certificate says

    def queries(self, facts: Facts) -> Queries:
        direction = DirectionSum("", facts.space.region.center, 1.0)
        return ball_queries(facts.space) | {"direction": direction}

    def last_radius(self, facts: Facts) -> float:
        return float(facts.last.size)

    def statement(self, facts: Facts) -> str:
        return STATEMENT.format(rms=facts.noise_scale * sqrt(facts.d))

    def check(self, facts: Facts) -> Iterator[Check]:
        ok = all(step.near > 0 < step.size for step in facts.answers if step.step == "direction")
        yield Check("sizes of steps", ok, "positive")

    def panels(self, facts: Facts, values: Values) -> list[Panel]:
        return matrix_panels(*stacked(values["median"], "Median"))


def weiszfeld(Y: Array) -> Array:
    """The exact geometric median of rows, for plans."""
    at = Y.mean(axis=0)
    for _ in range(ITERATIONS):
        weight = 1.0 / np.maximum(np.linalg.norm(Y - at, axis=1), 1e-12)
        at = (weight @ Y) / weight.sum()
    return np.asarray(at)


STATISTIC = Median()


@public
def private_median(X: Any, **options: Unpack[Options]) -> Release:
    """Release the geometric median of matrices with differential privacy.

    A centre for data with outliers: every record has the same influence on it, however
    far away it is.

    Parameters
    ----------
    X : array (n, k, k), or anything :func:`spdp.data.source.as_source` takes
    {options}

    Returns
    -------
    Release
        ``value`` is the median, (k, k). Its error has no bound; the certificate states
        the noise of the last steps.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds, private_median
    >>> X = np.stack([np.diag([1.0, 1.5 + i / 1000]) for i in range(1000)])
    >>> X[:200] = np.diag([0.1, 0.1])  # broken records
    >>> domain = EigenvalueBounds(0.1, 10.0)
    >>> release = private_median(X, epsilon=2.0, delta=1e-6, domain=domain)
    >>> release.value.shape, release.certificate["statistic"]
    ((2, 2), 'median')
    """
    return STATISTIC.release(X, **options)
