"""Which files are meant: files, folders, patterns, manifests."""

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from spdp.data.formats import SUFFIXES, format_of
from spdp.data.formats.base import reading
from spdp.data.formats.csv import header, lines
from spdp.data.identity import id_of
from spdp.data.labels import label_of
from spdp.errors import DataError, ParameterError

__all__ = ["Entry", "check_distinct", "expand", "is_manifest", "read_manifest"]

PATH, PERSON, LABEL, MASK = "path", "person", "label", "mask"


class Entry(NamedTuple):
    """A line of a manifest: a file, whose it is, its class, its mask."""

    file: Path
    person: int | str
    label: Any = None
    mask: Path | None = None


def expand(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files that paths name, in order; nobody's records may count twice.

    A folder stands for the files in it whose names end as those of a format do, sorted
    by name, hidden ones and subfolders left out; a pattern (``*``, ``?``, ``[``, and
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
    """Refuse a file that is named twice: nobody's records may count twice."""
    seen: dict[Any, Path] = {}
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue  # whoever opens it says what is wrong
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
