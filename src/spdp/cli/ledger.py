"""``spdp ledger``: create, show, history, export, bind, recover."""

import csv
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from spdp.cli import options
from spdp.cli.examples import group, register
from spdp.cli.output import Output, console, present, print_json, say
from spdp.cli.records import FileOptions, name_of
from spdp.cli.spelling import printable
from spdp.errors import LedgerError

__all__ = ["app"]

BAR = 40  # characters
COLUMNS = {  # of an exported history: what they are called in the ledger, and here
    "id": "entry",
    "created": "time",
    "label": "label",
    "mechanism": "mechanism",
    "mu": "mu",
    "pure": "pure_epsilon",
    "unit": "unit",
    "state": "state",
}
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a cell starts that a spreadsheet would run

app = group("Keep the account of a dataset's privacy budget.")
File = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger's file.")]


def create(
    ledger: File,
    epsilon: Annotated[float, typer.Option(metavar="ε", help="Total privacy loss ε.")],
    delta: Annotated[float, typer.Option(metavar="δ", help="Total privacy slack δ.")],
) -> None:
    """Create a ledger with its total budget."""
    from spdp.privacy.ledger import Ledger

    if os.path.lexists(ledger):
        raise LedgerError(f"{ledger}: exists already; a ledger is created once")
    Ledger(ledger, epsilon=epsilon, delta=delta)
    say(f"created {ledger}: ε = {epsilon:g}, δ = {delta:g}")


def show(ledger: File, plot: options.Plot = None, as_json: options.Json = False) -> None:
    """Show the budget, what was spent and what is left."""
    from spdp.privacy.ledger_words import state_of

    account = options.open_ledger(ledger)
    if plot is not None:
        from spdp.report import ledger_picture

        ledger_picture(plot, account.history(), account.epsilon, account.delta)
    state = state_of(account)
    if as_json:
        print_json(state)
        return
    _show(ledger, state)
    if plot is not None:
        say(f"wrote {plot}")


def _show(file: Path, state: dict[str, Any]) -> None:
    from rich.table import Table

    from spdp.privacy.ledger_words import share_spent, statement

    table = Table(show_header=False, title=printable(file), title_justify="left")
    for name, fact in statement(state).items():
        table.add_row(name, fact)
    for act in state["acts"]:
        table.add_row(printable(act["created"][:10]), printable(act["what"]))
    console().print(table)
    share = share_spent(state)
    full = round(BAR * share)
    say(f"{'█' * full}{'░' * (BAR - full)} {share:.0%} of ε")


def history(ledger: File, as_json: options.Json = False) -> None:
    """List the releases."""
    account = options.open_ledger(ledger)
    entries, delta = account.history(), account.delta
    if as_json:
        print_json(entries)
        return
    from rich import box
    from rich.table import Table

    from spdp.privacy.ledger_words import columns_of, entry_cells

    table = Table(box=box.SIMPLE, padding=0, pad_edge=False)
    for name in columns_of(delta):
        table.add_column(name, overflow="fold", min_width=6, max_width=9 if "ε" in name else None)
    for entry in entries:
        table.add_row(*map(printable, entry_cells(entry, delta)))
    console().print(table)


def export(ledger: File) -> None:
    """Print the history as CSV."""
    from spdp.privacy.ledger_words import epsilon_alone, statistic_of

    account = options.open_ledger(ledger)
    entries, delta = account.history(), account.delta
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*COLUMNS.values(), "statistic", "epsilon_alone", "at_delta"])
    for entry in entries:
        said = [statistic_of(entry), epsilon_alone(entry, delta), delta]
        writer.writerow(map(_cell, [*(entry[name] for name in COLUMNS), *said]))


def _cell(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula."""
    if not isinstance(value, str):
        return value
    return f"'{printable(value)}" if value.startswith(FORMULA) else printable(value)


def bind(ledger: File, data: options.Data, files: FileOptions) -> None:
    """Bind a ledger to its data by a fingerprint.

    The key of the fingerprint is taken from SPDP_LEDGER_KEY and kept by the curator.
    """
    account = options.open_ledger(ledger)
    account.bind(files.source(data))
    say(f"bound {ledger} to {name_of(data)}")


def recover(
    ledger: File,
    entry: Annotated[
        int, typer.Argument(min=1, metavar="ENTRY", help="Its number, as in spdp ledger history.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the release goes.")
    ],
    force: options.Force = False,
    report: options.Report = False,
    row_names: options.Names = None,
    sign: options.Sign = None,
) -> None:
    """Write a release again that was paid for. It costs nothing: it is the same one."""
    from spdp.release import Release

    account = options.open_ledger(ledger)
    target = Output(output, force, report, rows=row_names, sign=sign)
    with target.prepared():
        release = Release(*account.recover(entry))
        written = target.write(release, account)
    present(release, written)


register(app, create, show, history, export, bind, recover, under="ledger")
