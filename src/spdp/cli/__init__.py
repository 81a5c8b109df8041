"""The command line. Errors are one clear line and exit code 2; a traceback only with ``--debug``."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from spdp.cli import cluster, ledger, paper, release
from spdp.errors import DataError, ParameterError

__all__ = ["app", "main"]

app = typer.Typer(
    help="Publish the mean of SPD matrices with a differential-privacy guarantee.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for command in (release.mean, release.plan, release.demo, paper.describe, paper.reproduce):
    app.command()(command)
app.command("sum")(cluster.sum_)
app.command("merge")(cluster.merge)
app.add_typer(ledger.app, name="ledger")

_debug = False


@app.callback()
def options(debug: Annotated[bool, typer.Option(help="Show a traceback on errors.")] = False) -> None:
    global _debug
    _debug = debug


def main() -> None:
    """Run the command line."""
    try:
        app()
    except (DataError, ParameterError, OSError) as error:
        if _debug:
            raise
        Console(stderr=True, highlight=False).print(f"spdp: {error}", style="red", markup=False, soft_wrap=True)
        sys.exit(2)
