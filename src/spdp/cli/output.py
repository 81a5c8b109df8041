"""What commands print, and releases written to directories.

Whether a directory can be written to is tested by writing, before any budget is spent.
"""

import json
import os
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spdp.cli import options
from spdp.cli.errors import in_words, printable
from spdp.errors import DataError, ParameterError, reason
from spdp.kernels.arrays import plain
from spdp.ledger import Ledger
from spdp.release import CERTIFICATE, REPORT, Release
from spdp.release.files import sign
from spdp.release.report import html_report
from spdp.release.summary import Summary, check_names

TRIAL_BYTES = 1 << 16
ALARMS = ("worth", "caution")  # rows of a release's facts that are red


def console() -> Console:
    """Standard output; no text is read as markup."""
    return Console(highlight=False, markup=False, emoji=False)


def say(text: str, style: str | None = None) -> None:
    """Print one line, not wrapped: names of files can be copied from it."""
    console().print(printable(text), style=style, soft_wrap=True)


def can_report() -> bool:
    """Whether the packages that draw a page are installed."""
    return all(find_spec(package) for package in ("jinja2", "matplotlib"))


def check_report() -> None:
    if not can_report():
        raise DataError("a report needs more packages: pip install 'spdp[report]'")


def print_json(content: Any) -> None:
    print(json.dumps(content, allow_nan=False))


def present(release: Release, written: list[Path], as_json: bool = False) -> None:
    """Show a release: as JSON, or its main facts with its files or its matrix."""
    if as_json:
        content = {"value": plain(release.value), "certificate": release.certificate}
        if len(release.values) > 1:
            content["values"] = {name: plain(array) for name, array in release.values.items()}
        print_json(content)
        return

    shown = Release(release.values, _printable_all(release.certificate))
    console().print(_table(shown))
    if not written:
        for name, array in release.values.items():
            if len(release.values) > 1:
                say(f"{name}:")
            matrix = np.array2string(array, precision=5, suppress_small=True)
            console().print(matrix, soft_wrap=True)
    for file in written:
        say(f"wrote {file}")


def _table(release: Release) -> Any:
    """The certificate's main facts, one per row; its texts are never read as markup."""
    told = Summary(release.certificate)
    table = Table(show_header=False, title=told.heading, title_justify="left")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in told.rows().items():
        alarm = name in ALARMS or (name == "private" and not told.c.private)
        table.add_row(name, Text(value, style="bold red" if alarm else ""))
    return table


