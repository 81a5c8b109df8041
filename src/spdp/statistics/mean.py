r"""The private Fréchet mean of a dataset: clip, encode, add up exactly, add noise.

One shot asks one query over the whole public domain; :mod:`spdp.statistics.search`
finds a smaller ball first. ``method="auto"`` chooses from public numbers.

*Enforced.* Every record is forced into the public domain and onto the integer lattice
(:mod:`spdp.lattice`), so that each query (:mod:`spdp.queries`) has a known sensitivity,
and every number that leaves is answered by the account (:mod:`spdp.privacy.account`).
*Assumed.* The domain is public; each person owns at most one record, or ``groups`` says
whose the records are (:mod:`spdp.engines.people`); and under replace-one the number of
records, or of persons, is public. *Therefore.* The noisy integers are (ε,
δ)-DP (ε-DP for the Laplace law), and the matrix, its certificate and its error law are
computed from them and from public numbers alone.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.certificate import mean_estimand, stated_bounds
from spdp.charts import Chart, chart_of
from spdp.choices import Adjacency, Method, OnInvalid, Unit, Weights, choose
from spdp.data.columns import beside
from spdp.data.source import as_source
from spdp.domain import Domain, check_domain
from spdp.engines import Engine, engine_for
from spdp.errors import ParameterError, named
from spdp.privacy.account import Account, Seed
from spdp.privacy.bounds import Bound
from spdp.privacy.costs import Budget
from spdp.privacy.ledger import Ledger
from spdp.publishing import publish
from spdp.queries import RECORD_NORM
from spdp.release import Release
from spdp.statements import MOVED, UPPER_LAW, WHOLE_ERROR, WITHIN
from spdp.statistics.plan import OneShot, plan_one_shot, settle_mechanism, settle_method
from spdp.statistics.records import Records
from spdp.statistics.reference import Reference, check_reference
from spdp.statistics.search import Found, Search
from spdp.statistics.search.state import check_reach
from spdp.statistics.sums import LatticeSum

__all__ = ["private_mean", "release_sum"]


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
    groups: Any = None,
    weights: str = "persons",
    max_records: int | None = None,
    on_invalid: str = "raise",
    ledger: Ledger | None = None,
    label: str | None = None,
    random_state: Seed = None,
    reference: Reference | None = None,
    reference_point: Any = None,
    engine: Engine | str | None = None,
) -> Release:
    """Release the Fréchet mean of matrices with differential privacy.

    Parameters
    ----------
    X : array (n, k, k), or anything :func:`spdp.data.source.as_source` takes
        One record per person, unless ``groups`` says otherwise. Of records
        (n, p, k, k), p matrices each, the p means are released together, for one
        budget.
    epsilon, delta : float
        The guarantee; ``delta=0`` means pure differential privacy.
    domain : Ball, EigenvalueBounds, TraceBounds or CorrelationBounds
        Public set every record is forced into. Must not be computed from the data.
    metric : str
        A flat metric, one of ``spdp.charts.CHARTS``. Distances of different metrics
        cannot be compared.
    mechanism : "auto", "gaussian" or "laplace"
        "auto" takes the one with the smaller expected error, from public numbers only;
        with a ledger of δ > 0, where pure releases are dear, the Gaussian.
    method : "auto", "oneshot" or "adaptive"
        One noisy sum over the whole domain, whose error law is exact; or a private
        search for the data's centre and spread first (:mod:`spdp.statistics.search`),
        usually far more accurate. "auto" takes the latter where public numbers predict
        a gain.
    adjacency : "replace-one" or "add-remove"
        Whether the number of records (or persons) is public, or protected too.
    groups : array, list or Dask array (n,), optional
        Whose each record is: an id, number or text, per record. A person then counts
        once, as the mean of their own clipped records, and is protected with all of
        them, however many they are.
    weights : "persons" or "records"
        With ``groups``: whether a person counts once, or by the number m of their
        records, as min(m, ``max_records``)/``max_records``; the latter in one shot.
    max_records : int, optional
        Public; from how many records on a person counts no more.
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
        hand; "auto" takes it unless one shot is foreseen to err less for data as wide
        as the reference. Refused where no search can run, as with ``delta=0``.
    reference_point : array (k, k), optional
        A public SPD matrix C: records are whitened, C^-½·X·C^-½, and the result is
        mapped back (:mod:`spdp.charts.whitened`). The domain is about whitened records.
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
    source = beside(as_source(X), person=groups)
    chart = chart_of(metric, reference_point, source.parts)
    _check_weights(weights, max_records, "person" in source.columns)
    if reference is not None:
        check_reference(reference, source.k, chart.key)
    mechanism = settle_mechanism(mechanism, delta, ledger)
    shot = plan_one_shot(
        source.k,
        epsilon=epsilon,
        delta=delta,
        domain=check_domain(domain),
        mechanism=mechanism,
        adjacency=adjacency,
        chart=chart,
        max_records=max_records,
    )
    engine = engine_for(source, engine)
    if ledger is not None:
        engine.check_data(source, ledger)
    records = Records(source, engine, shot, policy)
    wanted = settle_method(method, shot, records.n, epsilon, delta, mechanism, reference)
    adapts = wanted is Method.ADAPTIVE
    account = Account(
        Budget.gaussian(epsilon, delta) if adapts else shot.budget,
        shot.adjacency,  # replace-one where a search may run
        ledger=ledger,
        label=label,
        random_state=random_state,
        unit=source.unit,
    )
    if adapts:
        check_reach(records.region)
        search = Search(records.held(account.key), account, records.region, chart, reference)
        return _adaptive(search, domain, chart)
    return _one_shot(shot, account, *records.total(), reference)


