r"""Where a record may lie: public sets, chosen without looking at the data.

Records are FORCED into the domain one by one, so the sensitivity of their mean is
enforced, not assumed: with all vectors in a ball of radius r, replacing one of n
records moves the mean by at most 2r/n (theorem 3). A radius or bounds computed from the
data themselves leak the data; no function here offers that.
"""

from typing import Any

from spdp.domain.base import Domain
from spdp.domain.instruments import amplitude_bounds, tensor_bounds
from spdp.domain.sets import Ball, CorrelationBounds, EigenvalueBounds, TraceBounds
from spdp.errors import ParameterError

__all__ = [
    "Ball",
    "CorrelationBounds",
    "Domain",
    "EigenvalueBounds",
    "TraceBounds",
    "amplitude_bounds",
    "check_domain",
    "domain_of",
    "tensor_bounds",
]

KINDS: dict[str, type[Domain]] = {
    kind.__name__: kind for kind in (Ball, EigenvalueBounds, TraceBounds, CorrelationBounds)
}


def domain_of(description: Any) -> Domain:
    """The domain that :meth:`Domain.describe` described."""
    kind = description.get("type") if isinstance(description, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise ParameterError(f"unknown kind of domain {kind!r}")
    options = {name: value for name, value in description.items() if name != "type"}
    try:
        return KINDS[kind](**options)
    except TypeError as error:
        raise ParameterError(f"not a description of a {kind}: {error}") from None


def check_domain(domain: object) -> Domain:
    """``domain`` if it is one, or why it cannot be left out."""
    if isinstance(domain, Domain):
        return domain
    if domain is None:
        raise ParameterError(
            "a domain is required: pass Ball(radius), EigenvalueBounds(low, high), "
            "TraceBounds(low, trace) or CorrelationBounds(shrinkage), chosen from public "
            "knowledge. Bounds computed from the data would leak the data."
        )
    raise ParameterError(
        f"domain must be one of {', '.join(KINDS)}, got {type(domain).__name__}. It cannot be "
        "taken from the data: bounds computed from the data would leak the data."
    )
