"""Who holds an entry of a ledger, and which data a ledger is for."""

import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest
import resealing

import spdp
from spdp import Ball
from spdp.errors import DataError, LedgerError, ParameterError
from spdp.ledger import Ledger
from spdp.ledger.identity import Owner

X = np.stack([np.diag([1.0, 2.0])] * 40)
OPTIONS = {"domain": Ball(2.0), "mechanism": "gaussian", "anyway": True}
KEY = b"a key of sixteen bytes, or more"
GAUSSIAN = {"mechanism": "tangent-gaussian", "mu": 0.01}
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "account.ledger", epsilon=1.0, delta=1e-6)


# --- who holds an entry ---------------------------------------------------------------


def change_owner(path, change):
    """What a process of another number, start or place would have written."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute(f"UPDATE results SET {change}")
        resealing.reseal(db)


def test_pending_entries_of_the_living_stay_pending(ledger):
    ledger.spend(**GAUSSIAN)
    assert Ledger(ledger.path).history()[0]["state"] == "pending"


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ("pid = 99999999", "lost"),  # larger than any process number
        ("started = started - 1", "lost"),  # an earlier process had this number
        ("pid = 99999999, origin = 'elsewhere'", "pending"),
        ("started = NULL", "pending"),
    ],
)
def test_only_processes_that_are_surely_gone_have_lost(ledger, change, state):
    if Owner.current().started is None:
        pytest.skip("no start times on this system")
    entry = ledger.spend(**GAUSSIAN)
    change_owner(ledger.path, change)
    assert Ledger(ledger.path).history()[0]["state"] == state
    ledger.store(entry, np.eye(2), {})  # not lost: its owner has it
    assert ledger.history()[0]["state"] == "done"


def test_a_process_that_nobody_waited_for_is_gone():
    child = FORK.Process(target=os.getpid)
    child.start()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    owner = Owner(Owner.current().origin, child.pid, 1)
    assert owner.is_gone()
    child.join()
    assert owner.is_gone()
    assert not Owner.current().is_gone()
    assert not Owner.current()._replace(pid=1, started=None).is_gone()


def test_another_pid_namespace_judges_nobody(ledger):
    """A container that shares the file cannot see the process, which still stores."""
    look = "from spdp import Ledger; import sys; print(Ledger(sys.argv[1]).history())"
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", look]
    if shutil.which("unshare") is None or subprocess.run([*command[:4], "true"]).returncode:
        pytest.skip("no pid namespaces here")
    entry = ledger.spend(**GAUSSIAN)
    seen = subprocess.run([*command, ledger.path], capture_output=True, text=True, timeout=60)
    assert "'state': 'pending'" in seen.stdout
    ledger.store(entry, np.eye(2), {})
    assert ledger.recover(entry)[1] == {}


# --- which data -----------------------------------------------------------------------


def test_keys_must_not_be_guessable(tmp_path):
    for key in (b"", b"short", b"fifteen bytes ok"[:15], "a string of many letters"):
        with pytest.raises(ParameterError, match="key must"):
            Ledger(tmp_path / "l", epsilon=1.0, delta=1e-6, key=key)
    assert not (tmp_path / "l").exists()
    Ledger(tmp_path / "l", epsilon=1.0, delta=1e-6, key=b"sixteen bytes ok")


def test_the_same_records_have_the_same_fingerprint(tmp_path):
    ledger = Ledger(tmp_path / "l", epsilon=1.0, delta=1e-6, key=KEY)
    assert not ledger.is_bound
    ledger.bind(X)
    assert ledger.is_bound
    for same in (X[::-1], list(X), iter([X[:7], X[7:]]), lambda: [X], iter(X)):
        ledger.bind(same)
    for other in (X[:-1], X * (1 + 1e-15), np.concatenate([X, X[:1]])):
        with pytest.raises(LedgerError, match="bound to other data"):
            ledger.bind(other)
    with pytest.raises(DataError, match="no records"):
        ledger.bind(iter([]))
    assert [act["what"] for act in ledger.acts()] == ["bound to data"]
    with pytest.raises(ParameterError, match="needs a key"):
        Ledger(ledger.path).bind(X)


def test_a_fingerprint_does_not_tell_how_many_records_there_are(tmp_path):
    """Under add-remove their number is private, and a ledger may be read by many."""
    marks = []
    for n in (7, 31):
        ledger = Ledger(tmp_path / f"{n}", epsilon=1.0, delta=1e-6, key=KEY)
        ledger.bind(X[:n])
        marks.append(ledger._fingerprint())
    assert [mark.split(":")[0] for mark in marks] == ["2", "2"]
    assert all(len(mark) == 66 for mark in marks)


def test_another_process_may_bind_meanwhile(ledger):
    other = Ledger(ledger.path, key=KEY)
    other.bind(X)
    assert ledger.is_bound
    with pytest.raises(LedgerError, match="key is needed"):
        _ = ledger.key
    with pytest.raises(LedgerError, match="X is not the data"):
        other.check_mark("2:40:0", "X")


def test_bound_to_its_data(tmp_path):
    path = tmp_path / "l"
    Ledger(path, epsilon=1.0, delta=1e-6, key=KEY).bind(X)
    bound = Ledger(path, key=KEY)

    def mean(data, ledger):
        return spdp.private_mean(data, epsilon=0.1, delta=1e-6, ledger=ledger, **OPTIONS)

    mean(X, bound)
    mean(list(X), bound)
    with pytest.raises(LedgerError, match="not the data"):
        mean(X[:-1], bound)
    with pytest.raises(LedgerError, match="key is needed"):
        mean(X, Ledger(path))
    with pytest.raises(LedgerError, match="not the data"):
        mean(X, Ledger(path, key=KEY[::-1]))
    with pytest.raises(DataError, match="only once"):
        mean(iter([X]), bound)
    assert bound.spent()["entries"] == 2
