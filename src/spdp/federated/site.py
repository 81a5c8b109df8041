r"""What a site does in a round: check, add up, draw, mask, write down, send.

*Enforced.* In this order: (1) keys and journal must agree: a ledger that was restored,
or keys that were copied back, end the study at this site. Where another process
answered meanwhile, this one refuses. (2) Everything that can be checked without records
is checked; what fails is refused with one fixed text, which depends on the message and
on what was answered before. (3) The exact total over all records (invalid ones count as
the domain's centre), the site's share of the noise, drawn by its own account, masks.
(4) The journal, on disk, in one transaction with the payment; the keys of the next
round, on disk; and only then the answer is sent. The same question gets the same bytes,
another one in the same round none. (5) An error once records are touched deletes the
keys and ends the study at this site, and nothing is said; a process that is interrupted
leaves the round unanswered.

*Assumed.* The machine is not put back whole, with memory, ledger and keys; its records
stay the same throughout the study; time and memory are not observed.

*Therefore* an answer is given at most once to a round, whatever is killed or repeated,
and whoever asks learns of the records what :mod:`.masks` says.
"""

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from struct import pack
from types import TracebackType

import numpy as np

from spdp.engines import VectorStore
from spdp.errors import DataError, LedgerError
from spdp.federated import identity
from spdp.federated.canonical import Refused, digest_of, loads, undouble, unpacked
from spdp.federated.identity import SIGNATURE, Identity
from spdp.federated.joining import Opened
from spdp.federated.masks import KeyFile, Keys, masked, rooted
from spdp.federated.messages import (
    Description,
    Round,
    most_bytes,
    only_round,
    transcript,
    understood,
)
from spdp.federated.study import Seal, Study, sealed_by
from spdp.kernels.arrays import Array
from spdp.ledger import Ledger
from spdp.ledger.schema import Answered
from spdp.ledger.studies import OVER, Studies
from spdp.options import Adjacency
from spdp.privacy.account import Account
from spdp.system import SAFELY

REFUSAL = b"spdp refused 1"
OLDEST = timedelta(days=365)


class Ended(DataError):
    """The study is over at this site."""


