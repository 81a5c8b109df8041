"""``spdp mean``."""

from spdp.choices import Adjacency, Mechanism, Method, OnInvalid, Unit, Weights
from spdp.cli import options
from spdp.cli.output import Output, present
from spdp.cli.records import Reader, name_of
from spdp.cli.spelling import printable
from spdp.errors import ParameterError

__all__ = ["mean"]


def mean(
    data: options.Data,
    epsilon: options.Epsilon,
    delta: options.Delta,
    eigenvalues: options.Eigenvalues = None,
    trace: options.Trace = None,
    correlation: options.Correlation = None,
    radius: options.Radius = None,
    center: options.Center = None,
    metric: options.Metric = "logeuclid",
    reference_point: options.ReferencePoint = None,
    reference: options.Reference = None,
    output: options.Directory = None,
    force: options.Force = False,
    report: options.Report = False,
    row_names: options.Names = None,
    sign: options.Sign = None,
    ledger: options.LedgerFile = None,
    label: options.Label = None,
    mechanism: options.Mechanism = Mechanism.AUTO,
    method: options.Method = Method.AUTO,
    adjacency: options.Adjacency = Adjacency.REPLACE_ONE,
    on_invalid: options.OnInvalid = OnInvalid.RAISE,
    max_records: options.MaxRecords = None,
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
    """Release the private Fréchet mean of the matrices in files.

    Each record is one person, unless --per-file, --groups, --groups-column or a
    manifest says whose it is: a person then counts once, protected with all of theirs.
    """
    from spdp.statistics.mean import private_mean

    domain = options.domain_from(eigenvalues, trace, correlation, radius, center)
    public = options.load_reference(reference)
    target = Output(output, force, report, sign, rows=row_names)
    account = None if ledger is None else options.open_ledger(ledger)
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
    with target.prepared(), reader.opened(data) as (source, engine):
        target.check_rows(source.k)
        if max_records is not None and source.unit is not Unit.PERSON:
            raise ParameterError("--max-records needs --groups, which say whose the records are")
        release = private_mean(
            source,
            epsilon=epsilon,
            delta=delta,
            domain=domain,
            metric=metric,
            reference_point=options.load_matrix(reference_point),
            mechanism=mechanism,
            method=method,
            adjacency=adjacency,
            weights=Weights.PERSONS if max_records is None else Weights.RECORDS,
            max_records=max_records,
            on_invalid=on_invalid,
            ledger=account,
            label=printable(name_of(data) if label is None else label),
            reference=public,
            engine=engine,
        )
        written = target.write(release, account)
    present(release, written, as_json)
