"""The command line.

An error is one line on standard error, and a traceback only with ``--debug``. Whatever
is heavy is imported inside the commands, so that ``spdp --help`` answers at once.
"""

import io
import sys
from typing import Annotated

import typer

from spdp.cli import demo, describe, ledger, mean, paper, plan, reference, stats, sums, verify
from spdp.cli.spelling import EXIT_CODES, UsageError, exit_code, in_words, printable

__all__ = ["app", "main"]

app = typer.Typer(
    help="Publish the mean of SPD matrices with a differential-privacy guarantee.",
    epilog=EXIT_CODES,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"max_content_width": 100},
)
for command in (
    mean.mean,
    plan.plan,
    reference.reference,
    sums.sum_,
    sums.merge,
    verify.verify,
    demo.demo,
    describe.describe,
    paper.reproduce,
):
    app.command(command.__name__.rstrip("_"))(command)
app.add_typer(ledger.app, name="ledger")
app.add_typer(stats.app, name="stats")

_debug = False


def _show_version(wanted: bool) -> None:
    if wanted:
        from spdp import __version__

        print(f"spdp {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback on errors.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version."),
    ] = False,
) -> None:
    global _debug
    _debug = debug
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Run the command line and exit with its code."""
    global _debug
    _debug = False
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may lack Greek letters
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(standalone_mode=False)
    except Exception as error:
        if _debug and not isinstance(error, UsageError):
            raise
        typer.secho(f"spdp: {printable(in_words(error))}", err=True, fg="red")
        code = exit_code(error)
    sys.exit(code or 0)
