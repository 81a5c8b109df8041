"""``spdp stats``: statistics beyond the mean, one command each."""

import typer

from spdp.cli.stats import classes, compare, median, pca, plan, regress, spread

__all__ = ["app"]

app = typer.Typer(
    help="Statistics beyond the mean, each for one budget.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def group() -> None:
    """Statistics beyond the mean, each for one budget."""


for command in (
    classes.classes,
    spread.spread,
    pca.pca,
    median.median,
    regress.regress,
    compare.compare,
    plan.plan,
):
    app.command(command.__name__.rstrip("_"))(command)
