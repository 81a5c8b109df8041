"""Records in pieces.

Whatever holds them is seen as blocks ``(m, k, k)``, one at a time. What stands beside
the records, the persons they are of or their labels, travels with the blocks.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import accumulate
from mmap import mmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.blocks import record_stack, shape_of_first, steady
from spdp.choices import Unit
from spdp.data.pieces import is_dask, pieces_of, read_piece
from spdp.errors import DataError
from spdp.kernels.place import on_device
from spdp.stacks import Shape, is_list

__all__ = [
    "BLOCK_BYTES",
    "Advice",
    "Source",
    "as_source",
    "chain",
    "rows_per_block",
]

BLOCK_BYTES = 16 << 20
DEVICE_BYTES = 8 << 30  # of a block on a device, where work has to be started for each
Read = Callable[[], Iterator[Any]]


class Advice(NamedTuple):
    """What may help where a record is unusable; for the curator's eyes only."""

    text: str = ""
    ask: tuple[str, ...] = ()  # options that may help
    of: tuple[str, int] | None = None  # the part it lies in, and its place there


class Source:
    """A collection of k×k matrices that can be read block by block.

    Parameters
    ----------
    read : callable
        Returns an iterator over blocks, afresh at each call: arrays ``(m, k, k)``,
        single matrices, or lists of matrices.
    k : int
    n : int or None
        Number of records, None when only reading tells.
    name : str
        How messages call the source.
    rereadable : bool
        Whether the source can be read more than once.
    chunks : sequence, optional
        Pieces that a worker of a cluster can read on its own, in order: Dask's delayed
        objects, or functions of no argument that can be pickled.
    sizes : sequence of int, optional
        Number of records of each chunk.
    dtype : numpy dtype, optional
        Of all records, where an array or a file has one; public.
    parts : int, optional
        p, where a record is p matrices: blocks are ``(m, p, k, k)`` then.
    columns : tuple of str
        What stands beside the records: blocks are :class:`~spdp.stacks.Block` then.
    record : Unit
        What one record is, where nobody says whose it is.
    advise : callable, optional
        ``advise(i)`` is the :class:`Advice` that goes with an error about record i. It
        may look at the data: it is asked where such errors are raised, never else.
    device : bool
        Whether its blocks lie on a GPU.
    of_dask : bool
        Whether its records are a Dask collection's.
    memory : int
        Bytes of its records where they lie in memory anyway; 0 for files.
    origins : dict, optional
        Files that columns were read from, for messages: name of a column to name.
    """

    def __init__(
        self,
        read: Read,
        k: int,
        n: int | None,
        name: str,
        *,
        rereadable: bool = True,
        chunks: Sequence[Any] | None = None,
        sizes: Sequence[int] | None = None,
        dtype: np.dtype[Any] | None = None,
        parts: int | None = None,
        columns: tuple[str, ...] = (),
        record: Unit = Unit.RECORD,
        advise: Callable[[int], Advice] | None = None,
        device: bool = False,
        of_dask: bool = False,
        memory: int = 0,
        origins: Mapping[str, str] | None = None,
    ) -> None:
        self._read = read
        self.k = k
        self.n = n
        self.name = name
        self.rereadable = rereadable
        self.chunks = chunks
        self.sizes = sizes
        self.dtype = dtype
        self.parts = parts
        self.columns = columns
        self.record = record
        self.advise = advise or (lambda i: Advice())
        self.device = device
        self.of_dask = of_dask
        self.memory = memory
        self.origins = dict(origins or {})
        self._started = False

    def __repr__(self) -> str:
        number = "" if self.n is None else f"{self.n:,} "
        whose = "of persons, " if self.unit is Unit.PERSON else ""
        beside = [name for name in self.columns if name != "person"]
        more = f", with {' and '.join(beside)}" if beside else ""
        kind = "" if self.dtype is None else f", {self.dtype}"
        return f"<Source {self.name}: {number}{self.record}s {whose}{_size(self)}{kind}{more}>"

    @property
    def shape(self) -> Shape:
        """Of a record: (k, k), or (p, k, k)."""
        return (self.k, self.k) if self.parts is None else (self.parts, self.k, self.k)

    @property
    def unit(self) -> Unit:
        """What a guarantee for these data protects: a person, where it is known whose
        the records are, else a record.
        """
        return Unit.PERSON if "person" in self.columns else self.record

    def blocks(self) -> Iterator[Any]:
        """Every record once, in blocks."""
        if self._started and not self.rereadable:
            raise DataError(
                f"{self.name} can be read only once; "
                "pass an array, a file or a function that opens it anew"
            )
        self._started = True
        return self._read()

    __iter__ = blocks

    def with_columns(
        self,
        names: Iterable[str],
        read: Read,
        chunks: Sequence[Any] | None,
        origins: Mapping[str, str] | None = None,
    ) -> "Source":
        """The same records, read so that more columns stand beside them.

        ``origins`` are the files that some of these were read from.
        """
        wider = copy(self)
        wider.columns = (*self.columns, *names)
        wider.origins = {**self.origins, **(origins or {})}
        wider._read, wider.chunks, wider._started = read, chunks, False
        return wider


