"""Making what a study is made of: terms, a site's card, the roster, a seal."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from spdp.domain.base import Domain, Space
from spdp.errors import ParameterError, named
from spdp.federated import identity
from spdp.federated.canonical import decode, double, dumps, encode, loads, packed
from spdp.federated.identity import Identity, library
from spdp.federated.study import KEM_KEY, NAME, Card, Seal, Study, Terms, check_asked, checked
from spdp.options import Unit


def terms_of(
    space: Space,
    *,
    statistic: str,
    options: dict[str, int],
    method: str,
    epsilon: float,
    delta: float,
    unit: str,
    colluding: int,
    coordinator: str,
) -> Terms:
    """Terms of a study, checked but for their coordinator, who makes them."""
    if not delta > 0:
        raise ParameterError(
            "a study needs a delta above 0: shares of Laplace noise are not Laplace noise, so "
            "that pure differential privacy cannot be shared among sites"
        )
    point = space.chart.reference_point
    terms = Terms(
        statistic=statistic,
        options=options,
        method=method,  # type: ignore[arg-type]
        metric=space.chart.name,
        reference_point=None if point is None else packed(np.asarray(point)),
        k=space.k,
        domain=_domain_text(space.domain),
        epsilon=double(epsilon),
        delta=double(delta),
        adjacency="replace-one",
        unit=Unit(unit),
        colluding=colluding,
        queries=1,
        coordinator=coordinator,
    )
    check_asked(loads(terms.data, Terms))
    return terms


def check_name(name: str) -> None:
    """Refuse a name that could not be part of a file's name everywhere."""
    if re.match(NAME, name) is None:
        raise ParameterError(
            f"{named('name')} must be 1 to 32 of the letters a-z, digits and hyphens, got {name!r}"
        )


def card_of(terms: Terms, name: str, n: int, who: Identity, x25519: Any, mlkem: Any) -> Card:
    """A signed card for fresh private keys."""
    check_name(name)
    card = Card(
        terms=terms.digest.hex(),
        name=name,
        n=n,
        identity=who.public,
        x25519=x25519.public_key().public_bytes_raw().hex(),
        mlkem=encode(mlkem.public_key().public_bytes_raw()),
        signature="0" * 128,
    )
    signature = who.sign(identity.CARD, card.signed)
    return loads(dumps(msgspec.structs.replace(card, signature=signature)), Card)


def seal_of(study: Study, name: str, who: Identity) -> tuple[Seal, dict[str, bytes]]:
    """A site's seal, and the secrets that it shares with each later site."""
    mlkem = library("asymmetric.mlkem")
    texts, shared = {}, {}
    for card in study.cards[study.place(name) + 1 :]:
        key = mlkem.MLKEM768PublicKey.from_public_bytes(decode(card.mlkem, KEM_KEY))
        shared[card.name], text = key.encapsulate()
        texts[card.name] = encode(text)
    seal = Seal(study=study.digest.hex(), site=name, secrets=texts, signature="0" * 128)
    signature = who.sign(identity.SEAL, *seal.signed)
    return msgspec.structs.replace(seal, signature=signature), shared


def rostered(terms: Terms, cards: Sequence[Card]) -> Study:
    """The study of some sites, checked."""
    return checked(Study(terms=terms, cards=sorted(cards, key=lambda card: card.name)))


def _domain_text(domain: Domain) -> dict[str, Any]:
    """A domain as plain values without floats."""
    text: dict[str, Any] = {}
    for name, value in domain.describe().items():
        if isinstance(value, float):
            text[name] = double(value)
        elif isinstance(value, list):
            text[name] = packed(np.asarray(value, np.float64))
        elif isinstance(value, dict):
            raise ParameterError("a study's domain has a real centre, or none")
        else:
            text[name] = value
    return text
