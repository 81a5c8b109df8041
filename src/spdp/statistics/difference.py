r"""The private difference of two class means: how large it is, and whether it is there.

A search (:class:`.Search`) finds the ball of all records, without looking at classes;
one query (:class:`.MomentSum`) with the rest of the budget then gives, for both
classes, noisy counts, sums and second moments of the records clipped to that ball.

*Confidence region.* Let S_c be the sum of the n_c clipped records of a class, less the
ball's centre, N_c ~ N(0, σ²I) and e_c the noise of sum and count, z_c the ratio that is
released. Then z_c = (S_c + N_c)/(n_c + e_c), so that

    z_c − S_c/n_c = (N_c − e_c·z_c)/n_c,   n_c = n̂_c − e_c.

With |e_c| ≤ E, but for a probability of 2·10⁻⁵, the difference z_a − z_b is off by at
most ‖N_a/n_a − N_b/n_b‖ + Σ E‖z_c‖/(n̂_c − E); the first term's law is that of
N(0, σ²(1/n_a² + 1/n_b²)·I), with n_c ≥ n̂_c − E. Nothing is assumed of the records. For
records that are clipped to the domain only, what the ball takes away is added: their
mean excess over the smaller class, measured as in :mod:`spdp.privacy.bounds`.

*Test.* Where both classes have one distribution, E‖z_a − z_b‖² = tr V and its variance
is near 2·tr V², for V = Σ_a/n_a + Σ_b/n_b + noise; both traces are estimated from the
released second moments, whose noise is known. The p-value is that of the scaled χ² with
these two moments (Bai and Saranadasa 1996). Its level is approximate: a normal limit,
and two moments; a very small p-value is no more than an order of magnitude. The law's
tail is positive everywhere: where it is smaller than the smallest normal double, that
number is given, which is above it, and never 0.

*Enforced, assumed, therefore.* As for :func:`spdp.private_mean`; ``classes`` are
public, and a record whose label is not among them adds nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.certificate import estimand_of, stated_bounds
from spdp.domain import Domain
from spdp.engines import Engine, Held
from spdp.errors import ParameterError, named
from spdp.privacy.account import Seed
from spdp.privacy.bounds import SURE, SURE_PART, Bound
from spdp.privacy.laws import chi2_law, chi2_tail
from spdp.privacy.ledger import Ledger
from spdp.publishing import publish
from spdp.queries import RECORD_NORM, ClassExcess, Moments, MomentSum
from spdp.queries.triangle import OFF_NOISE
from spdp.release import Release
from spdp.statements import CLIPPED, DIFFERENCE
from spdp.statistics.classes import check_classes
from spdp.statistics.counted import countable
from spdp.statistics.search import Search
from spdp.statistics.setting import Setting, prepare

__all__ = ["private_difference"]

Array = NDArray[np.float64]

ROUNDS = 8  # of the search, at most
RADIUS = 1.3  # of the ball, over the typical distance
EXCESS_SHARE = 0.05  # of μ²


def private_difference(
    X: Any,
    y: Any,
    *,
    classes: Sequence[Any],
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
    """Release the difference of two classes' means, and a test of whether they differ.

    Parameters
    ----------
    X : array (n, k, k), or anything :func:`spdp.data.source.as_source` takes
    y : array (n,)
        The class of each record; private, like the records.
    classes : pair
        Public: the two labels, a and b, of the difference a − b. A record of another
        label is unusable (see ``on_invalid``); with "center" it adds nothing.
    epsilon, delta, domain, metric, adjacency, groups, on_invalid, ledger, label,
    random_state, engine
        As in :func:`spdp.private_mean`; ``delta`` must be positive.

    Returns
    -------
    Release
        ``difference`` (d,), in the chart's coordinates; ``means`` (2, k, k) and
        ``counts`` (2,) of the classes; ``p_value``. ``error_bound(0.95)`` is the radius
        of a ball about ``difference`` that holds the true one; the certificate's
        ``error_bound_within`` is sharper, for means clipped to the ball found.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds, private_difference
    >>> y = np.arange(4000) % 2
    >>> X = np.exp(0.5 * y)[:, None, None] * np.eye(2)
    >>> domain = EigenvalueBounds(0.1, 10.0)
    >>> release = private_difference(
    ...     X, y, classes=(1, 0), epsilon=2.0, delta=1e-6, domain=domain
    ... )
    >>> bool(release.values["p_value"] < 0.01)
    True
    """
    pair = tuple(check_classes(classes))
    if len(pair) != 2:
        raise ParameterError(f"{named('classes')} must be two different labels, got {classes!r}")
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
        classes_of=y,
    )
    if "label" not in setting.source.columns:
        raise ParameterError("the class of each record is missing", ask="y")
    held = setting.gather(classes=pair)
    everyone = countable(held.unlabelled(), setting.account, setting.region)
    search = Search(everyone, setting.account, setting.region, setting.chart)
    return _publish(setting, search, _Compared(search, held), pair)


@dataclass(frozen=True)
class _Test:
    """Squared distance of two means, and its law where they differ by chance only."""

    statistic: float
    scale: float
    freedom: float

    @property
    def p_value(self) -> float:
        """Probability of so large a distance, or a bound on it where it underflows."""
        return chi2_tail(self.statistic / self.scale, self.freedom)


class _Compared:
    """What a search and one query tell of two classes."""

    def __init__(self, search: Search, held: Held) -> None:
        self.search, self.account, self.held = search, search.account, held
        self.outside = search.ask_outside()
        search.find_ball(ROUNDS)
        self.center, self.reach = search.frame.center, search.reach()
        self.radius = min(RADIUS * search.distance, self.reach)
        self.excess, self.excess_sd = self.ask_excess()
        query = MomentSum("class moments", search.frame, self.radius, 2, "full", pooled=False)
        answer = self.account.measure(query, held.total(query, True), 1.0)
        self.moments = query.moments(answer.values, answer.scale)
        self.counts = np.maximum(self.moments.counts, 1.0)
        self.z = self.moments.sums / self.counts[:, None]
        self.difference = self.z[0] - self.z[1]
        self.test = chance_of(self.moments, self.counts, self.z)
        self.account.note(center=self.center.tolist(), radius=self.radius)
        self.account.note(test={**vars(self.test), "p_value": self.test.p_value})

    def ask_excess(self) -> tuple[float, float]:
        """Sum of the records' excess beyond the ball, and its noise."""
        cap = self.reach - self.radius
        if cap <= 0.0:
            return 0.0, 0.0
        query = ClassExcess("class excess", self.center, self.radius, cap)
        answer = self.account.measure(query, self.held.total(query, True), EXCESS_SHARE)
        unit = cap / RECORD_NORM
        total, sd = float(answer.values[0]) * unit, answer.scale * unit
        self.account.note(excess=total, cap=cap)
        return total, sd

    def bound(self, excess: float, sd: float) -> Bound:
        """The bound of this module's text, with an excess summed over the records."""
        m, d = self.moments, self.search.d
        far = float(np.linalg.norm(self.difference)) + 2.0 * self.search.far
        least = self.counts - SURE * m.count_sd
        if least.min() < 1.0:  # a class too small to be seen
            return Bound.certain(d, far)
        off = float((SURE * m.count_sd * np.linalg.norm(self.z, axis=1) / least).sum())
        step, smaller = self.radius / RECORD_NORM, float(least.min())
        slack = 2.0 * sqrt(d) * step * max(1.0, self.search.n / smaller)
        noise = chi2_law(d, m.sum_sd**2 * float((least**-2.0).sum()))
        return Bound(noise, excess / smaller, sd / smaller, off, slack, far, SURE_PART)


