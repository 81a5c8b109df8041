"""``spdp bids``: a BIDS App that releases a statistic of a dataset's participants.

*Enforced.* Everything is checked, and the place of the output tried, before any budget
is spent. Written are the release, its certificate and texts that are made of them:
neither names nor numbers of participants or files.
"""

import inspect
import json
from collections.abc import Iterator
from dataclasses import Field, asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer

from spdp import __version__
from spdp.cli import options
from spdp.cli.commands import expanded
from spdp.cli.options import Budget, Group, Space, option
from spdp.cli.output import Output, can_report, present
from spdp.cli.statistics import keyword, own_options, parameter, parsed
from spdp.data.bids import Found, Reading, Selection, open_bids
from spdp.errors import DataError, ParameterError, named, reason
from spdp.options import Adjacency, BidsData, OnInvalid
from spdp.release import CERTIFICATE, Release
from spdp.statistics import STATISTICS, every, find
from spdp.statistics.base import Statistic

GROUP, PARTICIPANT = "group", "participant"
VERSION = "1.10.0"  # of BIDS
DESCRIPTION, README, IGNORE = "dataset_description.json", "README.md", ".bidsignore"
IGNORED = "/group\n"  # BIDS has no names for results of groups yet


@dataclass(frozen=True)
class Dataset(Group):
    """Which files of a dataset are records, and what is known of its participants."""

    statistic: str = option(f"One of {', '.join(STATISTICS)}.", default="mean", metavar="NAME")
    participant_label: str | None = option(
        "Participants, separated by commas or spaces, with or without sub-. All by default.",
        "--participant-label",
        "--participant_label",
        metavar="LABELS",
    )
    data: BidsData | None = option("What to read, if the dataset has both.")
    derivatives: str | None = option("The folder below derivatives/ to read.", metavar="NAME")
    entity: list[str] | None = option(
        "Only files with this entity in their names, such as space=ACPC; may be repeated.",
        metavar="NAME=LABEL",
    )
    order: str | None = options.ORDER
    mask: Path | None = option(
        "NIfTI mask for all images [default: the desc-brain mask beside each].", metavar="FILE"
    )
    shrink: float | None = option(
        "Shrink each correlation matrix to (1-s)C + sI, with this public s.", metavar="S"
    )
    label_column: str | None = option(
        "Column of participants.tsv that holds classes.", metavar="NAME"
    )
    covariate_columns: str | None = option(
        "Columns of participants.tsv that hold covariates, separated by commas.", metavar="NAMES"
    )

    def opened(self, root: Path) -> Any:
        """The records of the dataset, and the files they are of."""
        labels = tuple((self.participant_label or "").replace(",", " ").split())
        columns = (self.covariate_columns or "").split(",")
        x = tuple(name.strip() for name in columns if name.strip())
        wanted = Selection(self.data, self.derivatives, labels, tuple(self.entity or ()))
        how = Reading(self.order, self.mask, self.label_column, x, self.shrink)
        return open_bids(root, wanted, how)


@dataclass(frozen=True)
class Work(Group):
    """Options of every statistic."""

    ledger: Path | None = options.LEDGER
    label: str | None = option("Name of this release in the ledger.", metavar="TEXT")
    adjacency: Adjacency = options.ADJACENCY
    on_invalid: OnInvalid = options.ON_INVALID
    anyway: bool = options.ANYWAY
    force: bool = options.FORCE
    sign: Path | None = options.SIGN
    as_json: bool = options.JSON


def _bids() -> Any:
    """The command, with the options that all statistics declare."""
    found: dict[str, Field[Any]] = {}
    for statistic in every():
        for own in own_options(statistic):
            found.setdefault(own.name, own)
    parameters = [
        keyword("bids_dir", Path, typer.Argument(..., metavar="BIDS_DIR", help="A BIDS dataset.")),
        keyword("out", Path, typer.Argument(..., metavar="OUT", help="Folder of the results.")),
        keyword("level", str, typer.Argument(..., metavar="group", help="The only level.")),
        keyword("dataset", Dataset),
        keyword("budget", Budget),
        keyword("space", Space),
        *(_optional(own) for own in found.values()),
        keyword("work", Work),
    ]

    def call(**values: Any) -> None:
        run(values, found)

    seen: Any = call
    seen.__name__, seen.__doc__ = "bids", HELP
    seen.__signature__ = inspect.Signature(parameters)
    return expanded(call)


HELP = """Release a statistic of a BIDS dataset (a BIDS App).

Reads diffusion tensor maps (model-tensor, suffix dwimap) or connectivity matrices (suffix relmat,
a draft) of the dataset or of its derivatives. Each participant is one person, with all sessions
and runs. Writes a BIDS derivative dataset.
"""


def _optional(own: Field[Any]) -> inspect.Parameter:
    """A statistic's own option; None where it is not passed."""
    made = parameter(own)
    declared = made.default
    declared.default = None
    kind = made.annotation
    return made.replace(annotation=kind | None)


