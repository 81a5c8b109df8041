"""``spdp verify`` and ``spdp report``: was a release edited, do its numbers agree?"""

from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from spdp.cli import options, output
from spdp.cli.errors import VERIFICATION_FAILED, in_words, printable
from spdp.cli.output import console, say
from spdp.errors import DataError
from spdp.release import CERTIFICATE, REPORT, MissingArray, Release
from spdp.release.report import html_report, says_the_same
from spdp.release.verify import NOT_PROVEN

SEALED = "the released arrays and the certificate were not changed"
PASSED = "Verified: the release was not edited, and its numbers agree."
SIMULATED = "a seeded simulation, NOT private: not to be published as a private release"
FAILED = "Verification FAILED ({names}): do not rely on this release."
NOT_SIGNED = "Nor who made the release: to check that, pass the maker's public key (--key)."
SAYS_THE_SAME = "written again from this release, the page has the same text and pictures"
SAYS_ELSE = (
    "not the page of this release: it was edited, or it belongs to another release, or another "
    "version of spdp or matplotlib wrote it. Rely on certificate.json; spdp report --force writes "
    "the page again"
)
NOT_COMPARED = "neither covered by the seal nor compared with the release: {why}"
OTHER_VERSION = "another version of spdp made the release"
UNSIGNED = "not signed: nothing says who made the release"
Row = tuple[str, bool | None, str]  # None: a fact that was not checked
MARKS = {True: ("ok", "green"), False: ("FAILED", "bold red"), None: ("–", "")}
SINGLE = ("seal", "signature", "closing signatures", "report.html")  # checks that are always shown
MANY = 4  # a summary names a kind of check that has at least so many


def verify(
    directory: Path = typer.Argument(..., metavar="DIR", help="Where the release is."),
    key: Path | None = options.option("Public key (PEM) of the signature.", metavar="PUB"),
    everything: bool = options.option(
        "List every check; by default, passed checks are counted.", "--all", default=False
    ),
    as_json: bool = options.JSON,
) -> None:
    """Check that a release was not edited, and recompute its numbers."""
    checks = _checks(directory, key)
    passed = all(ok is not False for _, ok, _ in checks)
    if as_json:
        output.print_json([dict(zip(("check", "ok", "detail"), c, strict=True)) for c in checks])
    else:
        console().print(_table(directory, checks if everything else _summary(checks)))
        unsigned = [NOT_SIGNED] if key is None else []
        failed = dict.fromkeys(printable(name) for name, ok, _ in checks if ok is False)
        failure = FAILED.format(names=", ".join(failed))
        console().print(*[PASSED, NOT_PROVEN, *unsigned] if passed else [failure])
    if not passed:
        raise typer.Exit(VERIFICATION_FAILED)


def _summary(checks: list[Row]) -> list[Row]:
    """Failed checks, those of SINGLE, and how many others of each kind passed."""
    failed = [row for row in checks if row[1] is False]
    passed = [row for row in checks if row[1]]
    single = [row for row in checks if row[1] is not False and row[0] in SINGLE]
    named = (name for name, _, _ in passed if name not in SINGLE)
    others = Counter(name.partition(" of ")[0].partition(",")[0] for name in named)
    if not others:
        return [*failed, *single]
    many = [f"{kind} {count}" for kind, count in others.most_common() if count >= MANY]
    rest = sum(count for count in others.values() if count < MANY)
    counted = ", ".join([*many, f"others {rest}"] if rest else many)
    return [*failed, *single, (f"{others.total()} more", True, f"{counted}; --all lists them")]


def _checks(directory: Path, key: Path | None) -> list[Row]:
    if not (directory / CERTIFICATE).is_file():
        raise DataError(f"{directory}: does not hold a release, {CERTIFICATE} is missing")
    try:
        release = Release.load(directory)
    except MissingArray:
        raise
    except DataError as error:
        return [("seal", False, in_words(error))]
    rows: list[Row] = [("seal", True, SEALED), *release.verify(key)]
    if key is None and not release.signed:
        rows.append(("signature", None, UNSIGNED))
    if release.certificate.get("trust"):
        from spdp.federated.checks import check_published

        rows += check_published(directory, release)
    if not release.certificate["private"]:
        rows.append(("guarantee", False, SIMULATED))
    if (directory / REPORT).is_file():
        rows.append(_page(directory / REPORT, release))
    return rows


def _page(file: Path, release: Release) -> Row:
    """Compare the page with its release: the seal does not cover the page."""
    if release.certificate["versions"].get("spdp") != version("spdp"):
        return file.name, None, NOT_COMPARED.format(why=OTHER_VERSION)
    try:
        same = says_the_same(file.read_text(encoding="utf-8", errors="replace"), release)
    except DataError as error:  # packages that write pages are missing
        return file.name, None, NOT_COMPARED.format(why=error.message)
    return file.name, same, SAYS_THE_SAME if same else SAYS_ELSE


def _table(directory: Path, checks: list[Row]) -> Any:
    table = Table("", "check", "found", title=printable(directory), title_justify="left")
    table.columns[2].overflow = "fold"
    for name, ok, detail in checks:
        mark, style = MARKS[ok]
        table.add_row(mark, printable(name), printable(detail), style=style)
    return table


def report(
    stated: options.Stated,
    directory: Path = typer.Argument(..., metavar="DIR", help="Where the release is."),
    file: Path | None = options.option(
        "The page [default: DIR/report.html].", "--output", "-o", metavar="FILE"
    ),
    names: str | None = options.NAMES,
    ledger: Path | None = options.LEDGER,
    force: bool = options.FORCE,
) -> None:
    """Write a page about a saved release.

    It costs no privacy budget: the page is computed from released numbers alone.
    """
    output.check_report()
    target = directory / REPORT if file is None else file
    if not force:
        output.check_free(target)
    release = Release.load(directory)
    account = None if ledger is None else options.open_ledger(ledger)
    page = html_report(
        release,
        names=output.row_names(names),
        entry=output.entry_of(release, account),
        about=stated.about(),
    )
    output.write_page(target, page)
    say(f"wrote {target}")
