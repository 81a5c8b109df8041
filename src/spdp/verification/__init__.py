"""Checks that a certificate agrees with itself: what can be recomputed is recomputed.

Verification proves that value and certificate are those that were sealed (and, with a
signature, by whom), and that the numbers follow from each other: sensitivities from the
kind of query, scales and prices from those and the budget, the error from the noise. It
does NOT prove that the noise was drawn, that the records were those of the dataset,
that the domain was chosen without looking at them, that each person owned one record
(or that the ids of persons were right), or that a ledger was kept.

``table`` has a line for each statistic: what it may release, ask and say.
"""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from spdp.errors import DataError, ParameterError
from spdp.verification.base import Check, Fields
from spdp.verification.error import forms, law_or_parts, population, within
from spdp.verification.noise import budget, last_answer, one_shot, sensitivities, steps
from spdp.verification.words import counts, released, words

__all__ = ["NOT_PROVEN", "Check", "checks"]

NOT_PROVEN = (
    "Not proven: that the noise was drawn, that the records were the dataset's, that the "
    "domain was chosen without looking at them, that each person owned one record (or that the "
    "ids of persons were right), and that every release of the dataset was accounted for."
)
CHECKS = (
    words,
    released,
    counts,
    budget,
    steps,
    sensitivities,
    one_shot,
    last_answer,
    forms,
    law_or_parts,
    within,
    population,
)
WRONG = (
    DataError,
    ParameterError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
)


def checks(certificate: Fields, values: Mapping[str, NDArray[Any]] | None = None) -> list[Check]:
    """Recompute what a certificate states from its other fields.

    With ``values``, also what it states of those.
    """
    results: list[Check] = []
    for check in CHECKS:
        try:
            results.extend(check(certificate))
        except WRONG as e:
            name = check.__name__.replace("_", " ")
            results.append(Check(name, False, f"cannot be recomputed: {e!r}"))
    return results if values is None else [*results, *_values(certificate, values)]


def _values(c: Fields, values: Mapping[str, NDArray[Any]]) -> list[Check]:
    """What is released is what the certificate speaks of."""
    found = {name: list(array.shape) for name, array in values.items()}
    results = [Check("values", found == c["arrays"], f"arrays {found}")]
    stated = c["steps"][-1].get("counts") if c["steps"] else None
    if c["statistic"] == "class-means" and "counts" in values:
        same = stated == values["counts"].tolist()
        results.append(Check("counts", same, "of the classes, as in the last step"))
    return results