class Site(AbstractContextManager["Site"]):
    """A site's part in a study: data, keys, account and journal; one process at a time.

    ``log`` is a file for the site alone, which says why something was refused.
    """

    def __init__(
        self,
        study: Study,
        seals: Mapping[str, Seal],
        who: Identity,
        keys: KeyFile,
        ledger: Ledger,
        data: Opened,
        log: Path | None = None,
    ) -> None:
        self.study, self.who, self._keys, self._log = study, who, keys, log
        self.sealed, self._seals = sealed_by(study, seals), seals
        self.studies = Studies(ledger)
        self._store: VectorStore = data.store
        self._center: Array = np.asarray(study.terms.space.region.center)
        self._account = Account(study.terms.budget, Adjacency.REPLACE_ONE)
        self._charged: list[str] = []  # what account and axes here are of: rounds, in order
        self._lock = ExitStack()
        self.name = keys.read().card.name if keys.exists() else ""
        if self.name and data.n != study.cards[study.place(self.name)].n:
            raise DataError(f"the data have {data.n:,} records, not the number on this site's card")

    def __enter__(self) -> "Site":
        self._lock.enter_context(self._keys.locked())
        try:
            self._resume()
        except BaseException:
            self._lock.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.close()

    # --- the state between rounds

    def _resume(self) -> None:
        """Take up the study where an earlier process left it."""
        keys = self._agreeing()
        own = self.study.cards[self.study.place(keys.card.name)]
        if keys.card.data != own.data or own.identity != self.who.public:
            raise Refused("this site's card in the study is not the one it made")
        for answered in self.answered():
            description = loads(answered.description, Description)
            if description.turn is not None:
                self._turn(unpacked(description.turn, (self.study.terms.d,) * 2))
            self._account.charge(undouble(description.mu))
            self._charged.append(answered.said)

    def answered(self) -> list[Answered]:
        """What this site has answered."""
        return self.studies.answers(self.sealed.hex())

    def _agreeing(self) -> Keys:
        """The keys of the next round; the study ends if journal and keys disagree."""
        joined = self.studies.find(self.study.digest.hex())
        if joined is None:
            raise Refused("this site's ledger has nothing reserved for the study")
        if joined.state in OVER:
            self._keys.delete()
            raise Ended(f"this study is {joined.state} at this site")
        if not self._keys.exists():
            raise self._end("the keys of this study are gone")
        if datetime.now(UTC) - datetime.fromisoformat(joined.created) > OLDEST:
            raise self._end("the keys of this study are a year old")
        keys, rounds = self._keys.read(), len(self.answered())
        if joined.card != keys.card.digest.hex() or keys.study != self.study.digest.hex():
            raise Refused("these keys are not those of the study")
        if joined.sealed not in (None, self.sealed.hex()):
            raise Refused("this site has answered in the study under other seals")
        if keys.chains is None:
            if rounds:
                raise self._end("keys from before the first answer, beside a later ledger")
            keys = rooted(keys, self.study, self._seals)
            self._keys.replace(keys)
        if keys.sealed != self.sealed.hex():
            raise Refused("this site's keys were made for other seals")
        if keys.round == rounds - 1:  # killed between journal and keys
            keys = keys.moved_on()
            self._keys.replace(keys)
        if keys.round != rounds:
            raise self._end("keys and ledger do not agree: one of them was restored or copied")
        return keys

    def _end(self, why: str) -> Ended:
        """Delete the keys and end the study, for good."""
        self.log(f"ended: {why}")
        self._keys.delete()
        self.studies.end(self.study.digest.hex())
        return Ended(f"{self._keys.path}: {why}; this site takes no further part in the study")

    def log(self, text: str) -> None:
        """Write a line for this site alone."""
        if self._log is None:
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | SAFELY
        with os.fdopen(os.open(self._log, flags, 0o600), "a", encoding="utf-8") as file:
            file.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {text!a}\n")

    # --- rounds

    def reply(self, message: bytes) -> bytes | None:
        """What is sent for a message: an answer, the one text of a refusal, or nothing.

        The caller sends it at a time that does not depend on the records.
        """
        try:
            return self.answer(message)
        except Ended:
            raise
        except Refused as error:
            self.log(f"refused: {error.message}")
            return REFUSAL

    def answer(self, message: bytes) -> bytes:
        """The answer to a round that the coordinator asks, or a refusal."""
        if len(message) > SIGNATURE + most_bytes(self.study.terms.d):
            raise Refused("a message that is too long")
        if self.study.terms.method != "adaptive":
            raise Refused("a one-shot study has no rounds")
        signature, data = message[:SIGNATURE], message[SIGNATURE:]
        said = digest_of(data)
        coordinator = self.study.terms.coordinator
        identity.check(coordinator, signature.hex(), identity.ROUND, self.sealed, said)
        return self._answered(loads(data, Description))

    def only_answer(self) -> bytes:
        """The answer of a one-shot study, which nobody asks for."""
        if self.study.terms.method != "oneshot":
            raise Refused("not a one-shot study: spdp site serve answers its rounds")
        return self._answered(only_round(self.study, self.sealed))

    def _answered(self, description: Description) -> bytes:
        keys, known = self._agreeing(), self.answered()
        said = description.digest
        if description.sealed != self.sealed.hex():
            raise Refused("another study, or other seals")
        if description.round < len(known):
            before = known[description.round]
            if before.said != said.hex():
                raise Refused("this round was answered to another description")
            return before.answer
        if description.round > len(known):
            raise Refused("not the next round")
        if [answered.said for answered in known] != self._charged:
            raise Refused("another process answered rounds meanwhile: start this one again")
        if description.before != self.before(known, description.digests).hex():
            raise Refused("not the rounds that this site answered")
        asked = understood(description, self.study, self._center)
        if not self._account.affords(asked.mu):
            raise Refused("more than the study's budget")
        try:
            return self._sent(description, asked, keys)
        except Exception as error:
            raise self._end(f"failed: {error!r}") from None

    def before(self, known: list[Answered], digests: list[str]) -> bytes:
        """The transcript of the rounds so far, if this site's last answer is in it."""
        if not known:
            if digests:
                raise Refused("digests of answers before the first round")
            return self.sealed
        last = known[-1]
        if len(digests) != self.study.sites:
            raise Refused("not one digest for each site")
        if digests[self.study.place(self.name)] != digest_of(last.answer[SIGNATURE:]).hex():
            raise Refused("this site's last answer is not in the transcript")
        before = bytes.fromhex(loads(last.description, Description).before)
        return transcript(before, bytes.fromhex(last.said), digests)

    def _sent(self, description: Description, asked: Round, keys: Keys) -> bytes:
        """Touch the records: from here on nothing may fail."""
        if asked.turn is not None:
            self._turn(asked.turn)
        said = description.digest
        self._charged.append(said.hex())
        total = self._account.share_of(asked.query, self._store, asked.mu, self.study.honest)
        if len(total) != asked.d:
            raise LedgerError("an answer of another length than its query's")
        assert keys.chains is not None
        chains = {name: bytes.fromhex(chain) for name, chain in keys.chains.items()}
        answer = masked(total, self.name, chains, said)
        number = pack(">I", description.round)
        signature = self.who.sign(identity.ANSWER, self.sealed, number, said, digest_of(answer))
        row = Answered(
            self.sealed.hex(),
            description.round,
            said.hex(),
            asked.mu,
            description.data,
            bytes.fromhex(signature) + answer,
        )
        sent = self.studies.journal(self.study.digest.hex(), row)
        self._keys.replace(keys.moved_on())
        return sent

    def _turn(self, axes: Array) -> None:
        self._store = self._store.rotated(axes)
        self._center = np.asarray(axes.T @ self._center)