def chance_of(m: Moments, counts: Array, z: Array) -> _Test:
    """The test of this module's text.

    Of the sampling part S = Σ_a/n_a + Σ_b/n_b, tr S² is estimated without the bias that
    noise in the second moments brings.
    """
    d = z.shape[1]
    noise = (m.sum_sd / counts) ** 2  # of a coordinate of each mean
    S = np.zeros((d, d))
    for c in range(2):
        inner = np.outer(z[c], z[c]) - noise[c] * np.eye(d)
        S += (m.second[c] / counts[c] - inner) / counts[c]
    unit = m.second_sd**2 * float((counts**-4.0).sum())
    trace_variance = d * unit
    spread = unit * d * (1.0 + (d - 1) * OFF_NOISE**2)
    trace = max(float(np.trace(S)), 0.0)
    square = max(float((S * S).sum()) - spread, trace**2 / d)
    counted = float(((m.count_sd / counts) ** 2 * (z**2).sum(axis=1)).sum())
    added = float(noise.sum())
    mean = trace + d * added + counted
    variance = 2.0 * (square + 2.0 * added * trace + d * added**2) + trace_variance
    variance += 2.0 * counted**2
    difference = z[0] - z[1]
    return _Test(float(difference @ difference), variance / (2.0 * mean), 2.0 * mean**2 / variance)


def _publish(
    setting: Setting, search: Search, found: _Compared, classes: tuple[Any, ...]
) -> Release:
    account, chart = setting.account, setting.chart
    means = [chart.project(found.center + z, setting.region) for z in found.z]
    account.note(classes=list(classes))
    return publish(
        account,
        {
            "difference": found.difference,
            "means": np.stack([chart.matrices(chart.representable(y)) for y in means]),
            "counts": found.counts,
            "p_value": np.array(found.test.p_value),
        },
        found.bound(found.excess, found.excess_sd),
        statistic="difference",
        method="adaptive",
        estimand=estimand_of("difference", chart.distance, account.unit),
        error_statement=DIFFERENCE,
        error_bound_within=_within(found.bound(0.0, 0.0)),
        **setting.facts(found.outside, search.n, found.radius),
    )


def _within(bound: Bound) -> dict[str, Any]:
    return {**stated_bounds(bound), "parts": bound.describe(), "estimand": CLIPPED}
