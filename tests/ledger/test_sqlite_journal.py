"""Journals that killed processes leave: played back, or refused."""

import multiprocessing
import os
import resource
import signal
import sqlite3
from contextlib import closing

import pytest

from spdp.ledger.file import LedgerFile
from spdp.ledger.ledger import Ledger, LedgerError
from spdp.ledger.sqlite_journal import MAGIC, draft_of, journal_of
from spdp.system import WINDOWS_JOURNAL

GAUSSIAN = {"mechanism": "tangent-gaussian", "mu": 0.01}
FORK = multiprocessing.get_context("fork")
PAGE, SECTOR = 4096, 512


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "A", epsilon=1.0, delta=1e-6)
    ledger.spend(**GAUSSIAN)
    return ledger


def leave_journal(path, written):
    """What a process leaves that is killed in a payment: its journal, synced, and the
    ledger as it was before, or with all pages written."""
    before = path.read_bytes()
    with LedgerFile(path).open(write=True) as book:
        book.pay("tangent-gaussian", None, 0.01, None, None, "0" * 64)
        journal = journal_of(path).read_bytes()
    records = (len(journal) - SECTOR) // (PAGE + 8)
    if not written:
        path.write_bytes(before)
    journal_of(path).write_bytes(MAGIC + records.to_bytes(4, "big") + journal[12:])


@pytest.mark.parametrize("written", [False, True])
def test_a_killed_payment_is_undone(ledger, tmp_path, written):
    leave_journal(ledger.path, written)
    assert Ledger(ledger.path).spent()["entries"] == 1
    assert os.listdir(tmp_path) == ["A"]
    assert ledger.spend(**GAUSSIAN) == 2


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("payments", [1, 2])
def test_a_journal_does_not_undo_what_was_paid_under_another_name(
    ledger, tmp_path, written, payments
):
    leave_journal(ledger.path, written)
    ledger.path.rename(tmp_path / "B")
    elsewhere = Ledger(tmp_path / "B")
    for _ in range(payments):
        elsewhere.spend(**GAUSSIAN)
    spent = elsewhere.spent()
    (tmp_path / "B").rename(ledger.path)
    files = {file: file.read_bytes() for file in tmp_path.iterdir()}
    for use in (lambda: Ledger(ledger.path), ledger.spent, lambda: ledger.spend(**GAUSSIAN)):
        with pytest.raises(LedgerError, match=r"A-journal, left by .* killed.*move that file away"):
            use()
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == files
    journal_of(ledger.path).unlink()  # as the message says
    assert ledger.spent() == spent
    assert spent["entries"] == 1 + written + payments


def test_a_journal_is_not_played_back_into_another_ledger(ledger, tmp_path):
    leave_journal(ledger.path, True)
    ledger.path.unlink()
    with pytest.raises(LedgerError, match="cannot be created beside A-journal"):
        Ledger(ledger.path, epsilon=0.1, delta=1e-9)
    assert os.listdir(tmp_path) == ["A-journal"]
    Ledger(tmp_path / "B", epsilon=0.1, delta=1e-9).path.rename(ledger.path)
    with pytest.raises(LedgerError, match="A-journal, left by"):
        Ledger(ledger.path)
    journal_of(ledger.path).unlink()
    assert Ledger(ledger.path).epsilon == 0.1


