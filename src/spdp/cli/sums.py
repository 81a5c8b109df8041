"""``spdp sum`` and ``spdp merge``: sites share exact sums with a trusted curator."""

from functools import reduce
from operator import add
from pathlib import Path
from typing import Annotated

import typer

from spdp.choices import Adjacency, Mechanism, OnInvalid
from spdp.cli import options
from spdp.cli.output import Output, check_free, present, say
from spdp.cli.records import Reader, name_of
from spdp.cli.spelling import printable

__all__ = ["merge", "sum_"]

SumFile = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The sum file.")]
SumFiles = Annotated[
    list[Path], typer.Argument(metavar="SUM", help="Sum files of the same domain.")
]


def sum_(
    data: options.Data,
    output: SumFile,
    eigenvalues: options.Eigenvalues = None,
    trace: options.Trace = None,
    correlation: options.Correlation = None,
    radius: options.Radius = None,
    center: options.Center = None,
    metric: options.Metric = "logeuclid",
    reference_point: options.ReferencePoint = None,
    force: options.Force = False,
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
) -> None:
    """Add up a site's records exactly, for a trusted curator.

    A sum file is NOT private.
    """
    from spdp.statistics.sums import LatticeSum
    from spdp.words import COUNTED

    if not force:
        check_free(output)  # before the work, which may last
    domain = options.domain_from(eigenvalues, trace, correlation, radius, center)
    point = options.load_matrix(reference_point)
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
    with reader.opened(data) as (source, engine):
        total = LatticeSum.of(source, domain, on_invalid, metric, engine, reference_point=point)
    total.save(output, force=force)
    say(f"wrote {output}: {total.n:,} {COUNTED[total.unit]}, {total.k}×{total.k}")
    say(
        "This file is NOT private until noise is added: share it with a trusted curator only.",
        style="bold red",
    )


def merge(
    sums: SumFiles,
    epsilon: options.Epsilon,
    delta: options.Delta,
    output: options.Directory = None,
    force: options.Force = False,
    report: options.Report = False,
    row_names: options.Names = None,
    sign: options.Sign = None,
    ledger: options.LedgerFile = None,
    label: options.Label = None,
    mechanism: options.Mechanism = Mechanism.AUTO,
    adjacency: options.Adjacency = Adjacency.REPLACE_ONE,
    as_json: options.Json = False,
) -> None:
    """Merge sum files and release the mean of all their records."""
    from spdp.data.files import check_distinct
    from spdp.statistics.mean import release_sum
    from spdp.statistics.sums import LatticeSum

    check_distinct(sums)
    target = Output(output, force, report, sign, rows=row_names)
    account = None if ledger is None else options.open_ledger(ledger)
    with target.prepared():
        total = reduce(add, [LatticeSum.load(file) for file in sums])
        target.check_rows(total.k)
        release = release_sum(
            total,
            epsilon=epsilon,
            delta=delta,
            mechanism=mechanism,
            adjacency=adjacency,
            ledger=account,
            label=printable(name_of(sums) if label is None else label),
        )
        written = target.write(release, account)
    present(release, written, as_json)
