"""Options that several commands share: each is spelt once."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spdp import choices
from spdp.errors import DataError, LedgerError, reason

if TYPE_CHECKING:
    from spdp.privacy.ledger import Ledger
    from spdp.statistics import reference

__all__ = [
    "Adjacency",
    "ArrayName",
    "Center",
    "Correlation",
    "Dask",
    "Data",
    "Delta",
    "Directory",
    "Eigenvalues",
    "Entries",
    "Epsilon",
    "Force",
    "Groups",
    "GroupsColumn",
    "Json",
    "Label",
    "LabelColumn",
    "LedgerFile",
    "Mask",
    "MaxRecords",
    "Mechanism",
    "Method",
    "Metric",
    "Names",
    "OnInvalid",
    "Order",
    "PerFile",
    "PersonColumn",
    "Plot",
    "Radius",
    "Reference",
    "ReferencePoint",
    "Report",
    "Sign",
    "Trace",
    "Unit",
    "Workers",
    "load_matrix",
    "load_reference",
    "open_ledger",
]

Data = Annotated[
    list[Path],
    typer.Argument(
        metavar="DATA",
        help="Matrices: .npy, .npz, .mat, .h5, .hdf5, .zarr, .nii, .nii.gz, or tables: .csv, "
        ".parquet. Or a folder: all such files in it, of one format, by name, without hidden "
        "files and subfolders; a quoted pattern ('subjects/**/*.nii.gz'); a manifest: CSV with "
        "columns path, person, and if wanted label and mask.",
    ),
]
ArrayName = Annotated[
    str | None,
    typer.Option("--key", metavar="NAME", help="Which array, where a file holds several."),
]
Order = Annotated[
    str | None,
    typer.Option(
        metavar="ORDER", help="Component order of a NIfTI image: nifti (or dipy), fsl or mrtrix."
    ),
]
Mask = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="NIfTI mask of the voxels that are records."),
]
PerFile = Annotated[bool, typer.Option("--per-file", help="Each file is one person.")]
Groups = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Whose each record is, an id per record: .npy, .npz, or .txt and .csv, one a line.",
    ),
]
GroupsColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Column of a table that says whose a row is; with --groups, the array or column "
        "of that file.",
    ),
]
PersonColumn = Annotated[
    str | None,
    typer.Option(
        "--groups-column", metavar="NAME", help="Column of a table that says whose a row is."
    ),
]
LabelColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="Column of a table that holds labels.")
]
Entries = Annotated[
    str | None,
    typer.Option(
        metavar="ENTRIES",
        help="Whether a table's rows hold k² entries (full) or the upper triangle, row by row "
        "(upper), where their number leaves it open.",
    ),
]
Unit = Annotated[
    choices.Unit | None,
    typer.Option(
        help="What is to be protected. An image's voxels are one person's: for a guarantee per "
        "voxel, voxel must be said."
    ),
]
MaxRecords = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="M",
        help="Let a person count by the number of their records, up to this public number, "
        "instead of once.",
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Read on a Dask cluster whose workers see the files."),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Read on a local Dask cluster of N workers."),
]
OnInvalid = Annotated[
    choices.OnInvalid,
    typer.Option(help="What an unusable record does: an error, or it counts as the centre."),
]

Epsilon = Annotated[float, typer.Option(metavar="ε", help="Privacy loss ε.")]
Delta = Annotated[
    float,
    typer.Option(metavar="δ", help="Privacy slack δ; 0 asks for pure differential privacy."),
]
Adjacency = Annotated[
    choices.Adjacency,
    typer.Option(help="Whether the number of records is public, or protected too."),
]
Mechanism = Annotated[choices.Mechanism, typer.Option(help="Law of the noise.")]
Method = Annotated[
    choices.Method,
    typer.Option(help="Noise for the whole domain, or a private search first."),
]

Metric = Annotated[
    str,
    typer.Option(metavar="NAME", help="Flat metric: logeuclid, or another of spdp.charts."),
]

Eigenvalues = Annotated[
    tuple[float, float] | None,
    typer.Option(metavar="LOW HIGH", help="Public bounds on every record's eigenvalues."),
]
Trace = Annotated[
    tuple[float, float] | None,
    typer.Option(
        metavar="LOW TRACE", help="Public bounds: eigenvalues from below, the trace from above."
    ),
]
Correlation = Annotated[
    float | None,
    typer.Option(
        metavar="SHRINKAGE",
        help="Records are correlation matrices, shrunk already to (1-s)C + sI by this public s. "
        "Covariances are divided by their variances, and a mean's diagonal is 1, with --metric "
        "offlog only.",
    ),
]
Radius = Annotated[
    float | None,
    typer.Option(
        metavar="R", help="Public radius, in the metric's distance, of a ball around all records."
    ),
]
Center = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Public centre of that ball, .npy; else the identity."),
]

Reference = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Where public data lie, .npz, made by spdp reference."),
]

ReferencePoint = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Public matrix, .npy, that records are whitened by."),
]

LedgerFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Account of the data's budget, which cannot be exceeded."),
]
Label = Annotated[
    str | None, typer.Option(metavar="TEXT", help="What the ledger's entry is called.")
]

Directory = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Directory for what is released, .npy, and certificate.json.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there already.")]
Report = Annotated[
    bool, typer.Option("--report", help="Write a page about the release, report.html, too.")
]
Names = Annotated[
    str | None,
    typer.Option(
        "--names",
        metavar="NAMES",
        help="Names of the rows, for the page: separated by commas, or a file, one a line.",
    ),
]
Sign = Annotated[
    Path | None,
    typer.Option(metavar="KEY", help="Sign the certificate with an Ed25519 private key (PEM)."),
]
Plot = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write a picture too (needs the plots extra)."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def load_matrix(center: Path | None) -> Any:
    """The matrix of a .npy file, if one is named."""
    if center is None:
        return None
    import numpy as np

    try:
        matrix = np.load(center, allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{center}: cannot be read as a matrix, .npy ({reason(error)})") from None
    if not isinstance(matrix, np.ndarray) or matrix.dtype.kind not in "iufc":
        raise DataError(f"{center}: does not hold a matrix of numbers, .npy")
    return matrix


def load_reference(file: Path | None) -> "reference.Reference | None":
    """The reference of a file, if one is named."""
    if file is None:
        return None
    from spdp.statistics.reference import Reference

    return Reference.load(file)


def _fingerprint_key() -> bytes | None:
    """The curator's key, from the environment: it must not stand on a command line."""
    text = os.environ.get("SPDP_LEDGER_KEY", "")
    return os.fsencode(text) if text else None


def open_ledger(file: Path) -> "Ledger":
    """An existing ledger, with the curator's key."""
    from spdp.privacy.ledger import Ledger

    if not os.path.lexists(file):
        raise LedgerError(f"{file}: no such ledger; spdp ledger create makes one")
    return Ledger(file, key=_fingerprint_key())