def _printable_all(content: Any) -> Any:
    """Plain data with all their texts printable."""
    if isinstance(content, dict):
        return {printable(name): _printable_all(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_printable_all(value) for value in content]
    return printable(content) if isinstance(content, str) else content


@dataclass(frozen=True)
class Output(options.Group):
    """Where a release goes: a directory, or nowhere.

    Attributes
    ----------
    path : Path or None
        The directory.
    force : bool
        Whether an existing release may be replaced.
    report : bool
        Whether a page about the release is written, too.
    rows : str or None
        Names of the matrices' rows, for the page: see :func:`row_names`.
    sign : Path or None
        Private key that signs the certificate.
    stated : Stated
        Title, study, contact and date of the page.
    names : tuple of str
        Names of the arrays to release; set by the command, not an option.
    """

    path: Path | None = options.option(
        "Directory for the released arrays, .npy, and certificate.json.",
        "--output",
        "-o",
        metavar="DIR",
    )
    force: bool = options.FORCE
    report: bool = options.REPORT
    rows: str | None = options.NAMES
    sign: Path | None = options.SIGN
    stated: options.Stated = options.Stated()  # noqa: RUF009
    names: tuple[str, ...] = ("mean",)

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Make the directory and test it; remove it if the release fails."""
        self._check_options()
        if self.path is None:
            yield
            return
        places = (self.path, *self.path.parents)
        missing = [place for place in places if not os.path.lexists(place)]
        try:
            self._try(self.path)
            yield
        except BaseException:
            for place in missing:
                with suppress(OSError):  # not empty, or never made
                    place.rmdir()
            raise

    def check_rows(self, k: int) -> None:
        """Refuse a wrong number of row names before any budget is spent."""
        check_names(row_names(self.rows), k)

    def _check_options(self) -> None:
        for option in ("report", "sign"):
            if getattr(self, option) and self.path is None:
                raise ParameterError(f"--{option} needs a directory to write into: add -o DIR")
        if self.rows is not None and not self.report:
            raise ParameterError("--names is for the page about a release: add --report")
        for name in self.stated.about().stated():
            if not self.report:
                raise ParameterError(f"--{name} is for the page about a release: add --report")
        if self.report:
            check_report()
        if self.sign is not None:
            sign("", self.sign)  # only signing shows whether the key can sign

    def _try(self, path: Path) -> None:
        """Test by writing whether results can be written."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not self.force:
                check_free(*_files(path, self.names))
            with tempfile.NamedTemporaryFile(dir=path, prefix=".partial-") as file:
                file.write(bytes(TRIAL_BYTES))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise DataError(f"{path}: cannot be written to ({reason(error)})") from None

    def write(self, release: Release, ledger: Ledger | None = None) -> list[Path]:
        """Write a release and return its files; an error says how to recover it."""
        if self.path is None:
            return []
        try:
            release.save(self.path, force=self.force, sign=self.sign)
        except Exception as error:
            why = f"{self.path}: the release cannot be written ({in_words(error)}); "
            raise DataError(why + _rescue(release, ledger)) from error
        *files, page = _files(self.path, release.values)
        if self.report:
            _write_report(release, page, row_names(self.rows), ledger, self.stated)
        return [*files, page] if self.report else files


def _files(path: Path, names: Iterable[str]) -> list[Path]:
    """The files of a release, the page about it last."""
    return [*(path / f"{name}.npy" for name in names), path / CERTIFICATE, path / REPORT]


def name_of(files: Sequence[Path]) -> str:
    """Default label of a ledger entry for a release of these files."""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return files[0].name + more


@dataclass(frozen=True)
class Publication(options.Group):
    """Where a release is written, which ledger pays, and the label of its entry."""

    output: Output
    ledger: Path | None = options.LEDGER
    label: str | None = options.option("Name of this release in the ledger.", metavar="TEXT")

    def open_ledger(self) -> Ledger | None:
        """The ledger that pays, if one is named."""
        return None if self.ledger is None else options.open_ledger(self.ledger)

    def name(self, files: Sequence[Path]) -> str:
        """Label of the ledger's entry for a release of these files."""
        return printable(name_of(files) if self.label is None else self.label)


def _write_report(
    release: Release,
    file: Path,
    rows: list[str] | None,
    ledger: Ledger | None,
    stated: options.Stated,
) -> None:
    try:
        entry = entry_of(release, ledger)
        page = html_report(release, names=rows, entry=entry, about=stated.about())
        with file.open("x", encoding="utf-8") as stream:
            stream.write(page)
    except Exception as error:
        why = f"{file}: cannot be written ({in_words(error)}); the release itself was written"
        raise DataError(why) from error


def write_page(file: Path, page: str) -> None:
    """Write a page, replacing an existing one."""
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{file}: cannot be written ({reason(error)})") from None


def row_names(text: str | None) -> list[str] | None:
    """Row names: the lines of a file, or a list separated by commas."""
    if text is None:
        return None
    try:
        listed = Path(text).is_file()
        lines = Path(text).read_text("utf-8-sig").splitlines() if listed else text.split(",")
    except (OSError, UnicodeError) as error:
        raise DataError(f"{text}: cannot be read as a file of names ({reason(error)})") from None
    return [line.strip() for line in lines if line.strip()]


def check_free(*files: Path) -> None:
    """Refuse to overwrite."""
    for file in files:
        if os.path.lexists(file):
            raise ParameterError(f"{file}: exists already and is not overwritten", ask="force")


def _rescue(release: Release, ledger: Ledger | None) -> str:
    """How to recover a release that was paid for but not written."""
    entry = entry_of(release, ledger)
    if ledger is None or entry is None:
        return "no ledger stored it, and running the command again makes a second release"
    file = shlex.quote(str(ledger.path))
    return f"its ledger stored it: spdp ledger recover {file} {entry['id']} -o DIR"


def entry_of(release: Release, ledger: Ledger | None) -> dict[str, Any] | None:
    """The entry of a ledger that paid for a release, with the ledger's name."""
    if ledger is None:
        return None
    value = plain(release.values if len(release.values) > 1 else release.value)
    paid = [entry for entry in ledger.history() if entry["value"] == value]
    if not paid:
        return None
    spent = ledger.spent()
    balance = (ledger.epsilon, ledger.delta, spent["epsilon"])
    return {**paid[-1], "ledger": ledger.path.name, "balance": balance}
