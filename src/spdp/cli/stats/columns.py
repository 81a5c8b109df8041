"""Files of what stands beside records: labels, covariates; messages name the file."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from spdp.cli.stats.running import Work
from spdp.errors import DataError, ParameterError

__all__ = ["labels_of", "read_covariates", "read_labels"]


def labels_of(file: Path | None, work: Work) -> tuple[Any, Work]:
    """How to read labels from a file, and the work without what is said of it."""
    if file is None:
        return None, work
    read = partial(read_labels, file, name=work.reader.label_column)
    return read, replace(work, reader=replace(work.reader, label_column=None))


def read_labels(file: Path, n: int | None, name: str | None = None) -> Any:
    """One label for each of n records: of a .npy, an array of an .npz, or lines."""
    from spdp.data.columns import Column, check_number
    from spdp.data.formats.base import reading
    from spdp.data.labels import entries_of, lines_of

    suffix = file.suffix.lower()
    if name is not None and suffix != ".npz":
        raise ParameterError(f"{file}: is no .npz, so that --label-column has no meaning")
    with reading(file, "labels"):
        lines = suffix not in (".npy", ".npz")
        labels = entries_of(lines_of(file, n)) if lines else _array(file, name)
    if not lines and (labels.ndim != 1 or labels.dtype.kind not in "biufU"):
        raise DataError(f"{file}: does not hold one number or text per record")
    check_number(f"{file}: labels", len(labels), n)
    return Column(labels, str(file))


def read_covariates(file: Path, n: int | None) -> Any:
    """Numbers (n,) or (n, p), from a .npy file or the lines of a text."""
    from spdp.data.columns import check_number
    from spdp.data.formats.base import reading
    from spdp.data.labels import lines_of

    with reading(file, "covariates"):
        if file.suffix.lower() != ".npy":
            # a word that is no number is one record's affair
            lines = [line.replace(",", " ").split() for line in lines_of(file, n)]
            check_number(f"{file}: covariates", len(lines), n)
            return lines
        values = _array(file)
    if values.dtype.kind not in "biuf" or values.ndim == 0:
        raise DataError(f"{file}: does not hold numbers, as many for each record")
    check_number(f"{file}: covariates", len(values), n)
    return values


def _array(file: Path, name: str | None = None) -> Any:
    """The array of a .npy, or the one of an .npz that is named or alone."""
    import numpy as np

    with file.open("rb") as stream:
        found = np.load(stream, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        names = found.files
        if name is None and len(names) == 1:
            name = names[0]
        if name not in names:
            which = "which array?" if name is None else f"no array {name!r};"
            raise DataError(f"{file}: {which} It holds {', '.join(names)}", ask="label_column")
        return found[name]
