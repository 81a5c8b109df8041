"""Sources: arrays, lists, iterators, Dask collections and files, read in blocks.

A source is read as blocks ``(m, k, k)``, one at a time. Columns of the records, such as
their persons or labels, travel with the blocks.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from mmap import mmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.data.batching import Shape, in_dtype, is_list, record_stack, shape_of_first, steady
from spdp.errors import DataError, InvalidMatrixError
from spdp.kernels.arrays import on_device
from spdp.options import MatrixKind, Unit


def is_dask(item: Any) -> bool:
    """Whether something is a Dask collection, or a delayed piece of one."""
    return type(item).__module__.startswith("dask.")


def read_piece(piece: Any) -> Any:
    """The block of one piece, read where this runs."""
    return piece.compute() if is_dask(piece) else piece()


def pieces_of(array: Any, name: str) -> tuple[Shape, list[Any], list[int] | None]:
    """Record shape, chunks and their sizes of a Dask array (n, k, k) or (n, p, k, k).

    Chunks are read in the array's dtype. Sizes are None where the array does not know
    them.
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


BLOCK_BYTES = 16 << 20
LARGE_BYTES = 1 << 18  # of a record: a block has 48 of those, if it is no larger than 64 MB
SHARED, SHARED_BYTES = 48, 64 << 20
DEVICE_BYTES = 8 << 30  # of a block on a device, where each block costs a launch
LARGEST_RECORD = 1 << 26  # entries of a record: half a GiB of float64
Read = Callable[[], Iterator[Any]]


class Advice(NamedTuple):
    """A hint about an invalid record, for the curator only."""

    text: str = ""
    ask: tuple[str, ...] = ()  # options that may help
    instead: bool = False  # whether it stands in place of the usual remedy
    of: tuple[str, int] | None = None  # the part it lies in, and its place there

    @classmethod
    def none(cls, i: int) -> "Advice":
        """No hint, for any record."""
        return cls()


@dataclass(eq=False, repr=False, kw_only=True)
class Source:
    """A collection of k×k matrices that can be read block by block."""

    # an iterator over blocks, afresh at each call: arrays (m, k, k) or (m, p, k, k),
    # single matrices, or lists of them; as a Block where there are columns
    read: Read = field(kw_only=False)
    k: int = field(kw_only=False)
    n: int | None = field(kw_only=False)  # number of records; None where only reading tells
    name: str = field(kw_only=False)  # its name in messages
    rereadable: bool = True
    # pieces that a worker of a cluster reads on its own, in order: Dask's delayed
    # objects, or functions of no argument that can be pickled; records of each
    chunks: Sequence[Any] | None = None
    sizes: Sequence[int] | None = None
    dtype: np.dtype[Any] | None = None  # of all records, where an array or file has one; public
    parts: int | None = None  # p, where a record is p matrices
    columns: tuple[str, ...] = ()  # names of the columns
    record: Unit = Unit.RECORD  # what one record is, where persons are not given
    # a hint for an error about record i. It may read the data, so it is called only
    # where such an error is raised
    advise: Callable[[int], Advice] = Advice.none
    device: bool = False  # whether its blocks lie on a GPU
    of_dask: bool = False  # whether its records are a Dask collection
    memory: int = 0  # bytes of its records if they are in memory; 0 for files
    origins: Mapping[str, str] = field(default_factory=dict)  # files of columns, for messages
    rows: tuple[str, ...] | None = None  # names of a matrix's rows; public, as its shape is
    kind: MatrixKind | None = None  # what the matrices are, where that is stated; public
    _started: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if (self.parts or 1) * self.k**2 > LARGEST_RECORD:
            raise InvalidMatrixError(
                f"{self.name}: {_size(self)} matrices are too large; "
                f"a record may have at most {LARGEST_RECORD:,} entries"
            )

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
        """The unit of privacy: a person where persons are given, else ``record``."""
        return Unit.PERSON if "person" in self.columns else self.record

    def blocks(self) -> Iterator[Any]:
        """Every record once, in blocks."""
        if self._started and not self.rereadable:
            raise DataError(
                f"{self.name} can be read only once; "
                "pass an array, a file or a function that opens it anew"
            )
        self._started = True
        return self.read()

    __iter__ = blocks


