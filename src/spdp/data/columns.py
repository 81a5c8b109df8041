"""Columns beside the records: subject ids, labels, covariates.

*Enforced.* What an entry means depends on that entry alone: a column is read entry by
entry, never converted as a whole, so that nobody's id or label changes how another's is
read. 7, 7.0, "7" and "7.0" are one id, and one label; "07" is another. An entry that is
not an id is always an error: the person would be a guess. No label or covariate is an
error here: an entry that is not a label belongs to no class, and one that is not a
number is NaN. The dtype of an array as a whole is public.

Columns are cut where the blocks are cut and travel with them, here and to a cluster's
workers. A column of another length than the records is always an error: which entry
belongs to which record would be a guess.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite, isnan
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from spdp.data.batching import Block, is_list, records_of
from spdp.data.source import Advice, Source, is_dask, read_piece
from spdp.errors import DataError, named

WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]{0,18}))(?:\.0+)?")
LONGEST = 1 << 63  # whole numbers below this are numbers, longer ones texts
EXACT = 1 << 53  # beyond, float64 cannot tell whole numbers apart


def id_of(value: Any) -> int | str | None:
    """An id in its canonical form; None where it is missing."""
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
        raise DataError(f"{named('groups')} hold {value!r}; ids that are numbers must be whole")
    if abs(value) > EXACT:
        why = "above 2**53 floats cannot tell ids apart; pass whole numbers or texts"
        raise DataError(f"{named('groups')} hold {value!r}: {why}")
    return int(value)


def ids_of(values: list[Any]) -> NDArray[Any]:
    """Ids in their canonical form: whole numbers if all are, else an object array.

    A missing id is None.
    """
    ids = [id_of(value) for value in values]
    if all(isinstance(value, int) for value in ids):
        return np.array(ids, np.int64)
    mixed = np.empty(len(ids), object)
    mixed[:] = ids
    return mixed


def canonical_ids(column: Any) -> NDArray[Any]:
    """A column of ids, one per record, in their canonical form."""
    if isinstance(column, np.ma.MaskedArray):
        column = column.tolist()  # None where masked
    if is_list(column):
        return _complete(ids_of(list(column)))
    ids = np.asarray(column)
    if ids.ndim != 1:
        raise DataError(f"{named('groups')} have shape {ids.shape}; expected one id per record")
    if ids.dtype in (np.int32, np.int64):
        return ids  # not copied: there may be many, and they may lie in a file
    if ids.dtype.kind in "ib" or (ids.dtype.kind == "u" and ids.max(initial=0) < LONGEST):
        return ids.astype(np.int64, copy=False)
    if ids.dtype.kind == "O":
        return _complete(ids_of(ids.tolist()))
    if ids.dtype.kind not in "ufUS":
        raise DataError(f"{named('groups')} have dtype {ids.dtype}; ids are whole numbers or texts")
    found, rows = np.unique(ids, return_inverse=True)
    return _complete(ids_of(found.tolist())[rows])


def _complete(ids: NDArray[Any]) -> NDArray[Any]:
    if ids.dtype.kind == "O":
        missing = np.array([value is None for value in ids.tolist()], bool)
        if missing.any():
            raise DataError(f"{named('groups')}: record {np.argmax(missing)} has no person")
    return ids


NUMBERS = "biuf"  # kinds of dtypes that hold numbers
LISTS = (list, tuple, np.ndarray)


def label_of(value: Any) -> int | str | None:
    """A label in its canonical form; None for what cannot be a label."""
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

    A masked entry is None.
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

    Where the number n of records is known, it decides whether a final line break ends
    the last line or precedes a blank one.
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
    """Covariates (n, p), and which records have covariates that could not be read.

    NaN stands for what is not a number, and for too few or too many numbers.
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
    """A number; an error for whatever NumPy would read with a warning.

    Warnings are not turned into errors for it: all threads share their filters.
    """
    if _is_scalar(part):
        part = part[()]
    if isinstance(part, np.ndarray | np.complexfloating):  # or masked, which stays an array
        raise TypeError("no real number")
    return float(part)


def _is_scalar(entry: Any) -> bool:
    return isinstance(entry, np.ndarray) and entry.ndim == 0


# What columns hold, in words.
COLUMNS = {"person": "groups", "label": "labels", "x": "covariates"}


@dataclass(frozen=True)
class Column:
    """A column, and the name of its file in messages."""

    entries: Any
    name: str


def with_columns(source: Source, **columns: Any) -> Source:
    """The same records with columns beside them: one entry per record, in order.

    Parameters
    ----------
    source : Source
    **columns : array, list, Dask array or Column
        ``person`` is the subject id of a record, ``label`` its class, ``x`` its
        covariates. None leaves a column out. A Dask column has the records' chunks.
    """
    given = {name: column for name, column in columns.items() if column is not None}
    if not given:
        return source
    files = {name: column.name for name, column in given.items() if isinstance(column, Column)}
    given |= {name: given[name].entries for name in files}
    return _beside(source, {n: _column(source, n, column) for n, column in given.items()}, files)


