"""``spdp stats regress``."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from spdp.choices import Adjacency, OnInvalid
from spdp.cli import options
from spdp.cli.output import Output
from spdp.cli.records import Reader
from spdp.cli.stats.running import run
from spdp.errors import DataError, ParameterError

__all__ = ["read_covariates", "read_ranges", "regress"]

NAMES = ("fitted", "slopes", "at", "noise")  # of what is released

Covariates = Annotated[
    Path,
    typer.Option(
        metavar="FILE", help="Covariates of each record: .npy, or text, a line of numbers each."
    ),
]
NAMES = ("fitted", "slopes", "at", "noise")  # of what is released
Ranges = Annotated[
    str,
    typer.Option(metavar="LOW:HIGH,...", help="Public least and largest value of each covariate."),
]


def regress(
    data: options.Data,
    covariates: Covariates,
    ranges: Ranges,
    epsilon: options.Epsilon,
    delta: options.Delta,
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
    """Release the regression of the matrices in files on covariates."""
    from spdp.statistics.regression import private_regression

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
    run(
        private_regression,
        data,
        reader,
        Output(output, force, report, sign, NAMES, row_names),
        ledger,
        label,
        as_json,
        covariates=partial(read_covariates, covariates),
        ranges=read_ranges(ranges),
        epsilon=epsilon,
        delta=delta,
        domain=options.domain_from(eigenvalues, trace, correlation, radius, center),
        metric=metric,
        adjacency=adjacency,
        on_invalid=on_invalid,
    )


def read_covariates(file: Path, n: int | None) -> Any:
    """Numbers (n,) or (n, p), from a .npy file or the lines of a text."""
    import numpy as np

    from spdp.data.labels import lines_of

    try:
        if file.suffix == ".npy":
            values = np.load(file, allow_pickle=False)
        else:
            # a word that is no number is one record's affair
            return [line.replace(",", " ").split() for line in lines_of(file, n)]
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{file}: cannot be read as covariates ({error})") from None
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "biuf":
        raise DataError(f"{file}: does not hold numbers, as many for each record")
    return values


def read_ranges(text: str) -> list[tuple[float, float]]:
    """Pairs of the option ``--ranges``."""
    try:
        pairs = [part.split(":") for part in text.split(",")]
        return [(float(low), float(high)) for low, high in pairs]
    except ValueError:
        raise ParameterError(f"--ranges {text}: expected LOW:HIGH for each covariate") from None
