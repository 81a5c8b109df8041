"""What the commands of this group share: read, release, write, show."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spdp.cli import options
from spdp.cli.groups import Budget, Publication, Rules, Space
from spdp.cli.output import present
from spdp.cli.records import Reader

if TYPE_CHECKING:
    from spdp.release import Release

__all__ = ["Work", "run"]


@dataclass(frozen=True)
class Work:
    """The last options of every statistic: by which rules, from where, shown how."""

    rules: Rules
    reader: Reader
    as_json: options.Json = False


def run(
    statistic: "Callable[..., Release]",
    names: tuple[str, ...],
    data: Sequence[Path],
    budget: Budget,
    space: Space,
    publication: Publication,
    work: Work,
    **choices: Any,
) -> None:
    """Release a statistic of the records in files, for ``choices`` of its own.

    A choice that is a function is what it reads beside so many records.
    """
    domain, account = space.domain(), publication.account()
    target = replace(publication.output, names=names)
    with target.prepared(), work.reader.opened(data) as (source, engine):
        target.check_rows(source.k)
        read = {key: value(source.n) for key, value in choices.items() if callable(value)}
        release = statistic(
            source,
            domain=domain,
            metric=space.metric,
            ledger=account,
            label=publication.name(data),
            engine=engine,
            **asdict(budget),
            **asdict(work.rules),
            **choices | read,
        )
        written = target.write(release, account)
    present(release, written, work.as_json)
