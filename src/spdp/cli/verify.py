"""``spdp verify``: was a release edited, and do its numbers agree with each other?"""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spdp.cli import options
from spdp.cli.output import console, print_json
from spdp.cli.spelling import VERIFICATION_FAILED, in_words, printable
from spdp.errors import DataError

if TYPE_CHECKING:
    from spdp.release import Release

__all__ = ["verify"]

SEALED = "the matrix and its certificate are what was sealed"
PASSED = "Verified: the release was not edited, and its numbers agree."
SIMULATED = "a seeded simulation, NOT private: not to be published as a private release"
FAILED = "Verification FAILED ({names}): do not rely on this release."
NOT_SIGNED = "Nor who made the release: that takes its maker's public key (pass --key)."
SAYS_THE_SAME = "drawn anew, it is the same: its words and pictures are those of this release"
SAYS_ELSE = (
    "it is not the page of this release: it was edited, or is of another release or another "
    "version of spdp or matplotlib. Rely on certificate.json; spdp report --force writes the page "
    "anew"
)
NOT_COMPARED = "not covered by the seal, nor compared with what is: {why}"
OTHER_VERSION = "the release is of another version of spdp"
Row = tuple[str, bool, str]
SINGLE = ("seal", "signature", "report.html")  # checks that are shown, always
MANY = 4  # checks of a kind, from which on the summary counts them


def verify(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the release is.")],
    key: Annotated[
        Path | None,
        typer.Option(metavar="PUB", help="Public key (PEM) that must have signed it."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="List every check; else those that passed are counted.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Check that a release was not edited, and recompute its numbers."""
    checks = _checks(directory, key)
    passed = all(ok for _, ok, _ in checks)
    if as_json:
        print_json([{"check": name, "ok": ok, "detail": detail} for name, ok, detail in checks])
    else:
        console().print(_table(directory, checks if everything else _summary(checks)))
        console().print(*_limits(key) if passed else [_failure(checks)])
    if not passed:
        raise typer.Exit(VERIFICATION_FAILED)


def _failure(checks: list[Row]) -> str:
    names = dict.fromkeys(printable(name) for name, ok, _ in checks if not ok)
    return FAILED.format(names=", ".join(names))


def _summary(checks: list[Row]) -> list[Row]:
    """What failed, what there is once, and how many others passed, by their kind."""
    failed = [row for row in checks if not row[1]]
    passed = [row for row in checks if row[1]]
    single = [row for row in passed if row[0] in SINGLE]
    others = Counter(_kind(name) for name, _, _ in passed if name not in SINGLE)
    if not others:
        return [*failed, *single]
    many = [f"{kind} {count}" for kind, count in others.most_common() if count >= MANY]
    rest = sum(count for count in others.values() if count < MANY)
    counted = ", ".join([*many, f"others {rest}"] if rest else many)
    return [*failed, *single, (f"{others.total()} more", True, f"{counted}; --all lists them")]


def _kind(name: str) -> str:
    """What a check is called without what it is of."""
    return name.partition(" of ")[0].partition(",")[0]


def _limits(key: Path | None) -> list[str]:
    """The verdict, and what verification does not prove."""
    from spdp.verification import NOT_PROVEN

    return [PASSED, NOT_PROVEN] if key is not None else [PASSED, NOT_PROVEN, NOT_SIGNED]


def _checks(directory: Path, key: Path | None) -> list[Row]:
    from spdp.release import CERTIFICATE, REPORT, MissingArray, Release

    if not (directory / CERTIFICATE).is_file():
        raise DataError(f"{directory}: does not hold a release, {CERTIFICATE} is not there")
    try:
        release = Release.load(directory)
    except MissingArray:
        raise
    except DataError as error:
        return [("seal", False, in_words(error))]
    rows: list[Row] = [("seal", True, SEALED), *release.verify(key)]
    if not release.certificate["private"]:
        rows.append(("guarantee", False, SIMULATED))
    if (directory / REPORT).is_file():
        rows.append(_page(directory / REPORT, release))
    return rows


def _page(file: Path, release: "Release") -> Row:
    """What can be said of the page beside a release, which the seal does not cover."""
    from importlib.metadata import version

    from spdp.report.page import says_the_same

    if release.certificate["versions"].get("spdp") != version("spdp"):
        return file.name, True, NOT_COMPARED.format(why=OTHER_VERSION)
    try:
        same = says_the_same(file.read_text(encoding="utf-8", errors="replace"), release)
    except DataError as error:  # what renders pages is not installed
        return file.name, True, NOT_COMPARED.format(why=error.message)
    return file.name, same, SAYS_THE_SAME if same else SAYS_ELSE


def _table(directory: Path, checks: list[Row]) -> Any:
    from rich.table import Table

    table = Table("", "check", "found", title=printable(directory), title_justify="left")
    table.columns[2].overflow = "fold"
    for name, ok, detail in checks:
        mark, style = ("ok", "green") if ok else ("FAILED", "bold red")
        table.add_row(mark, printable(name), printable(detail), style=style)
    return table
