r"""What a ledger knows of studies over sites: a reservation, an entry, every answer.

A site's data pay for a study once, with its whole price μ. The price is *reserved* when
the site signs, so that nothing else spends it. It becomes an entry with the first
answer. Whatever a site answers is written down before it is sent, so that the same
question gets the same bytes.

*Enforced.* Each of these is one IMMEDIATE transaction, on disk when it returns. A study
has one row, a card one study, a round one answer. The first answer, its entry and the
end of the reservation are one transaction. A reservation can be taken back before the
first answer, and never after. A study that ends otherwise is paid.

*Therefore* a site that is killed at any moment has paid once or not at all, and has
paid if an answer may have been sent.
"""

import json
import secrets
from typing import Any

from spdp.errors import BudgetExceeded, LedgerError
from spdp.kernels.arrays import plain
from spdp.ledger.ledger import Ledger, balance_of, claim_of
from spdp.ledger.schema import Answered, Book, Joined, now
from spdp.privacy.account import DISTRIBUTED

OVER = ("closed", "ended", "left")


class Studies:
    """The studies of a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self._file = ledger, ledger.file

    def find(self, study: str) -> Joined | None:
        """What is written of a study."""
        with self._file.open() as book:
            return _find(book, study)

    def of_terms(self, terms: str) -> list[Joined]:
        """Studies of the same terms."""
        with self._file.open() as book:
            return [study for study in book.studies if study.terms == terms]

    def reserve(
        self,
        study: str,
        *,
        site: str,
        terms: str,
        card: str,
        mu: float,
        alone: float,
        unit: str,
        delta: float,
    ) -> Joined:
        """Reserve the price of a study, or refuse; the same again changes nothing."""
        joined = Joined(study, now(), site, terms, card, mu, alone, unit, "reserved", None, None)
        refusal: BudgetExceeded | None = None
        with self._file.open(write=True, studies=True) as book:
            known = _find(book, study)
            if known is not None:
                same = known._replace(created="") == joined._replace(created="")
                if not same:
                    raise LedgerError(
                        f"{self.ledger.path}: is in this study already, {known.state}"
                    )
                return known
            if any(other.card == card for other in book.studies):
                raise LedgerError(f"{self.ledger.path}: this card was signed in another study")
            if book.unit not in (None, unit):
                raise LedgerError(
                    f"{self.ledger.path}: its budget is per {book.unit}, this study is per {unit}; "
                    "keep a ledger for each"
                )
            balance, price = balance_of(book), book.charged(joined)
            if balance.plus(price).fits():
                book.put_study(joined)
            else:
                refusal = balance.refusal(str(self.ledger.path), price, None, delta, price / mu)
        if refusal is not None:
            raise refusal
        return joined

    def answers(self, sealed: str) -> list[Answered]:
        """The answers given in a study, round by round."""
        with self._file.open() as book:
            return book.answers(sealed)

    def journal(self, study: str, answer: Answered) -> bytes:
        """Write down an answer before it is sent; the bytes to send.

        With the first one the reservation becomes an entry. If the round was answered
        meanwhile, those bytes are returned and nothing changes.
        """
        with self._file.open(write=True) as book:
            joined = _find(book, study)
            if joined is None or joined.state in OVER:
                raise LedgerError(f"{self.ledger.path}: does not take part in this study")
            known = book.answers(answer.sealed)
            if answer.round < len(known):
                return known[answer.round].answer
            if joined.sealed not in (None, answer.sealed) or answer.round != len(known):
                raise LedgerError(f"{self.ledger.path}: not the next round of this study")
            if joined.entry is None:
                entry = _pay(book, joined)
                book.put_study(joined._replace(state="open", sealed=answer.sealed, entry=entry))
            book.put_answer(answer)
        return answer.answer

    def end(self, study: str) -> None:
        """Let a study end for good. What was reserved is spent: it may have been paid.

        This ledger may be an old copy of one that has answers.
        """
        with self._file.open(write=True) as book:
            joined = _find(book, study)
            if joined is not None and joined.state not in OVER:
                entry = _pay(book, joined) if joined.entry is None else joined.entry
                book.put_study(joined._replace(state="ended", entry=entry))

    def take_back(self, study: str) -> None:
        """Take back a reservation of which nothing was answered."""
        with self._file.open(write=True) as book:
            joined = _find(book, study)
            if joined is None or joined.entry is not None:
                raise LedgerError(f"{self.ledger.path}: nothing to take back of this study")
            book.put_study(joined._replace(state="left"))

    def close(self, study: str, value: Any, certificate: dict[str, Any]) -> None:
        """Close a study whose result is known, and keep the result with its entry."""
        texts = json.dumps(plain(value)), json.dumps(certificate)
        with self._file.open(write=True) as book:
            joined = _find(book, study)
            if joined is None or joined.entry is None:
                raise LedgerError(f"{self.ledger.path}: has not answered in this study")
            if joined.state != "open":
                return
            (result,) = book.results("id = ?", joined.entry)
            book.conclude(result._replace(state="done", value=texts[0], certificate=texts[1]))
            book.put_study(joined._replace(state="closed"))


def _pay(book: Book, joined: Joined) -> int:
    """The entry of a study; closing the study, not a token, stores its result."""
    label, price = f"study {joined.study[:12]}", book.charged(joined)
    return book.pay(DISTRIBUTED, label, price, None, joined.unit, claim_of(secrets.token_hex()))


def _find(book: Book, study: str) -> Joined | None:
    return next((joined for joined in book.studies if joined.study == study), None)
