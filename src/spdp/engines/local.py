"""The engine of this process.

Blocks are read one after the other and worked on here.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from spdp.charts import Chart
from spdp.choices import OnInvalid
from spdp.data.source import Source
from spdp.engines.base import (
    Engine,
    Held,
    Ints,
    Task,
    Vectors,
    collect,
    counted,
    totals_of_vectors,
    vectors_of,
)
from spdp.errors import DataError
from spdp.kernels import Region
from spdp.queries import Query

__all__ = ["LocalEngine"]


class LocalEngine(Engine):
    """Runs here, on all cores.

    ``kernels`` names the implementation, None takes the best.
    """

    def __init__(self, kernels: str | None = None) -> None:
        self.kernels = kernels

    def each(self, source: Source, work: Any, *args: Any) -> Iterator[Any]:
        return (work(block, *args) for block in source.blocks())

    def hold(
        self,
        source: Source,
        chart: Chart,
        region: Region,
        on_invalid: OnInvalid,
        keep_bytes: int,
    ) -> Held:
        task = Task(chart, region, source.k, source.name, self.kernels)
        return _LocalHeld(self, source, task, on_invalid, keep_bytes)


class _LocalHeld(Held):
    """Vectors in memory: all blocks, or every 2nd, 4th, … where not all fit.

    Which blocks are kept depends on their number and sizes only, never on their
    content.
    """

    def __init__(
        self, engine: LocalEngine, source: Source, task: Task, on_invalid: OnInvalid, limit: int
    ) -> None:
        self._engine, self._source, self._task = engine, source, task
        self._on_invalid, self._limit = on_invalid, limit
        self._kept: list[Vectors] = []
        self._stride, self._size = 1, 0
        _, self.n = collect(source, map(counted, self._first_pass()), on_invalid)
        self.m = sum(vectors.m for vectors in self._kept)
        self.d = len(task.region.center)

    def _vectors(self) -> Iterator[Vectors]:
        return self._engine.each(self._source, vectors_of, self._task)

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
        complete = self._stride == 1 or not whole
        parts = self._kept if complete else self._vectors()
        totals = [totals_of_vectors(vectors, query, self._task.kernels) for vectors in parts]
        return np.asarray(np.sum(totals, axis=0, dtype=np.int64))
