"""``spdp sum`` and ``spdp merge``: sites share exact sums with a trusted curator."""

from functools import reduce
from operator import add
from pathlib import Path
from typing import Annotated

import typer

from spdp.choices import Adjacency, Mechanism, OnInvalid, counted
from spdp.cli import options
from spdp.cli.groups import Budget, Publication, Space
from spdp.cli.output import check_free, present, say
from spdp.cli.records import Reader

__all__ = ["merge", "sum_"]

SumFile = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The sum file.")]
SumFiles = Annotated[
    list[Path], typer.Argument(metavar="SUM", help="Sum files of the same domain.")
]


def sum_(
    data: options.Data,
    *,
    output: SumFile,
    space: Space,
    reference_point: options.ReferencePoint = None,
    force: options.Force = False,
    on_invalid: options.OnInvalid = OnInvalid.RAISE,
    reader: Reader,
) -> None:
    """Add up a site's records exactly, for a trusted curator.

    A sum file is NOT private.
    """
    from spdp.statistics.sums import LatticeSum

    if not force:
        check_free(output)  # before the work, which may last
    domain, metric = space.domain(), space.metric
    point = options.load_matrix(reference_point)
    with reader.opened(data) as (source, engine):
        total = LatticeSum.of(source, domain, on_invalid, metric, engine, reference_point=point)
    total.save(output, force=force)
    say(f"wrote {output}: {total.n:,} {counted(total.unit)}, {total.k}×{total.k}")
    say(
        "This file is NOT private until noise is added: share it with a trusted curator only.",
        style="bold red",
    )


def merge(
    sums: SumFiles,
    *,
    budget: Budget,
    publication: Publication,
    mechanism: options.Mechanism = Mechanism.AUTO,
    adjacency: options.Adjacency = Adjacency.REPLACE_ONE,
    as_json: options.Json = False,
) -> None:
    """Merge sum files and release the mean of all their records."""
    from spdp.data.files import check_distinct
    from spdp.statistics.mean import release_sum
    from spdp.statistics.sums import LatticeSum

    check_distinct(sums)
    target, account = publication.output, publication.account()
    with target.prepared():
        total = reduce(add, [LatticeSum.load(file) for file in sums])
        target.check_rows(total.k)
        release = release_sum(
            total,
            epsilon=budget.epsilon,
            delta=budget.delta,
            mechanism=mechanism,
            adjacency=adjacency,
            ledger=account,
            label=publication.name(sums),
        )
        written = target.write(release, account)
    present(release, written, as_json)
