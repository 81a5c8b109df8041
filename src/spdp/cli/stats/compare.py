"""``spdp stats compare``."""

from functools import partial

from spdp.choices import Adjacency, OnInvalid
from spdp.cli import options
from spdp.cli.output import Output
from spdp.cli.records import Reader
from spdp.cli.stats.classes import Labels, Names, names_of, read_labels
from spdp.cli.stats.running import run

__all__ = ["compare"]

NAMES = ("difference", "means", "counts", "p_value")  # of what is released


def compare(
    data: options.Data,
    names: Names,
    epsilon: options.Epsilon,
    delta: options.Delta,
    labels: Labels = None,
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
    """Release the difference of two classes' means, and a test of it."""
    from spdp.statistics.difference import private_difference

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
    found = None if labels is None else partial(read_labels, labels)
    run(
        private_difference,
        data,
        reader,
        Output(output, force, report, sign, NAMES, row_names),
        ledger,
        label,
        as_json,
        y=found,
        classes=names_of(names),
        epsilon=epsilon,
        delta=delta,
        domain=options.domain_from(eigenvalues, trace, correlation, radius, center),
        metric=metric,
        adjacency=adjacency,
        on_invalid=on_invalid,
    )
