r"""The study that all sites agree on: its terms, the cards of the sites, their seals.

A *study* has terms (what is asked, of which data, for which price) and the cards of all
sites in the order of their names. A *card* has a site's name, its number of records,
its identity and two fresh public keys; it is made for one study. With a *seal* a site
signs the whole study and sends each later site of the roster a secret (ML-KEM-768).
``sealed``, the digest of the study and of all seals, names the study from then on:
sites that hold another study or other seals share no masks.

*Enforced*, whenever a study is read (:func:`checked`): its form to the byte
(:mod:`.canonical`), sizes, names, distinct identities and keys, every card's signature,
identities and keys that can be used, Gaussian noise and replace-one adjacency.
*Assumed*: that the identities are those of the sites, which people compare
(:mod:`.identity`).
"""

from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from spdp.charts import chart_of
from spdp.domain.base import Domain, Space
from spdp.domain.sets import domain_of
from spdp.engines.store import MAX_RECORDS
from spdp.errors import DataError, ParameterError
from spdp.federated import identity
from spdp.federated.canonical import (
    Base64,
    Double,
    Hex32,
    Hex64,
    Packed,
    Refused,
    decode,
    digest_of,
    dumps,
    read_as,
    undouble,
    unpacked,
)
from spdp.federated.identity import library
from spdp.options import Unit
from spdp.privacy.account import LARGEST_SCALE, SMALLEST_SHARE, share_scale
from spdp.privacy.budget import Budget
from spdp.privacy.calibration import gaussian_epsilon, next_below
from spdp.statistics import every, find
from spdp.statistics.base import Statistic

MOST_SITES, MOST_NUMBERS, MOST_ROUNDS = 200, 1 << 16, 256
MOST_BYTES = 1 << 24  # of a study or a seal: 200 cards are half a megabyte
NARROWEST, WIDEST = 2.0**-40, 2.0**40  # radii of domains
NAME = r"^[a-z0-9-]{1,32}\Z"
KEM_KEY, KEM_TEXT = 1184, 1088  # bytes of an ML-KEM-768 key and ciphertext
Name = Annotated[str, msgspec.Meta(pattern=NAME)]
Positive = Annotated[int, msgspec.Meta(ge=1, lt=1 << 32)]


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """What all messages share: no field is left out, none is unknown."""

    @cached_property
    def data(self) -> bytes:
        """Its bytes."""
        return dumps(self)

    @cached_property
    def digest(self) -> bytes:
        """Its name: SHA-256 of its bytes."""
        return digest_of(self.data)


class Terms(Form, frozen=True, forbid_unknown_fields=True, dict=True, kw_only=True):
    """What is asked, of which data, for which price."""

    statistic: str
    options: dict[str, int]  # of the statistic
    method: Literal["oneshot", "adaptive"]
    metric: str
    reference_point: Packed | None
    k: Annotated[int, msgspec.Meta(ge=1, le=1 << 10)]
    domain: dict[str, str | int | Packed | None]
    epsilon: Double
    delta: Double
    adjacency: Literal["replace-one"]
    unit: Unit
    colluding: Annotated[int, msgspec.Meta(ge=1, lt=MOST_SITES)]
    queries: Literal[1]  # version of the list of queries, and of their fields
    coordinator: Hex32  # Ed25519

    @cached_property
    def space(self) -> Space:
        """Chart and domain."""
        point = self.reference_point
        chart = chart_of(
            self.metric, None if point is None else unpacked(point, (self.k, self.k)).tolist()
        )
        return Space.of(chart, _domain_of(self.domain, self.k), self.k)

    @cached_property
    def budget(self) -> Budget:
        """What the study costs in all."""
        return Budget.gaussian(undouble(self.epsilon), undouble(self.delta))

    @property
    def mu(self) -> float:
        """μ of the budget."""
        assert self.budget.mu is not None
        return self.budget.mu

    @property
    def d(self) -> int:
        """Dimension of the records' vectors."""
        return len(self.space.region.center)

    def asked(self) -> Statistic:
        """The statistic, with its options."""
        kind, agreed = type(find(self.statistic)), {"mechanism": "gaussian", "method": self.method}
        own = {field.name for field in fields(kind)}
        statistic: Statistic = kind(
            **self.options, **{name: agreed[name] for name in own & agreed.keys()}
        )
        return statistic


