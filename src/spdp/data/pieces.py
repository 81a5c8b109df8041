"""Pieces of records that a worker reads on its own: Dask's, or functions that read."""

from typing import Any

import numpy as np

from spdp.blocks import in_dtype
from spdp.errors import DataError, InvalidMatrixError
from spdp.stacks import Shape

__all__ = ["is_dask", "pieces_of", "read_piece"]


def is_dask(item: Any) -> bool:
    """Whether something is Dask's: a collection, or a delayed piece of one."""
    return type(item).__module__.startswith("dask.")


def read_piece(piece: Any) -> Any:
    """The block of one piece, read where this runs."""
    return piece.compute() if is_dask(piece) else piece()


def pieces_of(array: Any, name: str) -> tuple[Shape, list[Any], list[int] | None]:
    """Of a Dask array (n, k, k) or (n, p, k, k): the shape of a record, and its chunks.

    Chunks are read in the array's dtype. Their numbers of records come third, None
    where the array does not know them.
    """
    from dask import delayed

    shape: tuple[Any, ...] = getattr(array, "shape", ())
    if len(shape) not in (3, 4) or shape[-1] != shape[-2]:
        raise InvalidMatrixError(f"{name} has shape {shape}; expected a Dask array (n, k, k)")
    whole = array.rechunk(dict.fromkeys(range(1, len(shape)), -1))
    record, sizes = tuple(map(int, shape[1:])), whole.chunks[0]
    one = delayed(_as_stated, pure=False)
    pieces = zip(whole.to_delayed().ravel(), sizes, strict=True)
    chunks = [one(chunk, rows, record, array.dtype, name) for chunk, rows in pieces]
    return record, chunks, None if np.isnan(shape[0]) else list(map(int, sizes))


def _as_stated(chunk: Any, rows: float, shape: Shape, dtype: np.dtype[Any], name: str) -> Any:
    """A chunk in its array's dtype, if it has as many rows as stated (NaN: unknown)."""
    if not np.isnan(rows) and len(chunk) != rows:
        raise DataError(
            f"{name} has a chunk of {len(chunk)} records where its Dask array states {rows}: "
            "whatever made it must state the chunks it returns, or NaN where it cannot know"
        )
    return in_dtype(chunk, shape, dtype)
