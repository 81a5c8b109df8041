"""``spdp reference``: where public data lie, for releases of few private records."""

from pathlib import Path
from typing import Annotated

import typer

from spdp.cli import options
from spdp.cli.output import check_free, print_json, say
from spdp.cli.records import FileOptions
from spdp.errors import ParameterError

__all__ = ["reference"]

PublicData = Annotated[
    list[Path],
    typer.Argument(metavar="PUBLIC", help="Matrices that are public, in any format of spdp mean."),
]
File = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The reference, .npz.")]


def reference(
    data: PublicData,
    *,
    output: File,
    metric: options.Metric = "logeuclid",
    force: options.Force = False,
    files: FileOptions,
    as_json: options.Json = False,
) -> None:
    """Sum up public data, for the --reference of spdp mean and plan.

    The data must be public already: a reference made of private data leaks them.
    """
    from spdp.statistics.reference import Reference

    if output.suffix != ".npz":
        raise ParameterError(f"{output}: a reference is written as .npz")
    if not force:
        check_free(output)  # before the work, which may last
    made = Reference.from_public(files.source(data), metric)
    made.save(output, force=force)
    if as_json:
        facts = {"n": made.n, "k": made.k, "spread": made.spread, "metric": made.metric}
        print_json({"file": str(output), **facts, "digest": made.digest})
        return
    say(f"wrote {output}: {made.n:,} public records, {made.k}×{made.k}, spread {made.spread:.4g}")
    say(f"certificates will call it {made.digest}")
