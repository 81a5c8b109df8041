"""``spdp mean``."""

from spdp.choices import Mechanism, Method, Unit, Weights
from spdp.cli import options
from spdp.cli.groups import Budget, Publication, Rules, Space
from spdp.cli.output import present
from spdp.cli.records import Reader
from spdp.errors import ParameterError

__all__ = ["mean"]


def mean(
    data: options.Data,
    *,
    budget: Budget,
    space: Space,
    reference_point: options.ReferencePoint = None,
    reference: options.Reference = None,
    publication: Publication,
    mechanism: options.Mechanism = Mechanism.AUTO,
    method: options.Method = Method.AUTO,
    rules: Rules,
    max_records: options.MaxRecords = None,
    reader: Reader,
    as_json: options.Json = False,
) -> None:
    """Release the private Fréchet mean of the matrices in files.

    Each record is one person, unless --per-file, --groups, --groups-column or a
    manifest says whose it is: a person then counts once, protected with all of theirs.
    """
    from spdp.statistics.mean import private_mean

    domain = space.domain()
    public = options.load_reference(reference)
    target, account = publication.output, publication.account()
    with target.prepared(), reader.opened(data) as (source, engine):
        target.check_rows(source.k)
        if max_records is not None and source.unit is not Unit.PERSON:
            raise ParameterError("--max-records needs --groups, which say whose the records are")
        release = private_mean(
            source,
            epsilon=budget.epsilon,
            delta=budget.delta,
            domain=domain,
            metric=space.metric,
            reference_point=options.load_matrix(reference_point),
            mechanism=mechanism,
            method=method,
            adjacency=rules.adjacency,
            weights=Weights.PERSONS if max_records is None else Weights.RECORDS,
            max_records=max_records,
            on_invalid=rules.on_invalid,
            ledger=account,
            label=publication.name(data),
            reference=public,
            engine=engine,
        )
        written = target.write(release, account)
    present(release, written, as_json)
