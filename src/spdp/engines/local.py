"""The engine of this process.

Blocks are read one after the other and worked on here.
"""

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.source import Source
from spdp.engines import store
from spdp.engines.base import Engine, collect
from spdp.engines.store import Task, Totals, Vectors, VectorStore
from spdp.engines.subsampling import Subsample
from spdp.errors import DataError
from spdp.kernels.arrays import Array, Ints
from spdp.queries import Query, Rows


class LocalEngine(Engine):
    """Runs here, on all cores.

    ``kernels`` names the implementation, None takes the best.
    """

    def __init__(self, kernels: str | None = None) -> None:
        self.kernels = kernels

    def each(self, source: Source, work: Any, *args: Any) -> Iterator[Any]:
        return map(work, source.blocks(), *map(repeat, args))

    def hold(self, source: Source, task: Task, keep_bytes: int) -> VectorStore:
        return LocalStore(self, source, task, keep_bytes)


class LocalStore(VectorStore):
    """Vectors in memory: all, or a random one in 2, 4, … where not all fit.

    Which vectors are kept is secret. It depends on the number of records and on the
    secret key, never on what the records hold.

    *Enforced.* Rows that were kept, and rows that are read again because not all fit,
    go through the same maps in the same order: moves that wait become one, in either
    case, when all rows are asked next. *Therefore* a total over all rows is the same to
    the bit, whether they fit or not, and a private number of records does not show in
    which of the two it was.
    """

    def __init__(self, engine: LocalEngine, source: Source, task: Task, limit: int) -> None:
        self._engine, self._source, self._task = engine, source, task
        self._limit = limit
        self._kept: list[Rows] = []
        self._one_in, self._size, self._subsample = 1, 0, Subsample(task.key)
        self._places: list[NDArray[np.intp]] | None = None  # of the subsample; None: all
        self._thin: Rows | None = None
        self._thin_kernels = task.kernels  # where few rows of a device are on the host: its own
        self._moves = store.Moves()  # since records were read
        self._waiting = store.Moves()  # after those: made when all rows are asked
        _, self.n = collect(source, self._first_pass(), task.allow_none)
        self._kept = self._kept or [store.no_vectors(task).rows]
        self.subsample(1)
        self.d = len(task.region.center)

    def _read(self) -> Iterator[Vectors]:
        return self._engine.each(self._source, store.vectors_of, self._task)

    def subsample(self, one_in: int) -> None:
        sizes = tuple(len(rows.Y) for rows in self._kept)
        self._places = None if one_in == 1 else self._subsample.places(sizes, one_in)
        self._thin = None  # thinned when first asked for
        self.m = sum(sizes if self._places is None else map(len, self._places))

    def _thinned(self, places: list[NDArray[np.intp]]) -> Rows:
        """The subsample's rows, after all moves."""
        if self._thin is None:
            rows, self._thin_kernels = store.at_hand(
                store.thinned(self._kept, places), self._task.kernels
            )
            self._thin = self._waiting.apply(rows, self._thin_kernels)
        return self._thin

    def _moved(self) -> list[Rows]:
        """All rows that were kept, after the moves that they wait for."""
        if self._waiting.steps:
            for i, rows in enumerate(self._kept):  # where they lie: memory stays flat
                self._kept[i] = self._waiting.apply(rows, self._task.kernels)
            self._moves = self._moves.followed_by(self._waiting)
            self._waiting = store.Moves()
        return self._kept

    def rotated(self, axes: Array) -> VectorStore:
        self._waiting.rotate(axes)
        if self._thin is not None:
            self._thin = store.rotate(self._thin, axes, self._thin_kernels, reuse=True)
        return self

    def carried(self, W: Array) -> VectorStore:
        self._waiting.carry(W)
        if self._thin is not None:
            self._thin = store.carry(self._thin, W, self._thin_kernels)
        return self

    def _first_pass(self) -> Iterator[Totals]:
        for vectors in self._read():
            self._kept.append(self._part(vectors.rows, self._one_in))
            self._size += self._kept[-1].Y.nbytes
            if self._size > self._limit:
                self._make_room()
            yield Totals(None, vectors.m, vectors.fault)

    def _part(self, rows: Rows, one_in: int) -> Rows:
        """Rows to keep, drawn once."""
        if one_in == 1:
            return rows
        return store.thinned([rows], [self._subsample.to_keep(len(rows.Y), one_in)])

    def _make_room(self) -> None:
        while self._size > self._limit and sum(len(rows.Y) for rows in self._kept) > 1:
            if not self._source.rereadable:
                raise DataError(
                    f"{self._source.name} can be read only once and is too large to keep; "
                    "method='oneshot' reads it once"
                )
            for i, rows in enumerate(self._kept):  # one by one: memory stays flat
                self._kept[i] = self._part(rows, 2)
            self._one_in *= 2
            self._size = sum(rows.Y.nbytes for rows in self._kept)

    def _moved_or_read(self, subsampled: bool) -> Iterable[Rows]:
        """All rows, read again where not all were kept and all are asked."""
        kept = self._moved()
        if subsampled or self._one_in == 1:
            return kept
        kernels = self._task.kernels
        return (self._moves.apply(vectors.rows, kernels) for vectors in self._read())

    def total(self, query: Query[Any], subsampled: bool = False) -> Ints:
        if subsampled and self._places is not None:
            thin = self._thinned(self._places)
            return store.total_of_rows(thin, query, self._thin_kernels)
        rows = self._moved_or_read(subsampled)
        totals = [store.total_of_rows(each, query, self._task.kernels) for each in rows]
        return totals[0] if len(totals) == 1 else np.asarray(np.sum(totals, axis=0, dtype=np.int64))
