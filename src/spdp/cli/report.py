"""``spdp report``: a page about a release that was written earlier."""

from pathlib import Path
from typing import Annotated

import typer

from spdp.cli import options
from spdp.cli.output import check_free, check_report, entry_of, row_names, say, write_page

__all__ = ["report"]

File = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="The page [default: DIR/report.html]."),
]


def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the release is.")],
    output: File = None,
    names: options.Names = None,
    ledger: options.LedgerFile = None,
    force: options.Force = False,
) -> None:
    """Write a page about a release that was written earlier.

    It costs nothing: all of it is computed from what was released.
    """
    from spdp.release import REPORT, Release
    from spdp.report import html_report

    check_report()
    file = directory / REPORT if output is None else output
    if not force:
        check_free(file)
    release = Release.load(directory)
    account = None if ledger is None else options.open_ledger(ledger)
    page = html_report(release, names=row_names(names), entry=entry_of(release, account))
    write_page(file, page)
    say(f"wrote {file}")
