"""MATLAB's ``.mat``: version 7.3 is HDF5 inside, older ones are read by SciPy.

MATLAB stores a stack as k×k×n by columns: the same bytes as (n, k, k) by rows, each
matrix transposed, which changes nothing for symmetric ones.
"""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from spdp.data.formats import hdf5
from spdp.data.formats.base import Layout, Options, pick, real, stack
from spdp.errors import DataError

# MATLAB's names of its real types, and NumPy's.
TYPES = {"single": "float32", "double": "float64"} | {
    name: name for bits in (8, 16, 32, 64) for name in (f"int{bits}", f"uint{bits}")
}


def open(file: Path, options: Options) -> Layout:
    """Layout of the chosen variable, seen as (n, k, k)."""
    if _is_hdf5(file):
        layout = hdf5.open(file, options)
        real(file, layout.dtype)  # a transposed Hermitian matrix is its conjugate
        return layout
    from scipy.io import whosmat

    listed = whosmat(file, appendmat=False)
    types = {name: TYPES[kind] for name, _, kind in listed if kind in TYPES}
    shapes = {name: shape for name, shape, _ in listed if name in types}
    name = pick(file, shapes, options.key, last=True)
    shape = shapes[name]
    k, n = shape[0], shape[2] if len(shape) == 3 else 1  # MATLAB writes k×k×1 as k×k
    if shape not in ((k, k), (k, k, n)) or k == 0:
        raise DataError(f"{file}: array of shape {shape}; expected (k, k, n)")
    # SciPy reads a variable as a whole; these versions hold no more than 2 GB in one.
    return stack(file, (n, k, k), types[name], name, unit=max(n, 1))


def rows(layout: Layout, start: int, stop: int) -> NDArray[Any]:
    """Matrices start to stop."""
    if _is_hdf5(layout.file):
        return hdf5.rows(layout, start, stop)
    from scipy.io import loadmat

    stored = loadmat(layout.file, appendmat=False, variable_names=[layout.array])[layout.array]
    real(layout.file, stored.dtype)  # the header does not say whether numbers are complex
    # MATLAB stores whole numbers in fewer bytes. Records come in the variable's own
    # type, which does not depend on their values.
    X: NDArray[Any] = stored.astype(layout.dtype, copy=False).T
    return X.reshape(layout.n, layout.k, layout.k)[start:stop]


def _is_hdf5(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(10) == b"MATLAB 7.3"
