"""Refusal of releases that public numbers show to be uninformative, before payment.

*Enforced.* Whether a release is refused, and what the error says, depends on d, the
budget, the method and a public number of records alone (:mod:`spdp.error.informative`).
Where the number of records is private (add-remove) nothing is refused.

*Therefore* a refusal tells nothing of the records, and costs no budget.
"""

from collections.abc import Callable
from decimal import ROUND_CEILING, Context
from math import ceil, sqrt
from typing import Any

from spdp.errors import ParameterError, Uninformative
from spdp.options import Adjacency, Unit, counted
from spdp.statistics.options import Options

MOST, PRECISE = 500.0, 1.0005  # largest ε that is looked at, and how precisely


def fewest_records(statistic: Any, records: Any, settled: Any) -> float:
    """The least public number of records that is not refused."""
    if settled.has_reference:  # the release is compared with the public data
        return 0.0
    shrunk = settled.method in statistic.shrinks and not settled.two_step
    found: float = statistic.informative_from(
        len(records.space.region.center), settled.budget, shrunk
    )
    return found


def refuse_uninformative(
    statistic: Any, records: Any, options: Options, settled: Any, n: int
) -> None:
    """Refuse n records that public numbers show to be uninformative."""
    least = fewest_records(statistic, records, settled)
    if n >= least or n == 0:  # no records at all are an error of the data
        return
    given = {"adjacency": Adjacency.REPLACE_ONE, "ledger": options["ledger"]}

    def least_at(epsilon: float) -> float:
        other = statistic.settle(records, epsilon, options["delta"], **given)
        return fewest_records(statistic, records, other)

    raise too_few(n, least, least_epsilon(n, options["epsilon"], least_at), records.unit)


def too_few(n: int, least: float, epsilon: float | None, unit: Unit) -> Uninformative:
    """The error for n records: how many, or which ε, would not be refused."""
    units, fewest = counted(unit), ceil(least)
    larger = "" if epsilon is None else f", or ε = {epsilon:g},"
    return Uninformative(
        f"uninformative, and refused before any budget is spent: from {n:,} "
        f"{units if n != 1 else unit} at this budget, the domain's centre, which needs "
        "no data, is about as good as this release would be. At least "
        f"{fewest:,} {units}{larger} are needed to do better, and more for a useful result "
        "(spdp plan)",
        fewest,
        epsilon,
    )


def least_epsilon(n: int, epsilon: float, least_at: Callable[[float], float]) -> float | None:
    """The least ε with which n records are not refused, rounded up to 3 digits.

    ``least_at(ε)`` is the least number of records at ε; an error where ε cannot be had.
    """

    def enough(epsilon: float) -> bool:
        try:
            return n >= least_at(epsilon)
        except ParameterError:
            return False

    low, high = max(float(epsilon), 1e-6), MOST
    if low >= high or not enough(high):
        return None
    while high / low > PRECISE:
        middle = sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    up = Context(prec=3, rounding=ROUND_CEILING)
    return float(up.create_decimal_from_float(high))
