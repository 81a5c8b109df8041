"""Zarr, a folder ``.zarr``: arrays cut into chunks, one file each.

A chunk that holds nothing but the array's fill value need not be stored: a missing
chunk is read as records of the fill value, and is no error.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.formats.base import Layout, Options, need, pick, stack, unchanged
from spdp.errors import DataError


def open(file: Path, options: Options) -> Layout:
    """Layout of the array, or of the chosen array of a group."""
    node = _node(file)
    name = ""
    if hasattr(node, "members"):
        members = node.members(max_depth=None)
        arrays = {name: member for name, member in members if hasattr(member, "chunks")}
        name = pick(file, {name: array.shape for name, array in arrays.items()}, options.key)
        node = arrays[name]
    elif options.key is not None:
        raise DataError(f"{file}: no array {options.key!r}; it is a single array without a name")
    return stack(file, node.shape, node.dtype, name, unit=(node.shards or node.chunks)[0])


def rows(layout: Layout, start: int, stop: int) -> NDArray[Any]:
    """Matrices start to stop."""
    node = _node(layout.file)
    array = node[layout.array] if layout.array else node
    unchanged(layout, array.shape, array.dtype)
    return np.asarray(array[start:stop])


def _node(file: Path) -> Any:
    return need("zarr", "zarr", file).open(str(file), mode="r")
