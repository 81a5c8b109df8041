"""Open files of records, and say whose they are."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spdp.data.columns import beside, owned
from spdp.data.files import Entry, expand, is_manifest, read_manifest
from spdp.data.formats import Options, open_file
from spdp.data.ids import read_ids
from spdp.data.source import Source, chain
from spdp.errors import DataError, ParameterError, named

__all__ = ["open_records"]

PathLike = str | os.PathLike[str]


def open_records(
    path: PathLike | Sequence[PathLike],
    *,
    key: str | None = None,
    order: str | None = None,
    mask: PathLike | None = None,
    groups: Any = None,
    groups_column: str | None = None,
    label_column: str | None = None,
    per_file: bool = False,
    entries: str | None = None,
) -> Source:
    """Open files of SPD matrices.

    Parameters
    ----------
    path : path or pattern, or a sequence of them
        ``.npy``, ``.npz``, ``.mat`` (k×k×n, as MATLAB stores it), ``.h5``/``.hdf5``,
        ``.zarr``, NIfTI ``.nii``/``.nii.gz``, or tables ``.csv`` (with a header line)
        and ``.parquet``, in upper or lower case. A folder stands for all such files in
        it, of one format, sorted by name; hidden ones and subfolders are left out. A
        pattern (``*``, ``?``, ``**``) stands for what it matches. A manifest is a CSV
        file with columns ``path`` (relative to the manifest), ``person``, and if wanted
        ``label`` and ``mask``: all records of a file are that person's.
    key : str, optional
        Which array, where a file holds several.
    order : "nifti", "dipy", "fsl" or "mrtrix", optional
        How a NIfTI image orders the six components of its tensors; required when the
        file does not say.
    mask : path, optional
        NIfTI mask of the voxels that count as records (values above 0). Background is
        excluded by the mask only.
    groups : path, array or list, optional
        Whose each record is: an id per record, or a file of them (``.npy``, ``.npz``,
        ``.txt`` or ``.csv``).
    groups_column, label_column : str, optional
        Columns of a table that say whose a record is, and what class it has. With a
        file of ``groups``, the array or column of that file.
    per_file : bool
        Whether each file is one person.
    entries : "full" or "upper", optional
        Whether the rows of a table hold k² entries or those of the upper triangle;
        required where their number leaves it open.

    Returns
    -------
    Source
        Read block by block in the dtype of the file. All formats but ``.npz`` have
        ``chunks``, so that workers of a cluster can read their own rows of a file that
        all of them see.

    Raises
    ------
    DataError
        If a file is missing, damaged, or does not hold real k×k matrices.
    ParameterError
        If an option has no meaning for this format.

    Examples
    --------
    >>> import numpy as np
    >>> import tempfile
    >>> from spdp.data import open_records
    >>> file = tempfile.mkdtemp() + "/people.npy"
    >>> np.save(file, np.stack([np.eye(3)] * 10))
    >>> open_records(file).k
    3
    """
    files = expand([path] if isinstance(path, str | os.PathLike) else path)
    from_file = isinstance(groups, str | os.PathLike)
    column = None if from_file else groups_column
    where = None if mask is None else _mask(Path(mask))
    listed = [file for file in files if is_manifest(file)]
    grouped = bool(listed) or per_file or groups is not None
    options = Options(key, order, where, column, label_column, entries, grouped)
    ways = {"groups": groups is not None, "per_file": per_file, "groups_column": column is not None}
    _check_once([name for name, said in ways.items() if said], listed)
    if listed:
        return _of_manifest(files, options)
    if per_file:
        return _chained([owned(open_file(f, options), person=str(f.resolve())) for f in files])
    source = _chained([open_file(file, options) for file in files])
    return beside(
        source,
        person=read_ids(Path(groups), groups_column, source.n) if from_file else groups,
    )


def _mask(file: Path) -> Path:
    if file.is_dir():
        raise DataError(
            f"{file}: is a folder; {named('mask')} is one NIfTI file for all images. A manifest "
            "has a column mask, for one mask per image"
        )
    return file.absolute()


def _check_once(ways: list[str], manifests: list[Path]) -> None:
    """Whose the records are is said once."""
    if manifests and ways:
        raise ParameterError(f"{manifests[0]}: a manifest says itself whose records are")
    if len(ways) > 1:
        raise ParameterError(
            f"say whose the records are once: by {' or by '.join(map(named, ways))}"
        )


def _of_manifest(files: list[Path], options: Options) -> Source:
    if len(files) > 1:
        raise DataError(f"{files[0]} and {files[1]}: a manifest is read alone")
    return _chained([_listed(entry, options) for entry in read_manifest(files[0])])


def _listed(entry: Entry, options: Options) -> Source:
    own = options if entry.mask is None else replace(options, mask=entry.mask)
    return owned(open_file(entry.file, own), person=entry.person, label=entry.label)


def _chained(parts: list[Source]) -> Source:
    return parts[0] if len(parts) == 1 else chain(parts)
