"""What the coordinator does: it asks sites, adds up, and never sees a site's sum.

The statistics run unchanged: their account asks sites in place of a store, and what
they take for a store holds nothing.

*Enforced.* An answer is one of each site, of the right length, signed for this round
and this description; their sum lies within what records and noise can give, or the
study is over. A study asks no more than its budget, by the same arithmetic as one
curator's. *Therefore* what a coordinator makes of answers is post-processing of noisy
sums.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from struct import pack
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from spdp.domain.base import Space
from spdp.engines import VectorStore
from spdp.errors import DataError
from spdp.federated import identity
from spdp.federated.canonical import Refused, digest_of
from spdp.federated.identity import SIGNATURE
from spdp.federated.masks import unmasked
from spdp.federated.messages import Description, described, only_round, transcript
from spdp.federated.study import Study
from spdp.kernels.arrays import Array, Ints
from spdp.options import Adjacency
from spdp.privacy import account as accounts
from spdp.privacy.account import Account, Answer, Step, Store, distributed_scale
from spdp.queries import Query
from spdp.release import Release
from spdp.release.certificate import Trust
from spdp.statistics.base import Context

T = TypeVar("T")
UNLIKELY = 40.0  # standard deviations beyond √d that no noise reaches


class Transport(Protocol):
    """Carries messages: bytes to all sites, bytes back from each."""

    def ask(self, number: int, message: bytes) -> Mapping[str, bytes]:
        """The message to every site, and each site's answer by its name."""


class FarStore(VectorStore):
    """Records that lie at the sites: nothing exact is here."""

    def __init__(self, n: int, d: int, turns: tuple[Array, ...] = ()) -> None:
        self.n = self.m = n
        self.d, self.turns = d, turns

    def total(self, query: Query[Any], subsampled: bool = False) -> Ints:
        raise TypeError("the records lie at the sites, and no exact total leaves them")

    def rotated(self, axes: Array) -> "FarStore":
        return FarStore(self.n, self.d, (*self.turns, axes))


@dataclass
class FarRecords:
    """What a statistic takes for its records."""

    study: Study
    asker: "Asker"
    grouped: bool = False
    rereadable: bool = True

    @property
    def space(self) -> Space:
        return self.study.terms.space

    @property
    def n(self) -> int:
        return self.study.n

    def stream(self) -> FarStore:
        return self.asker.store(self.n, self.study.terms.d)

    def gather(self, key: int = 0) -> FarStore:
        return self.stream()


@dataclass
class Asker:
    """Puts rounds to sites: keeps what was said and answered, and the transcript."""

    study: Study
    sealed: bytes
    descriptions: list[Description] = field(default_factory=list)
    sums: list[NDArray[np.int64]] = field(default_factory=list)
    digests: list[list[str]] = field(default_factory=list)
    answers: list[list[bytes]] = field(default_factory=list)  # as the sites signed them

    @property
    def before(self) -> bytes:
        """The transcript so far."""
        before = self.sealed
        for description, digests in zip(self.descriptions, self.digests, strict=True):
            before = transcript(before, description.digest, digests)
        return before

    def describe(self, query: Query[Any], mu: float, turn: Array | None) -> Description:
        """The next round's description."""
        last = self.digests[-1] if self.digests else []
        number, before = len(self.descriptions), self.before
        return described(
            query,
            mu,
            self.study,
            sealed=self.sealed,
            number=number,
            before=before,
            digests=last,
            turn=turn,
        )

    def store(self, n: int, d: int) -> FarStore:
        """What the statistic takes for its store."""
        return FarStore(n, d)

    def put(self, description: Description, query: Query[Any]) -> NDArray[np.int64]:
        """The noisy sum over all sites."""
        raise NotImplementedError

    def added(
        self, description: Description, query: Query[Any], answers: Mapping[str, bytes]
    ) -> NDArray[np.int64]:
        """Check the answers of all sites, add them up and keep them."""
        if sorted(answers) != self.study.names:
            raise Refused("not one answer of each site")
        found = [answers[name] for name in self.study.names]
        total = sum_of(self.study, self.sealed, description, found)
        check_norm(self.study, query, description, total)
        self.descriptions.append(description)
        self.sums.append(total)
        self.digests.append([digest_of(one[SIGNATURE:]).hex() for one in found])
        self.answers.append(found)
        return total


