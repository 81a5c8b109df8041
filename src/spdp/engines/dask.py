"""The engine of a Dask cluster: work goes to the blocks, and only integers come back.

A worker that dies loses nothing: its tasks are run again elsewhere, and a block's
result is counted once because it is asked for once.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from spdp.data.source import Source, read_piece
from spdp.engines.base import Engine, collect
from spdp.engines.task import (
    Array,
    Held,
    Ints,
    Task,
    counted,
    nobody,
    thinned,
    totals_of_vectors,
    turn,
    vectors_of,
)
from spdp.errors import DataError
from spdp.queries import Query

__all__ = ["DaskEngine"]

RETRIES = 3


class DaskEngine(Engine):
    """Runs on the workers of the cluster that a ``distributed.Client`` serves."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def each(self, source: Source, work: Any, *args: Any) -> Iterator[Any]:
        return results_of(self.submit(source, work, *args))

    def hold(self, source: Source, task: Task, keep_bytes: int) -> Held:
        return _RemoteHeld(self, source, task)

    def submit(self, source: Source, work: Any, *args: Any) -> list[Any]:
        """One task per chunk, not retrieved: its result stays with the worker."""
        if source.chunks is None:
            raise DataError(
                f"{source.name}: its rows cannot be read one piece at a time, as a cluster's "
                "workers must; use npy, HDF5, Zarr, NIfTI, Parquet or CSV files, or a Dask array"
            )
        from dask import delayed

        tasks = [delayed(_on_worker, pure=False)(work, piece, *args) for piece in source.chunks]
        return list(self.client.compute(tasks, retries=RETRIES))


class _RemoteHeld(Held):
    """Vectors that stay with the workers that computed them."""

    def __init__(self, engine: DaskEngine, source: Source, task: Task) -> None:
        self._client, self._kernels = engine.client, engine.kernels
        # a source may have no piece at all
        futures = engine.submit(source, vectors_of, task) or [
            engine.client.submit(nobody, task, pure=False)
        ]
        counts = engine.client.map(counted, futures, pure=False)
        _, self.n = collect(source, results_of(counts), task.allow_none)
        self.m, self._futures, self._looked = self.n, futures, futures
        self.d = len(task.region.center)

    def look_at(self, stride: int) -> None:
        self.m, self._looked = self.n, self._futures
        if stride == 1:
            return
        self._looked = self._client.map(thinned, self._futures, stride=stride, pure=False)
        counts = self._client.map(counted, self._looked, pure=False)
        self.m = sum(result.m for result in results_of(counts))

    def turned(self, axes: Array) -> Held:
        options = {"axes": axes, "kernels": self._kernels, "pure": False, "retries": RETRIES}
        everything = self._looked is self._futures
        self._futures = self._client.map(turn, self._futures, **options)
        if everything:
            self._looked = self._futures
        else:
            self._looked = self._client.map(turn, self._looked, **options)
        return self

    def total(self, query: Query, whole: bool = False) -> Ints:
        parts = self._client.map(
            totals_of_vectors,
            self._futures if whole else self._looked,
            query=query,
            kernels=self._kernels,
            pure=False,
            retries=RETRIES,
        )
        return np.asarray(np.sum(list(results_of(parts)), axis=0, dtype=np.int64))


def _on_worker(work: Any, piece: Any, *args: Any) -> Any:
    return work(read_piece(piece) if callable(piece) else piece, *args)


def results_of(futures: list[Any]) -> Iterator[Any]:
    """Results of tasks in order: all that crosses the network toward the client."""
    for future in futures:
        yield future.result()
