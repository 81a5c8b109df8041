"""``spdp disclose``: what registries and boards ask about a release, as files."""

from pathlib import Path

import typer

from spdp.cli import options
from spdp.cli.output import say
from spdp.release import Release
from spdp.release.disclosure import disclosure_of


def disclose(
    stated: options.Stated,
    directory: Path = typer.Argument(..., metavar="DIR", help="Where the release is."),
    folder: Path | None = options.option(
        "Where the files go [default: DIR].", "--output", "-o", metavar="DIR"
    ),
    force: bool = options.FORCE,
) -> None:
    """Write what registries and boards ask about a release.

    A record of the public registry of deployments, a table of the hazards of NIST SP
    800-226, and metadata (schema.org, CITATION.cff). It costs no privacy budget.
    """
    release = Release.load(directory)
    made = disclosure_of(release, stated.about())
    for file in made.save(directory if folder is None else folder, force=force):
        say(f"wrote {file}")
    say("Only people can fill in:")
    for name in made.to_fill:
        say(f"  {name}")
