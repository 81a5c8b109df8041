"""HDF5, ``.h5`` and ``.hdf5``: arrays in groups, read row by row.

HDF5 lets an array keep its values in other files, and reads zeros where these are
missing or were never written. Records must not be made up: such arrays are refused.
"""

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.formats.base import Layout, Options, need, pick, reading, stack
from spdp.errors import DataError

__all__ = ["open", "rows"]


def open(file: Path, options: Options) -> Layout:
    """Layout of the chosen array."""
    h5py = need("h5py", "hdf5", file)
    with h5py.File(file, "r") as store:
        name = _choose(h5py, store, file, options.key)
        array = store[name]
        chunks = array.chunks or (1,)
        layout = stack(file, array.shape, array.dtype, name, unit=chunks[0])
        _check_values(h5py, array, file)
    return layout


def rows(layout: Layout, start: int, stop: int) -> NDArray[Any]:
    """Matrices start to stop."""
    with need("h5py", "hdf5", layout.file).File(layout.file, "r") as store:
        return np.asarray(store[layout.array][start:stop])


def _choose(h5py: Any, store: Any, file: Path, key: str | None) -> str:
    """Name of the array to read: one that lies in this file, never behind a link."""
    shapes: dict[str, tuple[int, ...]] = {}
    links: dict[str, str] = {}

    def visit(name: str, link: Any) -> None:
        if isinstance(link, h5py.ExternalLink):
            links[name] = f"{link.path} in {link.filename}"
        elif isinstance(link, h5py.SoftLink):
            links[name] = link.path
        elif isinstance(store[name], h5py.Dataset):
            shapes[name] = store[name].shape or ()

    store.visititems_links(visit)
    if key in links or (key is None and links and not shapes):
        name = key or next(iter(links))
        raise DataError(f"{file}: {name} is a link to {links[name]}; open what it points to")
    return pick(file, shapes, key)


def _check_values(h5py: Any, array: Any, file: Path) -> None:
    """Refuse an array whose values are not all there."""
    if array.external:
        where = array.external[0][0]
        raise DataError(f"{file}: array {array.name} keeps its values in {where}, outside the file")
    if array.size and not _is_written(array):
        raise DataError(f"{file}: some values of array {array.name} were never written")
    for part in array.virtual_sources() if array.is_virtual else ():
        where = file if part.file_name == "." else file.parent / part.file_name
        if not where.exists():
            raise DataError(f"{file}: array {array.name} has values in {where}, which is missing")
        with reading(where), h5py.File(where, "r") as store:
            _check_values(h5py, store[part.dset_name], where)


def _is_written(array: Any) -> bool:
    if array.is_virtual:
        mapped = sum(part.vspace.get_select_npoints() for part in array.virtual_sources())
        return bool(mapped >= array.size)
    if array.chunks is None:
        return bool(array.id.get_storage_size() > 0)
    wanted = prod(-(-size // chunk) for size, chunk in zip(array.shape, array.chunks, strict=True))
    return bool(array.id.get_num_chunks() == wanted)
