"""Engines: this process, its GPU, or a Dask cluster."""

from spdp.choices import Place, choose
from spdp.data.source import Source
from spdp.engines.base import Engine
from spdp.engines.local import LocalEngine
from spdp.engines.task import Held

__all__ = ["Engine", "Held", "LocalEngine", "engine_for"]


def engine_for(source: Source, wanted: Engine | str | None = None) -> Engine:
    """The engine that is wanted: an :class:`Engine`, "local" or "gpu".

    None takes the cluster this process is a client of for Dask's collections, the GPU
    for arrays that lie there, and else this process.

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
        return LocalEngine()
    try:
        from distributed import get_client

        client = get_client()
    except (ImportError, ValueError):  # no cluster
        return LocalEngine()
    from spdp.engines.dask import DaskEngine

    return DaskEngine(client)