def _check_weights(weights: str, max_records: int | None, grouped: bool) -> None:
    by_records = choose(Weights, weights, "weights") is Weights.RECORDS
    if by_records != (max_records is not None):
        raise ParameterError(
            f"{named('weights', 'records')} and {named('max_records')} go together"
        )
    if by_records and not grouped:
        raise ParameterError(
            f"{named('weights', 'records')} needs {named('groups')}, which say whose the "
            "records are"
        )


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
        mechanism=settle_mechanism(mechanism, delta, ledger),
        adjacency=adjacency,
        chart=total.chart,
    )
    account = Account(
        shot.budget,
        shot.adjacency,
        ledger=ledger,
        label=label,
        random_state=random_state,
        unit=Unit(total.unit),
    )
    return _one_shot(shot, account, shot.query.counted(total.total, total.n), total.n)


def _one_shot(
    shot: OneShot,
    account: Account,
    exact: NDArray[np.int64],
    n: int,
    reference: Reference | None = None,
) -> Release:
    """Answer the one query of a plan, and say what the answer means.

    A ``reference`` was offered and not used: the certificate says so.
    """
    query, chart = shot.query, shot.chart
    noisy, _ = account.measure(query, exact)
    public = shot.adjacency is Adjacency.REPLACE_ONE
    count = float(n) if query.weight == 0 else max(1.0, float(noisy[-1] / query.weight))
    region = shot.domain.region(shot.k, chart)
    y = chart.project(region.center + noisy[: len(region.center)] * (query.step / count), region)
    z = chart.representable(y)
    law, shift = shot.law(count), 0.0 if z is y else float(np.linalg.norm(z - y))
    return publish(
        account,
        chart.matrices(z),
        Bound.shifted(law, shift) if shift else law,
        vector=z,
        method="oneshot",
        estimand=mean_estimand(chart.distance, account.unit, shot.max_records),
        **chart.describe(),
        error_statement=MOVED if shift else UPPER_LAW,
        n=n if public else None,
        n_estimate=None if query.weight == 0 else count,
        max_records=shot.max_records,
        k=shot.k,
        domain=shot.domain.describe(),
        sensitivity=shot.sensitivity * query.step / count,
        sigma=shot.scale * query.step / count,
        lattice_step=query.step,
        reference=None if reference is None else reference.digest,
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
        vector=z,
        method="adaptive",
        estimand=mean_estimand(chart.distance, account.unit),
        **chart.describe(),
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
        outside=None if found.outside is None else found.outside.describe(),
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
