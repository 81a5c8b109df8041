r"""Private Fréchet means of classes, their sizes, and the covariance within them.

One budget for all: a record is of one class, so that counts, sums and second moments
of all classes are one query of the sensitivity of a plain sum
(:mod:`spdp.queries.moments`), even where a record's class may be another.

*Enforced.* Every record is forced into the public domain and onto the integer lattice;
a label counts by its place in the public list of classes, or not at all; every number
that leaves is answered by the account. *Assumed.* The domain and the list of classes
are public; each person owns at most one record, or ``groups`` says whose the records
are; under replace-one the number of records, or of persons, is public. How many are in
each class is not. *Therefore* means, counts, covariance and certificate are (ε, δ)-DP
together, where the neighbour's record may have any other class.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from spdp.certificate import class_estimand
from spdp.choices import Adjacency, Covariance, Method, Unit, choose
from spdp.data.labels import label_of
from spdp.domain import Domain
from spdp.engines import Engine
from spdp.errors import ParameterError, named
from spdp.frame import Frame
from spdp.privacy.account import Seed
from spdp.privacy.ledger import Ledger
from spdp.publishing import publish
from spdp.queries import MomentSum
from spdp.release import Release
from spdp.statements import JOINT, PULLED, TOO_FEW, UNSEEN
from spdp.statistics.search.classes import ClassSearch, FoundClasses, whole_domain
from spdp.statistics.search.joint import within
from spdp.statistics.setting import Setting, prepare

__all__ = ["check_classes", "private_class_means"]


def private_class_means(
    X: Any,
    y: Any = None,
    *,
    classes: Sequence[Any],
    epsilon: float,
    delta: float,
    domain: Domain,
    metric: str = "logeuclid",
    covariance: str = "none",
    method: str = "auto",
    adjacency: str = "replace-one",
    groups: Any = None,
    on_invalid: str = "raise",
    ledger: Ledger | None = None,
    label: str | None = None,
    random_state: Seed = None,
    engine: Engine | None = None,
) -> Release:
    r"""Release the Fréchet mean and the size of every class with differential privacy.

    For log-vectors v_i of class y_i, M_c = Expm((1/n_c)·Σ_{y_i = c} v_i) and, if asked,
    the covariance of v_i − v̄_c within the classes, pooled.

    Parameters
    ----------
    X : array (n, k, k), or anything :func:`spdp.data.source.as_source` takes
    y : array (n,), optional
        The class of each record; needed unless the source says it.
    classes : sequence
        The public list of classes. Not to be computed from the data: a class that is
        missing from it, or there, would tell of the records.
    covariance : "none", "diagonal" or "full"
        Second moments within the classes to release as well; at the same budget, they
        cost the means a factor of at most √2 in noise of their counts.
    method : "auto", "oneshot" or "adaptive"
        One query over the whole domain, whose error has a bound; or a private search
        for the classes first (:mod:`spdp.statistics.search.classes`), with a bound for
        means of pulled records (:mod:`spdp.statistics.search.joint`). "auto" takes the
        latter where the number of records is public and d ≥ 3.
    epsilon, delta, domain, metric, adjacency, groups, on_invalid, ledger, label,
    random_state, engine
        As in :func:`spdp.private_mean`; δ must be positive. A label that is none of the
        classes makes a record unusable: with ``on_invalid="center"`` it counts in no
        class. With ``groups``, a person counts in each class by the part of their
        records that lie in it.

    Returns
    -------
    Release
        ``values``: "means" (C, k, k), "counts" (C,), estimates that are never below
        what noise lets be seen, and "covariance", (d, d) or its diagonal (d,), in the
        coordinates of the metric's chart (for "logeuclid" those of ``vecd``). A class
        too small to be seen has the overall mean, and the certificate's last step lists
        it as ``unseen``.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds, private_class_means
    >>> X = np.stack([np.diag([1.0, 2.0 + (i % 2)]) for i in range(1000)])
    >>> y = ["low" if i % 2 == 0 else "high" for i in range(1000)]
    >>> release = private_class_means(
    ...     X, y, classes=["low", "high"], epsilon=1.0, delta=1e-6,
    ...     domain=EigenvalueBounds(0.1, 10.0),
    ... )
    >>> release.values["means"].shape, release.values["counts"].shape
    ((2, 2, 2), (2,))
    """
    names = check_classes(classes)
    second = choose(Covariance, covariance, "covariance").value
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
    wanted = _method(method, setting)
    with threadpool_limits(1, "blas"):  # threads only slow small matrices down
        if wanted is Method.ADAPTIVE:
            found, n = _search(setting, names, second)
        else:
            found, n = _one_shot(setting, names, second)
    return _publish(setting, found, names, wanted, n)


def check_classes(classes: Sequence[Any]) -> list[Any]:
    """The public list of classes as plain values, each of them once."""
    if not isinstance(classes, Iterable):
        raise ParameterError(
            f"{named('classes')} must be the public list of classes, got {classes!r}"
        )
    names = [name.item() if isinstance(name, np.generic) else name for name in classes]
    if not names:
        raise ParameterError(f"{named('classes')} is empty: name the public list of classes")
    if not all(isinstance(name, bool | int | float | str) and _is_written(name) for name in names):
        raise ParameterError(f"{named('classes')} must be finite numbers or texts")
    if len({label_of(name) for name in names}) < len(names):
        raise ParameterError(f"{named('classes')} names a class twice: {names}")
    return names


def _is_written(name: Any) -> bool:
    """Whether a certificate can name it: what is paid for must not fail there."""
    try:
        json.dumps(name, allow_nan=False)
    except ValueError:
        return False
    return True


def _method(method: str, setting: Setting) -> Method:
    wanted = choose(Method, method, "method")
    public = setting.account.adjacency is Adjacency.REPLACE_ONE
    if wanted is Method.AUTO:
        large = len(setting.region.center) >= 3
        return Method.ADAPTIVE if public and large else Method.ONESHOT
    if wanted is Method.ADAPTIVE and not public:
        raise ParameterError(f"{named('method', 'adaptive')} needs replace-one adjacency")
    return wanted


def _search(setting: Setting, names: list[Any], second: str) -> tuple[FoundClasses, int]:
    """Find the classes privately; the number of records, or persons."""
    held = setting.gather(classes=names)
    search = ClassSearch(held, setting.account, setting.region, setting.chart, len(names), second)
    return search.run(), int(held.n)


def _one_shot(setting: Setting, names: list[Any], second: str) -> tuple[FoundClasses, int]:
    """One query over the whole domain."""
    region = setting.region
    frame = Frame.plain(region.center)
    query = MomentSum("moments", frame, region.radius, len(names), second)
    if setting.source.unit is Unit.PERSON:
        held = setting.gather(classes=names)
        exact, n = held.total(query, whole=True), int(held.n)
    else:
        totals, n = setting.engine.total(
            setting.source,
            setting.chart,
            region,
            [query],
            setting.policy,
            setting.private_count,
            names,
        )
        exact = totals[0]
    answer = setting.account.measure(query, exact)
    setting.account.note(radius=region.radius)
    return whole_domain(query.moments(answer.values, answer.scale), region), n


def _publish(
    setting: Setting, found: FoundClasses, names: list[Any], method: Method, n: int
) -> Release:
    """Say what the answers mean."""
    account, chart = setting.account, setting.chart
    unseen = [name for name, seen in zip(names, found.seen, strict=True) if not seen]
    account.note(classes=names, unseen=unseen, counts=found.counts.tolist())
    y = np.array([chart.project(mean, setting.region) for mean in found.means])
    z = np.array([chart.representable(mean) for mean in y])
    values = {"means": np.array([chart.matrices(mean) for mean in z]), "counts": found.counts}
    if found.covariance is not None:
        values["covariance"] = found.covariance
    divisor = float(found.counts.sum()) if setting.private_count else float(n)
    return publish(
        account,
        values,
        None if found.bound is None else found.bound.moved(float(np.linalg.norm(z - y))),
        statistic="class-means",
        method=method.value,
        estimand=class_estimand(chart.distance, account.unit),
        error_statement=_covers(found),
        error_bound_within=within(
            found.pulled, float(np.linalg.norm(z - found.means)), setting.source.unit.value
        ),
        **setting.facts(found.outside, divisor, account.steps[-1]["radius"]),
    )


def _covers(found: FoundClasses) -> str:
    if found.bound is not None:
        return JOINT
    if not found.seen.all():
        return UNSEEN
    return PULLED if found.pulled is not None else TOO_FEW
