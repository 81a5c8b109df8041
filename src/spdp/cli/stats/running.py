"""What the commands of this group share: read, release, write, show."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spdp.cli import options
from spdp.cli.output import Output, present
from spdp.cli.records import Reader, name_of
from spdp.cli.spelling import printable

if TYPE_CHECKING:
    from spdp.release import Release

__all__ = ["run"]


def run(
    statistic: "Callable[..., Release]",
    data: Sequence[Path],
    reader: Reader,
    target: Output,
    ledger: Path | None,
    label: str | None,
    as_json: bool,
    **choices: Any,
) -> None:
    """Release a statistic of the records in files, for ``choices``.

    A choice that is a function is what it reads beside so many records.
    """
    account = None if ledger is None else options.open_ledger(ledger)
    name = printable(name_of(data) if label is None else label)
    with target.prepared(), reader.opened(data) as (source, engine):
        target.check_rows(source.k)
        read = {key: value(source.n) for key, value in choices.items() if callable(value)}
        release = statistic(source, ledger=account, label=name, engine=engine, **choices | read)
        written = target.write(release, account)
    present(release, written, as_json)
