"""What CSV and Parquet tables share: a row is a record, its columns are the entries.

A row holds the k² entries of a matrix, or the k(k+1)/2 of its upper triangle row by
row, in the order of the columns. All columns of numbers count but those of persons and
labels. *Assumed.* Names and types of columns are public. *Enforced.* A missing or
unreadable entry makes one unusable record. It is no error of the file, and no error
quotes what stands in it; but a column of which a tenth is unreadable is refused, since
its type, which is public, is in doubt.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from spdp.blocks import Block
from spdp.data.formats.base import Layout, Options, unused
from spdp.data.identity import ids_of
from spdp.data.labels import entries_of, label_of
from spdp.errors import DataError, ParameterError, named

__all__ = ["Table", "block_of", "place"]

FULL, UPPER = "full", "upper"
SHOWN = 8  # names of columns in a message
# How people call the columns of a list of files, which are path and person.
LIKE_PATHS = {"path", "paths", "file", "files", "filename", "file_name", "filepath", "image"}
LIKE_PERSONS = {
    *("person", "persons", "people", "subject", "subjects", "subject_id", "sub", "subj", "id"),
    *("participant", "participant_id", "patient", "patient_id", "pid"),
}


@dataclass(frozen=True)
class Table(Layout):
    """A table of records.

    Attributes
    ----------
    names : tuple of str
        Names of all columns.
    entries : tuple of int
        Places of the columns that hold the entries, as stored.
    person, label : int or None
        Places of the columns that say whose a record is, and its class.
    offsets : tuple of int
        Where pieces begin: each format's own.
    """

    names: tuple[str, ...] = ()
    entries: tuple[int, ...] = ()
    person: int | None = None
    label: int | None = None
    offsets: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, file: Path, names: list[str], numeric: Sequence[bool | None], options: Options
    ) -> Self:
        """A table with these columns; whatever might be a guess is an error.

        ``numeric`` is None for a column of numbers and texts.
        """
        chosen = (options.groups_column, options.label_column)
        person, label = (None if name is None else place(file, names, name) for name in chosen)
        mixed = [name for i, name in enumerate(names) if numeric[i] is None]
        mixed = [name for name in mixed if name not in chosen]
        if mixed:
            raise DataError(
                f"{file}: column {mixed[0]!r} holds both numbers and texts; are they entries of "
                "the matrices? Write them as numbers, or leave the column out"
            )
        entries = [i for i, real in enumerate(numeric) if real and i not in (person, label)]
        if len(entries) <= 1:
            _refuse_list(file, names)
        k = _size(file, [names[i] for i in entries], options)
        others = [name for i, name in enumerate(names) if i not in (person, label, *entries)]
        if person is None and not options.grouped:
            unused(file, others, "columns")
        where = (tuple(names), tuple(entries), person, label)
        return cls(file, 0, k, np.dtype(float), "", 1, *where)

    @property
    def columns(self) -> tuple[str, ...]:
        """What the table says beside its records."""
        given = {"person": self.person, "label": self.label}
        return tuple(name for name, where in given.items() if where is not None)

    @property
    def used(self) -> list[int]:
        """Places of the columns that are read."""
        more = [where for where in (self.person, self.label) if where is not None]
        return list(dict.fromkeys([*self.entries, *more]))


def place(file: Path, names: list[str], name: str) -> int:
    """Place of the column of a name."""
    found = [i for i, other in enumerate(names) if other == name]
    if len(found) != 1:
        how = "no column" if not found else f"{len(found)} columns"
        raise DataError(f"{file}: {how} {name!r}; its columns are {_listed(names)}")
    return found[0]


def _refuse_list(file: Path, names: list[str]) -> None:
    """Say how a manifest's header is spelt, where one seems to be meant."""
    words = {name.lower() for name in names}
    if words & LIKE_PATHS and ("path" in words or words & LIKE_PERSONS):
        raise DataError(
            f"{file}: no table of matrices. A list of files, a manifest, has columns path and "
            f"person, and if wanted label and mask; the columns here are {_listed(names)}"
        )


