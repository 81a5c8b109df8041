"""Zarr, a folder ``.zarr``: arrays cut into chunks, one file each.

A chunk that holds nothing but the array's fill value need not be stored: a missing
chunk is read as records of the fill value, and is no error.

*Enforced.* Before anything is opened, every file of metadata in the folder is read as
plain JSON: codecs that are not on a list are refused, since some of them (pickle) run
what they unpack. Nothing in the folder may be a link, or anything but a plain file.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.formats.base import Layout, Options, need, pick, stack, unchanged
from spdp.errors import DataError

METADATA = (".zarray", ".zgroup", ".zmetadata", "zarr.json")
# Codecs of numbers that neither run code nor read anything but the chunk.
CODECS = frozenset(
    "bytes transpose crc32c gzip zstd blosc sharding_indexed zlib lz4 bz2 lzma shuffle delta "  # noqa: SIM905
    "adler32 crc32 fletcher32 fixedscaleoffset bitround packbits astype quantize".split()
)


def open(file: Path, options: Options) -> Layout:
    """Layout of the array, or of the chosen array of a group."""
    need("zarr", "zarr", file)
    _check_folder(file)
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


def _check_folder(folder: Path) -> None:
    """Refuse links, and codecs that are not on the list."""
    for where, _, names in os.walk(folder, onerror=_raise):
        with os.scandir(where) as entries:
            for entry in entries:
                plain = entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)
                if not plain:
                    raise DataError(f"{folder}: {entry.path} is a link, or no plain file")
        for name in set(names) & set(METADATA):
            text = Path(where, name).read_text(encoding="utf-8")
            for codec in _codecs(json.loads(text)):
                if codec not in CODECS:
                    known = ", ".join(sorted(CODECS))
                    raise DataError(f"{folder}: uses the codec {codec!r}; allowed are {known}")


def _raise(error: OSError) -> None:
    raise error


def _codecs(node: Any) -> Iterator[Any]:
    """Names of all codecs in metadata of version 2 or 3, also in consolidated ones."""
    if isinstance(node, list):
        for part in node:
            yield from _codecs(part)
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        if key in ("codecs", "index_codecs", "filters", "compressor", "storage_transformers"):
            for codec in value if isinstance(value, list) else [value]:
                yield from () if codec is None else [_name(codec)]
        # A node's attributes are free. But consolidated metadata has names as keys, and
        # an array may be called "attributes"; there all values are dictionaries.
        if key != "attributes" or not isinstance(node.get("zarr_format"), int):
            yield from _codecs(value)


def _name(codec: Any) -> Any:
    """Name of a codec, without that of the library that registers it."""
    if isinstance(codec, dict):
        if "name" in codec and "id" in codec:
            return f"{codec['name']} or {codec['id']}"  # nobody's: refused
        codec = codec.get("name", codec.get("id"))
    return codec.removeprefix("numcodecs.") if isinstance(codec, str) else codec


def _node(file: Path) -> Any:
    return need("zarr", "zarr", file).open(str(file), mode="r")
