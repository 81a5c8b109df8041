"""Engines: this process, or a Dask cluster."""

from spdp.data.source import Source, is_dask
from spdp.engines.base import Engine
from spdp.engines.local import LocalEngine
from spdp.engines.task import Held

__all__ = ["Engine", "Held", "LocalEngine", "engine_for"]


def engine_for(source: Source) -> Engine:
    """The cluster this process is a client of, for Dask's collections.

    Else this process.

    Files are read here unless a :class:`~spdp.engines.dask.DaskEngine` is passed: only
    the user knows whether the workers can see them.
    """
    if source.chunks is None or not any(map(is_dask, source.chunks)):
        return LocalEngine()
    try:
        from distributed import get_client

        client = get_client()
    except (ImportError, ValueError):  # no cluster
        return LocalEngine()
    from spdp.engines.dask import DaskEngine

    return DaskEngine(client)
