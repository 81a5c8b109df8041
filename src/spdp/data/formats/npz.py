"""NumPy's ``.npz``: a zip archive of arrays, read from front to back.

Members may be compressed: no row can be reached without unpacking all before it.
"""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.formats.base import Layout, Options, pick, stack, unchanged, unused
from spdp.data.formats.npy import header
from spdp.errors import DataError


def open(file: Path, options: Options) -> Layout:
    """Layout of the chosen member."""
    headers = {}
    with zipfile.ZipFile(file) as archive:
        for member in archive.namelist():
            if member.endswith(".npy"):
                with archive.open(member) as packed:
                    headers[member.removesuffix(".npy")] = header(packed)
    name = pick(file, {name: shape for name, (shape, _, _) in headers.items()}, options.key)
    shape, _, dtype = headers[name]
    beside = [other for other, (found, _, _) in headers.items() if found == shape[:1]]
    if not options.grouped:
        unused(file, beside, "arrays")
    return stack(file, shape, dtype, name)


def stream(layout: Layout) -> Iterator[NDArray[Any]]:
    """All matrices in blocks: the member is unpacked as it is read, not as a whole."""
    member = f"{layout.array}.npy"
    with zipfile.ZipFile(layout.file) as archive, archive.open(member) as packed:
        shape, fortran, dtype = header(packed)
        unchanged(layout, shape, dtype)
        if fortran:
            # Every matrix is spread over all of the member, which is unpacked at once.
            yield from _fortran(layout, packed, dtype)
        else:
            for start, stop in layout.pieces():
                values = _values(layout, packed, stop - start, dtype)
                yield values.reshape(-1, layout.k, layout.k)
        # Only reading to the very end compares the checksum.
        if packed.read(1):
            raise DataError(f"{layout.file}: array {layout.array!r} is longer than it says")


def _fortran(layout: Layout, packed: IO[bytes], dtype: np.dtype[Any]) -> Iterator[NDArray[Any]]:
    X = _values(layout, packed, layout.n, dtype).reshape(layout.k, layout.k, layout.n).T
    yield from (X[start:stop] for start, stop in layout.pieces())


def _values(layout: Layout, packed: IO[bytes], m: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    size = m * layout.k**2 * dtype.itemsize
    data = packed.read(size)
    if len(data) < size:
        raise DataError(f"{layout.file}: truncated, array {layout.array!r} ends too early")
    return np.frombuffer(data, dtype)
