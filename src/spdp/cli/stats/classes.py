"""``spdp stats classes``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spdp.choices import Adjacency, Covariance, Method, OnInvalid
from spdp.cli import options
from spdp.cli.output import Output, present
from spdp.cli.records import Reader, name_of
from spdp.cli.spelling import printable
from spdp.errors import DataError, ParameterError

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
    dask: options.Dask = None,
    workers: options.Workers = None,
    as_json: options.Json = False,
) -> None:
    """Release the mean and the size of every class of matrices."""
    from spdp.statistics.classes import private_class_means

    domain = options.domain_from(eigenvalues, trace, correlation, radius, center)
    arrays = ("means", "counts", *(() if covariance is Covariance.NONE else ("covariance",)))
    target = Output(output, force, report, sign, arrays, row_names)
    account = None if ledger is None else options.open_ledger(ledger)
    reader = Reader(key, order, mask, dask, workers)
    found = None if labels is None else read_labels(labels)
    with target.prepared(), reader.opened(data) as (source, engine):
        target.check_rows(source.k)
        release = private_class_means(
            source,
            found,
            classes=names_like(names, found),
            epsilon=epsilon,
            delta=delta,
            domain=domain,
            metric=metric,
            covariance=covariance,
            method=method,
            adjacency=adjacency,
            on_invalid=on_invalid,
            ledger=account,
            label=printable(name_of(data) if label is None else label),
            engine=engine,
        )
        written = target.write(release, account)
    present(release, written, as_json)


def read_labels(file: Path) -> Any:
    """One label per record, from a .npy file or the lines of a text."""
    import numpy as np

    try:
        if file.suffix != ".npy":
            return np.array(file.read_text(encoding="utf-8").splitlines())
        labels = np.load(file, allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{file}: cannot be read as labels ({error})") from None
    if not isinstance(labels, np.ndarray) or labels.ndim != 1 or labels.dtype.kind not in "biufU":
        raise DataError(f"{file}: does not hold one number or text per record")
    return labels


def names_like(names: str, labels: Any) -> list[Any]:
    """The classes of an option, as what the labels are: numbers or texts."""
    parts = [name.strip() for name in names.split(",")]
    kind = getattr(labels, "dtype", None)
    if kind is None or kind.kind == "U":
        return parts
    try:
        return [int(part) if kind.kind in "biu" else float(part) for part in parts]
    except ValueError:
        raise ParameterError(f"--classes {names}: the labels are numbers") from None
