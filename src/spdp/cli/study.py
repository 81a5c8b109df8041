"""``spdp study``: what a coordinator does with a study over sites."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import typer

from spdp.charts import chart_of
from spdp.cli.commands import group, register
from spdp.cli.options import Budget, Space, option
from spdp.cli.output import check_free, present, say
from spdp.domain import base as domains
from spdp.errors import DataError, ParameterError
from spdp.federated.canonical import decode, read_as, write
from spdp.federated.checks import check_published
from spdp.federated.drafting import rostered, terms_of
from spdp.federated.folder import Folder
from spdp.federated.identity import Identity
from spdp.federated.kits import Kit, submitted
from spdp.federated.rounds import Collected, Coordinator, released
from spdp.federated.study import (
    MOST_BYTES,
    Card,
    Study,
    not_studied,
    read_seals,
    read_study,
    sealed_by,
    studied,
)
from spdp.federated.transcript import (
    ANSWERS,
    Close,
    Masked,
    check_close,
    read_rounds,
    rounds_of,
    write_draft,
    write_published,
)
from spdp.options import Method, Unit
from spdp.release import Release

app = group("Coordinate a study over sites that show nobody their sums.")
FILE = typer.Argument(..., metavar="STUDY", help="The study's file.")
OUTPUT = option("Directory for the release.", "--output", "-o", default=..., metavar="DIR")
SEALS = option("Folder of the sites' seals [default: that of STUDY].", metavar="DIR")
KEY = option("The coordinator's key (PEM) [default: STUDY.key].", metavar="FILE")
PATIENCE = option("Seconds to wait for the next message.", default=3600.0, min=1.0, metavar="S")
FOLDER = option("Folder that all sites share.", metavar="DIR")
FLARE = option("Kit of NVIDIA FLARE, in place of a shared folder.", metavar="KIT")
LAST = 30.0  # seconds for telling sites, by FLARE, that all have signed


def create(
    *,
    file: Path = typer.Argument(..., metavar="STUDY", help="The study's file, to be made."),
    statistic: str = option(f"One of {', '.join(studied())}.", default="mean", metavar="NAME"),
    k: int = option("Size of the matrices, k×k.", default=..., min=1, metavar="K"),
    budget: Budget,
    space: Space,
    method: Method = option(
        "oneshot: a file from each site; adaptive: a search in rounds.", default=Method.ONESHOT
    ),
    colluding: int = option(
        "How many sites may pool what they know without weakening the guarantee for the others.",
        default=1,
        min=1,
        metavar="C",
    ),
    options: list[str] = option(
        "A whole number that the statistic takes, by its name in Python; may be repeated.",
        "--option",
        default=(),
        metavar="NAME=VALUE",
    ),
    unit: Unit = option("What is protected.", default=Unit.RECORD),
    key: Path | None = KEY,
) -> None:
    """Write down what a study asks; sites join it next.

    The coordinator's key is made beside it if there is none.
    """
    check_free(file)
    if method is Method.AUTO:
        raise ParameterError("--method of a study is oneshot or adaptive")
    if statistic not in studied():
        raise ParameterError(f"--statistic {statistic}: {not_studied(statistic)}")
    chart = chart_of(space.metric, space.point())
    where = domains.Space.of(chart, space.domain(), k)
    make = partial(
        terms_of,
        where,
        statistic=statistic,
        options=dict(map(_numbered, options)),
        method=method.value,
        epsilon=budget.epsilon,
        delta=budget.delta,
        unit=unit.value,
        colluding=colluding,
    )
    make(coordinator="0" * 64)  # before a key is written
    who, made = Identity.opened_or_made(_key(file, key))
    write(file, Study(terms=make(coordinator=who.public), cards=[]).data)
    if made:
        say(f"wrote {_key(file, key)}: the coordinator's key, to be kept secret")
    say(f"wrote {file}: send it to the sites, who join it (spdp site join)")


def _numbered(option: str) -> tuple[str, int]:
    name, _, value = option.partition("=")
    if not value.isascii() or not value.isdigit():
        raise ParameterError(f"--option is NAME=VALUE with a whole number, got {option!r}")
    return name, int(value)


def _key(file: Path, key: Path | None) -> Path:
    return file.with_name(f"{file.name}.key") if key is None else key


def seal(
    *,
    file: Path = FILE,
    cards: list[Path] = typer.Argument(..., metavar="CARD", help="Cards of all sites."),
) -> None:
    """Fix the roster of a study; its sites sign it next."""
    study = read_as(file, Study, MOST_BYTES)
    if study.cards:
        raise DataError(f"{file}: has its roster already")
    found = [read_as(card, Card, MOST_BYTES) for card in cards]
    roster = rostered(study.terms, found)
    write(file, roster.data, force=True)
    sites = ", ".join(f"{card.name} ({card.n:,})" for card in roster.cards)
    say(f"wrote {file}: {roster.sites} sites, {sites}; each signs it (spdp site sign)")


def merge(
    *,
    file: Path = FILE,
    masked: list[Path] = typer.Argument(..., metavar="MASKED", help="Masked sums of all sites."),
    output: Path = OUTPUT,
    seals: Path | None = SEALS,
) -> None:
    """Add up the masked sums of a one-shot study, and release.

    The draft goes to the sites, who check and sign it (spdp site close).
    """
    study = read_study(file)
    if study.terms.method != "oneshot":
        raise ParameterError(f"{file}: not a one-shot study; spdp study run asks its rounds")
    _check_new(output)
    sealings = read_seals(seals or file.parent, study)
    sealed, given = sealed_by(study, sealings), dict[str, bytes]()
    for path in masked:
        one = read_as(path, Masked, MOST_BYTES)
        if one.site in given or one.sealed != sealed.hex():
            raise DataError(f"{path}: of another study, or a second sum of {one.site}")
        given[one.site] = decode(one.answer)
    missing = sorted(set(study.names) - set(given))
    if missing:
        raise DataError(
            f"masked sums of {', '.join(missing)} are missing: without them nothing can be read"
        )
    asker = Collected(study, sealed, given=given)
    release = released(asker)
    write_draft(output, asker, rounds_of(asker, sealings, release), release)
    present(release, [output])
    say(f"{output} goes to the sites alone, who check and sign it; {ANSWERS} is not published")


def run(
    *,
    file: Path = FILE,
    folder: Path | None = FOLDER,
    flare: Path | None = FLARE,
    flare_admin: Path | None = option(
        "Kit of FLARE's administrator, who submits the study's job.", metavar="KIT"
    ),
    output: Path = OUTPUT,
    seals: Path | None = SEALS,
    key: Path | None = KEY,
    patience: float = PATIENCE,
) -> None:
    """Ask the rounds of an adaptive study over a shared folder or FLARE, and publish.

    Interrupted, it goes on where it stopped when it is called again.
    """
    check_transport(folder, flare)
    if (flare is None) != (flare_admin is None):
        raise ParameterError("--flare needs --flare-admin, the kit of FLARE's administrator")
    study = read_study(file)
    if study.terms.method != "adaptive":
        raise ParameterError(f"{file}: a one-shot study has no rounds; spdp study merge adds up")
    _check_new(output)
    sealings = read_seals(seals or file.parent, study)
    sealed, who = sealed_by(study, sealings), Identity.open(_key(file, key))
    if who.public != study.terms.coordinator:
        raise DataError(f"{_key(file, key)}: not the key of this study's coordinator")
    with carried(study, patience, folder, flare) as shared, ExitStack() as stack:
        if flare_admin is not None:
            shared.forget_refusals()
            stack.enter_context(submitted(flare_admin, study.names, shared.path))
        asker = Coordinator(study, sealed, who=who, transport=shared)
        rounds, release = shared.drafted(asker, sealings)
        closes = shared.closes(rounds)
        write_published(output, rounds, closes, release)
        present(release, [output])
        if flare_admin is not None:
            shared.ended(study.names, LAST)


def check_transport(folder: Path | None, flare: Path | None) -> None:
    """Messages go over a folder or over FLARE."""
    if (folder is None) == (flare is None):
        raise ParameterError("one of --folder and --flare says how messages travel")


@contextmanager
def carried(
    study: Study, patience: float, folder: Path | None, flare: Path | None, name: str = ""
) -> Iterator[Folder]:
    """The folder of a study: shared by all, or with FLARE's process on this machine."""
    if folder is not None:
        yield Folder(folder, study, patience, say)
        return
    assert flare is not None
    kit = Kit(flare)
    if name and kit.name() != name:
        raise DataError(f"{flare}: a kit of {kit.name()}, and this site is {name} in the study")
    kit.folder.mkdir(mode=0o700, exist_ok=True)
    shared = Folder(kit.folder, study, patience, say)
    shared.path.mkdir(exist_ok=True)
    with kit.running(shared.path, name):
        yield shared


