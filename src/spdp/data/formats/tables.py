"""What CSV and Parquet tables share: a row is a record, its columns are the entries.

A row holds the k² entries of a matrix, or the k(k+1)/2 of its upper triangle row by
row, in the order of the columns. *Assumed.* Names of columns are public, and so are
their types where the file states them. *Enforced.* They alone, and the options,
determine which columns are entries: all but those of persons and labels, if types,
names (c11, c12, … or Dxx, Dxy, …, which differ in an index only) or the option
``entries`` say so; with ``entries``, if those are too many, the columns whose names are
alike in this way. Whatever leaves a doubt is an error. A missing or unreadable entry
makes one invalid record: it is no error of the file, and no error quotes its content.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from spdp.data.batching import Block
from spdp.data.columns import entries_of, ids_of, label_of
from spdp.data.formats.base import Layout, Options, unused
from spdp.data.source import Advice
from spdp.errors import DataError, ParameterError, named

FULL, UPPER = "full", "upper"
INDEX = re.compile("[0-9]+|[xyz]{2}$")  # by which the names of entries differ
Reading = tuple[list[int], str, int]  # places of entries, FULL or UPPER, and k
SHOWN = 8  # names of columns in a message
# Usual names of the columns of a manifest, which must be path and person.
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
        Places of the columns of subject ids, and of classes.
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
        cls, file: Path, names: list[str], numeric: Sequence[bool] | None, options: Options
    ) -> Self:
        """A table with these columns; whatever would be a guess is an error.

        Columns not ``numeric`` are no entries; None where types are not stated.
        """
        chosen = (options.groups_column, options.label_column)
        person, label = (None if name is None else place(file, names, name) for name in chosen)
        real = [True] * len(names) if numeric is None else numeric
        free = [i for i in range(len(names)) if real[i] and i not in (person, label)]
        if len(free) <= 1 or LIKE_PATHS & {names[i].lower() for i in free}:
            _refuse_list(file, names)
        entries, k = _entries(file, names, free, options, numeric is not None)
        others = [name for i, name in enumerate(names) if i not in (person, label, *entries)]
        if person is None and not options.grouped:
            unused(file, others, "columns")
        where = (tuple(names), tuple(entries), person, label)
        return cls(file, 0, k, np.dtype(float), "", 1, *where)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns beside the entries."""
        given = {"person": self.person, "label": self.label}
        return tuple(name for name, where in given.items() if where is not None)

    @property
    def beside(self) -> list[int]:
        """Places of the columns of persons and labels."""
        return list({where: None for where in (self.person, self.label) if where is not None})

    @property
    def used(self) -> list[int]:
        """Places of the columns that are read."""
        return [*self.entries, *self.beside]


def advise(layout: Table) -> Advice:
    """What may be wrong with a table that has invalid records."""
    entries = _listed([layout.names[i] for i in layout.entries])
    return Advice(
        f"its entries are read from columns {entries}: is one of them not an entry, or are "
        "numbers written with a decimal comma?"
    )


def place(file: Path, names: list[str], name: str) -> int:
    """Place of the column with a name."""
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


def _entries(
    file: Path, names: list[str], free: list[int], options: Options, typed: bool
) -> tuple[list[int], int]:
    """Places of the columns that hold the entries, and k, as names and options say."""
    wanted = options.entries
    if wanted not in (None, FULL, UPPER):
        raise ParameterError(f"{named('entries')} must be 'full' or 'upper', got {wanted!r}")
    found = f"{file}: {len(free)} columns of entries ({_listed([names[i] for i in free])})"
    if not free:
        raise DataError(f"{found}; are they numbers?")
    alike = _alike(names, free)
    readings = [
        (places, form, k)
        for places in ([free, alike] if 1 < len(alike) < len(free) else [free])
        for form, k in _fitting(len(places)).items()
        if wanted in (None, form)
    ]
    if not readings:
        what = "k² entries, nor k(k+1)/2 of an upper triangle" if wanted is None else wanted
        raise DataError(
            f"{found} are not {what}; name those of persons and labels, leave out others, or let "
            "the names of entries differ in an index only: c11, c12, …",
            ask=("groups_column", "label_column"),
        )
    if wanted is None:
        _refuse_doubt(found, len(free), readings, options, typed or alike == free)
    places, _, k = readings[0]
    return places, k


def _refuse_doubt(
    found: str, c: int, readings: list[Reading], options: Options, known: bool
) -> None:
    """Ask unless all columns are entries, in one way, and no id seems forgotten."""
    whole = [_meaning(form, k) for places, form, k in readings if len(places) == c]
    beside = [f"{_meaning(form, k)} and others" for places, form, k in readings if len(places) < c]
    if not beside and options.groups_column is None:
        beside = [f"{_meaning(*fit)} and a person's id" for fit in _fitting(c - 1).items()]
    if not known and not beside:  # neither types nor names say that all are numbers
        beside = ["some that are no entries"]
    if len(whole) > 1 or beside:
        ids = ("groups_column",) if beside and options.groups_column is None else ()
        message = f"{found} may be {' or '.join([*whole, *beside])}; say which"
        raise DataError(message, ask=("entries", *ids))


def _alike(names: list[str], free: list[int]) -> list[int]:
    """Columns whose names differ in an index only: the most there are."""
    sets: dict[str, list[int]] = {}
    for i in free:
        sets.setdefault(INDEX.sub("", names[i]), []).append(i)
    return max(sets.values(), key=len)


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
    """Persons of an Arrow column; each distinct id is read once."""
    whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if whole.null_count == 0 and str(whole.type) in ("int64", "int32", "int16", "int8"):
        return np.asarray(whole.to_numpy(zero_copy_only=False), np.int64)
    coded = whole if hasattr(whole, "indices") else whole.dictionary_encode()
    known = ids_of(coded.dictionary.to_pylist() + [None] * (whole.null_count > 0))
    return np.asarray(known[coded.indices.fill_null(len(known) - 1).to_numpy()])
