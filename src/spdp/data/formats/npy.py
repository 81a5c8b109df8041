"""NumPy's ``.npy``: one array, mapped into memory piece by piece."""

from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.formats.base import Layout, Options, stack, unchanged


def open(file: Path, options: Options) -> Layout:
    """Layout of the array."""
    with file.open("rb") as stream:
        shape, _, dtype = header(stream)
    if len(shape) == 2 and shape[0] == shape[1]:  # one matrix: files of a person often hold it
        shape = (1, *shape)
    return stack(file, shape, dtype)


def rows(layout: Layout, start: int, stop: int) -> NDArray[Any]:
    """Matrices start to stop; the map is closed with the last reference to them."""
    array = np.lib.format.open_memmap(layout.file, mode="r")
    X = np.asarray(array[None] if array.ndim == 2 else array)
    unchanged(layout, X.shape, X.dtype)
    return X[start:stop]


def header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether in Fortran order, and dtype; the stream is left at the data."""
    if np.lib.format.read_magic(stream) == (1, 0):
        return np.lib.format.read_array_header_1_0(stream)
    return np.lib.format.read_array_header_2_0(stream)
