"""Ctrl-C: a real process gets a real SIGINT, and says what it was charged."""

import os
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

from spdp import Ledger

# A process of its own that gets SIGINT when a function of spdp is entered or left.
CHILD = """
import importlib, os, signal, sys
place, moment, words = sys.argv[1], sys.argv[2], sys.argv[3:]
module, owner, name = place.split(":")
module = importlib.import_module(module)
owner = getattr(module, owner) if owner else module
whole = getattr(owner, name)

def interrupted(*args, **options):
    if moment == "before":
        os.kill(os.getpid(), signal.SIGINT)
    result = whole(*args, **options)
    os.kill(os.getpid(), signal.SIGINT)
    return result

setattr(owner, name, interrupted)
sys.argv = ["spdp", *words]
from spdp.cli import main
main()
"""
NOTHING = "spdp: interrupted; nothing was charged\n"
LOST = "spdp: interrupted; entry 1 was charged, its result is lost\n"


@pytest.fixture(autouse=True)
def _interruptible():
    """Shells start background jobs with SIGINT ignored, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def study(tmp_path, random_spd):
    np.save(tmp_path / "data.npy", random_spd(300, 3))
    Ledger(tmp_path / "study.ledger", epsilon=1.0, delta=1e-5)
    return tmp_path


WORDS = ("--epsilon", "0.5", "--delta", "1e-6", "--radius", "5", "--ledger", "study.ledger")
MEAN = ("mean", "data.npy", *WORDS, "-o", "out")


def interrupted(study, place, moment, words=MEAN):
    return subprocess.run(
        [sys.executable, "-c", CHILD, place, moment, *words],
        cwd=study,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


POINTS = {
    "reading": ("spdp.data.source:Source:blocks", "before", NOTHING, []),
    "before payment": ("spdp.ledger.ledger:Ledger:spend", "before", NOTHING, []),
    "inside the payment": ("spdp.ledger.schema:Book:pay", "after", NOTHING, []),
    "committed, noise not drawn": ("spdp.ledger.ledger:Ledger:spend", "after", LOST, ["lost"]),
    "drawn, not stored": ("spdp.ledger.ledger:Ledger:store", "before", LOST, ["lost"]),
}


@pytest.mark.parametrize("point", POINTS)
def test_it_says_what_was_charged(study, point):
    place, moment, message, states = POINTS[point]
    done = interrupted(study, place, moment)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", message)
    ledger = Ledger(study / "study.ledger")
    assert [entry["state"] for entry in ledger.history()] == states
    assert not (study / "out").exists()


@pytest.mark.parametrize(
    "point",
    [
        ("spdp.ledger.ledger:Ledger:store", "after"),
        ("spdp.release.release:Release:save", "before"),
        ("spdp.cli.statistics::present", "before"),
    ],
    ids=["stored", "not written", "written"],
)
def test_a_result_that_was_stored_is_kept_and_recovered_as_it_says(study, point):
    done = interrupted(study, *point)
    file = study / "study.ledger"
    advice = f"spdp ledger recover {file} 1 -o DIR"
    message = f"spdp: interrupted; entry 1 was charged, its result is kept: {advice}\n"
    assert (done.returncode, done.stdout, done.stderr) == (130, "", message)
    words = [*advice.split()[1:-1], "again"]
    subprocess.run([sys.executable, "-m", "spdp", *words], cwd=study, check=True)
    value, _ = Ledger(file).recover(1)
    assert np.array_equal(np.load(study / "again" / "mean.npy"), value)


def test_without_a_ledger_nothing_is_charged(study):
    words = tuple(word for word in MEAN if "ledger" not in word)
    done = interrupted(study, "spdp.release.release:Release:save", "before", words)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", NOTHING)
    assert not (study / "out").exists()


def test_a_process_that_waits_for_the_ledger_is_interrupted_from_outside(study):
    """Another process holds the ledger; the signal arrives while this one waits."""
    with sqlite3.connect(study / "study.ledger", isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        words = [sys.executable, "-m", "spdp", *MEAN]
        with subprocess.Popen(words, cwd=study, stderr=subprocess.PIPE, text=True) as child:
            while not _waits(child.pid):
                time.sleep(0.05)
            child.send_signal(signal.SIGINT)
            other.execute("ROLLBACK")
            _, err = child.communicate(timeout=120)
    other.close()
    assert (child.returncode, err) == (130, NOTHING)
    assert Ledger(study / "study.ledger").history() == []


def _waits(pid):
    """Whether a process has the ledger's file open."""
    folder = f"/proc/{pid}/fd"
    try:
        opened = [os.readlink(f"{folder}/{name}") for name in os.listdir(folder)]
    except OSError:
        return False
    return any(name.endswith("study.ledger") for name in opened)
