"""``spdp sum`` and ``spdp merge``: sites share exact sums with a trusted curator."""

import json
from functools import reduce
from operator import add
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from spdp.cli.ledger import fingerprint_key
from spdp.cli.release import (
    Adjacency,
    Center,
    Delta,
    Eigenvalues,
    Epsilon,
    Json,
    Mechanism,
    OnInvalid,
    Order,
    Radius,
    check_output,
    domain_from,
    show,
    write,
)
from spdp.errors import ParameterError
from spdp.io import open_records
from spdp.ledger import Ledger
from spdp.mean import release_sum
from spdp.sums import LatticeSum

__all__ = ["merge", "sum_"]


def sum_(
    data: Annotated[list[Path], typer.Argument(help="Files of matrices, as for spdp mean.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The sum file.")],
    eigenvalues: Eigenvalues = None,
    radius: Radius = None,
    center: Center = None,
    on_invalid: Annotated[OnInvalid, typer.Option(help="What an unusable record does.")] = OnInvalid.raise_,
    key: Annotated[str | None, typer.Option(help="Which array, where a file holds several.")] = None,
    order: Annotated[Order | None, typer.Option(help="Component order of a NIfTI tensor image.")] = None,
    mask: Annotated[Path | None, typer.Option(help="NIfTI mask of the voxels that are records.")] = None,
) -> None:
    """Add up a site's records exactly, for a trusted curator to merge. A sum file is NOT private."""
    domain = domain_from(eigenvalues, radius, center)
    parts = [open_records(file, key=key, order=None if order is None else order.value, mask=mask) for file in data]
    total = LatticeSum.of(parts if len(parts) > 1 else parts[0], domain, on_invalid.value)
    total.save(output)
    console = Console(highlight=False)
    console.print(f"wrote {output}: {total.n:,} records, {total.k}×{total.k}", soft_wrap=True)
    console.print("This file is NOT private until noise is added: share it with a trusted curator only.", style="bold red")


def merge(
    sums: Annotated[list[Path], typer.Argument(help="Sum files of the same domain.")],
    epsilon: Epsilon,
    delta: Delta,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Directory for mean.npy and certificate.json.")] = None,
    mechanism: Annotated[Mechanism, typer.Option(help="Law of the noise.")] = Mechanism.auto,
    adjacency: Annotated[Adjacency, typer.Option(help="Whether the number of records is public.")] = Adjacency.replace_one,
    ledger: Annotated[Path | None, typer.Option(help="Account of the merged dataset's budget.")] = None,
    label: Annotated[str | None, typer.Option(help="What the ledger's entry is called.")] = None,
    as_json: Json = False,
) -> None:
    """Merge sum files and release the private mean of all their records."""
    if len({file.resolve() for file in sums}) < len(sums):
        raise ParameterError("a sum file is named twice: its records would count twice")
    check_output(output)
    total = reduce(add, [LatticeSum.load(file) for file in sums])
    account = None if ledger is None else Ledger(ledger, key=fingerprint_key())
    options: dict[str, Any] = {"mechanism": mechanism.value, "adjacency": adjacency.value, "ledger": account, "label": label}
    release = release_sum(total, epsilon=epsilon, delta=delta, **options)
    console = Console(highlight=False)
    if as_json:
        print(json.dumps({"value": release.value.tolist(), "certificate": release.certificate}))
    else:
        show(release, console)
    if output is not None:
        write(release, output, False, console, quiet=as_json)
