"""``spdp site``: what a site does in a study; nobody sees its records or its sum."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_CEILING, Decimal
from pathlib import Path

import typer
from rich.table import Table

from spdp.cli import options
from spdp.cli.commands import group, register
from spdp.cli.errors import printable
from spdp.cli.options import option
from spdp.cli.output import check_free, console, say
from spdp.cli.records import Reader
from spdp.cli.study import FILE, FLARE, FOLDER, PATIENCE, SEALS, carried, check_transport
from spdp.errors import DataError, DataWarning, ParameterError, warn
from spdp.federated import closing, joining
from spdp.federated.canonical import encode, write
from spdp.federated.drafting import check_name
from spdp.federated.identity import Identity, read_pins, words_of, write_pins
from spdp.federated.masks import KeyFile
from spdp.federated.site import Site
from spdp.federated.study import Study, Terms, read_seals, read_study, read_terms
from spdp.federated.transcript import Masked, read_rounds
from spdp.ledger import Ledger
from spdp.ledger.studies import Studies
from spdp.options import counted

app = group("Take part in a study over sites with your own data and ledger.")
LEDGER = option("Ledger of this site's data, bound to them.", default=..., metavar="FILE")
IDENTITY = option(
    "This site's identity (PEM) [default: NAME.identity beside the ledger].", metavar="FILE"
)


def join(
    *,
    file: Path = FILE,
    data: list[Path] = options.DATA,
    name: str = option("This site's name: a-z, 0-9 and hyphens.", default=..., metavar="NAME"),
    ledger: Path = LEDGER,
    output: Path = option("The card.", "--output", "-o", default=..., metavar="FILE"),
    identity: Path | None = IDENTITY,
    reader: Reader,
) -> None:
    """Look over this site's records, make keys, and write its card.

    What is printed of the records is for this site alone. The card has the site's name,
    its number of records and public keys. The price is reserved when the study is
    signed.
    """
    check_free(output)
    check_name(name)
    terms, account = read_terms(file), options.open_ledger(ledger)
    keys = KeyFile.beside(account.path, terms.digest)
    joining.check_new(keys)
    with reader.opened(data) as (source, engine):
        found = joining.opened(source, terms, account, engine)
        told = joining.looked_over(source, terms, found.store)
    for text in told:
        warn(text, DataWarning)
    file_of = identity or joining.identity_file(account.path, name)
    who, made = Identity.opened_or_made(file_of)
    card = joining.join(terms, name, found.n, who, keys)
    write(output, card.data)
    if made:
        say(f"wrote {file_of}: this site's identity, for years; keep it secret")
    say(f"wrote {keys.path}: keys of this study; keep them out of backups")
    say(f"wrote {output}: {name}, {found.n:,} {counted(terms.unit.value)}; to the coordinator")
    _price(terms)
    say(f"the words of {name}, to be read out to the other sites:")
    say(f"  {words_of(who.public)}", style="bold")


def _price(terms: Terms) -> None:
    budget = terms.budget
    say(f"the study will cost ε = {budget.epsilon:g}, δ = {budget.delta:g} (μ = {terms.mu:.4g})")


def sign(
    *,
    file: Path = FILE,
    ledger: Path = LEDGER,
    output: Path = option("The seal.", "--output", "-o", default=..., metavar="FILE"),
    identity: Path | None = IDENTITY,
    pins: Path | None = option(
        "Words of sites that were confirmed before, one site per line [default: LEDGER.pins].",
        metavar="FILE",
    ),
    yes: bool = option("Agree to the price; identities are asked for.", "--yes", default=False),
) -> None:
    """Show a study's sites and price; confirm, reserve the price, and sign.

    The words of each site are compared with that site, by telephone, once.
    """
    check_free(output)
    study, account = read_study(file), options.open_ledger(ledger)
    keys = KeyFile.beside(account.path, study.terms.digest)
    if not keys.exists():
        raise DataError(f"{keys.path}: no such keys; this ledger's data did not join the study")
    me = keys.read().card.name
    who = _opened(identity, account, me)
    _show(study, me)
    if not yes and not typer.confirm("Reserve this price, and sign?"):
        raise ParameterError("not signed")
    pinned = pins or account.path.with_name(f"{account.path.name}.pins")
    known = read_pins(pinned)
    joining.check_identities(study, me, known, _confirmed)
    write_pins(pinned, known)
    made = joining.sign(study, who, keys, account)
    write(output, made.data)
    say(f"wrote {output}: to all sites; μ = {study.terms.mu:.4g} is reserved in {account.path}")


def _confirmed(name: str, words: str) -> bool:
    say(f"{name}: {words}")
    return typer.confirm(f"Did {name} read these words to you, by telephone?")


def _show(study: Study, me: str) -> None:
    terms, table = study.terms, Table("site", "records", title_justify="left")
    for card in study.cards:
        own = " (this site)" if card.name == me else ""
        table.add_row(f"{card.name}{own}", f"{card.n:,}")
    console().print(table)
    for card in study.cards:  # not in the table, which would cut them off
        say(f"{card.name}: {printable(words_of(card.identity))}")
    domain = ", ".join(f"{name} {value}" for name, value in terms.space.domain.describe().items())
    say(f"{terms.statistic}, {terms.method}, {terms.metric}, {terms.k}×{terms.k}, {domain}")
    say(f"study {study.digest.hex()}")
    _price(terms)
    say(
        f"if more than {terms.colluding} of {study.sites} sites collude it is more, up to "
        f"ε = {rounded_up(study.epsilon_alone)} if all others do"
    )


def rounded_up(number: float) -> str:
    """Two decimals, never rounded down."""
    return str(Decimal(number).quantize(Decimal("0.01"), ROUND_CEILING))


def _opened(identity: Path | None, ledger: Ledger, name: str) -> Identity:
    return Identity.open(identity or joining.identity_file(ledger.path, name))


@contextmanager
def _site(
    study: Study,
    data: list[Path],
    ledger: Ledger,
    identity: Path | None,
    seals: Path,
    reader: Reader,
) -> Iterator[Site]:
    found, keys = read_seals(seals, study), KeyFile.beside(ledger.path, study.terms.digest)
    joined = Studies(ledger).find(study.digest.hex())
    if joined is None:
        raise DataError(f"{ledger.path}: not in this study yet; spdp site sign comes first")
    who, log = _opened(identity, ledger, joined.site), keys.path.with_suffix(".log")
    with reader.opened(data) as (source, engine):
        opened = joining.opened(source, study.terms, ledger, engine)
        with Site(study, found, who, keys, ledger, opened, log) as site:
            yield site


def sum_(
    *,
    file: Path = FILE,
    data: list[Path] = options.DATA,
    ledger: Path = LEDGER,
    output: Path = option("The masked sum.", "--output", "-o", default=..., metavar="FILE"),
    identity: Path | None = IDENTITY,
    seals: Path | None = SEALS,
    reader: Reader,
) -> None:
    """Write this site's masked sum of a one-shot study; it says nothing by itself.

    Called again, it writes the same bytes.
    """
    check_free(output)
    study, account = read_study(file), options.open_ledger(ledger)
    with _site(study, data, account, identity, seals or file.parent, reader) as site:
        answer = encode(site.only_answer())
    write(output, Masked(site=site.name, sealed=site.sealed.hex(), answer=answer).data)
    say(f"wrote {output}: to the coordinator; without all other sites' it says nothing")


def serve(
    *,
    file: Path = FILE,
    data: list[Path] = options.DATA,
    ledger: Path = LEDGER,
    folder: Path | None = FOLDER,
    flare: Path | None = FLARE,
    identity: Path | None = IDENTITY,
    seals: Path | None = SEALS,
    patience: float = PATIENCE,
    reader: Reader,
) -> None:
    """Answer the rounds of an adaptive study, then check its result, and sign.

    Rounds come over a shared folder or over FLARE. Interrupted, it goes on where it
    stopped when it is called again.
    """
    check_transport(folder, flare)
    study, account = read_study(file), options.open_ledger(ledger)
    joined = Studies(account).find(study.digest.hex())
    name = "" if joined is None else joined.site
    with carried(study, patience, folder, flare, name) as shared:
        if joined is None or joined.state != "closed":
            with _site(study, data, account, identity, seals or file.parent, reader) as site:
                shared.serve(site)
        name = closing.joined_of(account, study.digest.hex()).site
        who = _opened(identity, account, name)
        shared.sign(name, lambda draft: closing.close(draft, who, account))
        if flare is not None:
            say("waiting until all sites have signed")
            shared.ended([name], patience)


def close(
    *,
    draft: Path = typer.Argument(..., metavar="DRAFT", help="What spdp study merge wrote."),
    ledger: Path = LEDGER,
    output: Path = option("The signature.", "--output", "-o", default=..., metavar="FILE"),
    identity: Path | None = IDENTITY,
) -> None:
    """Check a draft, sign it, and delete the keys of its study.

    Checked is that the release follows from the sums, the sums from the answers of all
    sites, and that this site's own are among them.
    """
    check_free(output)
    account = options.open_ledger(ledger)
    joined = closing.joined_of(account, read_rounds(draft).study.digest.hex())
    made = closing.close(draft, _opened(identity, account, joined.site), account)
    write(output, made.data)
    say(f"wrote {output}: to the coordinator; the keys of this study are deleted")


def leave(file: Path = FILE, ledger: Path = LEDGER) -> None:
    """Leave a study: delete its keys.

    The reserved price is taken back if nothing was answered.
    """
    terms, account = read_terms(file), options.open_ledger(ledger)
    back = joining.leave(terms, KeyFile.beside(account.path, terms.digest), account)
    paid = "nothing is reserved" if back else "what was paid is not refunded"
    say(f"left: the keys of the study are deleted, and {paid}")


register(app, join, sign, sum_, serve, close, leave, under="site")
