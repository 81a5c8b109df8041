"""Checks that a certificate agrees with itself: what can be recomputed is recomputed.

Verification proves that value and certificate are those that were sealed (and, with a
signature, by whom), and that the numbers follow from each other: sensitivities from the
kind of query, scales and prices from those and the budget, the error from the noise. It
does NOT prove that the noise was drawn, that the records were those of the dataset,
that the domain was chosen without looking at them, that each person owned one record
(or that the ids of persons were right), or that a ledger was kept.

``table`` has a line for each statistic: what it may release, ask and say.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from spdp.errors import DataError, ParameterError
from spdp.verification.base import Check, Fields
from spdp.verification.compared import class_counts, class_means, class_places, difference, not_more
from spdp.verification.error import forms, law_or_parts, population, within
from spdp.verification.noise import budget, last_answer, one_shot, sensitivities, steps
from spdp.verification.said import free_words, notes
from spdp.verification.searched import farthest, pulled, sampling, searched
from spdp.verification.stated import summary
from spdp.verification.values import agree, matrices
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
    notes,
    free_words,
    summary,
    searched,
    class_counts,
    class_means,
)
# Those that look at what is released, too.
VALUES = (
    matrices,
    agree,
    pulled,
    farthest,
    sampling,
    class_places,
    difference,
    not_more,
)
WRONG = (
    DataError,
    ParameterError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    MemoryError,
)


def checks(certificate: Fields, values: Mapping[str, NDArray[Any]] | None = None) -> list[Check]:
    """Recompute what a certificate states from its other fields.

    With ``values``, also what it states of those.
    """
    results = [result for check in CHECKS for result in _asked(check, certificate)]
    if values is not None:
        results += _asked(_speaks_of, certificate, values)
        if results[-1].ok:  # else the others would look at what is not there
            results += [result for check in VALUES for result in _asked(check, certificate, values)]
    return results


def _asked(check: Callable[..., Iterator[Check]], *args: Any) -> list[Check]:
    """What a check finds; one that cannot be made has failed."""
    try:
        return list(check(*args))
    except WRONG as error:
        name = check.__name__.strip("_").replace("_", " ")
        return [Check(name, False, f"cannot be recomputed: {error!r}")]


def _speaks_of(c: Fields, values: Mapping[str, NDArray[Any]]) -> Iterator[Check]:
    """What is released is what the certificate speaks of."""
    found = {name: list(array.shape) for name, array in values.items()}
    yield Check("values", found == c["arrays"], f"arrays {found}")