def _size(file: Path, names: list[str], options: Options) -> int:
    """k, of matrices whose entries stand in so many columns."""
    entries, c = options.entries, len(names)
    if entries not in (None, FULL, UPPER):
        raise ParameterError(f"{named('entries')} must be 'full' or 'upper', got {entries!r}")
    fits = {name: k for name, k in _fitting(c).items() if entries in (None, name)}
    found = f"{file}: {c} columns of numbers ({_listed(names)})"
    if not c:
        raise DataError(
            f"{found}; are they written with a decimal point, and separated as the names in the "
            "first line are?"
        )
    if not fits:
        what = "k² entries, nor k(k+1)/2 of an upper triangle" if entries is None else entries
        raise DataError(
            f"{found} are not {what}; name those of persons and labels, leave out other numbers",
            ask=("groups_column", "label_column"),
        )
    unsaid = entries is None and options.groups_column is None
    more = [f"{_meaning(*fit)} and a person's id" for fit in _fitting(c - 1).items() if unsaid]
    readings = [*(_meaning(*fit) for fit in fits.items()), *more]
    if len(readings) > 1:
        ask = ("entries", "groups_column") if more else ("entries",)
        raise DataError(f"{found} may be {' or '.join(readings)}; say which", ask=ask)
    return next(iter(fits.values()))


def _fitting(c: int) -> dict[str, int]:
    """Sizes k of matrices that c columns may hold."""
    sizes = {FULL: isqrt(c), UPPER: (isqrt(8 * c + 1) - 1) // 2}
    fits = {name: k for name, k in sizes.items() if c == _count(k, name) > 0}
    return {FULL: 1} if c == 1 else fits


def _meaning(entries: str, k: int) -> str:
    what = "whole matrices" if entries == FULL else "upper triangles"
    return f"{what} {k}×{k} ({entries})"


def _count(k: int, entries: str) -> int:
    return k * k if entries == FULL else k * (k + 1) // 2


def _listed(names: list[str]) -> str:
    if len(names) <= SHOWN:
        return ", ".join(names) or "none"
    return f"{', '.join(names[: SHOWN - 1])}, … {names[-1]}"


def block_of(layout: Table, columns: dict[int, Any]) -> Any:
    """Records out of Arrow columns by place, with persons and labels beside them."""
    m = len(next(iter(columns.values())))
    values = np.empty((m, len(layout.entries)), layout.dtype)
    for j, i in enumerate(layout.entries):
        values[:, j] = columns[i].to_numpy(zero_copy_only=False)  # NaN where missing
    records = _matrices(values, layout.k)
    beside: dict[str, NDArray[Any]] = {}
    if layout.person is not None:
        beside["person"] = _ids(columns[layout.person])
    if layout.label is not None:
        beside["label"] = entries_of(list(map(label_of, columns[layout.label].to_pylist())))
    return Block(records, beside) if beside else records


def _matrices(values: NDArray[Any], k: int) -> NDArray[Any]:
    if values.shape[1] == k * k:
        return values.reshape(-1, k, k)
    where = np.zeros((k, k), np.intp)
    rows, columns = np.triu_indices(k)
    where[rows, columns] = where[columns, rows] = np.arange(len(rows))
    return values.take(where.ravel(), axis=1).reshape(-1, k, k)


def _ids(column: Any) -> NDArray[Any]:
    """Persons of an Arrow column; an id is looked at once, however often it occurs."""
    whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if whole.null_count == 0 and str(whole.type) in ("int64", "int32", "int16", "int8"):
        return np.asarray(whole.to_numpy(zero_copy_only=False), np.int64)
    coded = whole if hasattr(whole, "indices") else whole.dictionary_encode()
    known = ids_of(coded.dictionary.to_pylist() + [None] * (whole.null_count > 0))
    return np.asarray(known[coded.indices.fill_null(len(known) - 1).to_numpy()])
