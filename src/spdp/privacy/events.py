"""Releases as events that dp-accounting adds up beside others'.

A release of cost μ is dominated by one Gaussian of noise multiplier 1/μ (Gaussian
differential privacy), a pure ε release by that of its Gaussian equivalent
μ = 2Φ⁻¹(e^ε/(1 + e^ε)), as in a ledger: valid, and loose for pure ones alone.

The noise multiplier is for the release's OWN neighbours, replaced or added. Accountants
of dp-accounting take it as it is for ADD_OR_REMOVE_ONE and REPLACE_SPECIAL; for
REPLACE_ONE its accountant of privacy loss distributions doubles the sensitivity, since
it expects multipliers stated for added records: still valid, and twice too dear.
"""

from math import inf, nextafter
from typing import Any

from spdp.errors import DataError
from spdp.privacy.costs import pure_mu

__all__ = ["event_of"]


def event_of(mu: float | None, epsilon: float, private: bool = True) -> Any:
    """The DpEvent of a release of cost μ, or of pure ε where μ is None."""
    try:
        import dp_accounting
    except ImportError:
        raise DataError(
            "events need dp-accounting; install it with: pip install 'spdp[accounting]'"
        ) from None
    if not private:
        return dp_accounting.NonPrivateDpEvent()
    cost = pure_mu(epsilon) if mu is None else mu
    return dp_accounting.GaussianDpEvent(nextafter(1.0 / cost, -inf))
