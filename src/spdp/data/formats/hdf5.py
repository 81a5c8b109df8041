"""HDF5, ``.h5`` and ``.hdf5``: arrays in groups, read row by row.

HDF5 lets an array keep its values in other files, and reads its fill value, mostly
zeros, where these are missing or were never written. Fill values must not be taken for
records, so whatever can be detected is refused: chunks, or a whole array, that were
never stored; values outside the file; virtual arrays with gaps, or whose sources are
missing, too short, behind a link or not below the file's own folder, when the file is
opened and again whenever it is read. A filter that is not on a list is refused: HDF5
loads the code of others from wherever it is installed.

Which rows of a stored chunk, or of an array in one piece, were written cannot be
detected: rows that were not are records of the fill value. Zeros are not positive
definite, and are handled by ``on_invalid`` like every invalid record.
"""

import os
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.formats.base import (
    Layout,
    Options,
    below,
    need,
    pick,
    reading,
    stack,
    unchanged,
)
from spdp.errors import DataError

# HDF5's own filters, then LZF, Blosc, LZ4, Bitshuffle, Zstandard and Blosc2.
FILTERS = frozenset({1, 2, 3, 4, 5, 6, 32000, 32001, 32004, 32008, 32015, 32026})


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
    h5py = need("h5py", "hdf5", layout.file)
    with h5py.File(layout.file, "r") as store:
        array = store[layout.array]
        unchanged(layout, array.shape, array.dtype)
        found = np.asarray(array[start:stop])
        if array.is_virtual:  # after reading: what is there now was there then
            _check_values(h5py, array, layout.file)
        return found


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
    made = array.id.get_create_plist()
    for number in (made.get_filter(i)[0] for i in range(made.get_nfilters())):
        if number not in FILTERS:
            raise DataError(f"{file}: array {array.name} needs the HDF5 filter {number}")
    if array.size and not _is_written(array):
        raise DataError(f"{file}: some values of array {array.name} were never written")
    for part in array.virtual_sources() if array.is_virtual else ():
        _check_part(h5py, array, part, file)


def _check_part(h5py: Any, array: Any, part: Any, file: Path) -> None:
    """Refuse a virtual array if one of its sources is not there as a whole.

    HDF5 itself looks for sources where an environment variable says: that might not be
    the file that is looked at here.
    """
    if os.environ.get("HDF5_VDS_PREFIX"):
        raise DataError(f"{file}: unset HDF5_VDS_PREFIX to read the virtual array {array.name}")
    where = file if part.file_name == "." else below(file, part.file_name)
    with reading(where), h5py.File(where, "r") as store:
        source = _inside(h5py, store, part.dset_name, where)
        _check_values(h5py, source, where)
        if not _reaches(source, part):
            raise DataError(
                f"{where}: array {part.dset_name} has shape {source.shape}, less than array "
                f"{array.name} of {file.name} takes from it"
            )


def _inside(h5py: Any, store: Any, name: str, file: Path) -> Any:
    """An array of a file; an error if the way to it leads over a link."""
    parts = [part for part in name.split("/") if part]
    for i in range(len(parts)):
        link = store.get("/".join(parts[: i + 1]), getlink=True)
        if link is not None and not isinstance(link, h5py.HardLink):
            raise DataError(f"{file}: {name} lies behind a link; open what it points to")
    return store[name]


def _reaches(source: Any, part: Any) -> bool:
    """Whether a source holds all that is taken: itself as a whole, or some of it."""
    if part.src_space.get_simple_extent_ndims() == 0:
        return bool(source.size == part.vspace.get_select_npoints())
    _, last = part.src_space.get_select_bounds()
    return len(last) == source.ndim and bool(np.less(last, source.shape).all())


def _is_written(array: Any) -> bool:
    if array.is_virtual:
        return _is_covered(array)
    if array.chunks is None:
        return bool(array.id.get_storage_size() > 0)
    wanted = prod(-(-size // chunk) for size, chunk in zip(array.shape, array.chunks, strict=True))
    return bool(array.id.get_num_chunks() == wanted)


def _is_covered(array: Any) -> bool:
    """Whether a virtual array's mappings, which may overlap, leave no gap."""
    from h5py import h5s

    covered = h5s.create_simple(array.shape)
    covered.select_none()
    for part in array.virtual_sources():
        for start, stride, count, block in _slabs(part.vspace):
            covered.select_hyperslab(start, count, stride, block, op=h5s.SELECT_OR)
    return bool(covered.get_select_npoints() == array.size)


def _slabs(space: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
    """A selection as hyperslabs: start, stride, count and block of each."""
    one = (1,) * space.get_simple_extent_ndims()
    if space.get_select_npoints() == prod(space.get_simple_extent_dims()):
        yield (0,) * len(one), one, one, space.get_simple_extent_dims()
    elif space.is_regular_hyperslab():
        yield space.get_regular_hyperslab()
    else:
        for first, last in space.get_select_hyper_blocklist():
            yield tuple(first), one, one, tuple(last - first + 1)
