"""``spdp help``: the help of a command, by its name."""

import typer


def help_(
    words: list[str] | None = typer.Argument(
        None, metavar="[COMMAND]", help="A command, such as mean or ledger create."
    ),
) -> None:
    """Show the help of a command, or of spdp."""
    from spdp.cli import app

    app([*(words or ()), "--help"], standalone_mode=False)
