"""The engine of this process.

Blocks are read one after the other and worked on here.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from spdp.data.source import Source
from spdp.engines.base import Engine, collect
from spdp.engines.task import (
    Array,
    Held,
    Ints,
    Task,
    Vectors,
    counted,
    joined,
    nobody,
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
    """Vectors in memory: all blocks, or every 2nd, 4th, … where not all fit.

    Which blocks are kept depends on their number and sizes only, never on their
    content.
    """

    def __init__(self, engine: LocalEngine, source: Source, task: Task, limit: int) -> None:
        self._engine, self._source, self._task = engine, source, task
        self._limit = limit
        self._kept: list[Vectors] = []
        self._stride, self._size = 1, 0
        self._axes: Array | None = None  # along which coordinates are given, if not their own
        _, self.n = collect(source, map(counted, self._first_pass()), task.allow_none)
        self._kept = self._kept or [nobody(task)]
        self._looked: list[Vectors] = []
        self.look_at(1)
        self.d = len(task.region.center)

    def _vectors(self) -> Iterator[Vectors]:
        read = self._engine.each(self._source, vectors_of, self._task)
        if self._axes is None:
            return read
        return (turn(vectors, self._axes, self._task.kernels) for vectors in read)

    def look_at(self, stride: int) -> None:
        thin = [thinned(vectors, stride) for vectors in self._kept] if stride > 1 else None
        self._looked = self._kept if thin is None else thin
        self.m = sum(vectors.m for vectors in self._looked)

    def join(self) -> None:
        """Make one block of all, where starting work on a block is what takes time."""
        if self._stride == 1 and len(self._kept) > 1:
            self._kept = [joined(self._kept)]
            self.look_at(1)

    def turned(self, axes: Array) -> Held:
        lists = [self._kept] if self._looked is self._kept else [self._kept, self._looked]
        for vectors in lists:
            for i, block in enumerate(vectors):  # one at a time: memory stays flat
                vectors[i] = turn(block, axes, self._task.kernels)
        self._axes = axes if self._axes is None else self._axes @ axes
        return self

    def _first_pass(self) -> Iterator[Vectors]:
        for i, vectors in enumerate(self._vectors()):
            if i % self._stride == 0:
                self._kept.append(vectors)
                self._size += vectors.Y.nbytes
                self._make_room()
            yield vectors

    def _make_room(self) -> None:
        while self._size > self._limit and len(self._kept) > 1:
            if not self._source.rereadable:
                raise DataError(
                    f"{self._source.name} can be read only once and is too large to keep; "
                    "method='oneshot' reads it once"
                )
            self._kept, self._stride = self._kept[::2], 2 * self._stride
            self._size = sum(vectors.Y.nbytes for vectors in self._kept)

    def total(self, query: Query, whole: bool = False) -> Ints:
        if not whole:
            parts: Iterable[Vectors] = self._looked
        else:
            parts = self._kept if self._stride == 1 else self._vectors()
        totals = [totals_of_vectors(vectors, query, self._task.kernels) for vectors in parts]
        return np.asarray(np.sum(totals, axis=0, dtype=np.int64))


class HeldArray(Held):
    """Vectors (m, d) that are here already, as they are: for simulation."""

    def __init__(self, Y: Array) -> None:
        self.Y = Y
        self.n = self.m = len(Y)
        self.d = Y.shape[1]

    def look_at(self, stride: int) -> None:
        """Simulations look at all of their vectors."""

    def total(self, query: Query, whole: bool = False) -> Ints:
        return query.total(self.Y, kernels_for(self.Y))

    def turned(self, axes: Array) -> Held:
        return HeldArray(kernels_for(self.Y).rotate(self.Y, np.zeros(self.d), axes))
