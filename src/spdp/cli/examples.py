"""One example for each command: the end of its help, and run by the tests."""

import re
from collections.abc import Callable
from typing import Any

import typer

from spdp.cli.expanding import expanded

__all__ = ["EXAMPLES", "group", "register"]

# They go together: what one of them writes, those below it may read.
EXAMPLES = {
    "mean": "spdp mean matrices.npy --epsilon 1 --delta 1e-6 --eigenvalues 0.1 10 -o release "
    "--report",
    "plan": "spdp plan --n 2000 --k 3 --epsilon 1 --delta 1e-6 --eigenvalues 0.1 10 --spread 20%",
    "reference": "spdp reference public.npy -o public.npz",
    "sum": "spdp sum matrices.npy --eigenvalues 0.1 10 -o site1.sum",
    "merge": "spdp merge site1.sum --epsilon 1 --delta 1e-6 -o merged",
    "verify": "spdp verify release",
    "report": "spdp report release --names x,y,z --force",
    "demo": "spdp demo -o demo",
    "describe": "spdp describe images.npy -o descriptors.npy",
    "reproduce": "spdp reproduce figure-4c --quick",
    "ledger create": "spdp ledger create budget.ledger --epsilon 3 --delta 1e-5",
    "ledger show": "spdp ledger show budget.ledger",
    "ledger history": "spdp ledger history budget.ledger",
    "ledger export": "spdp ledger export budget.ledger > history.csv",
    "ledger bind": "SPDP_LEDGER_KEY=sixteen-letters-or-more spdp ledger bind budget.ledger "
    "matrices.npy",
    "ledger recover": "spdp ledger recover budget.ledger 1 -o again",
    "stats classes": "spdp stats classes matrices.npy --labels labels.txt --classes a,b "
    "--epsilon 2 --delta 1e-6 --eigenvalues 0.1 10",
    "stats spread": "spdp stats spread matrices.npy --epsilon 2 --delta 1e-6 --eigenvalues 0.1 10",
    "stats pca": "spdp stats pca matrices.npy --components 2 --epsilon 2 --delta 1e-6 "
    "--eigenvalues 0.1 10",
    "stats median": "spdp stats median matrices.npy --epsilon 2 --delta 1e-6 --eigenvalues 0.1 10",
    "stats regress": "spdp stats regress matrices.npy --covariates ages.npy --ranges 18:90 "
    "--epsilon 2 --delta 1e-6 --eigenvalues 0.1 10",
    "stats compare": "spdp stats compare matrices.npy --labels labels.txt --classes a,b "
    "--epsilon 2 --delta 1e-6 --eigenvalues 0.1 10",
    "stats plan": "spdp stats plan pca --k 9 --n 5000 --epsilon 1 --delta 1e-6 --radius 10",
}
WIDTH = 76  # of a line of an example
SETTINGS = {"max_content_width": 100}


def group(help_: str, **options: Any) -> typer.Typer:
    """A group of commands; all of them look alike, and alone they show their help."""
    app = typer.Typer(
        help=help_,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=SETTINGS,
        **options,
    )

    @app.callback(invoke_without_command=True)
    def alone(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            print(context.get_help())

    return app


def register(app: typer.Typer, *commands: Callable[..., None], under: str = "") -> None:
    """Add commands to a group, each by its own name and with its example."""
    for command in commands:
        name = command.__name__.rstrip("_")
        app.command(name, epilog=_epilog(f"{under} {name}".strip()))(expanded(command))


def _epilog(name: str) -> str | None:
    """The example as it is to be shown: lines that can be copied together."""
    if name not in EXAMPLES:
        return None
    first, *more = re.split(r" (?=-)", EXAMPLES[name])  # an option stays with its value
    lines = [first]
    for words in more:
        if len(lines[-1]) + len(words) < WIDTH:
            lines[-1] += f" {words}"
        else:
            lines.append(f"    {words}")
    return "\b\nExample:\n  " + " \\\n  ".join(lines)
