"""What stands beside records: whose each of them is, its class, its covariates.

Columns are cut where the blocks are cut and travel with them, here and to a cluster's
workers. A column that is shorter or longer than the records is an error, always: which
entry belongs to which record would be a guess.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.identity import spelt
from spdp.data.labels import entries_of
from spdp.data.pieces import is_dask, read_piece
from spdp.data.source import Advice, Source
from spdp.errors import DataError
from spdp.stacks import Block, is_list, records_of

__all__ = ["COLUMNS", "Column", "beside", "check_number", "owned"]

# What columns hold, in words.
COLUMNS = {"person": "groups", "label": "labels", "x": "covariates"}


@dataclass(frozen=True)
class Column:
    """A column, and what messages call the file that it was read from."""

    entries: Any
    name: str


def beside(source: Source, **columns: Any) -> Source:
    """The same records with columns beside them: one entry per record, in order.

    Parameters
    ----------
    source : Source
    **columns : array, list, Dask array or Column
        ``person`` says whose a record is, ``label`` what class it has, ``x`` its
        covariates. None leaves a column out. A Dask column has the records' chunks.
    """
    given = {name: column for name, column in columns.items() if column is not None}
    if not given:
        return source
    files = {name: column.name for name, column in given.items() if isinstance(column, Column)}
    given |= {name: given[name].entries for name in files}
    arrays = {name: _column(source, name, column) for name, column in given.items()}
    chunks = _zipped_chunks(source, arrays)
    return source.with_columns(given, lambda: _zipped(source, arrays), chunks, files)


def owned(source: Source, **owner: Any) -> Source:
    """The same records, all of them one ``person``'s, or all of one ``label``.

    A person of no records is one of an unusable record: who is listed counts, so that
    the number of persons does not depend on what their files hold.
    """
    given = {name: value for name, value in owner.items() if value is not None}
    for name in given:
        _refuse_twice(source, name)
    if "person" in given and source.n == 0:
        source = _unusable(source)
    chunks = source.chunks and [partial(_read_owned, piece, given) for piece in source.chunks]

    def read() -> Iterator[Block]:
        return (_all_of(block, given, source) for block in source.blocks())

    return source.with_columns(given, read, chunks)


def _unusable(source: Source) -> Source:
    """One record that is none, in place of no records."""
    one = partial(_no_numbers, source.shape)
    columns = dict.fromkeys(source.columns)
    piece = partial(_read_owned, one, columns) if columns else one
    return Source(
        lambda: iter([piece()]),
        source.k,
        1,
        source.name,
        chunks=[piece],
        sizes=[1],
        dtype=source.dtype,
        parts=source.parts,
        columns=source.columns,
        record=source.record,
        advise=lambda i: Advice("the file holds no records"),
        origins=source.origins,
    )


def _no_numbers(shape: tuple[int, ...]) -> NDArray[Any]:
    return np.full((1, *shape), np.nan)


def _all_of(block: Any, owner: dict[str, Any], source: Source) -> Block:
    return _filled(block, owner, _length(records_of(block), source))


def _read_owned(piece: Any, owner: dict[str, Any]) -> Block:
    block = read_piece(piece)
    return _filled(block, owner, len(records_of(block)))


def _filled(block: Any, owner: dict[str, Any], m: int) -> Block:
    columns = {
        name: np.full(m, value, np.int64 if isinstance(value, int) else object)
        for name, value in owner.items()
    }
    return _with_columns(block, columns, m)


def _column(source: Source, name: str, column: Any) -> Any:
    _refuse_twice(source, name)
    if is_dask(column):
        pieces = column.to_delayed().ravel()
        return [partial(_read_column, piece, column.dtype.kind, name) for piece in pieces]
    listed = is_list(column) or np.ndim(column) > 0
    array = spelt(column) if name == "person" and listed else entries_of(column)
    if array.ndim == 0:
        raise DataError(f"{COLUMNS[name]} must have one entry per record, got {column!r}")
    check_number(COLUMNS[name], len(array), source.n, f"records of {source.name}")
    return array


def _refuse_twice(source: Source, name: str) -> None:
    if name in source.columns:
        raise DataError(f"{source.name} says its {COLUMNS[name]} itself; do not pass them again")


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
    """One piece of a column, entries of the kind it says, or read one by one."""
    entries = entries_of(read_piece(piece))
    if entries.dtype.kind not in (kind, "O"):
        raise DataError(
            f"{COLUMNS[name]} have a piece of dtype {entries.dtype}, which is not the one they "
            "say: an entry might decide how others are read; pass pieces of one dtype, or lists"
        )
    return entries


def _here(array: Any) -> Any:
    """A column in one piece; what an entry is does not change with those beside it."""
    if not isinstance(array, list):
        return array
    pieces = [piece() for piece in array]
    if len({(piece.dtype.kind, piece.ndim) for piece in pieces}) == 1:
        return np.concatenate(pieces)
    return entries_of([entry for piece in pieces for entry in piece])


def _zipped_chunks(source: Source, arrays: dict[str, Any]) -> list[Any] | None:
    """Chunks with their part of each column; None where nobody knows how to cut."""
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
            raise DataError(
                f"{COLUMNS[name]} have {len(pieces)} chunks, {source.name} {len(source.chunks)}; "
                "rechunk them alike"
            )
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
    """A block with columns, beside those it has."""
    for name, values in columns.items():
        check_number(COLUMNS[name], len(values), m)
    own = block.beside if isinstance(block, Block) else {}
    return Block(records_of(block), {**own, **columns})


def _length(records: Any, source: Source) -> int:
    """Number of records of a block; a single matrix is one."""
    alone = isinstance(records, np.ndarray) and records.ndim == len(source.shape)
    return 1 if alone else len(records)


def check_number(what: str, has: int, n: int | None, whose: str = "records") -> None:
    """Refuse a column that is shorter or longer than its records, if they are known."""
    if n is not None and has != n:
        raise DataError(f"{what} have {has:,} entries for {n:,} {whose}")
