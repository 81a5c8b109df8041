"""Making a release of what an account answered: certificate, ledger entry, warnings.

*Enforced.* A certificate is filled here from an account, whose steps hold released
values only, and from public numbers; no function of the records is an argument.
"""

from math import sqrt
from typing import Any

from spdp import cautions
from spdp.certificate import STATED, Certificate, stated_bounds
from spdp.errors import Hopeless, OutsideDomain, carrying, warn
from spdp.plain import numbers
from spdp.privacy.account import Account
from spdp.privacy.bounds import Bound
from spdp.privacy.laws import Spec, mean_of, quantiles
from spdp.release import Array, Release, Values, by_name

__all__ = ["publish"]


def publish(
    account: Account,
    value: Array | Values,
    error: Spec | Bound | None,
    *,
    vector: Array | None = None,
    **facts: Any,
) -> Release:
    """A release of what an account answered, stored with its ledger's entry.

    ``value`` is an array, or several by name, the main one first. ``error`` is the law
    of its squared error, or a bound on its error; None where ``facts`` say what is
    known of it. ``vector`` is that of a mean.
    """
    seed = account.random_state
    values = {name: numbers(array) for name, array in by_name(value, {}).items()}
    certificate = Certificate(
        private=seed is None,
        float_safe=seed is None,
        mechanism=account.mechanism,
        arrays={name: list(array.shape) for name, array in values.items()},
        calibration=account.budget.calibration,
        epsilon=account.budget.epsilon,
        delta=account.budget.delta,
        mu=account.mu_spent,
        steps=account.steps,
        seed=seed if seed is None or isinstance(seed, int) else "generator",
        unit=None if account.unit is None else account.unit.value,
        **{"adjacency": account.adjacency.value, **_error_facts(error), **facts},
    )
    stated = certificate.as_dict()
    release = Release(values, stated)
    with carrying(release):  # paid for: it is not lost where warnings are errors
        if account.has_ledger:
            kept = release.values if len(release.values) > 1 else release.value
            account.keep(kept, release.certificate)
        _warn(values, stated, vector)
    return release


def _warn(values: Values, stated: dict[str, Any], vector: Array | None) -> None:
    """Say at the user's call what the release's own page says in red."""
    if text := cautions.outside(values, stated, vector):
        warn(text, OutsideDomain)
    if text := cautions.hopeless(stated):
        warn(text, Hopeless)


def _error_facts(error: Spec | Bound | None) -> dict[str, Any]:
    """What a certificate states of an error, from its law or its bound."""
    if error is None:
        return {"error_bound": None}
    if isinstance(error, Bound):
        return {"error_bound_parts": error.describe(), "error_bound": stated_bounds(error)}
    squares = quantiles(error)
    return {
        "expected_squared_error": mean_of(error),
        "squared_error_quantiles": squares,
        "squared_error_law": error,
        "error_bound": {level: sqrt(squares[level]) for level in STATED},
    }
