"""Who is who: one spelling for an id, however it is stored.

*Enforced.* What an entry means depends on that entry alone: a column is spelt entry by
entry, never converted as a whole, so that nobody's id can change how another's is read.
7, 7.0, "7" and "7.0" are one id; "07" is another. An entry that is no id is an error,
always, since whose record it is would be a guess.
"""

import re
from math import isfinite, isnan
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError, named
from spdp.stacks import is_list

__all__ = ["id_of", "ids_of", "spelt"]

WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]{0,18}))(?:\.0+)?")
LONGEST = 1 << 63  # whole numbers below this are numbers, longer ones texts
EXACT = 1 << 53  # beyond, floating-point numbers no longer tell whole numbers apart


def id_of(value: Any) -> int | str | None:
    """An id in its one spelling; None where there is none."""
    if value is None or value is np.ma.masked:
        return None
    if isinstance(value, bytes):
        value = value.decode("utf-8")
    if isinstance(value, str):
        return _of_text(normalize("NFC", value.strip()))
    if isinstance(value, bool | int | np.bool_ | np.integer):
        whole = int(value)
        return whole if -LONGEST <= whole < LONGEST else f"{whole:x}, in hexadecimal"
    if isinstance(value, float | np.floating):
        return _of_number(float(value))
    raise DataError(f"{named('groups')} hold {value!r:.40}; ids are whole numbers or texts")


def _of_text(text: str) -> int | str | None:
    found = WHOLE.fullmatch(text)
    if found is None:
        return text or None
    whole = int(found[1])
    return whole if -LONGEST <= whole < LONGEST else id_of(whole)


def _of_number(value: float) -> int | None:
    if isnan(value):
        return None
    if not isfinite(value) or value != int(value):
        raise DataError(
            f"{named('groups')} hold {value!r}; a number that is an id must be a whole one"
        )
    if abs(value) > EXACT:
        raise DataError(
            f"{named('groups')} hold {value!r}: floating-point numbers above 2**53 cannot tell "
            "ids apart; pass them as whole numbers or texts"
        )
    return int(value)


def ids_of(values: list[Any]) -> NDArray[Any]:
    """Ids in their one spelling: an array of whole numbers if all are, else mixed.

    None stays where there is no id.
    """
    ids = [id_of(value) for value in values]
    if all(isinstance(value, int) for value in ids):
        return np.array(ids, np.int64)
    mixed = np.empty(len(ids), object)
    mixed[:] = ids
    return mixed


def spelt(column: Any) -> NDArray[Any]:
    """A column of ids, one per record, in their one spelling."""
    if isinstance(column, np.ma.MaskedArray):
        column = column.tolist()  # None where masked
    if is_list(column):
        return _complete(ids_of(list(column)))
    ids = np.asarray(column)
    if ids.ndim != 1:
        raise DataError(
            f"{named('groups')} have shape {ids.shape}; expected one person's id per record"
        )
    if ids.dtype in (np.int32, np.int64):
        return ids  # as they are: they may be many, and lie in a file
    if ids.dtype.kind in "ib" or (ids.dtype.kind == "u" and ids.max(initial=0) < LONGEST):
        return ids.astype(np.int64, copy=False)
    if ids.dtype.kind == "O":
        return _complete(ids_of(ids.tolist()))
    if ids.dtype.kind not in "ufUS":
        raise DataError(
            f"{named('groups')} have dtype {ids.dtype}; expected whole numbers or texts"
        )
    found, rows = np.unique(ids, return_inverse=True)
    return _complete(ids_of(found.tolist())[rows])


def _complete(ids: NDArray[Any]) -> NDArray[Any]:
    if ids.dtype.kind == "O":
        missing = np.array([value is None for value in ids.tolist()], bool)
        if missing.any():
            raise DataError(
                f"{named('groups')}: record {int(np.argmax(missing))} has no person; "
                "every record needs one"
            )
    return ids
