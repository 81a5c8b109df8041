"""The engine of a Dask cluster: work goes to the blocks, and only integers come back.

A worker that dies loses nothing: its tasks are run again elsewhere, and a block's
result is counted once because it is asked for once.
"""

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.source import Source, read_piece
from spdp.engines import store
from spdp.engines.base import Engine, collect
from spdp.engines.store import Task, Vectors, VectorStore
from spdp.engines.subsampling import Subsample
from spdp.errors import DataError
from spdp.kernels.arrays import Array, Ints
from spdp.queries import Query, Rows

RETRIES = 3


class DaskEngine(Engine):
    """Runs on the workers of the cluster that a ``distributed.Client`` serves."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def each(self, source: Source, work: Any, *args: Any) -> Iterator[Any]:
        return results_of(self.submit(source, work, *args))

    def hold(self, source: Source, task: Task, keep_bytes: int) -> VectorStore:
        return RemoteStore(self, source, task)

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


class RemoteStore(VectorStore):
    """Vectors that stay with the workers that computed them."""

    def __init__(self, engine: DaskEngine, source: Source, task: Task) -> None:
        self._client, self._kernels = engine.client, engine.kernels
        self._subsample = Subsample(task.key)
        # a source may have no piece at all
        futures = engine.submit(source, store.vectors_of, task) or [
            engine.client.submit(store.no_vectors, task, pure=False)
        ]
        counts = list(results_of(engine.client.map(Vectors.counted, futures, pure=False)))
        _, self.n = collect(source, counts, task.allow_none)
        self._sizes = tuple(result.m for result in counts)
        self.m = self.n
        self._futures: list[Any] = engine.client.map(attrgetter("rows"), futures, pure=False)
        self._places: list[NDArray[np.intp]] | None = None  # of the subsample; None: all
        self._thin: list[Any] | None = None
        self.d = len(task.region.center)

    def subsample(self, one_in: int) -> None:
        self._places = None if one_in == 1 else self._subsample.places(self._sizes, one_in)
        self._thin = None  # thinned when first asked for
        self.m = self.n if self._places is None else sum(map(len, self._places))

    def _looked_at(self) -> list[Any]:
        if self._places is None:
            return self._futures
        if self._thin is None:
            self._thin = self._map(_some_of, self._futures, self._places)
        return self._thin

    def _map(self, work: Any, *futures: Any, **options: Any) -> list[Any]:
        """Work on every block where it lies, again where a worker is lost."""
        return list(self._client.map(work, *futures, pure=False, retries=RETRIES, **options))

    def rotated(self, axes: Array) -> VectorStore:
        return self._moved(store.rotate, axes=axes)

    def carried(self, W: Array) -> VectorStore:
        return self._moved(store.carry, W=W)

    def _moved(self, work: Any, **matrix: Array) -> VectorStore:
        """Rows mapped where they lie, by the very numbers of this process."""
        self._futures = self._map(work, self._futures, **matrix, kernels=self._kernels)
        if self._thin is not None:
            self._thin = self._map(work, self._thin, **matrix, kernels=self._kernels)
        return self

    def total(self, query: Query[Any], subsampled: bool = False) -> Ints:
        blocks = self._looked_at() if subsampled else self._futures
        parts = self._map(store.total_of_rows, blocks, query=query, kernels=self._kernels)
        return np.asarray(np.sum(list(results_of(parts)), axis=0, dtype=np.int64))


def _some_of(rows: Rows, places: NDArray[np.intp]) -> Rows:
    return store.thinned([rows], [places])


def _on_worker(work: Any, piece: Any, *args: Any) -> Any:
    return work(read_piece(piece) if callable(piece) else piece, *args)


def results_of(futures: list[Any]) -> Iterator[Any]:
    """Results of tasks in order: all that crosses the network toward the client."""
    for future in futures:
        yield future.result()
