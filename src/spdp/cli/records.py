"""Open files of records, on this machine or on a Dask cluster."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from spdp.cli import options
from spdp.cli.options import Group, option
from spdp.data import Source, open_records
from spdp.data.columns import Column, check_number, entries_of, lines_of
from spdp.data.formats.base import reading
from spdp.data.opening import expand, load_array
from spdp.engines import Engine
from spdp.errors import DataError, DataWarning, ParameterError, need, reason, warn
from spdp.options import MatrixKind, Unit


class Opened(NamedTuple):
    """Records, and the engine that reads them; None lets the library choose."""

    source: Source
    engine: Engine | None


PLACES = ("unit", "dask", "workers")  # options of a reader that are not about files


@dataclass(frozen=True)
class Reader(Group):
    """How to read files, which person each record belongs to, and where to work."""

    key: str | None = options.KEY
    order: str | None = options.ORDER
    mask: Path | None = options.MASK
    groups: Path | None = option(
        "Subject ID of each record: .npy, .npz, or .txt and .csv, one per line.", metavar="FILE"
    )
    groups_column: str | None = option(
        "Column of a table that holds subject IDs; with --groups, the array or column of that "
        "file.",
        metavar="NAME",
    )
    label_column: str | None = options.LABEL_COLUMN
    per_file: bool = option("Each file is one person.", "--per-file", default=False)
    entries: str | None = options.ENTRIES
    kind: MatrixKind | None = option(
        "What the matrices are, where that matters: --metric offlog refuses the last two."
    )
    unit: Unit | None = option(
        "What is to be protected. All voxels of an image are one person's data: a guarantee per "
        "voxel must be asked for."
    )
    dask: str | None = option("Read on a Dask cluster with access to the files.", metavar="ADDRESS")
    workers: int | None = option("Read on a local Dask cluster of N workers.", min=1, metavar="N")

    def source(self, files: Sequence[Path]) -> Source:
        """The records of all files, one after the other."""
        given = {name: value for name, value in asdict(self).items() if name not in PLACES}
        return open_records(files, **given)

    @contextmanager
    def opened(self, files: Sequence[Path]) -> Iterator[Opened]:
        """Records to be read here, on a running cluster, or on one started for them."""
        if self.dask is not None and self.workers is not None:
            raise ParameterError("pass --dask, a cluster's address, or --workers, to start one")
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
class FileOptions(Group):
    """How files are read where no guarantee is given.

    For a public reference, and for a ledger's fingerprint.
    """

    key: str | None = options.KEY
    order: str | None = options.ORDER
    mask: Path | None = options.MASK
    groups_column: str | None = option("Column that holds subject IDs.", metavar="NAME")
    label_column: str | None = options.LABEL_COLUMN
    entries: str | None = options.ENTRIES

    def source(self, files: Sequence[Path]) -> Source:
        """The records of all files, one after the other."""
        return Reader(**asdict(self)).source(files)


def _check_unit(source: Source, unit: Unit | None) -> None:
    """Refuse a unit that does not fit the records; a voxel must be asked for."""
    if source.unit is Unit.VOXEL and unit is None:
        raise ParameterError(
            f"{source.name}: what is to be protected? The voxels of an image are one person's "
            "data. Pass --per-file if each image is one person (--groups or a manifest if not), "
            "or --unit voxel if single voxels are what is to be protected"
        )
    if unit is Unit.PERSON and source.unit is not unit:
        raise ParameterError(
            f"{source.name}: --unit person, but its {source.unit}s have no subject IDs. If each "
            f"person has one {source.unit}, leave --unit out; otherwise pass --per-file, --groups, "
            "--groups-column or a manifest"
        )
    if unit is not None and source.unit is not unit:
        raise ParameterError(f"{source.name}: --unit {unit}, but it is read per {source.unit}")


def _ask_about_folders(source: Source, files: Sequence[Path]) -> None:
    """Warn if files of many records in a folder are read as one person per record."""
    count = len(expand(files))
    if count > len(files) and source.n is not None and source.n > count:
        warn(
            f"{files[0]}: {count:,} files of many records; each record is taken for one person. "
            "Pass --per-file if each file is one person, --unit record if each record is",
            DataWarning,
        )


@contextmanager
def _client(address: str | None, workers: int | None) -> Iterator[Any]:
    dask = need("distributed", "dask", "a cluster", "Dask")
    if address is None:
        size: dict[str, Any] = {"n_workers": workers, "threads_per_worker": 1}
        with (
            dask.LocalCluster(**size, dashboard_address=":0") as cluster,
            dask.Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = dask.Client(address, timeout="20s")
    except (OSError, ValueError) as error:
        why = reason(error)
        raise DataError(f"{address}: no Dask cluster can be reached there ({why})") from None
    with client:
        yield client


# --- labels and covariates of records: messages name the file


def read_labels(file: Path, n: int | None, name: str | None = None) -> Any:
    """Labels of n records, from a .npy, an array of an .npz, or the lines of a text."""
    suffix = file.suffix.lower()
    if name is not None and suffix != ".npz":
        raise ParameterError(f"{file}: not an .npz file, so --label-column cannot be used")
    with reading(file, "labels"):
        lines = suffix not in (".npy", ".npz")
        labels = entries_of(lines_of(file, n)) if lines else load_array(file, name, "label_column")
    if not lines and (labels.ndim != 1 or labels.dtype.kind not in "biufU"):
        raise DataError(f"{file}: does not hold one number or text per record")
    check_number(f"{file}: labels", len(labels), n)
    return Column(labels, str(file))


def read_covariates(file: Path, n: int | None) -> Any:
    """Numbers (n,) or (n, p), from a .npy file or the lines of a text."""
    with reading(file, "covariates"):
        if file.suffix.lower() != ".npy":
            # a word that is not a number makes its record invalid, not the file
            lines = [line.replace(",", " ").split() for line in lines_of(file, n)]
            check_number(f"{file}: covariates", len(lines), n)
            return lines
        values = load_array(file)
    if values.dtype.kind not in "biuf" or values.ndim == 0:
        raise DataError(f"{file}: does not hold an array of numbers, one row per record")
    check_number(f"{file}: covariates", len(values), n)
    return values
