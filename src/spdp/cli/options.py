"""Options that several commands share, and groups of them.

A group is a dataclass of options; a command takes it as one parameter
(:mod:`.commands`).
"""

import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import typer
from typer.models import OptionInfo

from spdp.domain.base import Domain
from spdp.domain.sets import Ball, CorrelationBounds, EigenvalueBounds, TraceBounds
from spdp.errors import DataError, LedgerError, ParameterError, reason
from spdp.ledger.ledger import Ledger
from spdp.options import Adjacency, Mechanism, OnInvalid
from spdp.release.board import About
from spdp.statistics.reference import Reference


def option(help_: str, *flags: str, default: Any = None, **more: Any) -> Any:
    """An option as Typer reads it; ``default=...`` makes it required."""
    return typer.Option(default, *flags, help=help_, **more)


class Group:
    """A group of options; those that are not passed have their defaults."""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, OptionInfo):
                object.__setattr__(self, field.name, value.default)


DATA = typer.Argument(
    ...,
    metavar="DATA",
    help="Matrices: .npy, .npz, .mat, .h5, .hdf5, .zarr, .nii, .nii.gz, or tables: .csv, "
    ".parquet. A folder stands for its files of one format, sorted by name, without hidden "
    "files and subfolders. Also: a quoted pattern ('subjects/**/*.nii.gz'), or a manifest: a CSV "
    "with columns path, person and optionally label and mask.",
)
KEY = option("Name of the array, if a file holds several.", metavar="NAME")
ORDER = option("Component order of a NIfTI image: nifti (or dipy), fsl or mrtrix.", metavar="ORDER")
MASK = option("NIfTI mask of the voxels that are records.", metavar="FILE")
LABEL_COLUMN = option("Column of a table that holds labels.", metavar="NAME")
ENTRIES = option(
    "Whether a table's rows hold all k² entries (full) or the upper triangle, row by row (upper). "
    "Needed only if the number of columns fits both.",
    metavar="ENTRIES",
)
ON_INVALID = option(
    "How to handle invalid records: stop with an error, or replace them with the domain's centre.",
    default=OnInvalid.RAISE,
)
ADJACENCY = option(
    "Neighbouring datasets: replace one record (n is public) or add/remove one (n is protected).",
    default=Adjacency.REPLACE_ONE,
)
MECHANISM = option("Distribution of the noise.", default=Mechanism.AUTO)
METRIC = option("Flat metric, such as logeuclid or logchol.", default="logeuclid", metavar="NAME")
LEDGER = option("Ledger of the dataset's privacy budget.", metavar="FILE")
FORCE = option("Overwrite existing files.", "--force", default=False)
REPORT = option("Also write a page about the release, report.html.", "--report", default=False)
NAMES = option(
    "Row names for the page: separated by commas, or a file with one name per line.",
    "--names",
    metavar="NAMES",
)
SIGN = option("Sign the certificate with an Ed25519 private key (PEM).", metavar="KEY")
PLOT = option("Also write a picture (needs the plots extra).", metavar="FILE")
ANYWAY = option(
    "Release even if public numbers say that the result is no better than the domain's centre.",
    "--anyway",
    default=False,
)
JSON = option("Print JSON, for scripts.", "--json", default=False)


def load_matrix(center: Path | None) -> Any:
    """The matrix of a .npy file, if one is named."""
    if center is None:
        return None
    try:
        matrix = np.load(center, allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{center}: cannot be read as a .npy matrix ({reason(error)})") from None
    if not isinstance(matrix, np.ndarray) or matrix.dtype.kind not in "iufc":
        raise DataError(f"{center}: does not hold a matrix of numbers")
    return matrix


def load_reference(file: Path | None) -> Reference | None:
    """The reference of a file, if one is named."""
    return None if file is None else Reference.load(file)


def _fingerprint_key() -> bytes | None:
    """The curator's key, from the environment: a command line is not secret."""
    text = os.environ.get("SPDP_LEDGER_KEY", "")
    return os.fsencode(text) if text else None


OPENED: list[Ledger] = []  # by this command: an interruption tells what they were charged


def open_ledger(file: Path) -> Ledger:
    """An existing ledger, with the curator's key."""
    if not os.path.lexists(file):
        raise LedgerError(f"{file}: no such ledger; spdp ledger create makes one")
    OPENED.append(Ledger(file, key=_fingerprint_key()))
    return OPENED[-1]


@dataclass(frozen=True)
class Budget(Group):
    """The privacy budget of a release."""

    epsilon: float = option("Privacy loss ε.", default=..., metavar="ε")
    delta: float = option(
        "Privacy parameter δ; 0 asks for pure differential privacy, where a statistic has it.",
        default=...,
        metavar="δ",
    )


@dataclass(frozen=True)
class Bounds(Group):
    """The public domain that every record is clipped to; exactly one is needed."""

    eigenvalues: tuple[float, float] | None = option(
        "Public bounds on every record's eigenvalues.", metavar="LOW HIGH"
    )
    trace: tuple[float, float] | None = option(
        "Public bounds: at least LOW for eigenvalues, at most TRACE.", metavar="LOW TRACE"
    )
    correlation: float | None = option(
        "Records are correlation matrices, already shrunk to (1-s)C + sI with this public s. Only "
        "--metric offlog scales covariances to correlations and releases a mean with diagonal 1.",
        metavar="SHRINKAGE",
    )
    radius: float | None = option(
        "Public radius, in the metric's distance, of a ball.", metavar="R"
    )

    def domain(self, center: Path | None = None) -> Domain:
        """The domain of the options; ``center`` is the file of a ball's centre."""
        given = [f"--{name}" for name, bound in asdict(self).items() if bound is not None]
        if len(given) != 1:
            both = f"got {' and '.join(given)}; " if given else ""
            raise ParameterError(
                f"{both}pass one of --eigenvalues LOW HIGH, --trace LOW TRACE, --correlation "
                "SHRINKAGE and --radius R: the public domain that every record is clipped to. It "
                "must come from public knowledge; bounds computed from the data would leak them."
            )
        if center is not None and self.radius is None:
            raise ParameterError("--center goes with --radius")
        if self.eigenvalues is not None:
            return EigenvalueBounds(*self.eigenvalues)
        if self.trace is not None:
            return TraceBounds(*self.trace)
        if self.correlation is not None:
            return CorrelationBounds(self.correlation)
        assert self.radius is not None
        return Ball(self.radius, load_matrix(center))


@dataclass(frozen=True)
class Stated(Group):
    """Whose page or disclosure it is: taken as stated."""

    title: str | None = option("Title of the page or disclosure.", metavar="TEXT")
    study: str | None = option("Whose study it is, for the page or disclosure.", metavar="TEXT")
    contact: str | None = option("Whom to ask, for the page or disclosure.", metavar="TEXT")
    date: str | None = option("Day of publication, such as 2026-03-31.", metavar="DAY")

    def about(self) -> About:
        """The texts, checked."""
        return About.of(**asdict(self))


@dataclass(frozen=True)
class Space(Group):
    """Domain, metric and reference point."""

    bounds: Bounds
    center: Path | None = option(
        "Centre of the ball of --radius, .npy [default: identity].", metavar="FILE"
    )
    metric: str = METRIC
    reference_point: Path | None = option("Public matrix to whiten by, .npy.", metavar="FILE")

    def domain(self) -> Domain:
        """The public domain that every record is clipped to."""
        return self.bounds.domain(self.center)

    def point(self) -> Any:
        """The public matrix that records are whitened by, if one is named."""
        return load_matrix(self.reference_point)
