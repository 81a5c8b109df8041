"""How a site joins a study, signs it, and leaves it.

*Enforced.* The ledger is bound to the data, and their number and unit are those of the
card. A card is signed in one study, byte for byte as it was made. Every other site's
identity is pinned, or a person confirms it. The price is reserved in the ledger before
the seal is given out. Nothing that a site sends here depends on what its records hold.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from spdp.engines import VectorStore
from spdp.errors import InvalidMatrixError, LedgerError, ParameterError
from spdp.federated.canonical import Refused
from spdp.federated.drafting import card_of, seal_of
from spdp.federated.identity import Identity, library, words_of
from spdp.federated.masks import KeyFile, Keys, fresh_keys
from spdp.federated.study import Card, Seal, Study, Terms, agreed
from spdp.ledger import Ledger
from spdp.ledger.studies import Studies
from spdp.queries.sums import COUNT_UNIT, EdgeCount
from spdp.statistics.base import Records
from spdp.statistics.options import DEFAULTS


@dataclass(frozen=True)
class Opened:
    """A site's records, read once, and their number."""

    store: VectorStore
    n: int


def opened(X: Any, terms: Terms, ledger: Ledger, engine: Any = None) -> Opened:
    """Read a site's records for a study; the ledger must be bound to them.

    Invalid records count as the domain's centre: no error depends on what a record
    holds.
    """
    records = _records(X, terms, engine, "center")
    if not ledger.is_bound:
        raise LedgerError(
            f"{ledger.path}: a study needs a ledger that is bound to its data, so that every "
            "answer is about the same records; spdp ledger bind does so"
        )
    records.engine.check_data(records.source, ledger)
    store = records.gather()
    return Opened(store, int(store.n))


def _records(X: Any, terms: Terms, engine: Any, policy: str) -> Records:
    space, options = terms.space, dict(DEFAULTS)
    options |= {"domain": space.domain, "metric": space.chart.name, "engine": engine}
    options |= {"reference_point": space.chart.reference_point, "on_invalid": policy}
    records = Records(X, options)  # type: ignore[arg-type]
    source = records.source
    if source.parts is not None or source.k != terms.k:
        raise ParameterError(
            f"{source.name}: records are not the {terms.k}×{terms.k} matrices of this study"
        )
    if source.unit is not terms.unit:
        raise ParameterError(
            f"{source.name}: read per {source.unit}, but this study is per {terms.unit}"
        )
    return records


def looked_over(X: Any, terms: Terms, store: VectorStore) -> list[str]:
    """What the holder of the data should know of them, and nobody else."""
    told = []
    try:
        _records(X, terms, None, "raise").gather()
    except InvalidMatrixError as error:
        told.append(f"{error.message}; in a study such records count as the domain's centre")
    edge = EdgeCount("edge", terms.space.chart, terms.space.region)
    if at_edge := int(store.total(edge)[0]) // COUNT_UNIT:
        told.append(
            f"{at_edge:,} of {store.n:,} {terms.unit}s lie outside the study's domain or at its "
            "edge, and are clipped to it"
        )
    return told


def check_new(keys: KeyFile) -> None:
    """Refuse to join twice."""
    if keys.exists():
        raise ParameterError(
            f"{keys.path}: this ledger's data joined a study of these terms already; spdp site "
            "leave ends that"
        )


def join(terms: Terms, name: str, n: int, who: Identity, keys: KeyFile) -> Card:
    """Make a site's keys and its card."""
    check_new(keys)
    x25519, mlkem = fresh_keys()
    card = card_of(terms, name, n, who, x25519, mlkem)
    with keys.locked():
        private = x25519.private_bytes_raw().hex(), mlkem.private_bytes_raw().hex()
        keys.replace(Keys(card=card, x25519=private[0], mlkem=private[1]))
    return card


Confirm = Callable[[str, str], bool]


def check_identities(study: Study, me: str, pins: dict[str, str], confirm: Confirm) -> None:
    """Refuse a site whose words are neither pinned nor confirmed; pin the latter."""
    for card in study.cards:
        words = words_of(card.identity)
        if card.name == me:
            continue
        if pins.get(card.name, words) != words:
            raise ParameterError(
                f"{card.name} has another identity than the one that is pinned: its words are "
                f"{words}. Do not sign; ask {card.name}, by telephone, what happened"
            )
        if card.name not in pins and not confirm(card.name, words):
            raise ParameterError(f"the identity of {card.name} was not confirmed: not signed")
        pins[card.name] = words


def sign(study: Study, who: Identity, keys: KeyFile, ledger: Ledger) -> Seal:
    """Reserve the price, and seal the study.

    Identities are checked before (:func:`check_identities`). Repeated, it gives the
    same seal.
    """
    with keys.locked():
        held = keys.read()
        me = held.card.name
        own = study.cards[study.place(me)]
        if own.data != held.card.data or own.identity != who.public:
            raise Refused("this site's card in the study is not the one it made")
        if held.study not in (None, study.digest.hex()):
            raise Refused("this site's card was signed in another study")
        if held.seal is None:
            if held.x25519 is None:
                raise Refused("this site's keys are those of a study that began already")
            x25519 = library("asymmetric.x25519").X25519PrivateKey
            mine = x25519.from_private_bytes(bytes.fromhex(held.x25519))
            for card in study.cards:
                if card.name != me:
                    agreed(mine, card)
            seal, shared = seal_of(study, me, who)
            hexed = {name: secret.hex() for name, secret in shared.items()}
            held = msgspec.structs.replace(held, study=study.digest.hex(), seal=seal, shared=hexed)
            keys.replace(held)
        reserve(study, me, ledger)
    assert held.seal is not None
    return held.seal


def reserve(study: Study, me: str, ledger: Ledger) -> None:
    """Reserve the price of a study in a site's ledger."""
    terms, card = study.terms, study.cards[study.place(me)]
    Studies(ledger).reserve(
        study.digest.hex(),
        site=me,
        terms=terms.digest.hex(),
        card=card.digest.hex(),
        mu=terms.mu,
        alone=study.mu_alone,
        unit=terms.unit.value,
        delta=terms.budget.delta,
    )


def leave(terms: Terms, keys: KeyFile, ledger: Ledger) -> bool:
    """Delete the keys, and take back what is reserved; whether it could be.

    It cannot if something may have been answered: the ledger says so, or the keys do,
    or they are gone.
    """
    with keys.locked():
        unused = keys.exists() and keys.read().round == 0
        keys.delete()
        studies, back = Studies(ledger), True
        for joined in studies.of_terms(terms.digest.hex()):
            if joined.state == "reserved" and unused:
                studies.take_back(joined.study)
            elif joined.state in ("reserved", "open"):
                studies.end(joined.study)
                back = False
    return back


def identity_file(ledger: Path, name: str) -> Path:
    """Where a site's identity is, unless another file is named."""
    return ledger.with_name(f"{name}.identity")
