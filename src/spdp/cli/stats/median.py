"""``spdp stats median``."""

from spdp.choices import Adjacency, OnInvalid
from spdp.cli import options
from spdp.cli.output import Output, present
from spdp.cli.records import Reader, name_of
from spdp.cli.spelling import printable

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
    sign: options.Sign = None,
    ledger: options.LedgerFile = None,
    label: options.Label = None,
    adjacency: options.Adjacency = Adjacency.REPLACE_ONE,
    on_invalid: options.OnInvalid = OnInvalid.RAISE,
    key: options.ArrayName = None,
    order: options.Order = None,
    mask: options.Mask = None,
    dask: options.Dask = None,
    workers: options.Workers = None,
    as_json: options.Json = False,
) -> None:
    """Release the geometric median of the matrices in files: for data with outliers."""
    from spdp.statistics.median import private_median

    domain = options.domain_from(eigenvalues, trace, correlation, radius, center)
    target = Output(output, force, report, sign, ("median",))
    account = None if ledger is None else options.open_ledger(ledger)
    reader = Reader(key, order, mask, dask, workers)
    with target.prepared(), reader.opened(data) as (source, engine):
        release = private_median(
            source,
            epsilon=epsilon,
            delta=delta,
            domain=domain,
            metric=metric,
            adjacency=adjacency,
            on_invalid=on_invalid,
            ledger=account,
            label=printable(name_of(data) if label is None else label),
            engine=engine,
        )
        written = target.write(release, account)
    present(release, written, as_json)
