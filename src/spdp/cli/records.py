"""Files of records, opened here or on a cluster that lasts as long as the work."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spdp.choices import Unit
from spdp.cli import options
from spdp.errors import DataError, DataWarning, ParameterError, reason, warn

if TYPE_CHECKING:
    from spdp.data import Source
    from spdp.engines import Engine

__all__ = ["FileOptions", "Opened", "Reader", "name_of"]


class Opened(NamedTuple):
    """Records, and where to work on them: None leaves it to the library."""

    source: "Source"
    engine: "Engine | None"


def name_of(files: Sequence[Path]) -> str:
    """What a release of these files is called in a ledger, unless the user says."""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return files[0].name + more


@dataclass(frozen=True)
class Reader:
    """How files are to be read, whose they are, and where: a group of options."""

    key: options.ArrayName = None
    order: options.Order = None
    mask: options.Mask = None
    groups: options.Groups = None
    groups_column: options.GroupsColumn = None
    label_column: options.LabelColumn = None
    per_file: options.PerFile = False
    entries: options.Entries = None
    unit: options.Unit = None
    dask: options.Dask = None
    workers: options.Workers = None

    def source(self, files: Sequence[Path]) -> "Source":
        """The records of all files, one after the other."""
        from spdp.data import open_records

        return open_records(
            files,
            key=self.key,
            order=self.order,
            mask=self.mask,
            groups=self.groups,
            groups_column=self.groups_column,
            label_column=self.label_column,
            per_file=self.per_file,
            entries=self.entries,
        )

    @contextmanager
    def opened(self, files: Sequence[Path]) -> Iterator[Opened]:
        """Records to be read here, on a running cluster, or on one started for them."""
        if self.dask is not None and self.workers is not None:
            raise ParameterError(
                "pass either --dask, the address of a cluster, or --workers, to start one"
            )
        source = self.source(files)
        _check_unit(source, self.unit)
        if self.unit is None and source.unit is Unit.RECORD:
            _ask_about_folders(source, files)
        if self.dask is None and self.workers is None:
            yield Opened(source, None)
            return
        with _client(self.dask, self.workers) as client:
            from spdp.engines.dask import DaskEngine

            yield Opened(source, DaskEngine(client))


@dataclass(frozen=True)
class FileOptions:
    """How files are read where no guarantee is given: a group of options.

    For a public reference, and for a ledger's fingerprint.
    """

    key: options.ArrayName = None
    order: options.Order = None
    mask: options.Mask = None
    groups_column: options.PersonColumn = None
    label_column: options.LabelColumn = None
    entries: options.Entries = None

    def source(self, files: Sequence[Path]) -> "Source":
        """The records of all files, one after the other."""
        return Reader(**asdict(self)).source(files)


def _check_unit(source: "Source", unit: Unit | None) -> None:
    """Refuse to promise what nobody asked for: a voxel is not a person."""
    if source.unit is Unit.VOXEL and unit is None:
        raise ParameterError(
            f"{source.name}: what is to be protected? The voxels of an image are one person's "
            "data. Pass --per-file if each image is one person (--groups or a manifest if not), "
            "or --unit voxel if single voxels are what is to be protected"
        )
    if unit is Unit.PERSON and source.unit is not unit:
        raise ParameterError(
            f"{source.name}: --unit person, but nothing says whose its {source.unit}s are. "
            "If persons have one each: leave it out; if not, say whose they are by --per-file, "
            "--groups, --groups-column or a manifest"
        )
    if unit is not None and source.unit is not unit:
        raise ParameterError(f"{source.name}: --unit {unit}, but it is read per {source.unit}")


def _ask_about_folders(source: "Source", files: Sequence[Path]) -> None:
    """Say it when files of many records, found in a folder, are taken for shards."""
    from spdp.data.files import expand

    count = len(expand(files))
    if count > len(files) and source.n is not None and source.n > count:
        warn(
            f"{files[0]}: {count:,} files of many records, each taken for a person's; "
            "pass --per-file if each file is one person, --unit record if all is well",
            DataWarning,
        )


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
        why = reason(error)
        raise DataError(f"{address}: no Dask cluster can be reached there ({why})") from None
    with client:
        yield client
