"""Files of matrices, opened as records. Nothing is read before it is needed.

A new format is one file with ``open`` and ``rows`` (or ``stream``), and one line of the
table ``FORMATS``.
"""

from pathlib import Path

from spdp.data.formats import hdf5, mat, nifti, npy, npz, zarr
from spdp.data.formats.base import Format, Layout, Options, source
from spdp.data.formats.nifti import TENSOR_ORDERS
from spdp.data.source import Source
from spdp.errors import DataError, ParameterError

__all__ = ["FORMATS", "SUFFIXES", "TENSOR_ORDERS", "Format", "Layout", "Options", "open_records"]

FORMATS = (
    Format((".npy",), npy.open, npy.rows, options=()),
    Format((".npz",), npz.open, stream=npz.stream),
    Format((".mat",), mat.open, mat.rows),
    Format((".h5", ".hdf5"), hdf5.open, hdf5.rows),
    Format((".zarr",), zarr.open, zarr.rows),
    Format((".nii", ".nii.gz"), nifti.open, nifti.rows, options=("order", "mask")),
)
SUFFIXES = tuple(suffix for form in FORMATS for suffix in form.suffixes)

MEANT_FOR = {
    "key": "files that can hold several arrays",
    "order": "NIfTI images",
    "mask": "NIfTI images",
}


def open_records(
    path: str | Path,
    *,
    key: str | None = None,
    order: str | None = None,
    mask: str | Path | None = None,
) -> Source:
    """Open a file of SPD matrices.

    Parameters
    ----------
    path : path
        ``.npy``, ``.npz``, ``.mat`` (k×k×n, as MATLAB stores it), ``.h5``/``.hdf5``,
        ``.zarr`` or NIfTI ``.nii``/``.nii.gz``, in upper or lower case.
    key : str, optional
        Which array, where a file holds several.
    order : "nifti", "fsl" or "mrtrix", optional
        How a NIfTI image orders the six components of its tensors; required when the
        file does not say.
    mask : path, optional
        NIfTI mask of the voxels that count as records (values above 0). Background is
        excluded by the mask only.

    Returns
    -------
    Source
        Read block by block in the dtype of the file. All formats but ``.npz`` have
        ``chunks``, so that workers of a cluster can read their own rows of a file that
        all of them see.

    Raises
    ------
    DataError
        If the file is missing, damaged, or does not hold real k×k matrices.
    ParameterError
        If an option has no meaning for this format.
    """
    file = Path(path)
    form = _format_of(file)
    options = Options(key, order, None if mask is None else Path(mask).absolute())
    for option in options.given():
        if option not in form.options:
            raise ParameterError(f"{option} is for {MEANT_FOR[option]}, not for {file.name}")
    if not file.exists():
        raise DataError(f"{file}: no such file")
    return source(form, file, options)


def _format_of(file: Path) -> Format:
    for form in FORMATS:
        if file.name.lower().endswith(form.suffixes):
            return form
    found = repr(file.suffix) if file.suffix else "without a suffix"
    raise DataError(f"{file}: unknown format {found}; expected one of {', '.join(SUFFIXES)}")
