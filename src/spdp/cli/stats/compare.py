"""``spdp stats compare``."""

from spdp.choices import Adjacency, OnInvalid
from spdp.cli import options
from spdp.cli.output import Output, present
from spdp.cli.records import Reader, name_of
from spdp.cli.spelling import printable
from spdp.cli.stats.classes import Labels, Names, names_like, read_labels

__all__ = ["compare"]


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
    """Release the difference of two classes' means, and a test of whether it is 0."""
    from spdp.statistics.difference import private_difference

    domain = options.domain_from(eigenvalues, trace, correlation, radius, center)
    target = Output(output, force, report, sign, ("difference", "means", "counts", "p_value"))
    account = None if ledger is None else options.open_ledger(ledger)
    reader = Reader(key, order, mask, dask, workers)
    found = None if labels is None else read_labels(labels)
    with target.prepared(), reader.opened(data) as (source, engine):
        release = private_difference(
            source,
            found,
            classes=names_like(names, found),
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
