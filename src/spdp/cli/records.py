"""Files of records, opened here or on a cluster that lasts as long as the work."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spdp.errors import DataError, ParameterError

if TYPE_CHECKING:
    from spdp.data import Source
    from spdp.engines import Engine

__all__ = ["Opened", "Reader", "check_distinct", "name_of"]


class Opened(NamedTuple):
    """Records, and where to work on them: None leaves it to the library."""

    source: "Source"
    engine: "Engine | None"


def name_of(files: Sequence[Path]) -> str:
    """What a release of these files is called in a ledger, unless the user says."""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return files[0].name + more


def check_distinct(files: Sequence[Path]) -> None:
    """Refuse a file that is named twice: nobody's records may count twice."""
    seen: dict[Any, Path] = {}
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue  # whoever opens it says what is wrong
        first = seen.setdefault((status.st_dev, status.st_ino), file)
        if first is not file:
            again = "twice" if first == file else f"also as {first}"
            raise ParameterError(f"{file}: named {again}; its records would count twice")


@dataclass(frozen=True)
class Reader:
    """How files are to be read, and where: the options of the same names."""

    key: str | None = None
    order: str | None = None
    mask: Path | None = None
    dask: str | None = None
    workers: int | None = None

    def source(self, files: Sequence[Path]) -> "Source":
        """The records of all files, one after the other."""
        from spdp.data import as_source, open_records

        check_distinct(files)
        parts = [
            open_records(file, key=self.key, order=self.order, mask=self.mask) for file in files
        ]
        return parts[0] if len(parts) == 1 else as_source(parts)

    @contextmanager
    def opened(self, files: Sequence[Path]) -> Iterator[Opened]:
        """Records to be read here, on a running cluster, or on one started for them."""
        if self.dask is not None and self.workers is not None:
            raise ParameterError(
                "pass either --dask, the address of a cluster, or --workers, to start one"
            )
        source = self.source(files)
        if self.dask is None and self.workers is None:
            yield Opened(source, None)
            return
        with _client(self.dask, self.workers) as client:
            from spdp.engines.dask import DaskEngine

            yield Opened(source, DaskEngine(client))


@contextmanager
def _client(address: str | None, workers: int | None) -> Iterator[Any]:
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise DataError("a cluster needs Dask; install it with: pip install 'spdp[dask]'") from None
    if address is None:
        size: dict[str, Any] = {"n_workers": workers, "threads_per_worker": 1}
        with LocalCluster(**size, dashboard_address=None) as cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = Client(address, timeout="20s")
    except (OSError, ValueError) as error:
        raise DataError(f"{address}: no Dask cluster can be reached there ({error})") from None
    with client:
        yield client
