"""``spdp stats classes``."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from spdp.choices import Adjacency, Covariance, Method, OnInvalid
from spdp.cli import options
from spdp.cli.output import Output
from spdp.cli.records import Reader
from spdp.cli.stats.running import run
from spdp.errors import DataError

__all__ = ["classes", "read_labels"]

Labels = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Class of each record: .npy, or text, one a line."),
]
Names = Annotated[
    str,
    typer.Option(
        "--classes", metavar="A,B,...", help="The public list of classes, never from the data."
    ),
]
Second = Annotated[
    Covariance, typer.Option(help="Covariance within the classes to release as well.")
]


def classes(
    data: options.Data,
    names: Names,
    epsilon: options.Epsilon,
    delta: options.Delta,
    labels: Labels = None,
    covariance: Second = Covariance.NONE,
    eigenvalues: options.Eigenvalues = None,
    trace: options.Trace = None,
    correlation: options.Correlation = None,
    radius: options.Radius = None,
    center: options.Center = None,
    metric: options.Metric = "logeuclid",
    output: options.Directory = None,
    force: options.Force = False,
    report: options.Report = False,
    row_names: options.Names = None,
    sign: options.Sign = None,
    ledger: options.LedgerFile = None,
    label: options.Label = None,
    method: options.Method = Method.AUTO,
    adjacency: options.Adjacency = Adjacency.REPLACE_ONE,
    on_invalid: options.OnInvalid = OnInvalid.RAISE,
    key: options.ArrayName = None,
    order: options.Order = None,
    mask: options.Mask = None,
    groups: options.Groups = None,
    groups_column: options.GroupsColumn = None,
    label_column: options.LabelColumn = None,
    per_file: options.PerFile = False,
    entries: options.Entries = None,
    unit: options.Unit = None,
    dask: options.Dask = None,
    workers: options.Workers = None,
    as_json: options.Json = False,
) -> None:
    """Release the mean and the size of every class of matrices."""
    from spdp.statistics.classes import private_class_means

    reader = Reader(
        key,
        order,
        mask,
        dask,
        workers,
        groups=groups,
        groups_column=groups_column,
        label_column=label_column,
        per_file=per_file,
        entries=entries,
        unit=unit,
    )
    arrays = ("means", "counts", *(() if covariance is Covariance.NONE else ("covariance",)))
    found = None if labels is None else partial(read_labels, labels)
    run(
        private_class_means,
        data,
        reader,
        Output(output, force, report, sign, arrays, row_names),
        ledger,
        label,
        as_json,
        y=found,
        classes=names_of(names),
        epsilon=epsilon,
        delta=delta,
        domain=options.domain_from(eigenvalues, trace, correlation, radius, center),
        metric=metric,
        covariance=covariance,
        method=method,
        adjacency=adjacency,
        on_invalid=on_invalid,
    )


def read_labels(file: Path, n: int | None) -> Any:
    """One label for each of n records, from a .npy file or the lines of a text."""
    import numpy as np

    from spdp.data.labels import entries_of, lines_of

    try:
        if file.suffix != ".npy":
            return entries_of(lines_of(file, n))
        labels = np.load(file, allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{file}: cannot be read as labels ({error})") from None
    if not isinstance(labels, np.ndarray) or labels.ndim != 1 or labels.dtype.kind not in "biufU":
        raise DataError(f"{file}: does not hold one number or text per record")
    return labels


def names_of(names: str) -> list[Any]:
    """The classes of an option, as labels are spelt."""
    from spdp.data.labels import label_of

    return [label_of(name) for name in names.split(",")]
