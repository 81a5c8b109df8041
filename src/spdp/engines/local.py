"""The engine of this process.

Blocks are read one after the other and worked on here.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.source import Source
from spdp.engines.base import Engine, collect
from spdp.engines.coins import Coins
from spdp.engines.task import (
    Array,
    Held,
    Ints,
    Task,
    Vectors,
    counted,
    nobody,
    part_of,
    thinned,
    totals_of_vectors,
    turn,
    vectors_of,
)
from spdp.errors import DataError
from spdp.kernels import kernels_for
from spdp.queries import Query

__all__ = ["HeldArray", "LocalEngine", "LocalHeld"]


class LocalEngine(Engine):
    """Runs here, on all cores.

    ``kernels`` names the implementation, None takes the best.
    """

    def __init__(self, kernels: str | None = None) -> None:
        self.kernels = kernels

    def each(self, source: Source, work: Any, *args: Any) -> Iterator[Any]:
        return (work(block, *args) for block in source.blocks())

    def hold(self, source: Source, task: Task, keep_bytes: int) -> Held:
        return LocalHeld(self, source, task, keep_bytes)


class LocalHeld(Held):
    """Vectors in memory: all, or one in 2, 4, … where not all fit.

    Which are kept is left to coins; how many, to the size of the source.
    """

    def __init__(self, engine: LocalEngine, source: Source, task: Task, limit: int) -> None:
        self._engine, self._source, self._task = engine, source, task
        self._limit = limit
        self._kept: list[Vectors] = []
        self._one_in, self._size, self._coins = 1, 0, Coins(task.key)
        self._places: list[NDArray[np.intp]] | None = None  # looked at, if not all of them
        self._thin: list[Vectors] | None = None
        self._axes: Array | None = None  # along which coordinates are given, if not their own
        _, self.n = collect(source, map(counted, self._first_pass()), task.allow_none)
        self._kept = self._kept or [nobody(task)]
        self.look_at(1)
        self.d = len(task.region.center)

    def _vectors(self) -> Iterator[Vectors]:
        read = self._engine.each(self._source, vectors_of, self._task)
        if self._axes is None:
            return read
        return (turn(vectors, self._axes, self._task.kernels, reuse=True) for vectors in read)

    def look_at(self, one_in: int) -> None:
        sizes = tuple(vectors.m for vectors in self._kept)
        self._places = self._coins.to_look_at(sizes, one_in)
        self._thin = None  # thinned when first asked for
        self.m = sum(sizes if self._places is None else map(len, self._places))

    def _looked(self) -> list[Vectors]:
        if self._places is None:
            return self._kept
        if self._thin is None:
            self._thin = [thinned(self._kept, self._places)]
        return self._thin

    def turned(self, axes: Array) -> Held:
        for blocks in (self._kept, self._thin or []):
            for i, block in enumerate(blocks):  # where they lie: memory stays flat
                blocks[i] = turn(block, axes, self._task.kernels, reuse=True)
        self._axes = axes if self._axes is None else self._axes @ axes
        return self

    def _first_pass(self) -> Iterator[Vectors]:
        for vectors in self._vectors():
            self._kept.append(self._part(vectors, self._one_in))
            self._size += self._kept[-1].Y.nbytes
            self._make_room()
            yield vectors

    def _part(self, vectors: Vectors, one_in: int) -> Vectors:
        """Vectors to keep, by coins that are thrown once."""
        if one_in == 1:
            return vectors
        return part_of(vectors, self._coins.to_keep(vectors.m, one_in))

    def _make_room(self) -> None:
        while self._size > self._limit and sum(vectors.m for vectors in self._kept) > 1:
            if not self._source.rereadable:
                raise DataError(
                    f"{self._source.name} can be read only once and is too large to keep; "
                    "method='oneshot' reads it once"
                )
            for i, vectors in enumerate(self._kept):  # one by one: memory stays flat
                self._kept[i] = self._part(vectors, 2)
            self._one_in *= 2
            self._size = sum(vectors.Y.nbytes for vectors in self._kept)

    def total(self, query: Query, whole: bool = False) -> Ints:
        if not whole:
            parts: Iterable[Vectors] = self._looked()
        else:
            parts = self._kept if self._one_in == 1 else self._vectors()
        totals = [totals_of_vectors(vectors, query, self._task.kernels) for vectors in parts]
        return np.asarray(np.sum(totals, axis=0, dtype=np.int64))


class HeldArray(Held):
    """Vectors (m, d) that are here already, as they are: for simulation."""

    def __init__(self, Y: Array) -> None:
        self.Y = Y
        self.n = self.m = len(Y)
        self.d = Y.shape[1]

    def look_at(self, one_in: int) -> None:
        """Simulations look at all of their vectors."""

    def total(self, query: Query, whole: bool = False) -> Ints:
        return query.total(self.Y, kernels_for(self.Y))

    def turned(self, axes: Array) -> Held:
        return HeldArray(kernels_for(self.Y).rotate(self.Y, np.zeros(self.d), axes))
