"""Files of matrices, opened as records. Nothing is read before it is needed.

A new format is one file with ``open`` and ``rows`` (or ``stream``), and one line of the
table ``FORMATS``.
"""

from pathlib import Path

from spdp.data.formats import csv, hdf5, mat, nifti, npy, npz, parquet, zarr
from spdp.data.formats.base import Format, Options, source
from spdp.data.formats.tables import advise
from spdp.data.source import Source
from spdp.errors import DataError, ParameterError, named
from spdp.options import Unit

TABLE = ("groups_column", "label_column", "entries")
FORMATS = (
    Format((".npy",), npy.open, npy.rows, options=()),
    Format((".npz",), npz.open, stream=npz.stream),
    Format((".mat",), mat.open, mat.rows),
    Format((".h5", ".hdf5"), hdf5.open, hdf5.rows),
    Format((".zarr",), zarr.open, zarr.rows),
    Format(
        (".nii", ".nii.gz"),
        nifti.open,
        nifti.rows,
        options=("order", "mask"),
        record=Unit.VOXEL,
        advise=nifti.advise,
    ),
    Format((".csv",), csv.open, csv.rows, options=TABLE, advise=advise),
    Format((".parquet",), parquet.open, parquet.rows, parquet.stream, options=TABLE, advise=advise),
)
SUFFIXES = tuple(suffix for form in FORMATS for suffix in form.suffixes)

MEANT_FOR = {
    "key": "files that can hold several arrays",
    "order": "NIfTI images",
    "mask": "NIfTI images",
    "groups_column": "tables",
    "label_column": "tables",
    "entries": "tables",
}


def open_file(file: Path, options: Options) -> Source:
    """Open one file of SPD matrices; see :func:`spdp.data.open_records`."""
    form = format_of(file)
    for option in options.given():
        if option not in form.options:
            raise ParameterError(f"{named(option)} is for {MEANT_FOR[option]}, not for {file.name}")
    if not file.exists():
        raise DataError(f"{file}: no such file")
    return source(form, file, options)


def format_of(file: Path) -> Format:
    """The format of a file, by the end of its name."""
    for form in FORMATS:
        if file.name.lower().endswith(form.suffixes):
            return form
    found = repr(file.suffix) if file.suffix else "without a suffix"
    raise DataError(f"{file}: unknown format {found}; expected one of {', '.join(SUFFIXES)}")
