"""Making a release of an account's answers: certificate, ledger entry, warnings.

*Enforced.* A certificate is derived here from an account, whose steps hold released
values only, and from public numbers; no function of the records is an argument. A
warning is computed from the certificate and the values alone: it reveals no more than
the release does.
"""

from collections.abc import Callable
from math import sqrt
from typing import Any

from numpy.typing import NDArray

from spdp.error.bound import Bound
from spdp.errors import DataWarning, DomainMismatch, UninformativeRelease, warn
from spdp.kernels import kernels_for
from spdp.kernels.arrays import Array
from spdp.options import Adjacency, counted
from spdp.privacy.account import Account
from spdp.release.certificate import Certificate, Facts, made_with
from spdp.release.declaration import Declaration, Values, derive
from spdp.release.release import Release

MANY = 0.1  # share from which to warn, beyond doubt
FAR, SHARP = 0.9, 0.3  # over the radius: distance of a mean at the edge, and its error


def publish(
    account: Account,
    declaration: Declaration,
    values: Values,
    *,
    space: Any = None,
    vector: Array | None = None,
    within: Bound | None = None,
    population: Callable[[Bound], Bound] | None = None,
    shift: float = 0.0,
    warning: tuple[str, type[Warning]] | None = None,
    **facts: Any,
) -> Release:
    """A release of an account's answers, stored with its ledger's entry.

    ``vector`` is the vector of a mean; ``within`` holds the parts of a bound for
    another target; ``population`` widens the bound for the population's mean; ``shift``
    is how far a value was moved whose error has a law; ``warning`` is a text of the
    statistic and its class.
    """
    seed, budget = account.random_state, account.budget
    if seed is not None and not (isinstance(seed, int) and abs(seed) < 1 << 63):
        seed = "generator"  # type: ignore[assignment]
    stated: dict[str, Any] = {
        "statistic": declaration.name,
        "calibration": budget.calibration,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "adjacency": account.adjacency.value,
        "unit": None if account.unit is None else account.unit.value,
        "steps": account.steps,
        "seed": seed,
        "versions": made_with(account.sampler),
        "arrays": {name: list(array.shape) for name, array in values.items()},
        "trust": account.trust,
        **facts,
    }
    known = {"declaration": declaration, "budget": budget, "answers": account.steps}
    known |= {"last": account.steps[-1], "public": account.adjacency is Adjacency.REPLACE_ONE}
    known["searched"] = facts.get("method") == "adaptive"
    if space is not None:
        chart = space.chart
        stated |= {"metric": chart.name, "k": space.k, "parts": chart.parts}
        stated |= {"reference_point": chart.reference_point, "domain": space.domain.describe()}
        known |= {"space": space, "chart": chart, "d": len(space.region.center)}
    f = Facts(**stated)
    f.__dict__.update(known)  # so that it is not derived again
    law = declaration.law(f) if shift and f.error_bound_parts is None else None
    if law is not None:
        f.error_bound_parts = Bound.shifted(law, shift)
    bound = f.error_bound_parts
    wider = None if population is None or bound is None else population(bound)
    f.__dict__.update(bound=bound, within=within, population=wider)
    certificate = derive(f)
    certificate.__dict__.update(f.__dict__)
    release = Release(values, certificate)
    told = [] if warning is None else [warning]
    if (text := domain_mismatch(certificate, values, vector)) is not None:
        told.append((text, DomainMismatch))
    if (text := uninformative(certificate)) is not None:
        told.append((text, UninformativeRelease))
    try:
        if account.ledger is not None:
            account.keep(release.values if len(values) > 1 else release.value, release.certificate)
        for text, kind in told:
            warn(text, kind)
    except DataWarning as error:  # as an error it carries the release, which was paid for
        error.release = release
        raise
    return release


# --- what a release warns of


def domain_mismatch(c: Certificate, values: Values, vector: Array | None = None) -> str | None:
    """A warning if the domain clearly does not fit the records (or persons).

    ``vector`` is the vector of a released mean, if it is known.
    """
    many = "nearly all"
    if c.outside is not None and c.outside.share - c.clear * c.outside.sd > MANY:
        many = f"about {c.outside.share:.0%} of the"
    elif not _at_far_edge(c, values, vector):
        return None
    return (
        f"{many} {c.unit}s lie outside the domain or at its edge, and were clipped to it. Is the "
        "domain in the unit of the data?"
    )


def _at_far_edge(c: Certificate, values: Values, vector: Array | None) -> bool:
    """Whether a released mean lies at the ball's surface, its error aside.

    A mean is there only if nearly all records are.
    """
    if list(values) != ["mean"] or c.domain is None or c.error_bound is None:
        return False
    square, region = c.expected_squared_error, c.space.region
    error = c.error_bound["95%"] if square is None else sqrt(square)
    if error >= SHARP * region.radius:
        return False
    if vector is None:  # not a matrix of this chart: verification reports it
        value: NDArray[Any] = values["mean"]
        if value.shape[-2:] != (c.k, c.k) or value.dtype.kind not in c.chart.kinds:
            return False
        (vector,), _ = c.chart.vectors(value[None], region, kernels_for(value))
    offset = vector - region.center
    return sqrt(float(offset @ offset)) > FAR * region.radius


def uninformative(c: Certificate) -> str | None:
    """A warning if the domain's centre, which needs no data, is as good an estimate.

    By the error bound, or by public numbers alone (:mod:`spdp.error.informative`).
    """
    bound = c.error_bound["95%"] if c.error_bound is not None else None
    if bound is None and c.error_bound_within is not None:
        bound = c.error_bound_within.at_95
    radius = None if bound is None else c.declaration.free_distance(c)
    if bound is not None and radius is not None and bound >= radius:
        near = f"within {radius:.4g} of {c.declaration.any_mean}"
    elif c.declaration.known_uninformative(c):
        near = "about as good, by public numbers alone"
    else:
        return None
    helps = f"More {counted(c.unit)} or a larger ε are needed (spdp plan)"
    return f"UNINFORMATIVE: the domain's centre, which needs no data, is {near}. {helps}"
