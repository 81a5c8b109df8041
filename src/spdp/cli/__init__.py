"""The command line.

An error is one line on standard error; ``--debug`` shows a traceback. A command's
module is imported when the command is called, so that ``spdp --help`` answers at once.
"""

import io
import shlex
import sys
import warnings
from typing import Any

import typer

from spdp.cli.commands import LazyGroup, group
from spdp.cli.errors import EXIT_CODES, INTERRUPTED, UsageError, exit_code, in_words, printable
from spdp.errors import DataWarning, LedgerError, UninformativeRelease

__all__ = ["app", "main"]

# Where each command is, and its help until it is loaded.
COMMANDS = {
    "start": ("start:start", "Ask questions, and write the command for your release."),
    "mean": ("statistics:mean", "Release the private Fréchet mean of the matrices in files."),
    "plan": ("plan:plan", "Show how accurate a release would be; no data is needed."),
    "wizard": (
        "wizard:wizard",
        "Open a local page that leads to a release.",
    ),
    "run": ("wizard:run", "Make the release that a plan of spdp wizard asks for."),
    "reference": ("data:reference", "Summarise public data, for --reference."),
    "sum": ("sums:sum_", "Add up a site's records exactly, for a trusted curator."),
    "merge": ("sums:merge", "Merge sum files and release the mean of all their records."),
    "bids": ("bids:bids", "Release a statistic of a BIDS dataset (a BIDS App)."),
    "study": ("study:app", "Coordinate a study over sites that show nobody their sums."),
    "site": ("site:app", "Take part in a study over sites with your own data and ledger."),
    "verify": ("verify:verify", "Check that a release was not edited, and recompute its numbers."),
    "report": ("verify:report", "Write a page about a saved release."),
    "disclose": ("disclose:disclose", "Write what registries and boards ask about a release."),
    "demo": ("demo:demo", "Release a private mean of handwritten digits, as an example."),
    "describe": ("data:describe", "Turn images into covariance descriptors, ready for spdp mean."),
    "reproduce": ("demo:reproduce", "Re-run the paper's experiments."),
    "ledger": ("ledger:app", "Manage the ledger of a dataset's privacy budget."),
    "stats": ("statistics:stats", "Release other statistics than the mean."),
    "help": ("help:help_", "Show the help of a command, or of spdp."),
}
STEPS = """Publish means and other statistics of SPD matrices with a differential-privacy guarantee.

\b
Four steps:
  1. spdp plan            how accurate would it be? no data needed
  2. spdp ledger create   a budget for the dataset that cannot be overspent
  3. spdp mean            release (other statistics: spdp stats)
  4. spdp verify          was it edited? do its numbers agree?

\b
spdp wizard leads through all of them on a local page, without programming. spdp start
asks questions and writes the command; spdp help COMMAND explains one.
Documentation: the folder docs of the source, from docs/index.md on.
"""


class _Commands(LazyGroup):
    late = {name: f"spdp.cli.{place}" for name, (place, _) in COMMANDS.items()}  # noqa: RUF012


app = group(
    STEPS,
    add_completion=True,
    epilog=EXIT_CODES,
    cls=_Commands,
)
for _name, (_, _help) in COMMANDS.items():
    app.command(_name, help=_help)(lambda: None)

_debug = False


def _show_version(wanted: bool) -> None:
    if wanted:
        print(_version())
        raise typer.Exit


def _version() -> str:
    """The version, and the kernels in use: the compiled ones, or NumPy's."""
    from spdp import __version__
    from spdp.kernels import backend, instruction_set

    return f"spdp {__version__}, {backend()} kernels ({instruction_set()})"


@app.callback(invoke_without_command=True)
def begin(
    context: typer.Context,
    debug: bool = typer.Option(False, "--debug", help="Show a traceback on errors."),
    version: bool = typer.Option(
        False,
        "--version",
        is_eager=True,
        callback=_show_version,
        help="Show the version and the kernels.",
    ),
) -> None:
    global _debug
    _debug = debug
    if context.invoked_subcommand is None:
        print(context.get_help())


def _warn(message: Any, *_: Any, **__: Any) -> None:
    typer.secho(f"spdp: warning: {printable(message)}", err=True, fg="yellow")


def _interrupted() -> str:
    """What an interrupted command was charged, by the files of its ledgers."""
    options = sys.modules.get("spdp.cli.options")
    opened: list[Any] = [] if options is None else options.OPENED
    told = []
    for ledger in opened:
        try:
            paid = ledger.paid()
        except LedgerError as error:
            told.append(f"what was charged is not known ({error}): see spdp ledger history")
            continue
        for entry, state in paid.items():
            file = shlex.quote(str(ledger.path))
            kept = f"kept: spdp ledger recover {file} {entry} -o DIR"
            told.append(
                f"entry {entry} was charged, its result is {kept if state == 'done' else 'lost'}"
            )
    return f"interrupted; {'; '.join(told) or 'nothing was charged'}"


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
                warnings.simplefilter("ignore", UninformativeRelease)
            warnings.showwarning = _warn
            code = app(standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        if _debug and not isinstance(error, UsageError):
            raise
        typer.secho(f"spdp: {printable(in_words(error))}", err=True, fg="red")
        code = exit_code(error)
    if code == INTERRUPTED:  # Typer catches a KeyboardInterrupt itself and returns this
        typer.secho(f"spdp: {printable(_interrupted())}", err=True, fg="red")
    sys.exit(code or 0)
