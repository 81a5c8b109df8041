"""Files of ids: whose each record is, one entry per record."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.formats.base import reading
from spdp.data.formats.csv import lines
from spdp.data.formats.tables import place
from spdp.data.identity import ids_of
from spdp.data.labels import lines_of
from spdp.errors import DataError, ParameterError, named

__all__ = ["read_ids"]


def read_ids(file: Path, name: str | None, n: int | None) -> NDArray[Any]:
    """The ids of a file: ``.npy``, ``.npz``, or ``.txt`` and ``.csv`` with one a line.

    ``name`` is the array of an ``.npz``, or the column of a ``.csv``, which then has a
    header line. ``n`` is the number of records, where it is known.
    """
    if not file.exists():
        raise DataError(f"{file}: no such file")
    suffix = file.suffix.lower()
    if suffix not in READERS:
        raise DataError(f"{file}: ids are read from {', '.join(READERS)} files")
    with reading(file):
        ids = READERS[suffix](file, name)
    if ids.ndim != 1:
        raise DataError(f"{file}: array of shape {ids.shape}; expected one id per record")
    if n is not None and len(ids) != n:
        raise _wrong_number(file, ids, n, named=name is not None)
    return ids


def _wrong_number(file: Path, ids: NDArray[Any], n: int, named: bool) -> DataError:
    message = f"{file}: {len(ids):,} ids for {n:,} records"
    if named or len(ids) != n + 1 or file.suffix.lower() != ".csv":
        return DataError(message)
    first = f"does its first line, {str(ids[0])!r}, name the column?"
    return DataError(f"{message}; {first}", ask="groups_column")


def _npy(file: Path, name: str | None) -> NDArray[Any]:
    _refuse(file, name)
    return np.asarray(np.load(file, allow_pickle=False))


def _npz(file: Path, name: str | None) -> NDArray[Any]:
    with np.load(file, allow_pickle=False) as archive:
        names = archive.files
        if name is None and len(names) == 1:
            name = names[0]
        if name is None or name not in names:
            missing = "which array holds the ids?" if name is None else f"no array {name!r};"
            raise DataError(f"{file}: {missing} It holds {', '.join(names)}", ask="groups_column")
        return np.asarray(archive[name])


def _txt(file: Path, name: str | None) -> NDArray[Any]:
    _refuse(file, name)
    return _texts(lines_of(file))


def _csv(file: Path, name: str | None) -> NDArray[Any]:
    rows = list(lines(file, "," if name is None else None))  # only a header says it
    if name is not None:
        names, rows = [cell.strip() for cell in rows[0]], rows[1:]
        column = place(file, names, name)
        return _texts([row[column] if len(row) == len(names) else "" for row in rows])
    if any(len(row) > 1 for row in rows):
        raise DataError(
            f"{file}: has several columns; say which holds the ids", ask="groups_column"
        )
    return _texts([row[0] if row else "" for row in rows])


def _texts(cells: list[str]) -> NDArray[Any]:
    """One id per line; empty lines at the end are none."""
    while cells and not cells[-1].strip():
        cells = cells[:-1]
    return ids_of(cells)


def _refuse(file: Path, name: str | None) -> None:
    if name is not None:
        raise ParameterError(
            f"{file}: has no columns, so that {named('groups_column')} has no meaning"
        )


READERS = {".npy": _npy, ".npz": _npz, ".txt": _txt, ".csv": _csv}
