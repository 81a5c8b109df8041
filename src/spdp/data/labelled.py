"""Matrices with names of rows, and tables: of MNE, MNE-Connectivity, xarray and pandas.

*Enforced.* An object is recognised by its attributes; nothing here imports the library
it comes from. *Assumed.* Names of rows, columns and coordinates are public.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.columns import with_columns
from spdp.data.formats.base import Options
from spdp.data.formats.tables import LIKE_PERSONS, Table
from spdp.data.source import Source, as_source, rows_per_block
from spdp.data.vectorised import triangle
from spdp.data.voxels import has
from spdp.errors import DataError
from spdp.options import MatrixKind

Names = tuple[str, ...] | None


def is_covariance(X: Any) -> bool:
    return has(X, "ch_names", "nfree", "data")


def is_labelled(X: Any) -> bool:
    return has(X, "dims", "coords", "data")


def is_frame(X: Any) -> bool:
    return has(X, "iloc", "columns", "dtypes")


def is_connectivity(X: Any) -> bool:
    return has(X, "n_nodes", "names", "get_data", "is_epoched")


def is_named(X: Any) -> bool:
    """Whether an object is one matrix with names: one record."""
    if is_covariance(X):
        return True
    if is_connectivity(X):
        return not X.is_epoched
    if is_labelled(X):
        return len(X.dims) == 2
    return is_frame(X) and len(X) == len(X.columns) and list(X.index) == list(X.columns)


def named_matrix(X: Any) -> tuple[Any, Names]:
    """The matrix of one object, and the names of its rows."""
    if is_covariance(X):
        data = np.asarray(X.data)
        return np.diag(data) if data.ndim == 1 else data, tuple(map(str, X.ch_names))
    if is_connectivity(X):
        return _dense(X), tuple(map(str, X.names))
    if is_labelled(X):
        return X.data, _coordinate(X, X.dims[-2])
    return X.to_numpy(), tuple(map(str, X.columns))


def with_rows(source: Source, rows: Names) -> Source:
    """The same records, with names of their rows, where there is one for each."""
    return source if rows is None or len(rows) != source.k else replace(source, rows=rows)


def covariance(X: Any, name: str, options: Options) -> Source:
    raise DataError(f"{name} is one covariance, which is one record: pass a list of them")


# The one measure of MNE-Connectivity whose matrices are positive definite, if envelopes
# were not orthogonalised; others have zeros on their diagonals.
CORRELATIONS = "envelope correlation"


def connectivity(X: Any, name: str, options: Options) -> Source:
    """Connectivity of MNE for each epoch: envelope correlations."""
    if is_named(X):
        raise DataError(f"{name} is one matrix, which is one record: pass a list of them")
    source = with_rows(as_source(_dense(X), name), tuple(map(str, X.names)))
    return replace(source, kind=stated_kind(X))


def stated_kind(X: Any) -> MatrixKind | None:
    """What the matrix of an object is, where its type says so."""
    if is_connectivity(X):
        return MatrixKind.CORRELATION
    return MatrixKind.COVARIANCE if is_covariance(X) else None


def _dense(X: Any) -> NDArray[Any]:
    """Its matrices: (k, k), or (p, k, k) for p times; of epochs, one for each."""
    if str(X.method) != CORRELATIONS:
        raise DataError(
            f"connectivity of the method {X.method!r} has no positive definite matrices: take "
            "envelope_correlation(..., orthogonalize=False), or covariances of the signals"
        )
    A = np.asarray(X.get_data("dense"))
    first = 1 if X.is_epoched else 0
    if A.ndim == first + 2:
        return A
    A = np.moveaxis(A, -1, first)
    return A[(slice(None),) * first + (0,)] if A.shape[first] == 1 else A


FRAME = ("key", "groups_column", "label_column", "entries")  # options of a frame


def _coordinate(X: Any, dim: Any) -> Names:
    """The names along a dimension, where it has any."""
    return tuple(map(str, np.asarray(X.coords[dim]))) if dim in X.coords else None


def labelled(X: Any, name: str, options: Options) -> Source:
    """An xarray DataArray (record, row, column), its persons and the names of its rows.

    A coordinate of the first dimension that is called subject, participant or alike
    holds the persons.
    """
    if len(X.dims) < 3:
        raise DataError(f"{name} has dimensions {X.dims}; expected (record, row, column)")
    rows, columns = _coordinate(X, X.dims[-2]), _coordinate(X, X.dims[-1])
    if None not in (rows, columns) and rows != columns:
        raise DataError(f"{name}: its rows and columns have different names, or another order")
    along = [str(c) for c in X.coords if tuple(X.coords[c].dims) == (X.dims[0],)]
    person = options.groups_column
    if person is not None and person not in along:
        listed = ", ".join(along) or "none"
        raise DataError(f"{name}: no coordinate {person!r} along {X.dims[0]!r}; there are {listed}")
    known = [c for c in along if c.lower() in LIKE_PERSONS]
    if person is None and len(known) == 1 and not options.grouped:
        person = known[0]
    source = with_rows(as_source(X.data, name), rows)
    return source if person is None else with_columns(source, person=list(X.coords[person].values))


def frame(X: Any, name: str, options: Options) -> Source:
    """A pandas frame: a row is a record, as in a table of a file."""
    if is_named(X):
        raise DataError(f"{name} is one matrix, which is one record: pass a list of them")
    names = [str(column) for column in X.columns]
    beside = {"person": options.groups_column, "label": options.label_column}
    columns = {
        kind: X.iloc[:, _place(names, column, name)].tolist()
        for kind, column in beside.items()
        if column is not None
    }
    if options.key is not None:  # a column that holds a matrix in each cell
        matrices = X.iloc[:, _place(names, options.key, name)].tolist()
        return with_columns(as_source(matrices, name), **columns)
    numeric = [getattr(dtype, "kind", "O") in "iuf" for dtype in X.dtypes]
    table = Table.of(Path(name), names, numeric, options)
    return with_columns(_rows_of(X, table, name), **columns)


def _place(names: list[str], column: str, name: str) -> int:
    if names.count(column) != 1:
        raise DataError(f"{name}: no one column {column!r}; its columns are {', '.join(names[:8])}")
    return names.index(column)


def _rows_of(X: Any, table: Table, name: str) -> Source:
    """The entries of a frame; a missing one is NaN."""
    n, k = len(X), table.k
    full = len(table.entries) == k * k
    where = np.arange(k * k) if full else triangle(len(table.entries), upper=True)[1]

    def block(start: int, stop: int) -> NDArray[Any]:
        values = np.empty((stop - start, len(table.entries)))
        for j, place in enumerate(table.entries):
            cells = X.iloc[start:stop, place]
            values[:, j] = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        return values.take(where, axis=1).reshape(-1, k, k)

    step = rows_per_block(k)
    return Source(
        lambda: (block(start, min(start + step, n)) for start in range(0, n, step)), k, n, name
    )
