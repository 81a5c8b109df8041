"""The files of a release: written all or none of them, read back as they were."""

import io
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError

__all__ = ["CERTIFICATE", "REPORT", "MissingArray", "npy_of", "read_array", "write_all"]

CERTIFICATE, REPORT = "certificate.json", "report.html"

Array = NDArray[Any]


class MissingArray(DataError):
    """A certificate is there, but not what it speaks of."""


def npy_of(value: Array) -> bytes:
    """An array as the bytes of its file, always the same ones."""
    file = io.BytesIO()
    np.save(file, value)
    return file.getvalue()


def read_array(folder: Path, name: str, shape: list[int]) -> Array:
    """An array of a release, or what is wrong with its file."""
    if not name.isidentifier():
        raise DataError(f"{folder}: {CERTIFICATE} names an array {name!r}")
    file = folder / f"{name}.npy"
    if not file.is_file():
        raise MissingArray(f"{folder}: does not hold a release, {file.name} is not there")
    try:
        data = file.read_bytes()
        value = np.load(io.BytesIO(data), allow_pickle=False)
    except Exception as error:  # the many ways in which a damaged file shows
        raise DataError(f"{folder} does not hold a release: {error}") from None
    right = isinstance(value, np.ndarray) and value.dtype in (np.float64, np.complex128)
    if not right or list(value.shape) != shape or not np.isfinite(value).all():
        size = "×".join(map(str, shape))
        raise DataError(f"{folder}: {file.name} does not hold {size} float64 or complex128 numbers")
    if data != npy_of(value):
        raise DataError(f"{folder}: edited or damaged; {file.name} is not what was sealed")
    return np.asarray(value)


def _link(draft: Path, file: Path) -> None:
    """Give a draft its name, unless somebody else was first."""
    try:
        os.link(draft, file)
    except FileExistsError:
        raise DataError(f"{file.parent}: holds a release already", ask="force") from None


def write_all(
    target: Path, files: Mapping[str, bytes], force: bool, former: Iterable[str] = ()
) -> None:
    """Write files into a directory, in their order, each of them whole.

    What is there already is replaced with ``force`` only; a page about it goes, and so
    do the ``former`` release's files that have no successor.
    """
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target, prefix=".partial-") as scratch:
        for name, data in files.items():
            with (Path(scratch) / name).open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        if force:
            (target / REPORT).unlink(missing_ok=True)  # of the release that was here
        for name in files:
            put = os.replace if force else _link
            put(Path(scratch) / name, target / name)
        for name in former:
            if name not in files:
                (target / name).unlink(missing_ok=True)
