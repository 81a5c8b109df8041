"""Engines: this process, its GPU, or a Dask cluster."""

from spdp.data.source import Source
from spdp.engines.base import Engine
from spdp.engines.local import LocalEngine
from spdp.engines.store import VectorStore
from spdp.options import Place, choose

__all__ = ["Engine", "LocalEngine", "VectorStore", "engine_for"]


LOCAL = LocalEngine()


def engine_for(source: Source, wanted: Engine | str | None = None) -> Engine:
    """The engine that is asked for: an :class:`Engine`, "local" or "gpu".

    None chooses the cluster of this process's client for Dask collections, the GPU for
    arrays that lie there, and this process otherwise.

    Files are read here unless a :class:`~spdp.engines.dask.DaskEngine` is passed: only
    the user knows whether the workers can see them.
    """
    if isinstance(wanted, Engine):
        return wanted
    place = choose(Place, wanted, "engine") if wanted is not None else None
    if place is Place.GPU or (place is None and source.device):
        from spdp.engines.gpu import GpuEngine

        return GpuEngine()
    if place is Place.LOCAL or source.chunks is None or not source.of_dask:
        return LOCAL
    try:
        from distributed import get_client

        client = get_client()
    except (ImportError, ValueError):  # no cluster
        return LOCAL
    from spdp.engines.dask import DaskEngine

    return DaskEngine(client)