def run(values: dict[str, Any], own: dict[str, Field[Any]]) -> None:
    """Find, release, write, show."""
    root, out, dataset, work = (values[name] for name in ("bids_dir", "out", "dataset", "work"))
    _check_level(values["level"])
    statistic = find(dataset.statistic) if dataset.statistic in STATISTICS else None
    if statistic is None:
        raise ParameterError(f"{named('statistic')} must be one of {', '.join(STATISTICS)}")
    asked = _asked(statistic, {name: values[name] for name in own if values[name] is not None}, own)
    space = values["space"]
    domain = space.domain()
    ledger = None if work.ledger is None else options.open_ledger(work.ledger)
    _check_columns(statistic, dataset)
    _check_output(out)
    name = f"stat-{statistic.name.replace('-', '')}"
    target = Output(
        out / "group" / name, work.force, can_report(), None, work.sign, names=asked.arrays()
    )
    with target.prepared():
        source, found = dataset.opened(root)
        where = {"domain": domain, "metric": space.metric, "reference_point": space.point()}
        how = {"adjacency": work.adjacency, "on_invalid": work.on_invalid, "anyway": work.anyway}
        label = f"{statistic.name} of {root.resolve().name}" if work.label is None else work.label
        paid = {"ledger": ledger, "label": label}
        given: Any = where | how | paid | asdict(values["budget"])
        release = asked.release(source, **given)
        written = target.write(release, ledger)
    written += _describe(out, root)
    written += _tables(out / "group" / name, release, found)
    present(release, written, work.as_json)


def _check_level(level: str) -> None:
    if level == PARTICIPANT:
        raise ParameterError(
            "participant: there is no such level. A participant's own matrices are private; "
            "only the group level is released"
        )
    if level != GROUP:
        raise ParameterError(f"the level of analysis must be group, got {level!r}")


def _asked(statistic: Statistic, given: dict[str, Any], own: dict[str, Field[Any]]) -> Statistic:
    """The statistic with its options; those of others are refused."""
    known = {field.name for field in own_options(statistic)}
    for name in given:
        if name not in known:
            raise ParameterError(f"{named(name)} is no option of {statistic.name}")
    return type(statistic)(**{name: parsed(own[name], value) for name, value in given.items()})


def _check_columns(statistic: Statistic, dataset: Dataset) -> None:
    """Ask for the columns of participants.tsv that a statistic needs; refuse others."""
    for column, name in (("label", "label_column"), ("x", "covariate_columns")):
        given = getattr(dataset, name) is not None
        if column in statistic.columns and not given:
            raise ParameterError(f"{statistic.name} needs a column of participants.tsv", ask=name)
        if given and column not in statistic.columns:
            raise ParameterError(f"{named(name)} has no meaning for {statistic.name}")


def _check_output(out: Path) -> None:
    """Refuse a folder that is a dataset of somebody else."""
    file = out / DESCRIPTION
    if not file.exists():
        return
    try:
        makers = json.loads(file.read_text("utf-8"))["GeneratedBy"]
        ours = any(maker["Name"] == "spdp" for maker in makers)
    except (OSError, ValueError, KeyError, TypeError):
        ours = False
    if not ours:
        raise DataError(f"{out}: is another dataset; name a folder of its own for the results")


def _describe(out: Path, root: Path) -> list[Path]:
    """What makes the folder a BIDS derivative dataset."""
    description: dict[str, Any] = {
        "Name": "Differentially private statistics",
        "BIDSVersion": VERSION,
        "DatasetType": "derivative",
        "GeneratedBy": [{"Name": "spdp", "Version": __version__}],
    }
    try:
        doi = json.loads((root / DESCRIPTION).read_text("utf-8")).get("DatasetDOI")
    except (OSError, ValueError, AttributeError):
        doi = None
    if isinstance(doi, str):
        description["SourceDatasets"] = [{"DOI": doi}]
    texts = {DESCRIPTION: _json(description), README: ABOUT, IGNORE: IGNORED}
    return [_written(out / name, text) for name, text in texts.items()]


ABOUT = """# Differentially private statistics

Each folder `group/stat-NAME` holds one release: its arrays, its certificate and its page.
`spdp verify group/stat-NAME` checks it. Beside it, each matrix is a table `.tsv`, with the
certificate as its sidecar `.json`. BIDS has no names for results of groups yet: `.bidsignore`
leaves them out.
"""


def _tables(folder: Path, release: Release, found: Found) -> list[Path]:
    """Released matrices as tables, with the certificate as their sidecar."""
    sealed = json.loads((folder / CERTIFICATE).read_text("utf-8"))
    names = release.row_names or ()
    written = []
    for name, matrix in _matrices(release):
        table = folder.parent / f"{folder.name}_desc-{name.replace('_', '')}_{SUFFIX[found.data]}"
        written.append(_written(table.with_suffix(".tsv"), _tsv(matrix, names)))
        about = {"Description": f"{name}: {sealed['estimand']}", "Certificate": sealed}
        written.append(_written(table.with_suffix(".json"), _json(about)))
    return written


SUFFIX = {BidsData.TENSOR: "tensor", BidsData.CONNECTIVITY: "relmat"}


def _matrices(release: Release) -> Iterator[tuple[str, Any]]:
    """The k×k matrices of a release, by name; of several, each by its place."""
    k = release.certificate["k"]
    for name, array in release.values.items():
        if array.shape == (k, k):
            yield name, array
        elif array.ndim == 3 and array.shape[1:] == (k, k):
            yield from ((f"{name}{i}", matrix) for i, matrix in enumerate(array))


def _tsv(matrix: Any, names: Any) -> str:
    rows = ["\t".join(map(str, names))] if len(names) == len(matrix) else []
    rows += ["\t".join(map(repr, row)) for row in np.asarray(matrix).tolist()]
    return "\n".join(rows) + "\n"


def _json(content: Any) -> str:
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _written(file: Path, text: str) -> Path:
    try:
        file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        why = f"{file}: cannot be written ({reason(error)}); the release itself was written"
        raise DataError(why) from error
    return file


bids = _bids()
