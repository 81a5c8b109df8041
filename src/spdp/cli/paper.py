"""``spdp reproduce``."""

from pathlib import Path
from typing import Annotated

import typer

from spdp.cli.output import say
from spdp.paper import ALL, FIGURES, figures

__all__ = ["reproduce"]

NOT_RUN = "not run: its data are not at hand (set SPDP_DATA or pass --data)"


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="FIGURE", help=f"{ALL}, figure-1 to figure-4, or one of {', '.join(FIGURES)}."
        ),
    ] = ALL,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Where tables, pictures and the page go."
        ),
    ] = Path("spdp-paper"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes: minutes in place of half an hour.")
    ] = False,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page [default: DIR/paper.md].")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Where the image sets are [default: SPDP_DATA]."),
    ] = None,
) -> None:
    """Re-run the paper's experiments. An interrupted run resumes where it stopped."""
    modules = figures(name)
    from spdp.paper.common import Settings, run
    from spdp.paper.page import write_page

    settings, results = Settings(quick, data), []
    for module in modules:
        say(module.TITLE, style="bold")
        rows = run(module, settings, output)
        results.append((module, rows))
        say(module.verdict(rows) if rows else NOT_RUN)
    say("")
    say(f"wrote {write_page(results, output, page or output / 'paper.md')}")
