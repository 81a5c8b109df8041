r"""The private Fréchet mean of a dataset: clip, encode, add up exactly, add noise.

One shot asks one query over the whole public domain; :mod:`spdp.statistics.search`
finds a smaller ball first. ``method="auto"`` chooses from public numbers.

*Enforced.* Every record is forced into the public domain and onto the integer lattice
(:mod:`spdp.lattice`), so that each query (:mod:`spdp.queries`) has a known sensitivity,
and every number that leaves is answered by the account (:mod:`spdp.privacy.account`).
*Assumed.* The domain is public, each person owns at most one record, and under
replace-one the number of records is public. *Therefore.* The noisy integers are (ε,
δ)-DP (ε-DP for the Laplace law), and the matrix, its certificate and its error law are
computed from them and from public numbers alone.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.certificate import MOVED
from spdp.charts import Chart, chart_of
from spdp.choices import Method, OnInvalid, choose
from spdp.data.source import as_source
from spdp.domain import Domain, check_domain
from spdp.engines import Engine, engine_for
from spdp.privacy.account import Account, Seed
from spdp.privacy.bounds import Bound
from spdp.privacy.costs import Budget
from spdp.privacy.ledger import Ledger
from spdp.queries import RECORD_NORM
from spdp.release import Release, publish, stated_bounds
from spdp.statistics.plan import OneShot, plan_one_shot, settle_method
from spdp.statistics.reference import Reference
from spdp.statistics.search import KEEP_BYTES, Found, Search
from spdp.statistics.sums import LatticeSum

__all__ = ["private_mean", "release_sum"]

ESTIMAND = "the {distance} Fréchet mean of the records, each clipped to the domain"
UPPER_LAW = (
    "the whole error; the stated law is that of the noise, an upper bound, since bringing the "
    "value back into the domain only brings it closer"
)
WHOLE_ERROR = (
    "the whole error (noise, clipping and shrinkage), with at least the stated probability "
    "over the noise, whatever the records are"
)
WITHIN = "the mean of the records pulled to within {reach:.4g} of a released centre"


def private_mean(
    X: Any,
    *,
    epsilon: float,
    delta: float,
    domain: Domain,
    metric: str = "logeuclid",
    mechanism: str = "auto",
    method: str = "auto",
    adjacency: str = "replace-one",
    on_invalid: str = "raise",
    ledger: Ledger | None = None,
    label: str | None = None,
    random_state: Seed = None,
    reference: Reference | None = None,
    engine: Engine | str | None = None,
) -> Release:
    """Release the Fréchet mean of SPD matrices with differential privacy.

    Parameters
    ----------
    X : array (n, k, k), or anything :func:`spdp.data.source.as_source` takes
        One record per person.
    epsilon, delta : float
        The guarantee; ``delta=0`` means pure differential privacy.
    domain : Ball or EigenvalueBounds
        Public set every record is forced into. Must not be computed from the data.
    metric : str
        A flat metric: "logeuclid".
    mechanism : "auto", "gaussian" or "laplace"
        "auto" takes the one with the smaller expected error, from public numbers only.
    method : "auto", "oneshot" or "adaptive"
        One noisy sum over the whole domain, whose error law is exact; or a private
        search for the data's centre and spread first (:mod:`spdp.statistics.search`),
        usually far more accurate. "auto" takes the latter where public numbers predict
        a gain.
    adjacency : "replace-one" or "add-remove"
        Whether the number of records is public, or protected too.
    on_invalid : "raise" or "center"
        What an unusable record does: an error that names it (for the curator's eyes),
        or it counts as the domain's centre, so that no data-dependent error escapes.
        Errors of shape always raise. When a call fails, nothing has been released.
    ledger : Ledger, optional
        Account of the dataset's budget: the cost is committed to it before any noise is
        drawn, or the release is refused.
    label : str, optional
        What the ledger's entry is called.
    random_state : None, int or Generator
        None: operating-system entropy, a private result. A seed means simulation: the
        certificate says ``private: false``.
    reference : Reference, optional
        Where the data are expected to lie, from data that are already public. The
        adaptive method starts there, after a private check, where few records are at
        hand.
    engine : Engine, "local" or "gpu", optional
        Where to work: by default here, on the cluster that a Dask array lies on, or on
        the GPU that a CuPy array or torch tensor lies on.

    Returns
    -------
    Release

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds, private_mean
    >>> X = np.stack([np.diag([1.0, 1.5 + i / 1000]) for i in range(1000)])
    >>> domain = EigenvalueBounds(0.1, 10.0)
    >>> release = private_mean(X, epsilon=1.0, delta=1e-6, domain=domain)
    >>> release.value.shape, release.certificate["private"]
    ((2, 2), True)
    """
    policy = choose(OnInvalid, on_invalid, "on_invalid")
    chart = chart_of(metric)
    source = as_source(X)
    if reference is not None:
        reference.check(source.k, chart.name)
    shot = plan_one_shot(
        source.k,
        epsilon=epsilon,
        delta=delta,
        domain=check_domain(domain),
        mechanism=mechanism,
        adjacency=adjacency,
        chart=chart,
    )
    wanted = settle_method(method, shot, source.n, epsilon, delta, mechanism)
    engine = engine_for(source, engine)
    paying: dict[str, Any] = {"ledger": ledger, "label": label, "random_state": random_state}
    if wanted is Method.ADAPTIVE:
        account = Account(Budget.gaussian(epsilon, delta), **paying)
    else:
        account = Account(shot.budget, shot.adjacency, **paying)
    if ledger is not None:
        engine.check_data(source, ledger)
    region = domain.region(source.k, chart)
    if wanted is Method.ADAPTIVE:
        held = engine.hold(source, chart, region, policy, KEEP_BYTES)
        return _adaptive(Search(held, account, region, reference), domain, chart)
    private_count = shot.query.weight > 0  # then whether there are records is private too
    totals, n = engine.total(source, chart, region, [shot.query], policy, private_count)
    return _one_shot(shot, account, totals[0], n)


def release_sum(
    total: LatticeSum,
    *,
    epsilon: float,
    delta: float,
    mechanism: str = "auto",
    adjacency: str = "replace-one",
    ledger: Ledger | None = None,
    label: str | None = None,
    random_state: Seed = None,
) -> Release:
    """Release the mean of records of which only the exact sum is at hand: one shot.

    The options are those of :func:`private_mean`.
    """
    shot = plan_one_shot(
        total.k,
        epsilon=epsilon,
        delta=delta,
        domain=total.domain,
        mechanism=mechanism,
        adjacency=adjacency,
        chart=chart_of(total.metric),
    )
    account = Account(
        shot.budget, shot.adjacency, ledger=ledger, label=label, random_state=random_state
    )
    return _one_shot(shot, account, shot.query.counted(total.total, total.n), total.n)


def _one_shot(shot: OneShot, account: Account, exact: NDArray[np.int64], n: int) -> Release:
    """Answer the one query of a plan, and say what the answer means."""
    query, chart = shot.query, shot.chart
    noisy, _ = account.measure(query, exact)
    public = query.weight == 0
    count = float(n) if public else max(1.0, float(noisy[-1] / query.weight))
    region = shot.domain.region(shot.k, chart)
    y = chart.project(region.center + noisy[: len(region.center)] * (query.step / count), region)
    z = chart.representable(y)
    law, shift = shot.law(count), float(np.linalg.norm(z - y))
    return publish(
        account,
        chart.matrices(z),
        Bound.shifted(law, shift) if shift else law,
        method="oneshot",
        metric=chart.name,
        estimand=ESTIMAND.format(distance=chart.distance),
        distance=chart.distance,
        error_statement=MOVED if shift else UPPER_LAW,
        n=n if public else None,
        n_estimate=None if public else count,
        k=shot.k,
        domain=shot.domain.describe(),
        sensitivity=shot.sensitivity * query.step / count,
        sigma=shot.scale * query.step / count,
        lattice_step=query.step,
    )


def _adaptive(search: Search, domain: Domain, chart: Chart) -> Release:
    """Run a search, and say what its last answer means."""
    found = search.run()
    account, last = search.account, search.account.steps[-1]
    reference = search.reference
    y = chart.project(found.y, search.region)
    z = chart.representable(y)
    return publish(
        account,
        chart.matrices(z),
        found.bound.moved(float(np.linalg.norm(z - y))),
        method="adaptive",
        metric=chart.name,
        estimand=ESTIMAND.format(distance=chart.distance),
        distance=chart.distance,
        error_statement=WHOLE_ERROR,
        # its target need not lie in the domain: what projection moved is added
        error_bound_within=_within(found, float(np.linalg.norm(z - found.y))),
        n=search.n,
        k=chart.size(search.d),
        domain=domain.describe(),
        sensitivity=2.0 * last["radius"] / search.n,
        sigma=last["scale"] * last["radius"] / RECORD_NORM / search.n,
        lattice_step=last["radius"] / RECORD_NORM,
        reference=None if reference is None else reference.digest,
    )


def _within(found: Found, shift: float) -> dict[str, Any] | None:
    """The bound for another mean, with that mean, where it is the sharper one."""
    if found.within is None or found.reach is None:
        return None
    bound = found.within.moved(shift)
    if bound.at() >= found.bound.at():
        return None
    return {
        **stated_bounds(bound),
        "parts": bound.describe(),
        "estimand": WITHIN.format(reach=found.reach),
        "reach": found.reach,
    }
