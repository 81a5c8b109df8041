"""The command line.

An error is one line on standard error, and a traceback only with ``--debug``. Whatever
is heavy is imported inside the commands, so that ``spdp --help`` answers at once.
"""

import io
import sys
import warnings
from typing import Annotated, Any

import typer

from spdp.cli import (
    demo,
    describe,
    ledger,
    mean,
    paper,
    plan,
    reference,
    report,
    stats,
    sums,
    verify,
)
from spdp.cli.examples import group, register
from spdp.cli.spelling import EXIT_CODES, UsageError, exit_code, in_words, printable
from spdp.errors import DataWarning, Hopeless

__all__ = ["app", "main"]

app = group(
    "Publish means and other statistics of SPD matrices with a differential-privacy guarantee.",
    epilog=EXIT_CODES,
)
register(
    app,
    mean.mean,
    plan.plan,
    reference.reference,
    sums.sum_,
    sums.merge,
    verify.verify,
    report.report,
    demo.demo,
    describe.describe,
    paper.reproduce,
)
app.add_typer(ledger.app, name="ledger")
app.add_typer(stats.app, name="stats")

_debug = False


def _show_version(wanted: bool) -> None:
    if wanted:
        print(_version())
        raise typer.Exit


def _version() -> str:
    """The version, and the kernels that work here: the compiled ones, or NumPy's."""
    from spdp import __version__
    from spdp.kernels import backend, instruction_set

    return f"spdp {__version__}, {backend()} kernels ({instruction_set()})"


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback on errors.")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=_show_version,
            help="Show the version and the kernels.",
        ),
    ] = False,
) -> None:
    global _debug
    _debug = debug
    if context.invoked_subcommand is None:
        print(context.get_help())


def _warn(message: Any, *_: Any, **__: Any) -> None:
    typer.secho(f"spdp: warning: {printable(message)}", err=True, fg="yellow")


def main() -> None:
    """Run the command line and exit with its code."""
    global _debug
    _debug = False
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may lack Greek letters
            stream.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", DataWarning)
            if "--json" not in sys.argv:  # the table's row "worth" says so
                warnings.simplefilter("ignore", Hopeless)
            warnings.showwarning = _warn
            code = app(standalone_mode=False)
    except Exception as error:
        if _debug and not isinstance(error, UsageError):
            raise
        typer.secho(f"spdp: {printable(in_words(error))}", err=True, fg="red")
        code = exit_code(error)
    sys.exit(code or 0)