class Card(Form, frozen=True, forbid_unknown_fields=True, dict=True, kw_only=True):
    """A site, for one study; signed by its identity."""

    terms: Hex32
    name: Name
    n: Positive
    identity: Hex32
    x25519: Hex32
    mlkem: Base64
    signature: Hex64

    @property
    def signed(self) -> bytes:
        """Digest of all but the signature."""
        plain = msgspec.to_builtins(self)
        del plain["signature"]
        return digest_of(dumps(plain))


class Study(Form, frozen=True, forbid_unknown_fields=True, dict=True, kw_only=True):
    """Terms, and the cards of all sites in the order of their names."""

    format: Literal["spdp-study"] = "spdp-study"
    version: Literal[1] = 1
    terms: Terms
    cards: list[Card]

    @property
    def names(self) -> list[str]:
        """Names of the sites: a site's place among them is its place in the roster."""
        return [card.name for card in self.cards]

    @property
    def n(self) -> int:
        """Number of records, or persons, of all sites."""
        return sum(card.n for card in self.cards)

    @property
    def sites(self) -> int:
        return len(self.cards)

    @property
    def honest(self) -> int:
        """Sites whose noise must be enough: all but those that may collude."""
        return self.sites - self.terms.colluding

    @property
    def mu_alone(self) -> float:
        """μ of a site's records if all other sites collude, rounded up."""
        return self.terms.mu * sqrt(self.honest) * (1 + 1e-15)

    @property
    def epsilon_alone(self) -> float:
        """ε of a site's records if all other sites collude."""
        return gaussian_epsilon(next_below(self.terms.budget.delta), self.mu_alone)

    def place(self, name: str) -> int:
        """A site's place in the roster."""
        if name not in self.names:
            raise Refused(f"{name} is not in the roster")
        return self.names.index(name)


class Seal(Form, frozen=True, forbid_unknown_fields=True, dict=True, kw_only=True):
    """A site's signature of a study, and its secrets for the sites after it."""

    format: Literal["spdp-seal"] = "spdp-seal"
    version: Literal[1] = 1
    study: Hex32
    site: Name
    secrets: dict[str, Base64]  # an ML-KEM-768 ciphertext for every later site
    signature: Hex64

    @property
    def signed(self) -> tuple[bytes, bytes]:
        """Digests of the study, and of the site's name and ciphertexts."""
        own = digest_of(dumps({"site": self.site, "secrets": self.secrets}))
        return bytes.fromhex(self.study), own


# --- checking


def studied() -> dict[str, tuple[str, ...]]:
    """Statistics that studies may have, and those of their options that one may set."""
    return {s.name: s.over_sites for s in every() if s.over_sites is not None}


def not_studied(name: str) -> str:
    """Why no study is of a statistic."""
    which = f"a study is of {', '.join(studied())}, not of {name:.40}"
    if any(s.name == name and s.columns for s in every()):
        return f"{which}: sites of a study have records alone, no labels or covariates"
    return which


def check_terms(terms: Terms) -> None:
    """Refuse terms that no study may have, from public numbers alone."""
    identity.check_point(terms.coordinator)
    check_asked(terms)


def check_asked(terms: Terms) -> None:
    """Refuse what no study may ask, whoever its coordinator is."""
    possible = studied()
    if terms.statistic not in possible:
        raise Refused(not_studied(terms.statistic))
    if not set(terms.options) <= set(possible[terms.statistic]):
        raise Refused(f"options of {terms.statistic} that a study does not know")
    try:
        statistic = terms.asked()
        if terms.method == "oneshot" and "oneshot" not in statistic.forms:
            raise Refused(f"{terms.statistic} is released by the adaptive method only")
        delta, radius = undouble(terms.delta), float(terms.space.region.radius)
        statistic.check_options({})
    except (ParameterError, TypeError, ValueError) as error:
        if isinstance(error, Refused):
            raise
        raise Refused(f"its terms cannot be used: {error}") from None
    if not delta > 0:
        raise Refused("a study needs a delta above 0: noise of sites is Gaussian")
    if not NARROWEST <= radius <= WIDEST:
        raise Refused(f"a study's domain has a radius between 2**-40 and 2**40, not {radius:.3g}")
    if terms.d > MOST_NUMBERS:
        raise Refused(f"records of more than {MOST_NUMBERS} numbers")
    try:
        _ = terms.mu
    except ParameterError as error:
        raise Refused(f"its budget cannot be used: {error}") from None


