"""``spdp ledger``: create, show, history, export, bind."""

import csv
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from spdp.errors import DataError
from spdp.io import open_records
from spdp.ledger import Ledger
from spdp.report import ledger_picture

__all__ = ["app", "fingerprint_key"]

app = typer.Typer(help="Keep the account of a dataset's privacy budget.", no_args_is_help=True)
File = Annotated[Path, typer.Argument(metavar="FILE", help="The ledger.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def fingerprint_key() -> bytes | None:
    """The curator's key, from the environment: it must not stand on a command line."""
    text = os.environ.get("SPDP_LEDGER_KEY", "")
    return text.encode() if text else None


@app.command()
def create(
    file: File,
    epsilon: Annotated[float, typer.Option(help="Total privacy loss ε.")],
    delta: Annotated[float, typer.Option(help="Total privacy slack δ.")],
) -> None:
    """Create a ledger with its total budget."""
    if file.exists():
        raise DataError(f"{file}: exists already; a ledger is created once")
    Ledger(file, epsilon=epsilon, delta=delta)
    print(f"created {file}: epsilon = {epsilon:g}, delta = {delta:g}")


@app.command()
def show(
    file: File,
    plot: Annotated[Path | None, typer.Option(help="Write a PNG of the budget over time (needs the plots extra).")] = None,
    as_json: Json = False,
) -> None:
    """Show the budget, what was spent and what is left."""
    ledger = Ledger(file)
    spent, left = ledger.spent(), ledger.remaining()
    if plot is not None:
        ledger_picture(plot, ledger.history(), ledger.epsilon, ledger.delta)
    if as_json:
        print(json.dumps({"epsilon": ledger.epsilon, "delta": ledger.delta, "spent": spent, "remaining": left, "acts": ledger.acts()}))
        return
    console = Console(highlight=False)
    table = Table(show_header=False, title=str(file), title_justify="left")
    table.add_row("budget", f"ε = {ledger.epsilon:g}, δ = {ledger.delta:g}")
    table.add_row("spent", f"ε = {spent['epsilon']:.4g} in {spent['entries']} releases (μ = {spent['mu']:.4g})")
    table.add_row("left", f"one Gaussian release with ε = {left['epsilon']:.4g}, or a pure one with ε = {left['pure_epsilon']:.4g}")
    console.print(table)
    share = min(1.0, spent["epsilon"] / ledger.epsilon)
    console.print(f"{'█' * round(40 * share)}{'░' * (40 - round(40 * share))} {share:.0%} of ε")
    if plot is not None:
        console.print(f"wrote {plot}", soft_wrap=True)


@app.command()
def history(file: File, as_json: Json = False) -> None:
    """List the releases."""
    entries = Ledger(file).history()
    if as_json:
        print(json.dumps(entries))
        return
    table = Table("number", "time (UTC)", "label", "mechanism", "μ", "state")
    for entry in entries:
        table.add_row(*_cells(entry))
    Console(highlight=False).print(table)


def _cells(entry: dict[str, Any]) -> list[str]:
    return [str(entry["id"]), entry["created"][:19], entry["label"] or "", entry["mechanism"], f"{entry['mu']:.4g}", entry["state"]]


@app.command()
def export(file: File) -> None:
    """Print the history as CSV."""
    writer = csv.writer(sys.stdout)
    writer.writerow(["number", "time", "label", "mechanism", "mu", "pure_epsilon", "state"])
    for e in Ledger(file).history():
        writer.writerow([e["id"], e["created"], e["label"], e["mechanism"], e["mu"], e["pure"], e["state"]])


@app.command()
def bind(file: File, data: Annotated[Path, typer.Argument(help="The dataset's file.")]) -> None:
    """Bind the ledger to a data file by a fingerprint keyed with SPDP_LEDGER_KEY."""
    Ledger(file, key=fingerprint_key()).bind(open_records(data))
    print(f"bound {file} to {data}")