def _pay_and_die(path):
    """Killed by the kernel at the first page that would make the file larger."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    size = path.stat().st_size
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    Ledger(path).spend(**GAUSSIAN, label="x" * 5 * PAGE)


def test_killed_while_pages_are_written(ledger, tmp_path):
    for n in range(3):
        ledger.spend(**GAUSSIAN, label=f"{n}" * 2 * PAGE)
    history, data = ledger.history(), ledger.path.read_bytes()
    child = FORK.Process(target=_pay_and_die, args=(ledger.path,))
    child.start()
    child.join(timeout=60)
    assert child.exitcode == -signal.SIGXFSZ
    assert journal_of(ledger.path).read_bytes().startswith(MAGIC)
    assert ledger.path.read_bytes() != data  # some pages are those of the payment
    ledger.path.rename(tmp_path / "B")
    with pytest.raises(LedgerError, match="B: "):  # whose journal is not there
        Ledger(tmp_path / "B")
    (tmp_path / "B").rename(ledger.path)
    assert ledger.history() == history
    assert ledger.spend(**GAUSSIAN) == 5


def test_a_ledger_with_two_names_is_read_but_not_paid_from(ledger, tmp_path):
    os.link(ledger.path, tmp_path / "B")
    for path in (ledger.path, tmp_path / "B"):
        assert Ledger(path).spent()["entries"] == 1
        with pytest.raises(LedgerError, match="2 names"):
            Ledger(path).spend(**GAUSSIAN)
    (tmp_path / "B").unlink()
    assert ledger.spend(**GAUSSIAN) == 2


def test_the_name_that_a_killed_creator_left_is_no_other(ledger, tmp_path):
    os.link(ledger.path, draft_of(ledger.path))
    assert ledger.spend(**GAUSSIAN) == 2
    assert os.listdir(tmp_path) == ["A"]


def test_a_log_that_another_program_left_is_refused(ledger, tmp_path):
    """Played back, it would undo what is paid after it, too."""
    with closing(sqlite3.connect(ledger.path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("UPDATE entries SET label = 'x'")
        db.commit()
        log = (tmp_path / "A-wal").read_bytes()
    (tmp_path / "A-wal").write_bytes(log)
    with pytest.raises(LedgerError, match="A-wal beside it"):
        ledger.spend(**GAUSSIAN)
    ledger.path.unlink()
    with pytest.raises(LedgerError, match="cannot be created beside A-wal"):
        Ledger(ledger.path, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("side", ["-journal", "-wal", "-shm"])
def test_a_name_that_sqlite_gives_to_side_files_is_no_ledgers(tmp_path, side):
    """SQLite would take the ledger for another's journal, and delete it."""
    with pytest.raises(LedgerError, match=f"must not end in .*{side}"):
        Ledger(tmp_path / f"study{side}", epsilon=1.0, delta=1e-6)
    made = tmp_path / "made"
    Ledger(made, epsilon=1.0, delta=1e-6)
    made.rename(tmp_path / f"study{side}")
    with pytest.raises(LedgerError, match=f"must not end in .*{side}"):
        Ledger(tmp_path / f"study{side}").spent()


def test_another_file_in_the_journals_place_is_kept(tmp_path):
    ledger = Ledger(tmp_path / "study", epsilon=1.0, delta=1e-6)
    beside = tmp_path / "study-journal"
    beside.write_bytes(b"SQLite format 3\0 somebody's own")
    with pytest.raises(LedgerError, match="study-journal beside it is no SQLite journal"):
        ledger.spent()
    assert beside.exists()


def test_a_journal_that_cannot_be_read_is_not_taken_for_none(tmp_path):
    ledger = Ledger(tmp_path / "study", epsilon=1.0, delta=1e-6)
    (tmp_path / "study-journal").mkdir()
    with pytest.raises(LedgerError, match="study-journal: cannot be read"):
        ledger.spent()


# --- truncated journals, as on Windows ------------------------------------------------


@pytest.fixture
def truncated(monkeypatch, tmp_path):
    settings = tuple(f"PRAGMA {setting}" for setting in WINDOWS_JOURNAL)
    monkeypatch.setattr("spdp.ledger.file.SETTINGS", settings)
    ledger = Ledger(tmp_path / "A", epsilon=1.0, delta=1e-6)
    ledger.spend(**GAUSSIAN)
    assert journal_of(ledger.path).read_bytes() == b""  # and deleted elsewhere
    return ledger


@pytest.mark.parametrize("written", [False, True])
def test_a_killed_payment_is_undone_with_a_truncated_journal(truncated, written):
    leave_journal(truncated.path, written)
    assert Ledger(truncated.path).spent()["entries"] == 1
    assert truncated.spend(**GAUSSIAN) == 2
    assert journal_of(truncated.path).read_bytes() == b""


def test_a_truncated_journal_does_not_undo_what_was_paid_elsewhere(truncated, tmp_path):
    leave_journal(truncated.path, True)
    truncated.path.rename(tmp_path / "B")
    Ledger(tmp_path / "B").spend(**GAUSSIAN)
    (tmp_path / "B").rename(truncated.path)
    with pytest.raises(LedgerError, match="A-journal, left by"):
        truncated.spend(**GAUSSIAN)


def test_an_empty_journal_is_in_nobodys_way(truncated):
    truncated.path.unlink()
    assert journal_of(truncated.path).exists()
    assert Ledger(truncated.path, epsilon=0.1, delta=1e-9).spend(**GAUSSIAN) == 1
