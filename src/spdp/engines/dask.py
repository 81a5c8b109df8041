"""The engine of a Dask cluster: work goes to the blocks, and only integers come back.

A worker that dies loses nothing: its tasks are run again elsewhere, and a block's
result is counted once because it is asked for once.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.pieces import read_piece
from spdp.data.source import Source
from spdp.engines.base import Engine, collect
from spdp.engines.coins import Coins
from spdp.engines.task import (
    Array,
    Held,
    Ints,
    Task,
    counted,
    nobody,
    part_of,
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
        self._client, self._kernels, self._coins = engine.client, engine.kernels, Coins(task.key)
        # a source may have no piece at all
        futures = engine.submit(source, vectors_of, task) or [
            engine.client.submit(nobody, task, pure=False)
        ]
        counts = list(results_of(engine.client.map(counted, futures, pure=False)))
        _, self.n = collect(source, counts, task.allow_none)
        self._sizes = tuple(result.m for result in counts)
        self.m, self._futures = self.n, futures
        self._places: list[NDArray[np.intp]] | None = None  # looked at, if not all of them
        self._thin: list[Any] | None = None
        self.d = len(task.region.center)

    def look_at(self, one_in: int) -> None:
        self._places = self._coins.to_look_at(self._sizes, one_in)
        self._thin = None  # thinned when first asked for
        self.m = self.n if self._places is None else sum(map(len, self._places))

    def _looked(self) -> list[Any]:
        if self._places is None:
            return self._futures
        if self._thin is None:
            self._thin = self._client.map(
                part_of, self._futures, self._places, pure=False, retries=RETRIES
            )
        return self._thin

    def turned(self, axes: Array) -> Held:
        options = {"axes": axes, "kernels": self._kernels, "pure": False, "retries": RETRIES}
        self._futures = self._client.map(turn, self._futures, **options)
        if self._thin is not None:
            self._thin = self._client.map(turn, self._thin, **options)
        return self

    def total(self, query: Query, whole: bool = False) -> Ints:
        parts = self._client.map(
            totals_of_vectors,
            self._futures if whole else self._looked(),
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
