"""``spdp verify`` and ``spdp report``: was a release edited, do its numbers agree?"""

from collections import Counter
from contextlib import suppress
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
NOT_A_STUDY = "not a study over sites: there are no identities that could be those of --pins"
NOT_PINNED = "not compared: whoever publishes states them, and could have invented sites"
NOT_COMPARED_SITES = (
    "Nor that the sites exist: compare the words above with what each site says of itself, or pass "
    "a file of them (--pins)."
)
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
# Checks that are always shown; so are facts.
SINGLE = ("seal", "signature", "closing signatures", "identities", "report.html")
MANY = 4  # a summary names a kind of check that has at least so many


def verify(
    directory: Path = typer.Argument(..., metavar="DIR", help="Where the release is."),
    key: Path | None = options.option("Public key (PEM) of the signature.", metavar="PUB"),
    pins: Path | None = options.option(
        "Words of a study's sites, one site per line, as for spdp site sign.", metavar="FILE"
    ),
    everything: bool = options.option(
        "List every check; by default, passed checks are counted.", "--all", default=False
    ),
    as_json: bool = options.JSON,
) -> None:
    """Check that a release was not edited, and recompute its numbers."""
    pinned = None if pins is None else _pinned(pins)
    checks = _checks(directory, key, pinned)
    passed = all(ok is not False for _, ok, _ in checks)
    if as_json:
        output.print_json([dict(zip(("check", "ok", "detail"), c, strict=True)) for c in checks])
    else:
        console().print(_table(directory, checks if everything else _summary(checks)))
        unknown = [NOT_COMPARED_SITES] if ("identities", None, NOT_PINNED) in checks else []
        unknown += [NOT_SIGNED] if key is None else []
        failed = dict.fromkeys(printable(name) for name, ok, _ in checks if ok is False)
        failure = FAILED.format(names=", ".join(failed))
        console().print(*[PASSED, NOT_PROVEN, *unknown] if passed else [failure])
    if not passed:
        raise typer.Exit(VERIFICATION_FAILED)


def _summary(checks: list[Row]) -> list[Row]:
    """Failed checks, facts, those of SINGLE, and how many others passed, by kind."""
    failed = [row for row in checks if row[1] is False]
    passed = [row for row in checks if row[1]]
    single = [row for row in checks if row[1] is None or (row[1] and row[0] in SINGLE)]
    named = (name for name, _, _ in passed if name not in SINGLE)
    others = Counter(name.partition(" of ")[0].partition(",")[0] for name in named)
    if not others:
        return [*failed, *single]
    many = [f"{kind} {count}" for kind, count in others.most_common() if count >= MANY]
    rest = sum(count for count in others.values() if count < MANY)
    counted = ", ".join([*many, f"others {rest}"] if rest else many)
    return [*failed, *single, (f"{others.total()} more", True, f"{counted}; --all lists them")]


def _pinned(file: Path) -> dict[str, str]:
    from spdp.federated.identity import read_pins

    return read_pins(file, needed=True)


def _checks(directory: Path, key: Path | None, pins: dict[str, str] | None) -> list[Row]:
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
        rows += _over_sites(directory, release, pins)
    elif pins is not None:
        rows.append(("identities", False, NOT_A_STUDY))
    if not release.certificate["private"]:
        rows.append(("guarantee", False, SIMULATED))
    if (directory / REPORT).is_file():
        rows.append(_page(directory / REPORT, release))
    return rows


def _over_sites(directory: Path, release: Release, pins: dict[str, str] | None) -> list[Row]:
    """Checks of a study; without pins, what its sites' words would have to be."""
    from spdp.federated.checks import check_published, stated_words

    rows: list[Row] = [*check_published(directory, release, pins=pins)]
    if pins is None:
        with suppress(DataError):  # of rounds that cannot be read, which is a failed check
            words = stated_words(directory)
            rows.append(("identities", None, NOT_PINNED))
            rows += [(f"words of {name}", None, said) for name, said in words.items()]
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