def sum_of(
    study: Study, sealed: bytes, description: Description, answers: list[bytes]
) -> NDArray[np.int64]:
    """The sum of the sites' answers to a description, each checked."""
    number, said = pack(">I", description.round), description.digest
    for card, answer in zip(study.cards, answers, strict=True):
        signature, data = answer[:SIGNATURE], answer[SIGNATURE:]
        if len(data) != 8 * description.d:
            raise Refused(f"the answer of {card.name} has another length than was asked")
        signed = sealed, number, said, digest_of(data)
        identity.check(card.identity, signature.hex(), identity.ANSWER, *signed)
    return unmasked([answer[SIGNATURE:] for answer in answers])


def check_norm(
    study: Study, query: Query[Any], description: Description, total: NDArray[np.int64]
) -> None:
    """Refuse a sum that no records and no noise give: a site's answer was false."""
    sensitivity = int(query.sensitivity(Adjacency.REPLACE_ONE))
    one = int(query.sensitivity(Adjacency.ADD_REMOVE))  # bounds what one record adds
    mu = float(np.frombuffer(bytes.fromhex(description.mu), ">f8")[0])
    scale = distributed_scale(sensitivity, mu, study.sites, study.terms.colluding)
    most = study.n * one + (sqrt(len(total)) + UNLIKELY) * scale
    if sqrt(float(sum(int(x) ** 2 for x in total.tolist()))) > most:
        raise Refused(
            "a sum that no records give: a site's answer is false, or two sites did not agree on "
            "what was said; the study is over"
        )


@dataclass
class Coordinator(Asker):
    """Asks real sites, through a transport."""

    who: identity.Identity | None = None
    transport: Transport | None = None

    def put(self, description: Description, query: Query[Any]) -> NDArray[np.int64]:
        assert self.who is not None
        assert self.transport is not None
        signature = self.who.sign(identity.ROUND, self.sealed, description.digest)
        message = bytes.fromhex(signature) + description.data
        answers = self.transport.ask(description.round, message)
        return self.added(description, query, answers)


@dataclass
class Collected(Asker):
    """A one-shot study whose answers came in files: nobody asks."""

    given: Mapping[str, bytes] = field(default_factory=dict)

    def put(self, description: Description, query: Query[Any]) -> NDArray[np.int64]:
        only = only_round(self.study, self.sealed)
        if only.data != description.data:
            raise DataError("this version of spdp asks another question than the study's sites")
        return self.added(description, query, self.given)


SITES = "sites"  # in certificates: each site draws, by a sampler of its own choice


class StudyAccount(Account):
    """The coordinator's account: it prices as one curator's does, and asks sites.

    It draws nothing; the noise is in the answers.
    """

    def __init__(self, asker: Asker) -> None:
        study, terms = asker.study, asker.study.terms
        super().__init__(terms.budget, Adjacency.REPLACE_ONE, unit=terms.unit)
        self.asker = asker
        self.spread = sqrt(study.sites / study.honest)
        self.trust = Trust.of(study.digest.hex(), study.sites, terms.colluding)
        self._turned = 0

    def _sampler(self) -> str:
        return SITES

    def ask(
        self, query: accounts.Asked[T], store: Store, share: float = 1.0, subsampled: bool = False
    ) -> Answer[T]:
        """A noisy answer to a query, from all sites."""
        if not isinstance(store, FarStore) or not isinstance(query, Query):
            raise TypeError("a study asks its sites, and nothing that is here")
        mu, spent = self._afford(share)
        assert mu is not None
        if len(store.turns) not in (self._turned, self._turned + 1):
            raise TypeError("a study turns its axes once between two questions")
        turn = store.turns[-1] if len(store.turns) > self._turned else None
        description = self.asker.describe(query, mu, turn)
        total = self.asker.put(description, query)
        self._turned = len(store.turns)
        self._spent, self.left = spent, (self._total - spent) / self._total
        sensitivity = int(query.sensitivity(self.adjacency))
        study = self.asker.study
        scale = distributed_scale(sensitivity, mu, study.sites, study.terms.colluding)
        self.steps.append(Step(step=query.name, mu=mu, sensitivity=sensitivity, scale=scale))
        estimate = query.estimate(total.astype(np.float64), scale, float(store.n))
        return Answer(estimate, self.steps, len(self.steps) - 1)


def released(asker: Asker) -> Release:
    """Run the study's statistic over its sites, and make the release."""
    terms, records = asker.study.terms, FarRecords(asker.study, asker)
    statistic, account = terms.asked(), StudyAccount(asker)
    budget = terms.budget.epsilon, terms.budget.delta
    statistic.prepare(records)
    options: Any = {"adjacency": Adjacency.REPLACE_ONE, "ledger": None}
    settled = statistic.settle(records, *budget, **options)  # type: ignore[arg-type]
    return statistic.run_and_publish(Context(terms.space, account, records, settled))
