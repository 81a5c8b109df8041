"""``spdp ledger``: create, show, history, export, bind, recover."""

import csv
import os
import sys
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.table import Table

from spdp.cli import options
from spdp.cli.commands import group, register
from spdp.cli.errors import printable
from spdp.cli.output import Output, console, name_of, present, print_json, say
from spdp.cli.records import FileOptions
from spdp.errors import LedgerError
from spdp.ledger import Ledger
from spdp.ledger import text as words
from spdp.release import Release
from spdp.rendering.figures import ledger_picture

BAR = 40  # characters
COLUMNS = {  # of an exported history: names in the ledger, and in the CSV
    "id": "entry",
    "created": "time",
    "label": "label",
    "mechanism": "mechanism",
    "mu": "mu",
    "pure": "pure_epsilon",
    "unit": "unit",
    "state": "state",
}
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first characters of what a spreadsheet would run

app = group("Manage the ledger of a dataset's privacy budget.")
FILE = typer.Argument(..., metavar="LEDGER", help="The ledger's file.")


def create(
    ledger: Path = FILE,
    epsilon: float = options.option("Total privacy loss ε.", default=..., metavar="ε"),
    delta: float = options.option("Privacy parameter δ.", default=..., metavar="δ"),
    trust: str = options.option(
        "What studies over sites are charged: study, their price if no more sites collude than "
        "assumed; nobody, that if all others do.",
        default="study",
        metavar="TRUST",
    ),
) -> None:
    """Create a ledger with its total budget."""
    if os.path.lexists(ledger):
        raise LedgerError(f"{ledger}: exists already; a ledger is created once")
    Ledger(ledger, epsilon=epsilon, delta=delta, trust=trust)
    say(f"created {ledger}: ε = {epsilon:g}, δ = {delta:g}")


def show(
    ledger: Path = FILE, plot: Path | None = options.PLOT, as_json: bool = options.JSON
) -> None:
    """Show the budget, what was spent and what is left."""
    account = options.open_ledger(ledger)
    if plot is not None:
        ledger_picture(plot, words.spent_over_time(account), account.epsilon, account.delta)
    state = words.state_of(account)
    if as_json:
        print_json(state)
        return
    _show(ledger, state)
    if plot is not None:
        say(f"wrote {plot}")


def _show(file: Path, state: dict[str, Any]) -> None:
    table = Table(show_header=False, title=printable(file), title_justify="left")
    for name, fact in words.statement(state).items():
        table.add_row(name, fact)
    for act in state["acts"]:
        table.add_row(printable(act["created"][:10]), printable(act["what"]))
    console().print(table)
    share = words.share_spent(state)
    full = round(BAR * share)
    say(f"{'█' * full}{'░' * (BAR - full)} {share:.0%} of ε")


def history(ledger: Path = FILE, as_json: bool = options.JSON) -> None:
    """List the releases."""
    account = options.open_ledger(ledger)
    entries, delta = account.history(), account.delta
    if as_json:
        print_json(entries)
        return

    table = Table(box=box.SIMPLE, padding=0, pad_edge=False)
    for name in words.columns_of(delta):
        table.add_column(name, overflow="fold", min_width=6, max_width=9 if "ε" in name else None)
    for entry in entries:
        table.add_row(*map(printable, words.entry_cells(entry, delta)))
    console().print(table)


def export(ledger: Path = FILE) -> None:
    """Print the history as CSV."""
    account = options.open_ledger(ledger)
    entries, delta = account.history(), account.delta
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*COLUMNS.values(), "statistic", "epsilon_alone", "at_delta"])
    for entry in entries:
        said = [words.statistic_of(entry), words.epsilon_alone(entry, delta), delta]
        writer.writerow(map(_cell, [*(entry[name] for name in COLUMNS), *said]))


def _cell(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula."""
    if not isinstance(value, str):
        return value
    return f"'{printable(value)}" if value.startswith(FORMULA) else printable(value)


def bind(*, ledger: Path = FILE, data: list[Path] = options.DATA, files: FileOptions) -> None:
    """Bind a ledger to its data by a fingerprint.

    The key of the fingerprint is taken from SPDP_LEDGER_KEY and kept by the curator.
    """
    account = options.open_ledger(ledger)
    account.bind(files.source(data))
    say(f"bound {ledger} to {name_of(data)}")


def recover(
    ledger: Path = FILE,
    entry: int = typer.Argument(
        ..., min=1, metavar="ENTRY", help="Number of the entry, as in spdp ledger history."
    ),
    output: Path = options.option(
        "Directory for the release.", "--output", "-o", default=..., metavar="DIR"
    ),
    force: bool = options.FORCE,
    report: bool = options.REPORT,
    row_names: str | None = options.NAMES,
    sign: Path | None = options.SIGN,
) -> None:
    """Write a release that the ledger stored; the same one, at no further cost."""
    account = options.open_ledger(ledger)
    target = Output(output, force, report, rows=row_names, sign=sign)
    with target.prepared():
        release = Release(*account.recover(entry))
        written = target.write(release, account)
    present(release, written)


register(app, create, show, history, export, bind, recover, under="ledger")
