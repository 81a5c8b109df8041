"""The ledger's file: complete, durable, and refused when it is damaged."""

import multiprocessing
import os
import random
import resource
import shutil
import sqlite3
import threading
from contextlib import closing

import numpy as np
import pytest
import resealing

from spdp.ledger.ledger import BudgetExceeded, Ledger, LedgerError
from spdp.ledger.schema import Result, checksum
from spdp.privacy import noise
from spdp.privacy.account import Account
from spdp.privacy.budget import Budget, pure_mu
from spdp.statistics.mechanisms import GivenStore, Stated

KEY = b"a key of sixteen bytes, or more"
GAUSSIAN = {"mechanism": "tangent-gaussian", "mu": 0.01}
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "account.ledger", epsilon=1.0, delta=1e-6)


@pytest.fixture
def no_noise(monkeypatch):
    """Fails the test if noise is drawn."""

    def draw(*_):
        raise AssertionError("noise was drawn")

    for law in ("gaussian", "laplace"):
        monkeypatch.setattr(noise, law, draw)


def release(path):
    account = Account(Budget.gaussian(0.1, 1e-6), ledger=Ledger(path))
    account.ask(Stated("count", 1), GivenStore(np.zeros(1, dtype=np.int64)))


def edit(path, *statements, reseal=False):
    """What somebody with an SQLite shell could do; ``reseal`` mends the checksums."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            db.execute(statement)
        if reseal:
            resealing.reseal(db)


# --- a copy is complete ---------------------------------------------------------------


def test_a_copy_of_the_file_alone_is_complete(ledger, tmp_path):
    """Nothing lives in a side file, not even while others have the ledger open."""
    with closing(sqlite3.connect(ledger.path)) as reader:
        reader.execute("SELECT * FROM entries").fetchall()
        for n in range(5):
            entry = ledger.spend(**GAUSSIAN, label=f"{n}")
            assert sorted(os.listdir(tmp_path)) == ["account.ledger"]
            shutil.copy(ledger.path, tmp_path / "copy")
            assert Ledger(tmp_path / "copy").history() == ledger.history()
            os.remove(tmp_path / "copy")
            ledger.store(entry, np.eye(2), {"n": n})


def test_a_payment_waits_for_a_reader(ledger):
    reader = sqlite3.connect(ledger.path, isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM entries").fetchall()
    timer = threading.Timer(0.3, reader.close)
    timer.start()
    assert ledger.spend(**GAUSSIAN) == 1
    assert not timer.is_alive()
    timer.join()


def test_a_write_ahead_log_is_folded_back(ledger, tmp_path):
    edit(ledger.path, "PRAGMA journal_mode = WAL")
    assert ledger.path.read_bytes()[18] == 2
    ledger.spend(**GAUSSIAN)
    assert ledger.path.read_bytes()[18] == 1
    assert os.listdir(tmp_path) == ["account.ledger"]


# --- edits ----------------------------------------------------------------------------

EDITS = {
    "a negative cost": "UPDATE entries SET mu = -20 WHERE id = 1",
    "a cost of nothing": "UPDATE entries SET mu = 0 WHERE id = 1",
    "an infinite cost": "UPDATE entries SET mu = 9e999 WHERE id = 1",
    "a cheaper pure cost": "UPDATE entries SET mu = 0.001 WHERE id = 2",
    "a negative pure cost": "UPDATE entries SET pure = -1 WHERE id = 2",
    "no epsilon": "UPDATE budget SET epsilon = 0",
    "an infinite epsilon": "UPDATE budget SET epsilon = 9e999",
    "a delta of one": "UPDATE budget SET delta = 1",
    "a second budget": "INSERT INTO budget SELECT 2, 9, delta, created, NULL, checksum FROM budget",
    "no budget": "DELETE FROM budget",
    "a forgotten entry": "DELETE FROM entries WHERE id = 1",
    "another table": "CREATE TABLE more (a)",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries; END",
}
NAIVE = {
    "a smaller cost": "UPDATE entries SET mu = 0.001 WHERE id = 1",
    "a forgotten last entry": "DELETE FROM entries WHERE id = 3",
    "a larger budget": "UPDATE budget SET epsilon = 20",
    "another label": "UPDATE entries SET label = 'x' WHERE id = 1",
    "a forgotten act": "DELETE FROM acts",
    "other data": "UPDATE budget SET fingerprint = NULL",
}


def spent_ledger(path):
    """A budget of 1 with Gaussian and pure entries; done, pending and lost ones."""
    ledger = Ledger(path, epsilon=0.9, delta=1e-6, key=KEY)
    ledger.bind(np.stack([np.eye(2)] * 3))
    ledger.change_budget(1.0, 1e-6, "a round number")
    done = ledger.spend(**GAUSSIAN, label="é")
    ledger.spend(mechanism="riemannian-laplace", pure=0.05)
    ledger.spend(mechanism="tangent-gaussian", mu=0.15)
    ledger.store(done, np.eye(2), {"epsilon": 0.1})
    return ledger


@pytest.mark.parametrize("what", [*EDITS, *NAIVE])
def test_edited_files_are_refused(tmp_path, no_noise, what):
    """Also by a ledger that was open before, and, where costs cannot be right, even if
    the checksums were computed anew."""
    for reseal in (False, True) if what in EDITS else (False,):
        ledger = spent_ledger(tmp_path / f"{reseal}")
        edit(ledger.path, (EDITS | NAIVE)[what], reseal=reseal)
        with pytest.raises(LedgerError, match="damaged or edited"):
            release(ledger.path)
        with pytest.raises(LedgerError, match="damaged or edited"):
            ledger.spend(mechanism="tangent-gaussian", mu=0.001)
        with pytest.raises(LedgerError, match="damaged or edited"):
            ledger.remaining()


@pytest.mark.parametrize("change", ["value = '[[9.0]]'", "certificate = '{}'", "pid = 1"])
def test_a_result_that_was_edited_is_refused(tmp_path, change):
    ledger = spent_ledger(tmp_path / "l")
    edit(ledger.path, f"UPDATE results SET {change} WHERE id = 1")
    with pytest.raises(LedgerError, match=r"damaged.*result of entry 1"):
        ledger.recover(1)
    with pytest.raises(LedgerError, match=r"damaged.*result of entry 1"):
        ledger.history()


@pytest.mark.parametrize("where", ["TRUE", "id = 2", "id = 3"])
def test_a_result_that_is_missing_is_missed(tmp_path, no_noise, where):
    """Before anything is paid, even if the rest was sealed anew without it."""
    for reseal in (False, True):
        ledger = spent_ledger(tmp_path / f"{reseal}")
        edit(ledger.path, f"DELETE FROM results WHERE {where}", reseal=reseal)
        for use in (ledger.remaining, ledger.history, lambda path=ledger.path: release(path)):
            with pytest.raises(LedgerError, match="damaged or edited"):
                use()


def test_a_result_that_was_replaced_is_found(tmp_path, no_noise):
    """A result with a checksum of its own, but not the one that the ledger counted."""
    ledger = spent_ledger(tmp_path / "l")
    forged = Result(2, "lost", "", 1, 1, "", None, None)
    row = ", ".join(repr(x) if x is not None else "NULL" for x in forged)
    seal = checksum(forged).hexdigest()
    edit(ledger.path, f"REPLACE INTO results VALUES ({row}, '{seal}')")
    with pytest.raises(LedgerError, match="damaged or edited"):
        ledger.remaining()


def test_ledgers_of_the_former_version_are_read_and_sealed_anew(tmp_path, no_noise):
    """Version 0.2 had no checksum over results, and wrote n into the fingerprint."""
    ledger = spent_ledger(tmp_path / "l")
    with closing(sqlite3.connect(ledger.path)) as db, db:
        k, mark = db.execute("SELECT fingerprint FROM budget").fetchone()[0].split(":")
        db.execute("UPDATE budget SET fingerprint = ?", (f"{k}:3:{mark}",))
        lists = [
            db.execute(f"SELECT * FROM {t} ORDER BY id").fetchall() for t in ("acts", "entries")
        ]
        (_, *terms, _) = db.execute("SELECT * FROM budget").fetchone()
        db.execute("UPDATE budget SET checksum = ?", (checksum(tuple(terms), *lists).hexdigest(),))
    former = Ledger(ledger.path, key=KEY)
    former.bind(np.stack([np.eye(2)] * 3))
    assert former.spend(mechanism="tangent-gaussian", mu=0.001) == 4
    edit(ledger.path, "UPDATE results SET checksum = printf('%064d', 0) WHERE id = 1")
    with pytest.raises(LedgerError, match="damaged or edited"):
        former.remaining()


def test_the_tables_refuse_what_is_not_a_cost(tmp_path):
    ledger = spent_ledger(tmp_path / "l")
    with closing(sqlite3.connect(ledger.path)) as db:
        for change in (
            *(EDITS[name] for name in EDITS if "cost" in name and "cheaper" not in name),
            EDITS["no epsilon"],
            EDITS["a delta of one"],
            EDITS["a second budget"],
            "UPDATE entries SET mu = 'much'",
            "UPDATE entries SET mu = NULL",
            "UPDATE results SET state = 'free'",
            "UPDATE results SET value = NULL WHERE id = 1",
            "UPDATE results SET value = '1' WHERE id = 2",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(change)


# --- damage ---------------------------------------------------------------------------


def test_files_that_are_no_ledgers(ledger, tmp_path, no_noise):
    for _ in range(3):
        ledger.spend(**GAUSSIAN)
    data = ledger.path.read_bytes()
    for name, bad in {
        "empty": b"",
        "text": b"this is no ledger" * 100,
        "head": b"\0" * 100 + data[100:],
        "truncated": data[: len(data) // 3],
        "scrambled": data[:4096] + bytes(reversed(data[4096:])),
    }.items():
        file = tmp_path / name
        file.write_bytes(bad)
        with pytest.raises(LedgerError, match=name):
            release(file)
        assert file.read_bytes() == bad
    (tmp_path / "folder").mkdir()
    with pytest.raises(LedgerError, match="folder"):
        release(tmp_path / "folder")
    edit(tmp_path / "other.db", "PRAGMA journal_mode = WAL", "CREATE TABLE t (a)")
    with pytest.raises(LedgerError, match="not a ledger"):
        release(tmp_path / "other.db")
    assert (tmp_path / "other.db").read_bytes()[18] == 2  # nothing of it was touched


@pytest.mark.parametrize(("version", "words"), [(1, "unpublished"), (99, "newer version")])
def test_other_formats_are_refused(ledger, no_noise, version, words):
    edit(ledger.path, f"PRAGMA user_version = {version}")
    with pytest.raises(LedgerError, match=words):
        release(ledger.path)


def contents(ledger):
    return ledger.epsilon, ledger.delta, ledger.is_bound, ledger.acts(), ledger.history()


def outcome(path, ledger, truth):
    """Whether a file is still used; it then has to hold exactly what it held."""
    try:
        ledger = Ledger(path) if ledger is None else ledger
        found = contents(ledger)
        ledger.spend(**GAUSSIAN, label="after")
        after = contents(ledger)
    except LedgerError:
        return False
    assert found == truth
    assert after[:-1] == truth[:-1]
    assert after[-1][:-1] == truth[-1]
    return True


def damage(tmp_path, flips, seed):
    """Flip bytes, one at a time, half of them where something is written; cut files."""
    rng = random.Random(seed)
    ledger = spent_ledger(tmp_path / "whole")
    for n in range(12):
        ledger.spend(**GAUSSIAN, label=f"entry {n} " + "x" * rng.randrange(900))
    truth, data = contents(ledger), ledger.path.read_bytes()
    written = [place for place, byte in enumerate(data) if byte]
    file = tmp_path / "damaged"
    counts = {True: 0, False: 0}
    for n in range(flips):
        file.write_bytes(data)
        opened = Ledger(file) if n % 4 == 0 else None
        place = rng.choice(written) if n % 2 else rng.randrange(len(data))
        bad = bytearray(data)
        bad[place] ^= rng.randrange(1, 256)
        file.write_bytes(bad if n % 10 else data[:place])
        counts[outcome(file, opened, truth)] += 1
        for side in tmp_path.glob("damaged-*"):
            side.unlink()
    assert min(counts.values()) > flips / 20
    return counts


def test_a_damaged_byte_is_harmless_or_refused(tmp_path):
    damage(tmp_path, 300, seed=1)


@pytest.mark.audit
def test_five_hundred_more_damaged_bytes(tmp_path):
    counts = damage(tmp_path, 500, seed=2)
    print(f"ledger: 500 damaged files, {counts[False]} refused, {counts[True]} unharmed")


def test_a_full_disk_spends_nothing(ledger):
    """A limit on the size of files stands in for the disk."""

    def spend(results):
        size = ledger.path.stat().st_size + 8192
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        try:
            ledger.spend(**GAUSSIAN, label="x" * 200_000)
        except LedgerError as error:
            results.put(str(error))

    results = FORK.Queue()
    child = FORK.Process(target=spend, args=(results,))
    child.start()
    assert "nothing was released" in results.get(timeout=60)
    child.join(timeout=60)
    assert ledger.spent()["entries"] == 0
    ledger.spend(**GAUSSIAN)


def test_a_file_that_cannot_be_written_is_read_but_not_charged(ledger, tmp_path):
    """SQLite writes no file of a later write format: byte 18 of the header."""
    with pytest.raises(LedgerError, match="cannot be created"):
        Ledger(tmp_path / "absent" / "x.ledger", epsilon=1.0, delta=1e-6)
    ledger.spend(**GAUSSIAN)
    gone = "UPDATE results SET pid = 99999999"  # larger than any process number
    edit(ledger.path, gone, reseal=True)
    data = bytearray(ledger.path.read_bytes())
    data[18] = 3
    ledger.path.write_bytes(data)
    assert Ledger(ledger.path).history()[0]["state"] == "pending"
    with pytest.raises(LedgerError, match="readonly"):
        ledger.spend(**GAUSSIAN)
    assert ledger.spent()["entries"] == 1


def test_names_that_are_too_long(tmp_path):
    for length in (250, 300):
        path = tmp_path / ("a" * length)
        with pytest.raises(LedgerError, match="File name too long"):
            Ledger(path, epsilon=1.0, delta=1e-6)
    with pytest.raises(LedgerError, match="File name too long"):
        Ledger(path)
    assert os.listdir(tmp_path) == []


def _nobody(path, results):
    if os.geteuid() == 0:
        os.setuid(65534)
    for budget in ({}, {"epsilon": 1.0, "delta": 1e-6}):
        try:
            Ledger(path, **budget)
        except LedgerError as error:
            results.put(str(error))


def test_a_folder_that_cannot_be_read(tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir(mode=0)
    results = FORK.Queue()
    child = FORK.Process(target=_nobody, args=(folder / "l", results))
    child.start()
    for _ in range(2):
        assert "l: cannot be opened (Permission denied)" in results.get(timeout=60)
    child.join(timeout=60)
    folder.chmod(0o700)


def test_ten_thousand_entries_are_summed(ledger):
    rows = "SELECT value, '2026', 'x', 'tangent-gaussian', 1e-4, NULL, NULL FROM n"
    numbers = (
        "WITH RECURSIVE n AS (SELECT 1 AS value UNION ALL SELECT value + 1 FROM n LIMIT 10000)"
    )
    results = f"SELECT value, 'lost', '', 1, 1, '', NULL, NULL, '{'0' * 64}' FROM n"
    edit(
        ledger.path,
        f"{numbers} INSERT INTO entries {rows}",
        f"{numbers} INSERT INTO results {results}",
        reseal=True,
    )
    assert ledger.spent()["mu"] == pytest.approx(1e-2, rel=1e-12)
    assert ledger.would_fit(0.9, 1e-6)
    assert not ledger.would_fit(1.0, 1e-6)
    assert ledger.spend(**GAUSSIAN) == 10_001


# --- entries --------------------------------------------------------------------------


def test_clocks_may_disagree(ledger):
    ledger.spend(**GAUSSIAN)
    edit(ledger.path, "UPDATE entries SET created = '2999-01-01'", reseal=True)
    ledger.spend(**GAUSSIAN)
    first, second = ledger.history()
    assert second["created"] >= first["created"] == "2999-01-01"
    assert (first["id"], second["id"]) == (1, 2)


def test_costs_are_stored_as_they_are(tmp_path):
    ledger = Ledger(tmp_path / "l", epsilon=50.0, delta=1e-6)
    costs = [0.1, 1 / 3, 1.0, 5e-324, 1e-300]
    for mu in costs:
        ledger.spend(mechanism="tangent-gaussian", mu=mu)
    ledger.spend(mechanism="riemannian-laplace", pure=1 / 3)
    history = ledger.history()
    assert [entry["mu"] for entry in history] == [*costs, pure_mu(1 / 3)]
    with pytest.raises(BudgetExceeded):
        ledger.spend(mechanism="tangent-gaussian", mu=1e300)
