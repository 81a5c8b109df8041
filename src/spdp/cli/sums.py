"""``spdp sum`` and ``spdp merge``: sites share exact sums with a trusted curator."""

from dataclasses import asdict
from functools import reduce
from operator import add
from pathlib import Path

import typer

from spdp.cli import options
from spdp.cli.options import Budget, Space
from spdp.cli.output import Publication, check_free, present, say
from spdp.cli.records import Reader
from spdp.data.opening import check_distinct
from spdp.options import Adjacency, Mechanism, OnInvalid, counted
from spdp.statistics.partial_sums import LatticeSum, release_sum


def sum_(
    *,
    data: list[Path] = options.DATA,
    output: Path = options.option("The sum file.", "--output", "-o", default=..., metavar="FILE"),
    space: Space,
    force: bool = options.FORCE,
    on_invalid: OnInvalid = options.ON_INVALID,
    reader: Reader,
) -> None:
    """Add up a site's records exactly, for a trusted curator.

    A sum file is NOT private.
    """
    if not force:
        check_free(output)  # before the work, which may take long
    domain, metric, point = space.domain(), space.metric, space.point()
    with reader.opened(data) as (source, engine):
        total = LatticeSum.of(source, domain, on_invalid, metric, engine, reference_point=point)
    total.save(output, force=force)
    say(f"wrote {output}: {total.n:,} {counted(total.unit)}, {total.k}×{total.k}")
    say(
        "This file is NOT private until noise is added: share it with a trusted curator only.",
        style="bold red",
    )


def merge(
    *,
    sums: list[Path] = typer.Argument(..., metavar="SUM", help="Sum files of the same domain."),
    budget: Budget,
    publication: Publication,
    mechanism: Mechanism = options.MECHANISM,
    adjacency: Adjacency = options.ADJACENCY,
    anyway: bool = options.ANYWAY,
    as_json: bool = options.JSON,
) -> None:
    """Merge sum files and release the mean of all their records."""
    check_distinct(sums)
    target, ledger = publication.output, publication.open_ledger()
    with target.prepared():
        total = reduce(add, [LatticeSum.load(file) for file in sums])
        target.check_rows(total.k)
        paid = asdict(budget) | {"ledger": ledger, "label": publication.name(sums)}
        paid |= {"anyway": anyway}
        release = release_sum(total, mechanism=mechanism, adjacency=adjacency, **paid)
        written = target.write(release, ledger)
    present(release, written, as_json)
