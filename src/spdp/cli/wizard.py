"""``spdp wizard`` and ``spdp run``: a local page, and the plan it saves."""

from pathlib import Path

import typer

from spdp.wizard.recipe import Recipe

# Not spdp.cli.options, which loads all of spdp: the first page would wait for it.
FOLDER = typer.Option(
    Path(), "--folder", metavar="DIR", help="Where files are looked for and written."
)
PORT = typer.Option(0, "--port", help="Port of the loopback; 0 for any that is free.")
NO_BROWSER = typer.Option(False, "--no-browser", help="Print the address only; open no browser.")


def wizard(
    plan: Path | None = typer.Argument(
        None, metavar="PLAN", help="A plan that was saved, to begin with."
    ),
    folder: Path = FOLDER,
    port: int = PORT,
    no_browser: bool = NO_BROWSER,
) -> None:
    """Open a local page that leads to a release."""
    from spdp.wizard.server import serve

    recipe = Recipe() if plan is None else Recipe.load(plan)
    serve(folder.absolute(), recipe, port, _tell, not no_browser)


def _tell(text: str) -> None:
    print(text, flush=True)


def run(
    plan: Path = typer.Argument(..., metavar="PLAN", help="A plan, .yaml, as spdp wizard saves."),
    output: str | None = typer.Option(
        None, "--output", "-o", metavar="DIR", help="Directory for the release, not the plan's."
    ),
    rehearse: bool = typer.Option(
        False,
        "--rehearse",
        help="Simulate it on synthetic records: no data are read, nothing is spent.",
    ),
    public: list[Path] | None = typer.Option(
        None, "--public", metavar="FILE", help="Public records to rehearse on."
    ),
    show: bool = typer.Option(False, "--show", help="Print the command, and do not run it."),
) -> None:
    """Make the release that a plan of spdp wizard asks for."""
    import msgspec

    from spdp.cli import app
    from spdp.cli.output import say
    from spdp.errors import ParameterError
    from spdp.wizard.writing import command, shell

    recipe = Recipe.load(plan)
    if output is not None:
        recipe = msgspec.structs.replace(recipe, output=output)
    if public and not rehearse:
        raise ParameterError("--public is for a rehearsal: add --rehearse")
    if show:
        for line in shell(recipe).splitlines():
            say(line)
    elif rehearse:
        _rehearse(recipe, [str(file) for file in public or ()])
    else:
        code = app(command(recipe), standalone_mode=False)
        if code:
            raise typer.Exit(code)


def _rehearse(recipe: Recipe, public: list[str]) -> None:
    from spdp.cli.output import Output, present
    from spdp.wizard.rehearsal import rehearse
    from spdp.wizard.writing import asked

    target = Output(Path(recipe.output), report=True, names=asked(recipe).arrays())
    target = Output(target.path, report=True, rows=recipe.names, names=target.names)
    with target.prepared():
        target.check_rows(recipe.k)
        release = rehearse(recipe, public)
        written = target.write(release)
    present(release, written)