def rows_per_block(
    k: int, itemsize: int = 8, parts: int | None = None, size: int | None = None
) -> int:
    """Records in a block of about ``size`` bytes, ``BLOCK_BYTES`` by default."""
    return max(1, (size or BLOCK_BYTES) // (itemsize * k * k * (parts or 1)))


def _of_shape(read: Read, shape: Shape, n: int | None, name: str, **options: Any) -> Source:
    return Source(read, shape[-1], n, name, parts=_parts(shape), **options)


def _parts(shape: Shape) -> int | None:
    return shape[0] if len(shape) == 3 else None


def as_source(X: Any, name: str = "X") -> Source:
    """See data as records in pieces.

    An array or memory map ``(n, k, k)``, or ``(n, p, k, k)`` where a record is p
    matrices, CuPy's and torch's on a GPU too; a list of records, each in its own dtype;
    an iterator of blocks (read once); a function that returns such an iterator afresh;
    a Dask array; a :class:`Source`, or a list of them.
    """
    if isinstance(X, np.ndarray):  # as most are
        return _from_array(record_stack(X, name), name)
    if isinstance(X, Source):
        return X
    if is_dask(X):
        return _from_dask(X, name)
    if isinstance(X, Iterator):
        return _from_iterator(X, name)
    if callable(X):
        return _from_function(X, name)
    if is_list(X):
        return _from_list(list(X), name)
    return _from_array(record_stack(X, name), name)


def chain(parts: Sequence[Source]) -> Source:
    """Several sources one after the other."""
    first = parts[0]
    for part in parts:
        if part.shape != first.shape:
            raise DataError(
                f"{part.name} holds matrices of another size, {_size(part)}, than {first.name}, "
                f"{_size(first)}"
            )
        if part.columns != first.columns or part.unit != first.unit:
            raise DataError(
                f"{part.name} does not say of its records what {first.name} says: whose they "
                "are, their labels, or whether they are voxels"
            )
    counts = [part.n for part in parts]
    more = f" and {len(parts) - 1} more" if len(parts) > 1 else ""
    return _of_shape(
        lambda: (block for part in parts for block in part.blocks()),
        parts[0].shape,
        None if None in counts else sum(count or 0 for count in counts),
        parts[0].name + more,
        rereadable=all(part.rereadable for part in parts),
        chunks=_joined([part.chunks for part in parts]),
        sizes=_joined([part.sizes for part in parts]),
        dtype=_widest([part.dtype for part in parts]),
        columns=first.columns,
        record=first.record,
        advise=_by_part(parts),
        of_dask=any(part.of_dask for part in parts),
        origins=_shared([part.origins for part in parts]),
    )


def _size(part: Source) -> str:
    return "×".join(map(str, part.shape))


def _by_part(parts: Sequence[Source]) -> Callable[[int], Advice]:
    """Advice that names the part in which a record lies."""
    starts = list(accumulate((part.n or 0 for part in parts), initial=0))

    def advise(i: int) -> Advice:
        if any(part.n is None for part in parts):
            return Advice()
        place = min(bisect_right(starts, i), len(parts)) - 1
        part, inside = parts[place], i - starts[place]
        advice = part.advise(inside)
        return advice._replace(of=advice.of or (part.name, inside))

    return advise


def _joined(lists: list[Sequence[Any] | None]) -> list[Any] | None:
    return None if None in lists else [item for some in lists for item in some or ()]


def _shared(origins: list[dict[str, str]]) -> dict[str, str]:
    """Files that are the same for all parts: no other may be named for any record."""
    return {
        name: file
        for name, file in origins[0].items()
        if all(other.get(name) == file for other in origins)
    }


def _widest(dtypes: list[np.dtype[Any] | None]) -> np.dtype[Any] | None:
    """The dtype that holds the numbers of all parts whose dtype is known."""
    known = [dtype for dtype in dtypes if dtype is not None]
    return np.result_type(*known) if known else None


def _from_array(A: NDArray[Any], name: str) -> Source:
    shape, device = A.shape[1:], on_device(A)
    size = DEVICE_BYTES if device else None
    step = rows_per_block(shape[-1], A.itemsize, _parts(shape), size)
    options = {"device": device, "dtype": A.dtype, "memory": 0 if _mapped(A) else A.nbytes}
    return _of_shape(_cut(A, step), shape, len(A), name, **options)


def _cut(items: Any, step: int) -> Read:
    """Reads an array or a list in blocks of so many records."""
    return lambda: (items[i : i + step] for i in range(0, len(items), step))


def _mapped(A: Any) -> bool:
    """Whether an array, or what it is a view of, is a file."""
    while A is not None:
        if isinstance(A, np.memmap | mmap):
            return True
        A = getattr(A, "base", None)
    return False


def _from_list(items: list[Any], name: str) -> Source:
    """A list of matrices, or of sources."""
    if items and any(isinstance(item, Source) or is_dask(item) for item in items):
        return chain([as_source(item, f"{name}[{i}]") for i, item in enumerate(items)])
    shape = shape_of_first(items, name)
    step = rows_per_block(shape[-1], parts=_parts(shape))
    return _of_shape(_cut(items, step), shape, len(items), name)


def _from_iterator(blocks: Iterator[Any], name: str) -> Source:
    shape, steadied = steady(blocks, name)
    return _of_shape(lambda: steadied, shape, None, name, rereadable=False)


def _from_function(function: Callable[[], Any], name: str) -> Source:
    shape, _ = steady(iter(function()), name)
    return _of_shape(lambda: steady(iter(function()), name)[1], shape, None, name)


def _from_dask(array: Any, name: str) -> Source:
    """A Dask array (n, k, k) or (n, p, k, k), in its chunks, read in its dtype."""
    shape, chunks, sizes = pieces_of(array, name)
    n = None if sizes is None else sum(sizes)
    options = {"chunks": chunks, "sizes": sizes, "dtype": array.dtype, "of_dask": True}
    return _of_shape(lambda: map(read_piece, chunks), shape, n, name, **options)
