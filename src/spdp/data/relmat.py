"""Relationship matrices of BIDS, ``_relmat.tsv``: a connectivity matrix per file.

The suffix is of a draft, BIDS extension proposal 17, and may change. Read are tables
with tabs: k rows of k numbers, with or without a header of names, with or without a
first column of names.

*Enforced.* Numbers of rows and columns, the header and names are public, and wrong ones
are errors. A first line is a header if all its cells are names. Any other cell that is
not a number is NaN, and makes one invalid record; no error quotes it.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.formats.base import reading
from spdp.data.source import Source
from spdp.errors import DataError
from spdp.options import MatrixKind

# What a matrix is, by the word after meas- or stat- or in its sidecar, in lower case.
MEASURES = {
    "pearsoncorrelation": MatrixKind.CORRELATION,
    "pearson": MatrixKind.CORRELATION,
    "correlation": MatrixKind.CORRELATION,
    "covariance": MatrixKind.COVARIANCE,
    "precision": MatrixKind.PRECISION,
    "inversecovariance": MatrixKind.PRECISION,
    "partialcorrelation": MatrixKind.PARTIAL_CORRELATION,
}
MISSING = ("", "n/a", "na", "nan")  # cells without a number
# Not symmetric positive definite, whatever the data are.
NO_MATRICES = {"fisherz", "pearsonfisherz", "coherence", "streamlinecount", "mutualinformation"}
STATED = ("RelationshipMeasure", "Measure", "MeasureDescription")  # fields of a sidecar


def open_relmat(file: Path, entities: dict[str, str], shrinkage: float | None = None) -> Source:
    """The one matrix of a file, with the names of its rows and its kind.

    With a public ``shrinkage`` s, the matrix is (1 − s)·C + s·I of that in the file.
    """
    with reading(file):
        header, rows = _cells(file)
    k = len(rows)
    return Source(
        partial(_read, file.absolute(), k, shrinkage or 0.0),
        k,
        1,
        str(file),
        dtype=np.dtype(float),
        rows=_names(file, header, rows),
        kind=_kind(file, entities),
    )


def _cells(file: Path) -> tuple[list[str] | None, list[list[str]]]:
    """The header, where there is one, and the cells of each row."""
    text = file.read_bytes().removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    lines = [line.split("\t") for line in text.splitlines() if line.strip()]
    if not lines:
        raise DataError(f"{file}: is empty")
    first = lines[0]
    if all(map(_is_name, first[1:] or first)):
        return [cell.strip() for cell in first], lines[1:]
    return None, lines


def _is_name(cell: str) -> bool:
    """Whether a cell of the first line is a name: neither a number nor missing."""
    return np.isnan(_number(cell)) and cell.strip().lower() not in MISSING


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def _names(file: Path, header: list[str] | None, rows: list[list[str]]) -> tuple[str, ...] | None:
    """Names of the rows, from the header; an error where the table is not square."""
    k = len(rows)
    width = len(header if header is not None else rows[0] if rows else [])
    if k == 0 or width not in (k, k + 1):
        raise DataError(f"{file}: {k} rows and {width} columns; expected k rows and k columns")
    return None if header is None else tuple(header[-k:])


def _read(file: Path, k: int, shrinkage: float) -> Any:
    """The matrix as one block; a row of too few or too many cells is missing."""
    with reading(file):
        rows = _cells(file)[1]
    if len(rows) != k:
        raise DataError(f"{file}: changed since it was opened; open it again")
    matrix: NDArray[np.float64] = np.full((1, k, k), np.nan)
    for i, row in enumerate(rows):
        if len(row) in (k, k + 1):
            matrix[0, i] = [_number(cell) for cell in row[-k:]]
    return iter([(1.0 - shrinkage) * matrix + shrinkage * np.eye(k)])


def _kind(file: Path, entities: dict[str, str]) -> MatrixKind | None:
    """What the file's name, or its sidecar, says the matrix is; else None."""
    words = [entities[name] for name in ("meas", "stat") if name in entities]
    sidecar = file.with_suffix(".json")
    if sidecar.is_file():
        with reading(sidecar):
            stated = json.loads(sidecar.read_text("utf-8"))
        words += [
            str(stated[name]) for name in STATED if isinstance(stated, dict) and name in stated
        ]
    for word in words:
        plain = "".join(c for c in word.lower() if c.isalpha())
        if plain in NO_MATRICES:
            raise DataError(
                f"{file}: {word} makes no positive definite matrices; take those of correlations "
                "or covariances"
            )
        if plain in MEASURES:
            return MEASURES[plain]
    return None
