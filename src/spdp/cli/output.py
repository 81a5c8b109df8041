"""What commands print, and releases written to directories.

Text that came from outside (labels, names of files, certificates) is shown as the text
it is. Whether a directory can be written is found out by writing, before anything is
paid.
"""

import json
import os
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spdp.cli import options
from spdp.cli.spelling import in_words, printable
from spdp.errors import DataError, ParameterError, reason

if TYPE_CHECKING:
    from rich.console import Console

    from spdp.privacy.ledger import Ledger
    from spdp.release import Release

__all__ = [
    "Output",
    "can_report",
    "check_free",
    "check_report",
    "console",
    "entry_of",
    "present",
    "print_json",
    "row_names",
    "say",
    "write_page",
]

TRIAL_BYTES = 1 << 16


def console() -> "Console":
    """Standard output, where nothing in a text is markup."""
    from rich.console import Console

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


def present(release: "Release", written: list[Path], as_json: bool = False) -> None:
    """Show a release: as JSON, or its main facts with its files or its matrix."""
    from spdp.plain import plain

    if as_json:
        content = {"value": plain(release.value), "certificate": release.certificate}
        if len(release.values) > 1:
            content["values"] = {name: plain(array) for name, array in release.values.items()}
        print_json(content)
        return
    import numpy as np

    from spdp.release import Release
    from spdp.report import release_table

    shown = Release(release.values, _printable_all(release.certificate))
    console().print(release_table(shown))
    if not written:
        for name, array in release.values.items():
            if len(release.values) > 1:
                say(f"{name}:")
            matrix = np.array2string(array, precision=5, suppress_small=True)
            console().print(matrix, soft_wrap=True)
    for file in written:
        say(f"wrote {file}")


def _printable_all(content: Any) -> Any:
    """Plain data with all their texts printable."""
    if isinstance(content, dict):
        return {printable(name): _printable_all(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_printable_all(value) for value in content]
    return printable(content) if isinstance(content, str) else content


@dataclass(frozen=True)
class Output:
    """Where a release goes: a directory, or nowhere. A group of options.

    Attributes
    ----------
    path : Path or None
        The directory.
    force : bool
        Whether a release that is there already may be replaced.
    report : bool
        Whether a page about the release goes there too.
    rows : str or None
        Names of the matrices' rows, for the page: see :func:`row_names`.
    sign : Path or None
        Private key that signs the certificate.
    names : tuple of str
        What will be released: the command's affair, no option.
    """

    path: options.Directory = None
    force: options.Force = False
    report: options.Report = False
    rows: options.Names = None
    sign: options.Sign = None
    names: tuple[str, ...] = ("mean",)

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Make the directory and try it; remove it again if what follows fails."""
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
        """Refuse names of rows that do not fit, while nothing is paid yet."""
        from spdp.words import check_names

        check_names(row_names(self.rows), k)

    def _check_options(self) -> None:
        for option in ("report", "sign"):
            if getattr(self, option) and self.path is None:
                raise ParameterError(f"--{option} needs a directory to write into: add -o DIR")
        if self.rows is not None and not self.report:
            raise ParameterError("--names is for the page about a release: add --report")
        if self.report:
            check_report()
        if self.sign is not None:
            from spdp.signature import sign

            sign("", self.sign)  # whether the key can sign is known by signing only

    def _try(self, path: Path) -> None:
        """Whether results can be written is known by writing only."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not self.force:
                check_free(*self._files(path))
            with tempfile.NamedTemporaryFile(dir=path, prefix=".partial-") as file:
                file.write(bytes(TRIAL_BYTES))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise DataError(f"{path}: cannot be written to ({reason(error)})") from None

    def write(self, release: "Release", ledger: "Ledger | None" = None) -> list[Path]:
        """Write a release and give the files, or say how to get it again."""
        if self.path is None:
            return []
        try:
            release.save(self.path, force=self.force, sign=self.sign)
        except Exception as error:
            why = f"{self.path}: the release cannot be written ({in_words(error)}); "
            raise DataError(why + _rescue(release, ledger)) from error
        *files, page = self._files(self.path)
        if self.report:
            _write_report(release, page, row_names(self.rows), ledger)
        return [*files, page] if self.report else files

    def _files(self, path: Path) -> list[Path]:
        """The files of a release, the page about it last."""
        from spdp.release import CERTIFICATE, REPORT

        arrays = [path / f"{name}.npy" for name in self.names]
        return [*arrays, path / CERTIFICATE, path / REPORT]


def _write_report(
    release: "Release", file: Path, rows: list[str] | None, ledger: "Ledger | None"
) -> None:
    from spdp.report import html_report

    try:
        page = html_report(release, names=rows, entry=entry_of(release, ledger))
        with file.open("x", encoding="utf-8") as stream:
            stream.write(page)
    except Exception as error:
        why = f"{file}: cannot be written ({in_words(error)}); the release itself is beside it"
        raise DataError(why) from error


def write_page(file: Path, page: str) -> None:
    """Write a page in place of what is there."""
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{file}: cannot be written ({reason(error)})") from None


def row_names(text: str | None) -> list[str] | None:
    """Names of rows: the lines of a file, or else what commas separate."""
    if text is None:
        return None
    try:
        listed = Path(text).is_file()
        lines = Path(text).read_text("utf-8-sig").splitlines() if listed else text.split(",")
    except (OSError, UnicodeError) as error:
        raise DataError(f"{text}: cannot be read as names, one a line ({reason(error)})") from None
    return [line.strip() for line in lines if line.strip()]


def check_free(*files: Path) -> None:
    """Refuse to overwrite."""
    for file in files:
        if os.path.lexists(file):
            raise ParameterError(f"{file}: exists already and is not overwritten", ask="force")


def _rescue(release: "Release", ledger: "Ledger | None") -> str:
    """How to get a release that was paid for but not written."""
    entry = entry_of(release, ledger)
    if ledger is None or entry is None:
        return "no ledger keeps it, and running the command again makes a second release"
    file = shlex.quote(str(ledger.path))
    return f"it is paid for and kept: spdp ledger recover {file} {entry['id']} -o DIR"


def entry_of(release: "Release", ledger: "Ledger | None") -> dict[str, Any] | None:
    """The entry of a ledger that paid for a release, with the ledger's name."""
    from spdp.plain import plain

    if ledger is None:
        return None
    value = plain(release.values if len(release.values) > 1 else release.value)
    paid = [entry for entry in ledger.history() if entry["value"] == value]
    return {**paid[-1], "ledger": ledger.path.name} if paid else None