def checked(study: Study) -> Study:
    """The study, if every site may sign it; else what is wrong with it."""
    check_terms(study.terms)
    if not 2 <= study.sites <= MOST_SITES:
        raise Refused(f"a study has 2 to {MOST_SITES} sites, not {study.sites}")
    if not study.terms.colluding < study.sites:
        raise Refused("not all sites may collude")
    names = study.names
    if names != sorted(set(names)):
        raise Refused("the sites' names must differ, and ascend")
    for what in ("identity", "x25519", "mlkem"):
        if len({getattr(card, what) for card in study.cards}) < study.sites:
            raise Refused(f"two sites have the same {what} key")
    if study.n > MAX_RECORDS:
        raise Refused("more than 2**32 records: sums would no longer be exact")
    for card in study.cards:
        check_card(card, study.terms)
    scale = share_scale(1 << 31, study.terms.mu, study.honest)
    if not (scale >= SMALLEST_SHARE and sqrt(study.sites) * scale <= LARGEST_SCALE):
        raise Refused("the privacy budget is too small: its noise exceeds the integer range")
    return study


def check_card(card: Card, terms: Terms) -> None:
    """Refuse a card of other terms, not signed by its identity, or of unusable keys."""
    if card.terms != terms.digest.hex():
        raise Refused(f"the card of {card.name} is for other terms")
    identity.check(card.identity, card.signature, identity.CARD, card.signed)
    agreed(library("asymmetric.x25519").X25519PrivateKey.generate(), card)
    try:
        data = decode(card.mlkem, KEM_KEY)
        library("asymmetric.mlkem").MLKEM768PublicKey.from_public_bytes(data)
    except ValueError as error:
        raise Refused(f"the ML-KEM key of {card.name} cannot be used: {error}") from None


def agreed(mine: Any, card: Card) -> bytes:
    """The X25519 secret with a site; a key that gives zeros is refused."""
    x25519 = library("asymmetric.x25519")
    try:
        theirs = x25519.X25519PublicKey.from_public_bytes(bytes.fromhex(card.x25519))
        return bytes(mine.exchange(theirs))
    except ValueError:
        raise Refused(f"the X25519 key of {card.name} cannot be used") from None


def sealed_by(study: Study, seals: Mapping[str, Seal]) -> bytes:
    """The name of a sealed study, if every site's seal is there and fits."""
    if sorted(seals) != study.names:
        missing = sorted(set(study.names) - set(seals))
        raise Refused(f"not sealed by {', '.join(missing) or 'its own sites alone'}")
    for place, card in enumerate(study.cards):
        seal = seals[card.name]
        later = study.names[place + 1 :]
        if seal.study != study.digest.hex() or seal.site != card.name:
            raise Refused(f"the seal of {card.name} is of another study")
        if sorted(seal.secrets) != later:
            raise Refused(f"the seal of {card.name} has not one secret for each later site")
        for text in seal.secrets.values():
            decode(text, KEM_TEXT)
        identity.check(card.identity, seal.signature, identity.SEAL, *seal.signed)
    return digest_of(b"spdp sealed 1", study.digest, *(seals[name].digest for name in study.names))


# --- files


def read_terms(path: Path) -> Terms:
    """The terms in a study's file, with or without its roster."""
    study = read_as(path, Study, MOST_BYTES)
    check_terms(study.terms)
    return study.terms


def read_study(path: Path) -> Study:
    """A study with its roster, checked."""
    study = read_as(path, Study, MOST_BYTES)
    if not study.cards:
        raise DataError(f"{path}: has no sites yet; spdp study seal fixes its roster")
    try:
        return checked(study)
    except Refused as error:
        raise Refused(f"{path}: {error.message}") from None


def read_seals(folder: Path, study: Study) -> dict[str, Seal]:
    """The seals of a study's sites, NAME.seal each, where they are."""
    files = {name: folder / f"{name}.seal" for name in study.names}
    missing = [file.name for file in files.values() if not file.is_file()]
    if missing:
        raise DataError(
            f"{folder}: {', '.join(missing)} missing; nothing is answered before all sites have "
            "signed",
            ask="seals",
        )
    return {name: read_as(file, Seal, MOST_BYTES) for name, file in files.items()}


def _domain_of(text: Mapping[str, Any], k: int) -> Domain:
    def one(name: str, value: Any) -> Any:
        if isinstance(value, Packed):
            return unpacked(value, (k, k)).tolist()
        return undouble(value) if isinstance(value, str) and name != "type" else value

    return domain_of({name: one(name, value) for name, value in text.items()})
