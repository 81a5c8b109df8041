r"""The private geometric median of a dataset: directions to the records are balanced.

The geometric median is the point with the least mean distance to the records,

    argmin_M (1/n)·Σ ‖y_i − M‖,   where   Σ u_i(M) = 0,   u_i = (y_i − M)/‖y_i − M‖.

Each record pulls with strength 1, however far it lies: a third of the records, moved
anywhere, move the median by no more than the rest is spread. Weiszfeld's step
M + Σ u_i / Σ (1/‖y_i − M‖) descends from any start. Here a few rounds of the search
(:meth:`.Search.find_ball`) find a start and a typical distance, then every step is one
noisy query (:class:`.DirectionSum`) for both sums. Early steps are cheap and walk; of
later ones, at nearly the same place, the average is taken.

*Enforced.* Records are clipped to the public domain; the queries' integers are bounded
beside them; only the account answers. Steps, their number and their size are functions
of public and released numbers. *Assumed.* As for :func:`spdp.private_mean`.
*Therefore* all answers together are (ε, δ)-DP.

No bound on the whole error exists that holds whatever the records are. The mean
distance is convex, but may be as flat as one likes: where records lie along one line
it may be least on a whole segment, and near such cases a noise of any size moves the
median far. A bound would need a lower bound on the curvature, which is not measured.
What is known is the noise of the averaged steps.
"""

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.certificate import estimand_of
from spdp.domain import Domain
from spdp.engines import Engine
from spdp.privacy.account import Answer, Seed
from spdp.privacy.ledger import Ledger
from spdp.publishing import publish
from spdp.queries import RECORD_NORM, DirectionSum
from spdp.queries.directions import AVERAGED, NEARNESS
from spdp.release import Release
from spdp.statements import MEDIAN
from spdp.statistics.counted import countable
from spdp.statistics.search import Search
from spdp.statistics.setting import Setting, prepare

__all__ = ["private_median"]

Array = NDArray[np.float64]

# Chosen on MNIST's class 3, clean and with a third of its records moved to a corner.
ROUNDS = 8  # of the search, at most
WALK = 7  # steps that walk, before those whose places are averaged
WALK_SHARE = 0.3  # of μ² that the search leaves, for the steps that walk
NEAR = 0.5  # distance up to which a record counts as near, over the step's size
TRUSTED = 0.1  # relative noise of a step's size at which half of it is believed


def private_median(
    X: Any,
    *,
    epsilon: float,
    delta: float,
    domain: Domain,
    metric: str = "logeuclid",
    adjacency: str = "replace-one",
    groups: Any = None,
    on_invalid: str = "raise",
    ledger: Ledger | None = None,
    label: str | None = None,
    random_state: Seed = None,
    engine: Engine | None = None,
) -> Release:
    """Release the geometric median of matrices with differential privacy.

    A mean for data with outliers: records far from the others pull it no more than
    those nearby.

    Parameters
    ----------
    X, epsilon, delta, domain, metric, adjacency, groups, on_invalid, ledger, label,
    random_state, engine
        As in :func:`spdp.private_mean`; ``delta`` must be positive.

    Returns
    -------
    Release
        ``value`` is the median, (k, k). Its error has no bound; the certificate says
        what is known of it.

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
    setting = prepare(
        X,
        epsilon=epsilon,
        delta=delta,
        domain=domain,
        metric=metric,
        adjacency=adjacency,
        groups=groups,
        on_invalid=on_invalid,
        ledger=ledger,
        label=label,
        random_state=random_state,
        engine=engine,
    )
    held = countable(setting.gather(), setting.account, setting.region)
    search = Search(held, setting.account, setting.region, setting.chart)
    return _publish(setting, search, _Walk(search))


class _Walk:
    """Weiszfeld's steps from where a search has found the records."""

    def __init__(self, search: Search) -> None:
        self.search, self.account = search, search.account
        self.outside = search.ask_outside()
        search.find_ball(ROUNDS)
        self.center, self.size = search.frame.center, search.distance
        self.farthest = search.distance  # a harmonic mean is below the mean
        left = self.account.left
        for _ in range(WALK):
            self.center = search.inside(self.step(left * WALK_SHARE / WALK))
        self.center = self.averaged(left * (1.0 - WALK_SHARE) / AVERAGED)

    def averaged(self, share: float) -> Array:
        """The mean of the places of the last steps, each taken from the mean so far."""
        total = np.zeros_like(self.center)
        for taken in range(1, AVERAGED + 1):
            total = total + self.step(share)
            self.center = self.search.inside(total / taken)
        self.account.note(averaged=AVERAGED)
        return self.center

    def step(self, share: float) -> Array:
        """Where one noisy step from the centre leads."""
        query = DirectionSum("direction", self.center, NEAR * self.size)
        answer = self.account.measure(query, self.search.held.total(query, True), share)
        self.resize(query, answer)
        self.account.note(center=self.center.tolist(), near=query.near, size=self.size)
        return self.center + self.size * answer.values[:-1] / (RECORD_NORM * self.search.n)

    def resize(self, query: DirectionSum, answer: Answer) -> None:
        """Move the step's size toward n / Σ (1/‖y − M‖), as far as noise lets it."""
        unit = 1.0 / (NEARNESS * self.search.n)
        noise = answer.scale * unit
        near = max(float(answer.values[-1]) * unit, noise)
        trust = 1.0 / (1.0 + (noise / near / TRUSTED) ** 2)
        wanted = min(query.near / near, self.farthest)
        self.size *= (wanted / self.size) ** trust


def _publish(setting: Setting, search: Search, walk: _Walk) -> Release:
    account, chart = setting.account, setting.chart
    y = chart.representable(chart.project(walk.center, setting.region))
    facts = setting.facts(walk.outside, search.n, walk.size)
    facts["sigma"] /= sqrt(AVERAGED)  # of the average of the last steps
    return publish(
        account,
        {"median": chart.matrices(y)},
        None,
        statistic="median",
        method="adaptive",
        estimand=estimand_of("median", chart.distance, account.unit),
        error_statement=MEDIAN.format(rms=facts["sigma"] * sqrt(search.d)),
        **facts,
    )
