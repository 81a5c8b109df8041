"""``spdp mean`` and ``spdp stats …``: one command for each declared statistic."""

import inspect
from collections.abc import Callable
from dataclasses import Field, asdict, dataclass, fields, replace
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import Any

import typer

from spdp.cli import options
from spdp.cli.commands import epilog, expanded, group
from spdp.cli.options import Budget, Space
from spdp.cli.output import Publication, present
from spdp.cli.plan import plan
from spdp.cli.records import Reader, read_covariates, read_labels
from spdp.options import Adjacency, OnInvalid
from spdp.statistics import STATISTICS, find
from spdp.statistics.base import Statistic

MEAN = "mean"  # its command is spdp mean, the others are below spdp stats
LABELS = options.option(
    "Class of each record: .npy, .npz, or text with one per line; --label-column names the array "
    "of an .npz.",
    metavar="FILE",
)
COVARIATES = options.option(
    "Covariates of each record: .npy, or text with one line each.", default=..., metavar="FILE"
)
COLUMNS = {"label": ("labels", Path | None, LABELS), "x": ("covariates", Path, COVARIATES)}
FILES = {"label": "--labels labels.txt", "x": "--covariates ages.npy"}


@dataclass(frozen=True)
class Work(options.Group):
    """Options of every statistic: reading, adjacency, invalid records, output."""

    reader: Reader
    adjacency: Adjacency = options.ADJACENCY
    on_invalid: OnInvalid = options.ON_INVALID
    anyway: bool = options.ANYWAY
    as_json: bool = options.JSON


def example(statistic: Statistic) -> str:
    """An example call of the statistic's command."""
    name = statistic.name if statistic.name == MEAN else f"stats {statistic.name}"
    words = [f"spdp {name} matrices.npy", *(FILES[column] for column in statistic.columns)]
    words += [
        f"{_flag(option)} {option.metadata['example']}"
        for option in own_options(statistic)
        if option.metadata["example"] is not None
    ]
    epsilon = 1 if statistic.name == MEAN else 2
    words.append(f"--epsilon {epsilon} --delta 1e-6 --eigenvalues 0.1 10")
    return " ".join(words) + (" -o release --report" if statistic.name == MEAN else "")


def own_options(statistic: Statistic) -> list[Field[Any]]:
    """Fields of a statistic that are options of its command."""
    return [field for field in fields(statistic) if "help" in field.metadata]  # type: ignore[arg-type]


def _flag(option: Field[Any]) -> str:
    return str(option.metadata.get("flag", f"--{option.name.replace('_', '-')}"))


def parameter(field: Field[Any]) -> Parameter:
    """A statistic's own option, as Typer reads it."""
    told, default = field.metadata, field.default
    kind = told["kind"]
    if told.get("required"):
        default = ...
    elif default is None:
        kind = kind | None
    elif isinstance(kind, type):
        default = kind(default)
    more = {name: told[name] for name in ("metavar", "min") if name in told}
    made = options.option(told["help"], _flag(field), default=default, **more)
    return keyword(field.name, kind, made)


def keyword(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    """A parameter of a command."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def command_of(statistic: Statistic) -> Callable[..., None]:
    """The command of a statistic, with the options that it declares."""
    own = sorted(own_options(statistic), key=lambda field: not field.metadata.get("required"))
    mine = [parameter(field) for field in own]
    first = sum(p.default.default is ... for p in mine)  # required options
    parameters = [
        keyword("data", list[Path], options.DATA),
        *mine[:first],
        keyword("budget", Budget),
        *(keyword(*COLUMNS[column]) for column in statistic.columns),
        *mine[first:],
        keyword("space", Space),
        keyword("publication", Publication),
        keyword("work", Work),
    ]

    def call(**values: Any) -> None:
        run(statistic, values)

    seen: Any = call
    seen.__name__, seen.__doc__ = statistic.name, statistic.command
    seen.__signature__ = inspect.Signature(parameters)
    seen.example = example(statistic)
    return expanded(call)


def run(statistic: Statistic, values: dict[str, Any]) -> None:
    """Release a statistic of the records in files: read, release, write, show."""
    space, publication, work = values["space"], values["publication"], values["work"]
    asked = type(statistic)(**{o.name: parsed(o, values[o.name]) for o in own_options(statistic)})
    domain, ledger, reader = space.domain(), publication.open_ledger(), work.reader
    target = replace(publication.output, names=asked.arrays())
    labels, covariates = values.get("labels"), values.get("covariates")
    read: Any = None
    if labels is not None:  # --label-column then names an array of that file
        read = partial(read_labels, labels, name=reader.label_column)
        reader = replace(reader, label_column=None)
    with target.prepared(), reader.opened(values["data"]) as (source, engine):
        target.check_rows(source.k)
        y = None if read is None else read(source.n)
        x = None if covariates is None else read_covariates(covariates, source.n)
        where = {"domain": domain, "metric": space.metric, "reference_point": space.point()}
        how = {"engine": engine, "adjacency": work.adjacency, "on_invalid": work.on_invalid}
        how |= {"anyway": work.anyway}
        paid = {"ledger": ledger, "label": publication.name(values["data"])}
        options: Any = where | how | paid | asdict(values["budget"])
        release = asked.release(source, labels=y, covariates=x, **options)
        written = target.write(release, ledger)
    present(release, written, work.as_json)


def parsed(option: Field[Any], value: Any) -> Any:
    """An option's value, from the text that was passed."""
    parse = option.metadata.get("parse")
    return value if parse is None or value is None else parse(value)


def _stats() -> typer.Typer:
    """``spdp stats``; older names of its commands still work, and are not listed."""
    app = group(STATS_HELP)
    for statistic in (find(name) for name in STATISTICS if name != MEAN):
        command, shown = command_of(statistic), epilog(example(statistic))
        app.command(statistic.name, epilog=shown)(command)
        for alias in statistic.aliases:
            app.command(alias, epilog=shown, hidden=True)(command)
    for name, also in (("plan", expanded(plan)), (MEAN, mean)):  # at the top, and here too
        app.command(name, hidden=True)(also)
    return app


STATS_HELP = "Release other statistics than the mean."
mean = command_of(find(MEAN))
stats = _stats()