def rows_per_block(
    k: int, itemsize: int = 8, parts: int | None = None, size: int | None = None
) -> int:
    """Records in a block of about ``size`` bytes, ``BLOCK_BYTES`` by default.

    Of large records there are more in a block than that says, so that threads share
    them evenly.
    """
    record = itemsize * k * k * (parts or 1)
    large = size is None and record > LARGE_BYTES
    shared = min(SHARED, SHARED_BYTES // record) if large else 1
    return max(1, (size or BLOCK_BYTES) // record, shared)


def _of_shape(read: Read, shape: Shape, n: int | None, name: str, **options: Any) -> Source:
    return Source(read, shape[-1], n, name, parts=_parts(shape), **options)


def _parts(shape: Shape) -> int | None:
    return shape[0] if len(shape) == 3 else None


def as_source(X: Any, name: str = "X") -> Source:
    """Data as a :class:`Source`.

    An array or memory map ``(n, k, k)``, or ``(n, p, k, k)`` where a record is p
    matrices, CuPy's and torch's on a GPU too; a list of records, each in its own dtype;
    an iterator of blocks (read once); a function that returns such an iterator afresh;
    a Dask array; a :class:`Source`, or a list of them; paths of files, and objects of
    other libraries (:mod:`spdp.data.objects`). What needs to be told how it is read
    goes through :func:`spdp.data.open_records`, and an error says so.
    """
    if isinstance(X, np.ndarray):  # as most are
        return _from_array(record_stack(X, name), name)
    if isinstance(X, Source):
        return X
    if is_dask(X):
        return _from_dask(X, name)
    from spdp.data.objects import recognised  # it makes sources, too

    found = recognised(X, name)
    if found is not None:
        return found
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
            raise DataError(f"{part.name}: {_size(part)} matrices, {first.name}: {_size(first)}")
        if part.columns != first.columns or part.unit != first.unit:
            raise DataError(
                f"{part.name} and {first.name} state different things of their records: persons, "
                "labels, or whether they are voxels"
            )
        if part.rows != first.rows or part.kind != first.kind:
            raise DataError(
                f"{part.name} and {first.name} state different names of rows, or kinds of matrices"
            )
    counts = [part.n for part in parts]
    more = f" and {len(parts) - 1} more" if len(parts) > 1 else ""
    return replace(
        first,
        read=lambda: (block for part in parts for block in part.blocks()),
        n=None if None in counts else sum(count or 0 for count in counts),
        name=first.name + more,
        rereadable=all(part.rereadable for part in parts),
        chunks=_joined([part.chunks for part in parts]),
        sizes=_joined([part.sizes for part in parts]),
        dtype=_widest([part.dtype for part in parts]),
        advise=_by_part(parts),
        device=False,
        of_dask=any(part.of_dask for part in parts),
        memory=0,
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


def _shared(origins: list[Mapping[str, str]]) -> dict[str, str]:
    """Files that all parts share; no other file fits every record."""
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
    shape, device = A.shape[1:], type(A) is not np.ndarray and on_device(A)
    size = DEVICE_BYTES if device else None
    step = rows_per_block(shape[-1], A.itemsize, _parts(shape), size)
    options = {"device": device, "dtype": A.dtype, "memory": 0 if _mapped(A) else A.nbytes}
    if not device:
        options["advise"] = partial(_about, A)
    return _of_shape(cut(A, step), shape, len(A), name, **options)


def _about(A: NDArray[Any], i: int) -> Advice:
    """What may be wrong with record i of an array, where it is all zero."""
    from spdp.data.voxels import background

    return Advice() if A[i].any() else background(A)


def cut(items: Any, step: int) -> Read:
    """A function that reads an array or a list in blocks of ``step`` records."""
    if len(items) <= step:
        return lambda: iter([items] if len(items) else [])
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
    return _of_shape(cut(items, step), shape, len(items), name)


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
