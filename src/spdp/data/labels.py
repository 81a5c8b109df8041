"""Labels and covariates of records, read entry by entry.

*Enforced.* What an entry means depends on that entry alone: a column is never converted
as a whole, so that nobody's label or covariate changes how another's is read. Nothing
that an entry can be is an error: what is no label is none of the classes, what is no
number is NaN. Which dtype an array has as a whole is public.

7, 7.0, "7" and "7.0" are one label, as they are one id (:mod:`spdp.data.identity`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.identity import id_of
from spdp.errors import DataError
from spdp.stacks import is_list

__all__ = ["entries_of", "label_of", "lines_of", "numbers_of", "places_of"]

NUMBERS = "biuf"  # kinds of dtypes that hold numbers
LISTS = (list, tuple, np.ndarray)


def label_of(value: Any) -> int | str | None:
    """A label in its one spelling; None for what can be none."""
    try:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float):
            return int(value) if value == int(value) else repr(value)
        return id_of(value)
    except Exception:  # NaN, infinity, and whatever an object's own methods raise
        return None


def entries_of(column: Any) -> NDArray[Any]:
    """A column as an array; a list's entries are kept as they are, one by one.

    A masked entry is none.
    """
    if isinstance(column, np.ma.MaskedArray):
        column = column.tolist()
    if not is_list(column):
        return np.asarray(column)
    entries = np.empty(len(column), object)
    for i, entry in enumerate(column):
        entries[i] = entry
    return entries


def lines_of(file: Path, n: int | None = None) -> list[str]:
    """The lines of a text, one per record, whatever bytes they hold.

    Where the number of records is known, it tells a break that ends the last line from
    one before a last line that is blank.
    """
    lines = file.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not lines[-1] and len(lines) != n:
        lines.pop()
    return [line.decode("utf-8", "replace").strip() for line in lines]


def places_of(labels: NDArray[Any], classes: Sequence[Any]) -> NDArray[np.intp]:
    """Place of each label in the public list of classes, or -1."""
    places = {label_of(name): place for place, name in enumerate(classes)}
    if labels.dtype.kind in NUMBERS:
        found, rows = np.unique(labels, return_inverse=True)
        return np.array([places.get(label_of(v), -1) for v in found.tolist()], np.intp)[rows]
    keys = (label_of(value) for value in labels.tolist())
    return np.array([-1 if key is None else places.get(key, -1) for key in keys], np.intp)


def numbers_of(column: NDArray[Any], p: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Covariates (n, p), and whose could not be read.

    NaN stands for what is no number, and for too few or too many.
    """
    if column.dtype.kind in NUMBERS:
        numbers = column.astype(np.float64, copy=False)
        numbers = numbers[:, None] if numbers.ndim == 1 else numbers
        if numbers.ndim != 2 or numbers.shape[1] != p:
            raise DataError(f"covariates have shape {column.shape}; expected (n, {p})")
        return numbers, np.zeros(len(numbers), bool)
    numbers, unread = np.full((len(column), p), np.nan), np.ones(len(column), bool)
    for i, entry in enumerate(column):
        read = _floats(entry)
        if read is not None and len(read) == p:
            numbers[i], unread[i] = read, False
    return numbers, unread


def _floats(entry: Any) -> list[float] | None:
    parts = entry if isinstance(entry, LISTS) and not _is_scalar(entry) else (entry,)
    try:
        return [_float(part) for part in parts]
    except Exception:  # whatever an object's own methods raise
        return None


def _float(part: Any) -> float:
    """A number; an error for all that NumPy would read with a warning.

    Warnings are not asked for it: their filters belong to all threads.
    """
    if _is_scalar(part):
        part = part[()]
    if isinstance(part, np.ndarray | np.complexfloating):  # or masked, which stays an array
        raise TypeError("no real number")
    return float(part)


def _is_scalar(entry: Any) -> bool:
    return isinstance(entry, np.ndarray) and entry.ndim == 0