def publish(
    *,
    draft: Path = typer.Argument(..., metavar="DRAFT", help="What spdp study merge wrote."),
    closes: list[Path] = typer.Argument(..., metavar="CLOSE", help="The sites' signatures."),
    output: Path = OUTPUT,
    incomplete: bool = option(
        "Publish although sites have not signed; verification says so.",
        "--incomplete",
        default=False,
    ),
) -> None:
    """Publish a release with the signatures of all its sites."""
    _check_new(output)
    rounds, release = read_rounds(draft), Release.load(draft)
    signed = [read_as(path, Close, MOST_BYTES) for path in closes]
    for close in signed:
        check_close(close, rounds)
    names = [close.site for close in signed]
    missing = sorted(set(rounds.study.names) - set(names))
    if len(set(names)) < len(names):
        raise DataError("a site's signature is there twice")
    if missing and not incomplete:
        raise DataError(f"not signed by {', '.join(missing)}", ask="incomplete")
    failed = [c for c in check_published(draft, release, signed=False) if not c.ok]
    if failed:
        raise DataError(f"{draft}: {failed[0].name}: {failed[0].detail}")
    write_published(output, rounds, signed, release)
    present(release, [output])


def _check_new(output: Path) -> None:
    """Refuse a directory that holds something."""
    if os.path.lexists(output) and not (output.is_dir() and not any(output.iterdir())):
        raise ParameterError(f"{output}: exists already and is not overwritten")


register(app, create, seal, merge, run, publish, under="study")
