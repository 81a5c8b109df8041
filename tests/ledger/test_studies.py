"""Studies in a ledger: reserved, paid once, written down before anything is sent."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from spdp.ledger.ledger import BudgetExceeded, Ledger, LedgerError
from spdp.ledger.schema import Answered, Book
from spdp.ledger.studies import Studies
from spdp.privacy.composition import Balance

STUDY, SEALED, CARD, TERMS = (letter * 64 for letter in "abcd")
GIVEN = {"site": "alpha", "terms": TERMS, "card": CARD, "unit": "record", "delta": 1e-6}
PRICE = {"mu": 0.2, "alone": 0.3}


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "account.ledger", epsilon=1.0, delta=1e-6)


def answer(number, data=b"answer"):
    return Answered(SEALED, number, "e" * 64, 0.1, b"description", data)


def version(ledger):
    with closing(sqlite3.connect(ledger.path)) as db:
        return db.execute("PRAGMA user_version").fetchone()[0] % 256


def test_a_ledger_changes_its_format_with_its_first_study(ledger):
    ledger.spend(mechanism="gaussian", mu=0.01)
    assert version(ledger) == 3
    assert ledger.studies() is None
    Studies(ledger).reserve(STUDY, **PRICE, **GIVEN)
    assert version(ledger) == 4
    ledger.spend(mechanism="gaussian", mu=0.01)
    assert version(ledger) == 4
    assert Ledger(ledger.path).spent()["entries"] == 2


def test_what_is_reserved_cannot_be_spent(ledger):
    assert ledger.would_fit(0.5, 1e-6)
    Studies(ledger).reserve(STUDY, **PRICE, **GIVEN)
    left = ledger.remaining()["mu"]
    with pytest.raises(BudgetExceeded):
        ledger.spend(mechanism="gaussian", mu=left * 1.01)
    with pytest.raises(BudgetExceeded):
        Studies(ledger).reserve("f" * 64, **PRICE, **GIVEN | {"card": "9" * 64})
    assert ledger.spent()["entries"] == 0


def test_a_reservation_is_made_once(ledger):
    studies = Studies(ledger)
    first = studies.reserve(STUDY, **PRICE, **GIVEN)
    assert studies.reserve(STUDY, **PRICE, **GIVEN) == first
    with pytest.raises(LedgerError, match="already"):
        studies.reserve(STUDY, **PRICE, **GIVEN | {"card": "9" * 64})
    with pytest.raises(LedgerError, match="another study"):
        studies.reserve("f" * 64, **PRICE, **GIVEN)
    assert ledger.spent()["mu"] == 0.2


def test_the_first_answer_pays_and_later_ones_do_not(ledger):
    studies = Studies(ledger)
    studies.reserve(STUDY, **PRICE, **GIVEN)
    for number in range(3):
        assert studies.journal(STUDY, answer(number, b"%d" % number)) == b"%d" % number
        assert ledger.spent()["entries"] == 1
        assert ledger.spent()["mu"] == 0.2
    assert studies.journal(STUDY, answer(1, b"another")) == b"1"
    with pytest.raises(LedgerError, match="next round"):
        studies.journal(STUDY, answer(5))
    assert [row.answer for row in studies.answers(SEALED)] == [b"0", b"1", b"2"]
    with pytest.raises(LedgerError, match="take back"):
        studies.take_back(STUDY)


def test_an_answer_that_is_not_written_down_is_not_paid(ledger, monkeypatch):
    studies = Studies(ledger)
    studies.reserve(STUDY, **PRICE, **GIVEN)

    def fail(*_):
        raise LedgerError("the disk is full")

    monkeypatch.setattr(Book, "put_answer", fail)
    with pytest.raises(LedgerError, match="full"):
        studies.journal(STUDY, answer(0))
    assert ledger.spent()["entries"] == 0
    assert studies.find(STUDY).state == "reserved"


def test_an_answer_is_synced_before_it_is_returned(ledger):
    with ledger.file.open(write=True) as book:
        assert book._db.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA


def test_nothing_is_answered_without_a_reservation_or_after_the_end(ledger):
    studies = Studies(ledger)
    with pytest.raises(LedgerError, match="take part"):
        studies.journal(STUDY, answer(0))
    studies.reserve(STUDY, **PRICE, **GIVEN)
    studies.take_back(STUDY)
    assert ledger.spent()["mu"] == 0
    with pytest.raises(LedgerError, match="take part"):
        studies.journal(STUDY, answer(0))
    with pytest.raises(LedgerError, match="already, left"):
        studies.reserve(STUDY, **PRICE, **GIVEN)


def test_nothing_is_closed_that_was_not_answered(ledger):
    for _ in range(2):
        with pytest.raises(LedgerError, match="not answered"):
            Studies(ledger).close(STUDY, np.eye(2), {})
        Studies(ledger).reserve(STUDY, **PRICE, **GIVEN)


def test_both_totals_are_composed_and_one_is_charged(tmp_path):
    for trust, charged in (("study", 0.2), ("nobody", 0.3)):
        ledger = Ledger(tmp_path / trust, epsilon=3.0, delta=1e-6, trust=trust)
        Studies(ledger).reserve(STUDY, **PRICE, **GIVEN)
        Studies(ledger).journal(STUDY, answer(0))
        assert ledger.spent()["mu"] == charged
        assert ledger.history()[0]["mu"] == charged
        told = ledger.studies()
        assert told["epsilon_alone"] == Balance(3.0, 1e-6, [0.3], [None]).at(1e-6)
    with pytest.raises(ValueError, match="settled"):
        Ledger(tmp_path / "study", trust="nobody")


def test_an_open_study_is_not_lost_when_its_process_ends(ledger):
    studies = Studies(ledger)
    studies.reserve(STUDY, **PRICE, **GIVEN)
    studies.journal(STUDY, answer(0))
    with ledger.file.open(write=True) as book:  # paid by a process that is gone
        (result,) = book.results()
        book.conclude(result._replace(pid=2**22 - 1, started=1))
    again = Ledger(ledger.path)
    assert again.history()[0]["state"] == "pending"
    Studies(again).close(STUDY, np.eye(2), {"statistic": "mean"})
    assert again.history()[0]["state"] == "done"
    assert (np.array(again.history()[0]["value"]) == np.eye(2)).all()


def test_a_ledger_is_for_one_unit_in_studies_too(ledger):
    ledger.spend(mechanism="gaussian", mu=0.01, unit="person")
    with pytest.raises(LedgerError, match="per person"):
        Studies(ledger).reserve(STUDY, **PRICE, **GIVEN)
    assert version(ledger) == 3


def read_all(ledger):
    return Ledger(ledger.path).studies(), Studies(ledger).answers(SEALED)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE studies SET mu = 0.01",
        "UPDATE studies SET state = 'left'",
        "DELETE FROM studies",
        "UPDATE answers SET answer = x'00'",
        "DELETE FROM answers",
        "UPDATE answers SET round = 3",
        "UPDATE trust SET model = 'nobody'",
        "DELETE FROM trust",
        "DROP TABLE answers",
        "PRAGMA user_version = 3",
    ],
)
def test_edits_of_studies_are_found(ledger, statement):
    studies = Studies(ledger)
    studies.reserve(STUDY, **PRICE, **GIVEN)
    studies.journal(STUDY, answer(0))
    with closing(sqlite3.connect(ledger.path)) as db, db:
        db.execute(statement)
    with pytest.raises(LedgerError, match="damaged"):
        read_all(ledger)
