"""What all file formats share: a header becomes a layout, a layout becomes a source.

A format reads its header once (``open``) and then any rows (``rows``). Reading here and
reading on a cluster both go through :func:`read`, so that a file means one thing.
A format that can only be read from front to back has a ``stream`` in place of ``rows``.

*Enforced.* Nothing in a file runs code, or reaches outside the file's folder or to the
network: arrays of objects are never unpickled, filters and codecs are those of a list,
and values that a file keeps elsewhere are read only from plain files below its own
folder. (A manifest is no such file: it names the files to read.)
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from spdp import errors
from spdp.data.batching import Block, records_of
from spdp.data.source import Advice, Source, rows_per_block
from spdp.errors import DataError, DataWarning, ParameterError, reason, warn
from spdp.options import Unit

# Few, large tasks: each of them costs a cluster's scheduler time.
BLOCKS_PER_CHUNK = 5
MOST_PIECES = 100_000  # of a file, some 8 TB: more is what a damaged header says


@dataclass(frozen=True)
class Options:
    """Options about a file.

    Attributes
    ----------
    key : str, optional
        Which array, where a file holds several.
    order : str, optional
        How an image orders the components of its tensors.
    mask : Path or array, optional
        Voxels that count as records, or an image of them.
    groups_column, label_column : str, optional
        Columns of a table that hold subject ids, and classes.
    entries : "full" or "upper", optional
        Whether a row of a table holds a whole matrix or its upper triangle.
    grouped : bool
        Whether the persons of the records are given elsewhere.
    """

    key: str | None = None
    order: str | None = None
    mask: Any = None
    groups_column: str | None = None
    label_column: str | None = None
    entries: str | None = None
    grouped: bool = False

    def given(self) -> list[str]:
        """Names of the options about the file that were passed."""
        said = {name: value for name, value in vars(self).items() if name != "grouped"}
        return [name for name, value in said.items() if value is not None]


@dataclass(frozen=True)
class Layout:
    """Where the records of a file lie, as its header says. Small and picklable.

    Attributes
    ----------
    file : Path
    n, k : int
        The file holds n matrices of size k×k.
    dtype : numpy dtype
        In which the numbers are stored.
    array : str
        Name of the array inside the file.
    unit : int
        Rows that are stored, or unpacked, together: reading a part costs the whole.
    """

    file: Path
    n: int
    k: int
    dtype: np.dtype[Any]
    array: str = ""
    unit: int = 1

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the file holds beside its records."""
        return ()

    def pieces(self, blocks: int = 1) -> Iterator[tuple[int, int]]:
        """(start, stop) of pieces of about so many blocks each, in whole units."""
        rows = blocks * rows_per_block(self.k, self.dtype.itemsize)
        step = max(1, rows // self.unit) * self.unit
        return ((start, min(start + step, self.n)) for start in range(0, self.n, step))


@dataclass(frozen=True)
class Format:
    """One way of storing matrices in a file: a line of the table ``FORMATS``.

    Attributes
    ----------
    suffixes : tuple of str
        How names of such files end, in lower case.
    open : callable
        ``open(file, options)`` reads the header and returns the :class:`Layout`.
    rows : callable, optional
        ``rows(layout, start, stop)`` reads matrices start to stop where it runs, as an
        array ``(stop - start, k, k)`` in the dtype of the file, or a block of them with
        the layout's columns beside.
    stream : callable, optional
        ``stream(layout)``: blocks of all matrices, in one pass; in place of ``rows``,
        or beside it for reading here.
    options : tuple of str
        The options that mean something for this format.
    record : Unit
        What one record is.
    advise : callable, optional
        ``advise(layout)`` gives a hint about invalid records.
    """

    suffixes: tuple[str, ...]
    open: Callable[[Path, Options], Layout]
    rows: Callable[[Any, int, int], Any] | None = None
    stream: Callable[[Any], Iterator[Any]] | None = None
    options: tuple[str, ...] = ("key",)
    record: Unit = Unit.RECORD
    advise: Callable[[Any], Advice] | None = None


def source(form: Format, file: Path, options: Options) -> Source:
    """Open a file as records."""
    with reading(file):
        layout = form.open(file, options)
    # A worker may run in another directory.
    layout = replace(layout, file=file.absolute())
    if layout.n > MOST_PIECES * BLOCKS_PER_CHUNK * rows_per_block(layout.k, layout.dtype.itemsize):
        raise DataError(
            f"{file}: its header says {layout.n} matrices {layout.k}×{layout.k}, more than are "
            "read from one file; it may be damaged"
        )
    stream, advise = form.stream, form.advise
    pieces = None if form.rows is None else list(layout.pieces(BLOCKS_PER_CHUNK))
    return Source(
        partial(_streamed, stream, layout) if stream else partial(_blocks, form.rows, layout),
        layout.k,
        layout.n,
        str(file),
        chunks=None if pieces is None else [partial(read, form.rows, layout, *p) for p in pieces],
        sizes=None if pieces is None else [stop - start for start, stop in pieces],
        dtype=layout.dtype,
        columns=layout.columns,
        record=form.record,
        advise=Advice.none if advise is None else lambda i: advise(layout),
    )


def read(rows: Any, layout: Layout, start: int, stop: int) -> Any:
    """Matrices start to stop of a file, or one error that names it."""
    with reading(layout.file):
        piece = rows(layout, start, stop)
    if records_of(piece).shape != (stop - start, layout.k, layout.k):
        raise _changed(layout)
    return piece


def unchanged(layout: Layout, shape: tuple[int, ...], dtype: Any) -> None:
    """Refuse an array that differs from its header when the file was opened."""
    if shape != (layout.n, layout.k, layout.k) or dtype != layout.dtype:
        raise _changed(layout)


def _changed(layout: Layout) -> DataError:
    return DataError(f"{layout.file}: changed since it was opened; open it again")


def _blocks(rows: Any, layout: Layout) -> Iterator[Any]:
    size = rows_per_block(layout.k, layout.dtype.itemsize)
    for start, stop in layout.pieces():
        piece = read(rows, layout, start, stop)
        for some in (slice(i, i + size) for i in range(0, len(piece), size)):
            yield piece.part(some) if isinstance(piece, Block) else piece[some]


def _streamed(stream: Any, layout: Layout) -> Iterator[Any]:
    with reading(layout.file):
        yield from stream(layout)


@contextmanager
def reading(file: Path, what: str | None = None) -> Iterator[None]:
    """Turn what a library raises for a damaged file into one error that names the file.

    ``what`` is what the file is read as, where its suffix does not tell.
    """
    try:
        yield
    except (DataError, ParameterError):
        raise
    except Exception as error:
        fault = ", it may be damaged or truncated" if what is None else f" as {what}"
        raise DataError(f"{file}: cannot be read{fault} ({reason(error)})") from None


def below(file: Path, name: str) -> Path:
    """A plain file that ``file`` names, in its own folder or below; else an error."""
    folder, where = file.parent.resolve(), file.parent / name
    if not where.resolve().is_relative_to(folder):
        raise DataError(f"{file}: has values in {name}, outside its folder")
    if not where.exists():
        raise DataError(f"{file}: has values in {where}, which is missing")
    steps = takewhile(lambda step: not step.samefile(folder), (where, *where.parents))
    if not where.is_file() or any(step.is_symlink() for step in steps):
        raise DataError(f"{file}: has values in {where}, a link or no plain file")
    return where


def unused(file: Path, names: Sequence[str], what: str) -> None:
    """Warn of unused columns beside the records: they may be subject ids."""
    if names:
        listed = ", ".join(names[:4])
        warn(
            f"{file}: {what} {listed} not used. If one of them holds subject ids, name it as "
            "groups; otherwise every record counts as a person of its own",
            DataWarning,
        )


def need(module: str, extra: str, file: Path) -> Any:
    """Import what a format is read with, or say how to install it."""
    return errors.need(module, extra, f"{file}: reading this format")


def stack(file: Path, shape: tuple[int, ...], dtype: Any, array: str = "", unit: int = 1) -> Layout:
    """Layout of an array (n, k, k) of numbers; anything else is an error."""
    if not is_stack(shape):
        raise DataError(f"{file}: array of shape {shape}; expected (n, k, k)")
    n, k, _ = shape
    stored: np.dtype[Any] = np.dtype(dtype)
    if stored.kind != "c":  # the metric accepts complex ones, or refuses them
        real(file, stored)
    return Layout(file, n, k, stored, array, unit)


def is_stack(shape: tuple[int, ...]) -> bool:
    """Whether an array of this shape holds matrices, one per row."""
    return len(shape) == 3 and shape[1] == shape[2] > 0


def real(file: Path, dtype: Any) -> np.dtype[Any]:
    """The dtype of a file of real numbers, kept as stored; others are an error."""
    stored: np.dtype[Any] = np.dtype(dtype)
    if stored.kind not in "iuf":
        raise DataError(f"{file}: dtype {stored}; expected real numbers")
    return stored


def pick(
    file: Path, shapes: dict[str, tuple[int, ...]], key: str | None, *, last: bool = False
) -> str:
    """Name of the array to read: ``key``, or the only stack of matrices."""
    listing = ", ".join(f"{name} {shape}" for name, shape in shapes.items()) or "nothing"
    if key is not None:
        if key not in shapes:
            raise DataError(f"{file}: no array {key!r}; it holds {listing}")
        return key
    wanted = "(k, k, n)" if last else "(n, k, k)"
    fits = [name for name, shape in shapes.items() if is_stack(shape[::-1] if last else shape)]
    if not fits:
        raise DataError(f"{file}: no array of shape {wanted}; it holds {listing}")
    if len(fits) > 1:
        raise DataError(f"{file}: several arrays of shape {wanted}: {listing}", ask="key")
    return fits[0]
