"""Files, folders, manifests and objects of records, and the persons of records."""

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.data.columns import id_of, ids_of, label_of, lines_of, with_columns, with_constant
from spdp.data.formats import SUFFIXES, format_of, open_file
from spdp.data.formats.base import Options, need, reading
from spdp.data.formats.csv import header, lines
from spdp.data.formats.tables import place
from spdp.data.objects import are_paths, is_path, open_objects
from spdp.data.source import Source, chain
from spdp.data.vectorised import kind_of
from spdp.data.voxels import mask_array
from spdp.errors import DataError, ParameterError, named

PATH, PERSON, LABEL, MASK = "path", "person", "label", "mask"


class Entry(NamedTuple):
    """A line of a manifest: a file, its person, its class, its mask."""

    file: Path
    person: int | str
    label: Any = None
    mask: Path | None = None


def expand(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files that paths name, in order; a file named twice is an error.

    A folder stands for the files in it that have the suffix of a format, sorted by
    name, hidden ones and subfolders left out; a pattern (``*``, ``?``, ``[``, and
    ``**`` for any depth) for what it matches, sorted.
    """
    files = [file for path in paths for file in _expanded(Path(path))]
    if not files:
        raise DataError("no files are named")
    check_distinct(files)
    return files


def _expanded(path: Path) -> list[Path]:
    if path.is_dir() and not _is_known(path):
        return _of_one_format(path, _folder(path))
    if not path.exists() and glob.has_magic(str(path)):
        found = sorted(map(Path, glob.glob(str(path), recursive=True)))
        files = [file for file in found if not file.is_dir() or _is_known(file)]
        if not files:
            raise DataError(f"{path}: no such file, and none matches it")
        return _of_one_format(path, files)
    if not path.exists() and not path.suffix:
        raise DataError(f"{path}: no such file or folder")
    return [path]


def _is_known(path: Path) -> bool:
    return path.name.lower().endswith(SUFFIXES)


def _folder(path: Path) -> list[Path]:
    with reading(path):
        names = sorted(file for file in path.iterdir() if not file.name.startswith("."))
    files = [file for file in names if _is_known(file)]
    if not files:
        raise DataError(
            f"{path}: holds no files of a known format ({', '.join(SUFFIXES)}); a quoted pattern "
            "such as 'DIR/**/*.npy' reaches into subfolders"
        )
    return files


def _of_one_format(path: Path, files: list[Path]) -> list[Path]:
    first = format_of(files[0])
    for file in files:
        if format_of(file) is not first:
            raise DataError(
                f"{path}: holds files of different formats, {files[0].name} and {file.name}; name "
                "those that are meant, or use a pattern"
            )
    return files


def check_distinct(files: Sequence[Path]) -> None:
    """Refuse a file that is named twice: its records would count twice."""
    seen: dict[Any, Path] = {}
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue  # opening it will report the error
        first = seen.setdefault((status.st_dev, status.st_ino), file)
        if first is not file:
            again = "twice" if first == file else f"also as {first}"
            raise ParameterError(f"{file}: named {again}; its records would count twice")


def is_manifest(file: Path) -> bool:
    """Whether a CSV file lists files: it has columns ``path`` and ``person``."""
    if not file.name.lower().endswith(".csv") or not file.is_file():
        return False
    with reading(file):
        return {PATH, PERSON} <= set(header(file))


def read_manifest(file: Path) -> list[Entry]:
    """The files that a manifest lists; their paths are relative to it."""
    with reading(file):
        entries = list(_entries(file))
    if not entries:
        raise DataError(f"{file}: lists no files")
    check_distinct([entry.file for entry in entries])
    return entries


def _entries(file: Path) -> Iterator[Entry]:
    rows = lines(file)
    names = [name.strip() for name in next(rows)]
    for line, row in enumerate(rows, 2):
        if len(row) != len(names) and any(row):
            raise DataError(f"{file}: line {line} has {len(row)} cells for {len(names)} columns")
        if any(row):
            yield _entry(file, line, dict(zip(names, (cell.strip() for cell in row), strict=True)))


def _entry(file: Path, line: int, cells: dict[str, str]) -> Entry:
    for name in (PATH, PERSON):
        if not cells.get(name):
            raise DataError(f"{file}: line {line} has no {name}")
    person = id_of(cells[PERSON])
    assert person is not None
    here = file.absolute().parent
    listed, mask = here / cells[PATH], cells.get(MASK)
    if is_manifest(listed) or (listed.is_dir() and not _is_known(listed)):
        raise DataError(f"{file}: line {line} names {cells[PATH]}, which is no file of matrices")
    label = label_of(cells[LABEL]) if cells.get(LABEL) else cells.get(LABEL)  # "" is missing
    return Entry(listed, person, label, here / mask if mask else None)


PathLike = str | os.PathLike[str]


def open_records(
    data: Any,
    *,
    key: str | None = None,
    order: str | None = None,
    mask: Any = None,
    groups: Any = None,
    groups_column: str | None = None,
    label_column: str | None = None,
    per_file: bool = False,
    entries: str | None = None,
    kind: Any = None,
) -> Source:
    """Open files of SPD matrices, or objects of other libraries.

    Parameters
    ----------
    data : path or pattern, or a sequence of them; or an object, or a list of them
        ``.npy``, ``.npz``, ``.mat`` (k×k×n, as MATLAB stores it), ``.h5``/``.hdf5``,
        ``.zarr``, NIfTI ``.nii``/``.nii.gz``, or tables ``.csv`` (with a header line)
        and ``.parquet``, in upper or lower case. A folder stands for all such files in
        it, of one format, sorted by name; hidden ones and subfolders are left out. A
        pattern (``*``, ``?``, ``**``) stands for what it matches. A manifest is a CSV
        file with columns ``path`` (relative to the manifest), ``person``, and if wanted
        ``label`` and ``mask``: all records of a file are that person's.

        Objects: arrays (n, k, k); grids of voxels (x, y, z, k, k), or (x, y, z, 6) of
        tensor components; images of nibabel; fits of dipy; frames of pandas; labelled
        arrays of xarray; covariances of MNE; matrices that nilearn vectorised. A
        dictionary names persons, each with an object, a path, or a list of them.
    key : str, optional
        Which array, where a file holds several; of a frame, the column of matrices.
    order : "nifti", "dipy", "fsl" or "mrtrix", optional
        How a NIfTI image orders the six components of its tensors; required when the
        file does not say.
    mask : path, image or array, optional
        The voxels that count as records (values above 0). Background is excluded by the
        mask only.
    groups : path, array or list, optional
        Subject id of each record, or a file of such ids (``.npy``, ``.npz``, ``.txt``
        or ``.csv``).
    groups_column, label_column : str, optional
        Columns of a table that hold subject ids, and classes; of a labelled array, its
        coordinate of ids. With a file of ``groups``, ``groups_column`` is the array or
        column of that file.
    per_file : bool
        Whether each file, or object of a list, is one person.
    entries : "full" or "upper", optional
        Whether the rows of a table, or of an array (n, p), hold k² entries or those of
        the upper triangle; required where their number leaves it open.
    kind : str or estimator, optional
        What the matrices are: "covariance", "correlation", "precision" or "partial
        correlation"; or nilearn's ``ConnectivityMeasure`` that estimated them, which
        also says how it vectorised them. It is public. ``metric="offlog"`` refuses the
        last two.

    Returns
    -------
    Source
        Read block by block in the dtype of the file. All formats but ``.npz`` have
        ``chunks``, so that workers of a cluster can read their own rows of a file that
        all of them see.

    Raises
    ------
    DataError
        If a file is missing, damaged, or does not hold k×k matrices of numbers.
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
    from_file = is_path(groups)
    column = None if from_file else groups_column
    if not are_paths(data) and not _is_empty(data):
        where = _voxels_of(mask) if is_path(mask) else mask
        known = per_file or groups is not None
        told = Options(key, order, where, column, label_column, entries, known)
        opened = open_objects(data, told, each=per_file, measure=kind)
        return with_columns(opened, person=_ids(groups, groups_column, opened.n))
    files = expand([data] if is_path(data) else data)
    where = None if mask is None else _mask(Path(mask)) if is_path(mask) else mask_array(mask)
    listed = [file for file in files if is_manifest(file)]
    grouped = bool(listed) or per_file or groups is not None
    options = Options(key, order, where, column, label_column, entries, grouped)
    ways = {"groups": groups is not None, "per_file": per_file, "groups_column": column is not None}
    _check_once([name for name, said in ways.items() if said], listed)
    source = _of_files(files, options, listed=bool(listed), per_file=per_file)
    source = with_columns(source, person=_ids(groups, groups_column, source.n))
    stated = kind_of(kind)
    return source if stated is None else replace(source, kind=stated)


def _is_empty(data: Any) -> bool:
    return isinstance(data, list | tuple) and len(data) == 0


def _ids(groups: Any, column: str | None, n: int | None) -> Any:
    """Subject ids as they were given, or those of a file."""
    return read_ids(Path(groups), column, n) if is_path(groups) else groups


def _of_files(files: list[Path], options: Options, *, listed: bool, per_file: bool) -> Source:
    if listed:
        return _of_manifest(files, options)
    if per_file:
        own = (with_constant(open_file(f, options), person=str(f.resolve())) for f in files)
        return _chained(list(own))
    return _chained([open_file(file, options) for file in files])


def _voxels_of(mask: PathLike) -> NDArray[np.bool_]:
    """The mask of a file, for a grid in memory."""
    file = _mask(Path(mask))
    if not file.exists():
        raise DataError(f"{file}: no such file")
    with reading(file):
        return mask_array(need("nibabel", "nifti", file).load(file))


def _mask(file: Path) -> Path:
    if file.is_dir():
        raise DataError(
            f"{file}: is a folder; {named('mask')} is one NIfTI file for all images. A manifest "
            "has a column mask, for one mask per image"
        )
    return file.absolute()


def _check_once(ways: list[str], manifests: list[Path]) -> None:
    """Persons are named in one way only."""
    if manifests and ways:
        raise ParameterError(f"{manifests[0]}: a manifest says itself which person a file is of")
    if len(ways) > 1:
        raise ParameterError(f"name the persons once: by {' or by '.join(map(named, ways))}")


def _of_manifest(files: list[Path], options: Options) -> Source:
    if len(files) > 1:
        raise DataError(f"{files[0]} and {files[1]}: a manifest is read alone")
    return _chained([_listed(entry, options) for entry in read_manifest(files[0])])


def _listed(entry: Entry, options: Options) -> Source:
    own = options if entry.mask is None else replace(options, mask=entry.mask)
    return with_constant(open_file(entry.file, own), person=entry.person, label=entry.label)


def _chained(parts: list[Source]) -> Source:
    return parts[0] if len(parts) == 1 else chain(parts)


# --- files of ids


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
        ids: NDArray[Any] = READERS[suffix](file, name)
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


def load_array(file: Path, name: str | None = None, ask: str | None = None) -> NDArray[Any]:
    """The array of a .npy, or the one of an .npz that is named or alone."""
    with file.open("rb") as stream:
        found = np.load(stream, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        names = found.files
        name = names[0] if name is None and len(names) == 1 else name
        if name not in names:
            which = "which array?" if name is None else f"no array {name!r};"
            raise DataError(f"{file}: {which} It holds {', '.join(names)}", ask=ask)
        return np.asarray(found[name])


def _txt(file: Path, name: str | None) -> NDArray[Any]:
    _refuse(file, name)
    return _texts(lines_of(file))


def _csv(file: Path, name: str | None) -> NDArray[Any]:
    rows = list(lines(file, "," if name is None else None))  # only a header tells the separator
    if name is not None:
        names, rows = [cell.strip() for cell in rows[0]], rows[1:]
        column = place(file, names, name)
        return _texts([row[column] if len(row) == len(names) else "" for row in rows])
    if any(len(row) > 1 for row in rows):
        raise DataError(f"{file}: has several columns; name that of the ids", ask="groups_column")
    return _texts([row[0] if row else "" for row in rows])


def _texts(cells: list[str]) -> NDArray[Any]:
    """One id per line; empty lines at the end are dropped."""
    while cells and not cells[-1].strip():
        cells = cells[:-1]
    return ids_of(cells)


def _refuse(file: Path, name: str | None) -> None:
    if name is not None:
        raise ParameterError(f"{file}: has no columns; {named('groups_column')} has no meaning")


READERS: dict[str, Any] = {
    ".npy": _npy,
    ".npz": partial(load_array, ask="groups_column"),
    ".txt": _txt,
    ".csv": _csv,
}