def with_constant(source: Source, **owner: Any) -> Source:
    """The same records, all of one ``person``, one ``label``, or covariates ``x``.

    A person without records counts as a person with one invalid record, so that the
    number of persons does not depend on what their files hold.
    """
    given = {name: value for name, value in owner.items() if value is not None}
    for name in given:
        _refuse_twice(source, name)
    if "person" in given and source.n == 0:
        one = partial(_no_record, source.shape, source.columns)
        source = replace(source, read=lambda: iter([one()]), n=1, chunks=[one], sizes=[1])
        source = replace(source, advise=lambda i: Advice("the file holds no records"))
    sizes = [source.n or 0] if source.sizes is None else source.sizes
    return _beside(source, {n: [partial(_full, m, given[n]) for m in sizes] for n in given}, {})


def _no_record(shape: tuple[int, ...], columns: tuple[str, ...]) -> Any:
    """A block of one invalid record, in place of no records."""
    record = np.full((1, *shape), np.nan)
    return Block(record, {name: _full(1, None) for name in columns}) if columns else record


def _full(m: int, value: Any) -> NDArray[Any]:
    if isinstance(value, tuple):
        return entries_of([value] * m)
    return np.full(m, value, np.int64 if isinstance(value, int) else object)


def _beside(source: Source, arrays: dict[str, Any], files: dict[str, str]) -> Source:
    """The same records, read with their part of each column."""
    return replace(
        source,
        read=lambda: _zipped(source, arrays),
        chunks=_zipped_chunks(source, arrays),
        columns=(*source.columns, *arrays),
        origins={**source.origins, **files},
    )


def _column(source: Source, name: str, column: Any) -> Any:
    _refuse_twice(source, name)
    if is_dask(column):
        pieces = column.to_delayed().ravel()
        return [partial(_read_column, piece, column.dtype.kind, name) for piece in pieces]
    listed = is_list(column) or np.ndim(column) > 0
    array = canonical_ids(column) if name == "person" and listed else entries_of(column)
    if array.ndim == 0:
        raise DataError(f"{COLUMNS[name]} must have one entry per record, got {column!r}")
    check_number(COLUMNS[name], len(array), source.n, f"records of {source.name}")
    return array


def _refuse_twice(source: Source, name: str) -> None:
    if name in source.columns:
        raise DataError(f"{source.name} has its own {COLUMNS[name]}; do not pass them again")


def _zipped(source: Source, arrays: dict[str, Any]) -> Iterator[Block]:
    """Blocks with their part of each column."""
    whole = {name: _here(array) for name, array in arrays.items()}
    start = 0
    for block in source.blocks():
        stop = start + _length(records_of(block), source)
        cut = {name: column[start:stop] for name, column in whole.items()}
        yield _with_columns(block, cut, stop - start)
        start = stop
    for name, column in whole.items():
        check_number(COLUMNS[name], len(column), start)


def _read_column(piece: Any, kind: str, name: str) -> NDArray[Any]:
    """One piece of a column: entries of the column's kind of dtype, or objects."""
    entries = entries_of(read_piece(piece))
    if entries.dtype.kind not in (kind, "O"):
        raise DataError(
            f"{COLUMNS[name]} have a piece of dtype {entries.dtype}, but another as a whole: an "
            "entry might decide how others are read; pass pieces of one dtype, or lists"
        )
    return entries


def _here(array: Any) -> Any:
    """A column in one piece; no entry is converted because of others."""
    if not isinstance(array, list):
        return array
    pieces = [piece() for piece in array]
    if len({(piece.dtype.kind, piece.ndim) for piece in pieces}) == 1:
        return np.concatenate(pieces)
    return entries_of([entry for piece in pieces for entry in piece])


def _zipped_chunks(source: Source, arrays: dict[str, Any]) -> list[Any] | None:
    """Chunks with their part of each column; None where their sizes are not known."""
    if source.chunks is None:
        return None
    cut: dict[str, list[Any]] = {}
    for name, array in arrays.items():
        if isinstance(array, list):
            pieces = array
        elif source.sizes is None:
            return None
        else:
            pieces = np.split(array, np.cumsum(np.array(source.sizes))[:-1])
        if len(pieces) != len(source.chunks):
            has = f"{len(pieces)} chunks, {source.name} {len(source.chunks)}"
            raise DataError(f"{COLUMNS[name]} have {has}; rechunk them alike")
        cut[name] = pieces
    return [
        partial(_read_beside, piece, {name: cut[name][i] for name in cut})
        for i, piece in enumerate(source.chunks)
    ]


def _read_beside(piece: Any, columns: dict[str, Any]) -> Block:
    """One chunk and its columns, read where this runs."""
    block = read_piece(piece)
    here = {name: column() if callable(column) else column for name, column in columns.items()}
    return _with_columns(block, here, len(records_of(block)))


def _with_columns(block: Any, columns: dict[str, Any], m: int) -> Block:
    """A block with columns, besides those it has."""
    for name, values in columns.items():
        check_number(COLUMNS[name], len(values), m)
    own = block.columns if isinstance(block, Block) else {}
    return Block(records_of(block), {**own, **columns})


def _length(records: Any, source: Source) -> int:
    """Number of records of a block; a single matrix is one."""
    alone = isinstance(records, np.ndarray) and records.ndim == len(source.shape)
    return 1 if alone else len(records)


def check_number(what: str, has: int, n: int | None, whose: str = "records") -> None:
    """Refuse a column of another length than the records, if their number is known."""
    if n is not None and has != n:
        raise DataError(f"{what} have {has:,} entries for {n:,} {whose}")
