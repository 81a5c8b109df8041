"""``spdp stats median``."""

from spdp.choices import Adjacency, OnInvalid
from spdp.cli import options
from spdp.cli.output import Output
from spdp.cli.records import Reader
from spdp.cli.stats.running import run

__all__ = ["median"]


def median(
    data: options.Data,
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
    """Release the geometric median, for data with outliers."""
    from spdp.statistics.median import private_median

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
        private_median,
        data,
        reader,
        Output(output, force, report, sign, ("median",), row_names),
        ledger,
        label,
        as_json,
        epsilon=epsilon,
        delta=delta,
        domain=options.domain_from(eigenvalues, trace, correlation, radius, center),
        metric=metric,
        adjacency=adjacency,
        on_invalid=on_invalid,
    )
