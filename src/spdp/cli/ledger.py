"""``spdp ledger``: create, show, history, export, bind, recover."""

import csv
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from spdp.cli import options
from spdp.cli.output import Output, console, present, print_json, say
from spdp.cli.records import Reader, name_of
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
    "state": "state",
}
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a cell starts that a spreadsheet would run

app = typer.Typer(help="Keep the account of a dataset's privacy budget.", rich_markup_mode=None)
File = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger's file.")]


@app.callback(invoke_without_command=True)
def alone(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
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


@app.command()
def show(ledger: File, plot: options.Plot = None, as_json: options.Json = False) -> None:
    """Show the budget, what was spent and what is left."""
    account = options.open_ledger(ledger)
    if plot is not None:
        from spdp.report import ledger_picture

        ledger_picture(plot, account.history(), account.epsilon, account.delta)
    state = {
        "epsilon": account.epsilon,
        "delta": account.delta,
        "spent": account.spent(),
        "remaining": account.remaining(),
        "acts": account.acts(),
    }
    if as_json:
        print_json(state)
        return
    _show(ledger, state)
    if plot is not None:
        say(f"wrote {plot}")


def _show(file: Path, state: dict[str, Any]) -> None:
    from rich.table import Table

    spent, left = state["spent"], state["remaining"]
    table = Table(show_header=False, title=printable(file), title_justify="left")
    table.add_row("budget", f"ε = {state['epsilon']:g}, δ = {state['delta']:g}")
    releases = "1 release" if spent["entries"] == 1 else f"{spent['entries']:,} releases"
    table.add_row("spent", f"ε = {spent['epsilon']:.4g} in {releases} (μ = {spent['mu']:.4g})")
    gaussian = f"a Gaussian release with ε = {left['epsilon']:.4g}, or "
    pure = f"a pure one with ε = {left['pure_epsilon']:.4g}"
    table.add_row("left for", (gaussian if state["delta"] > 0 else "") + pure)
    for act in state["acts"]:
        table.add_row(printable(act["created"][:10]), printable(act["what"]))
    console().print(table)
    share = min(1.0, spent["epsilon"] / state["epsilon"])
    full = round(BAR * share)
    say(f"{'█' * full}{'░' * (BAR - full)} {share:.0%} of ε")


@app.command()
def history(ledger: File, as_json: options.Json = False) -> None:
    """List the releases."""
    entries = options.open_ledger(ledger).history()
    if as_json:
        print_json(entries)
        return
    from rich.table import Table

    table = Table()
    for name in ("entry", "time (UTC)", "label", "mechanism", "μ", "state"):
        table.add_column(name, no_wrap=name != "label", overflow="fold", min_width=5)
    for entry in entries:
        time, label = entry["created"][:16].replace("T", " "), entry["label"] or ""
        cells = entry["id"], time, label, entry["mechanism"], f"{entry['mu']:.4g}", entry["state"]
        table.add_row(*map(printable, cells))
    console().print(table)


@app.command()
def export(ledger: File) -> None:
    """Print the history as CSV."""
    entries = options.open_ledger(ledger).history()
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS.values())
    writer.writerows([_cell(entry[name]) for name in COLUMNS] for entry in entries)


def _cell(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula."""
    if not isinstance(value, str):
        return value
    return f"'{printable(value)}" if value.startswith(FORMULA) else printable(value)


@app.command()
def bind(
    ledger: File,
    data: options.Data,
    key: options.ArrayName = None,
    order: options.Order = None,
    mask: options.Mask = None,
    groups_column: options.GroupsColumn = None,
    label_column: options.LabelColumn = None,
    entries: options.Entries = None,
) -> None:
    """Bind a ledger to its data by a fingerprint.

    The key of the fingerprint is taken from SPDP_LEDGER_KEY and kept by the curator.
    """
    account = options.open_ledger(ledger)
    reader = Reader(
        key,
        order,
        mask,
        groups_column=groups_column,
        label_column=label_column,
        entries=entries,
    )
    account.bind(reader.source(data))
    say(f"bound {ledger} to {name_of(data)}")


@app.command()
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
    sign: options.Sign = None,
) -> None:
    """Write a release again that was paid for. It costs nothing: it is the same one."""
    from spdp.release import Release

    account, target = options.open_ledger(ledger), Output(output, force, report, sign)
    with target.prepared():
        release = Release(*account.recover(entry))
        written = target.write(release, account)
    present(release, written)
