import json
import math
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from itertools import pairwise

import dp_accounting
import numpy as np
import pytest

from spdp import Ball, BudgetExceeded, Ledger, PrivateFrechetMean, RiemannianLaplace, TangentGaussian, lattice, private_mean
from spdp.accounting import pure_mu
from spdp.errors import DataError, ParameterError
from spdp.ledger import LedgerError
from spdp.privacy import gaussian_delta, gaussian_epsilon, gaussian_mu
from spdp.records import as_records

X = np.stack([np.diag([1.0, 2.0])] * 40)
OPTIONS = {"domain": Ball(2.0), "mechanism": "gaussian"}
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "account.ledger", epsilon=1.0, delta=1e-6)


def test_spending_until_it_is_refused(ledger):
    for method in ("oneshot", "adaptive"):
        private_mean(X, epsilon=0.4, delta=1e-6, method=method, ledger=ledger, label=method, **OPTIONS)
    spent = ledger.spent()
    assert spent["entries"] == 2
    assert spent["mu"] == pytest.approx(math.sqrt(2) * gaussian_mu(0.4, 1e-6), rel=1e-9)
    assert 0.4 < spent["epsilon"] < 0.8
    assert ledger.would_fit(0.5, 1e-6)
    assert not ledger.would_fit(1.0, 1e-6)
    with pytest.raises(BudgetExceeded, match=r"asked for.*left is mu.*would still fit") as refused:
        private_mean(X, epsilon=1.0, delta=1e-6, ledger=ledger, **OPTIONS)
    assert ledger.spent()["entries"] == 2
    private_mean(X, epsilon=refused.value.fits, delta=1e-6, ledger=ledger, **OPTIONS)
    assert ledger.spent()["epsilon"] <= 1.0
    assert ledger.remaining()["epsilon"] < 0.01
    labels = [(entry["label"], entry["state"]) for entry in ledger.history()]
    assert labels == [("oneshot", "done"), ("adaptive", "done"), (None, "done")]


def test_the_whole_budget_fits_exactly_once(ledger):
    release = private_mean(X, epsilon=1.0, delta=1e-6, ledger=ledger, **OPTIONS)
    assert ledger.spent()["epsilon"] <= 1.0
    with pytest.raises(BudgetExceeded, match="nothing is left"):
        private_mean(X, epsilon=1e-3, delta=1e-6, ledger=ledger, **OPTIONS)
    entry = ledger.history()[0]
    np.testing.assert_array_equal(entry["value"], release.value)
    assert entry["certificate"] == release.certificate
    assert "fingerprint" not in json.dumps(release.certificate)


def test_every_way_to_spend(tmp_path):
    ledger = Ledger(tmp_path / "l", epsilon=20.0, delta=1e-6)
    TangentGaussian(0.1, 0.5, 1e-6).release(np.eye(2), ledger=ledger, label="tangent")
    RiemannianLaplace(0.1, 0.5).release(np.eye(2), ledger=ledger, label="laplace")
    PrivateFrechetMean(0.5, 1e-6, Ball(2.0), ledger=ledger, label="estimator").fit(X)
    private_mean(X, epsilon=0.5, delta=0, domain=Ball(2.0), ledger=ledger)
    states = [(entry["mechanism"], entry["pure"]) for entry in ledger.history()]
    assert [pure for _, pure in states] == [None, 0.5, 0.5 if states[2][0] == "riemannian-laplace" else None, 0.5]
    with pytest.raises(ParameterError, match="seeded simulation"):
        private_mean(X, epsilon=0.5, delta=1e-6, ledger=ledger, random_state=0, **OPTIONS)
    assert ledger.spent()["entries"] == 4


def test_add_remove_releases_cost_double(tmp_path):
    """The budget is for replacement, which is a removal and an addition; a ledger that mixed the two would understate its spending."""
    ledger = Ledger(tmp_path / "l", epsilon=20.0, delta=1e-6)
    private_mean(X, epsilon=0.5, delta=1e-6, adjacency="add-remove", ledger=ledger, **OPTIONS)
    private_mean(X, epsilon=0.5, delta=1e-6, method="oneshot", ledger=ledger, **OPTIONS)
    private_mean(X, epsilon=0.5, delta=0, domain=Ball(2.0), adjacency="add-remove", ledger=ledger)
    gaussian, replaced, pure = ledger.history()
    assert gaussian["mu"] == 2 * replaced["mu"]
    assert pure["pure"] == 1.0


def test_failures_spend_nothing(ledger):
    bad = X.copy()
    bad[3] = np.nan
    for method in ("oneshot", "adaptive"):
        with pytest.raises(DataError):
            private_mean(bad, epsilon=0.5, delta=1e-6, method=method, ledger=ledger, **OPTIONS)
    with pytest.raises(ParameterError):
        private_mean(X, epsilon=-1.0, delta=1e-6, ledger=ledger, **OPTIONS)
    assert ledger.spent()["entries"] == 0


def test_the_budget_is_fixed(ledger, tmp_path):
    assert Ledger(ledger.path).epsilon == 1.0
    assert Ledger(ledger.path, epsilon=1.0, delta=1e-6).delta == 1e-6
    with pytest.raises(ParameterError, match="only by change_budget"):
        Ledger(ledger.path, epsilon=2.0, delta=1e-6)
    with pytest.raises(ParameterError, match="reason"):
        ledger.change_budget(2.0, 1e-6, " ")
    private_mean(X, epsilon=0.9, delta=1e-6, ledger=ledger, **OPTIONS)
    with pytest.raises(BudgetExceeded, match="spent already"):
        ledger.change_budget(0.5, 1e-6, "less")
    assert ledger.epsilon == 1.0
    ledger.change_budget(2.0, 1e-6, "ethics board, second round")
    assert Ledger(ledger.path).epsilon == 2.0
    assert "ethics board" in ledger.acts()[0]["what"]
    with pytest.raises(ParameterError, match="both"):
        Ledger(tmp_path / "x", epsilon=1.0)
    with pytest.raises(LedgerError, match="no such ledger"):
        Ledger(tmp_path / "x")


# --- composition ---------------------------------------------------------------------------------------------------------


def test_pure_releases_are_dominated_by_their_mu():
    """The trade-off curve of the Gaussian lies below that of ε-DP: its δ is larger at every ε'."""
    for epsilon in (0.01, 0.5, 2.0, 10.0):
        mu = pure_mu(epsilon)
        for other in np.linspace(0, epsilon, 7):
            delta = (math.exp(epsilon) - math.exp(other)) / (1 + math.exp(epsilon))  # of ε-randomised response
            assert gaussian_delta(float(other), mu) >= delta * (1 - 1e-12)
        tighter = gaussian_delta(0.0, mu * (1 - 1e-6))
        assert tighter < (math.exp(epsilon) - 1) / (1 + math.exp(epsilon))


def test_gaussian_composition_agrees_with_dp_accounting(tmp_path):
    rng = np.random.default_rng(0)
    for trial in range(3):
        ledger = Ledger(tmp_path / f"l{trial}", epsilon=20.0, delta=1e-5)
        mus = rng.uniform(0.05, 0.3, 6)
        for mu in mus:
            ledger.spend(mechanism="tangent-gaussian", mu=float(mu))
        total = float(np.sqrt((mus**2).sum()))
        assert ledger.spent()["epsilon"] == pytest.approx(gaussian_epsilon(1e-5, total), rel=1e-6)
        assert ledger.spent()["epsilon"] == pytest.approx(dp_accounting.get_epsilon_gaussian(1 / total, 1e-5), rel=1e-6)


def test_mixtures_are_never_optimistic(tmp_path, monkeypatch):
    """A fine privacy loss distribution is the truth up to discretisation; the ledger must not be below it, with or without the extra."""
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    rng = np.random.default_rng(1)
    for trial in range(3):
        ledger = Ledger(tmp_path / f"m{trial}", epsilon=50.0, delta=1e-6)
        mus, pures = rng.uniform(0.1, 0.5, 3), rng.uniform(0.05, 0.5, 3)
        for mu in mus:
            ledger.spend(mechanism="tangent-gaussian", mu=float(mu))
        for pure in pures:
            ledger.spend(mechanism="riemannian-laplace", pure=float(pure))
        truth = pld.from_gaussian_mechanism(1 / float(np.sqrt((mus**2).sum())), value_discretization_interval=1e-4)
        for pure in pures:
            part = pld.from_privacy_parameters(DifferentialPrivacyParameters(float(pure), 0.0), 1e-4)
            truth = truth.compose(part)
        floor = truth.get_epsilon_for_delta(1e-6)
        with_extra = ledger.spent()["epsilon"]
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "dp_accounting.pld", None)
            without = ledger.spent()["epsilon"]
        assert floor * (1 - 1e-3) <= with_extra <= without
        assert with_extra <= gaussian_epsilon(1e-6, float(np.sqrt((mus**2).sum()))) + pures.sum()


def test_pure_ledgers(tmp_path):
    ledger = Ledger(tmp_path / "p", epsilon=1.0, delta=0.0)
    private_mean(X, epsilon=0.5, delta=0, domain=Ball(2.0), ledger=ledger)
    private_mean(X, epsilon=0.5, delta=0, domain=Ball(2.0), ledger=ledger)
    with pytest.raises(BudgetExceeded, match="budget exceeded"):
        private_mean(X, epsilon=0.01, delta=0, domain=Ball(2.0), ledger=ledger)
    with pytest.raises(BudgetExceeded, match="budget exceeded"):
        private_mean(X, epsilon=0.01, delta=1e-6, ledger=ledger, **OPTIONS)
    assert ledger.spent()["epsilon"] == pytest.approx(1.0)


def test_many_small_pure_releases_profit_from_delta(tmp_path):
    ledger = Ledger(tmp_path / "p", epsilon=1.0, delta=1e-6)
    for _ in range(60):
        ledger.spend(mechanism="riemannian-laplace", pure=0.02)
    assert ledger.spent()["epsilon"] < 1.0 < 60 * 0.02


def test_ten_thousand_entries_are_checked_quickly(ledger):
    with sqlite3.connect(ledger.path) as db:
        row = ("2026-01-01", "x", "tangent-gaussian", 1e-4, "done", "host", 1)
        sql = "INSERT INTO entries (created, label, mechanism, mu, state, host, pid) VALUES (?, ?, ?, ?, ?, ?, ?)"
        db.executemany(sql, [row] * 10_000)
    db.close()
    ledger.would_fit(0.1, 1e-6)
    start = time.perf_counter()
    assert ledger.would_fit(0.1, 1e-6)
    assert time.perf_counter() - start < 2.0  # a linear check takes some 15 ms; this only catches a quadratic one
    assert ledger.spent()["mu"] == pytest.approx(1e-2, rel=1e-9)


def test_curve(ledger):
    private_mean(X, epsilon=0.5, delta=1e-6, ledger=ledger, **OPTIONS)
    curve = ledger.curve()
    assert all(a[1] >= b[1] for a, b in pairwise(curve))
    assert dict(ledger.curve([1e-6]))[1e-6] == pytest.approx(0.5, rel=1e-6)


# --- crashes and company -------------------------------------------------------------------------------------------------


def _spender(path, attempts, seed, results):
    rng = random.Random(seed)
    ledger = Ledger(path)
    successes = 0.0
    count = 0
    for _ in range(attempts):
        mu = rng.uniform(0.001, 0.02)
        try:
            ledger.spend(mechanism="tangent-gaussian", mu=mu)
            successes += mu * mu
            count += 1
        except BudgetExceeded:
            pass
    results.put((count, successes))


def test_sixteen_processes_spend_at_once(ledger):
    results = FORK.Queue()
    workers = [FORK.Process(target=_spender, args=(ledger.path, 63, seed, results)) for seed in range(16)]
    for worker in workers:
        worker.start()
    got = [results.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join(timeout=60)
        assert worker.exitcode == 0
    spent = ledger.spent()
    assert spent["entries"] == sum(count for count, _ in got)
    assert spent["mu"] ** 2 == pytest.approx(sum(square for _, square in got), rel=1e-9)
    assert spent["epsilon"] <= 1.0
    assert 16 * 63 > spent["entries"] > 50


def _killed_release(path, point, delay):
    """A child that releases and dies by its own hand at a given point, or is killed from outside after a while."""

    def die(*_, **__):
        os.kill(os.getpid(), signal.SIGKILL)

    if point == "before spend":
        Ledger.spend = die
    elif point == "after spend":
        lattice.gaussian_noise = die
    elif point == "after noise":
        Ledger.store = die
    elif point == "after store":
        store = Ledger.store
        Ledger.store = lambda *a, **k: (store(*a, **k), die())
    for _ in range(50):
        private_mean(X, epsilon=0.02, delta=1e-6, ledger=Ledger(path), domain=Ball(2.0), mechanism="gaussian", method="oneshot")


@pytest.mark.parametrize(
    ("point", "state"), [("before spend", None), ("after spend", "lost"), ("after noise", "lost"), ("after store", "done")]
)
def test_killed_at_each_point(ledger, point, state):
    child = FORK.Process(target=_killed_release, args=(ledger.path, point, 0))
    child.start()
    child.join(timeout=60)
    assert child.exitcode == -signal.SIGKILL
    again = Ledger(ledger.path)
    assert [entry["state"] for entry in again.history()] == ([] if state is None else [state])
    if state == "lost":
        with pytest.raises(LedgerError, match="not pending"):
            again.store(1, np.eye(2), {})


def _killed_at_random(ledger, kills):
    rng = random.Random(5)
    for _ in range(kills):
        child = FORK.Process(target=_killed_release, args=(ledger.path, None, 0))
        child.start()
        time.sleep(rng.uniform(0.0, 0.12))
        os.kill(child.pid, signal.SIGKILL)
        child.join(timeout=60)
        again = Ledger(ledger.path)
        history = again.history()
        assert all(entry["state"] in ("done", "lost") for entry in history)
        assert all((entry["value"] is not None) == (entry["state"] == "done") for entry in history)
        assert again.spent()["epsilon"] <= again.epsilon
    assert len(history) > 0


def test_killed_at_random_moments(ledger):
    _killed_at_random(ledger, 25)


@pytest.mark.audit
def test_killed_at_two_hundred_random_moments(ledger):
    _killed_at_random(ledger, 200)


def test_pending_entries_of_the_living_stay_pending(ledger):
    entry = ledger.spend(mechanism="tangent-gaussian", mu=0.01)
    assert Ledger(ledger.path).history()[0]["state"] == "pending"
    ledger.store(entry, np.eye(2), {"a": 1})
    assert Ledger(ledger.path).history()[0]["state"] == "done"


# --- unusable files ------------------------------------------------------------------------------------------------------


def release(path):
    return private_mean(X, epsilon=0.1, delta=1e-6, ledger=Ledger(path), **OPTIONS)


def test_corrupted_files(ledger, tmp_path, monkeypatch):
    for _ in range(3):
        release(ledger.path)
    drawn = []
    monkeypatch.setattr(lattice, "gaussian_noise", lambda *a, **k: drawn.append(1))
    data = ledger.path.read_bytes()
    for name, bad in {
        "text": b"this is no ledger" * 100,
        "head": b"\0" * 100 + data[100:],
        "truncated": data[: len(data) // 3],
        "scrambled": data[:4096] + bytes(reversed(data[4096:])),
    }.items():
        file = tmp_path / name
        file.write_bytes(bad)
        with pytest.raises(LedgerError, match=name):
            release(file)
    with sqlite3.connect(tmp_path / "other.db") as db:
        db.execute("CREATE TABLE t (a)")
    db.close()
    with pytest.raises(LedgerError, match="not a ledger"):
        release(tmp_path / "other.db")
    with sqlite3.connect(ledger.path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(LedgerError, match="newer version"):
        release(ledger.path)
    assert drawn == []


def test_read_only_and_missing_directory(ledger, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(lattice, "gaussian_noise", lambda *a, **k: drawn.append(1))
    with pytest.raises(LedgerError, match="cannot be created"):
        Ledger(tmp_path / "absent" / "x.ledger", epsilon=1.0, delta=1e-6)
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, **k: connect(f"file:{path}?mode=ro", uri=True, **k))
    with pytest.raises(LedgerError, match="readonly|read-only"):
        ledger.spend(mechanism="tangent-gaussian", mu=0.1)
    assert drawn == []


def test_full_disk(ledger, monkeypatch):
    """SQLite's own limit on pages stands in for the disk: the same error from the same place."""
    connect = sqlite3.connect

    def small(path, **k):
        db = connect(path, **k)
        db.execute("PRAGMA max_page_count = 8")
        return db

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(LedgerError, match="full"):
        ledger.spend(mechanism="tangent-gaussian", mu=1e-6, label="x" * 200_000)
    assert ledger.spent()["entries"] == 0


def test_clocks_may_disagree(ledger):
    with sqlite3.connect(ledger.path) as db:
        sql = "INSERT INTO entries (created, mechanism, mu, state, host, pid) VALUES (?, ?, ?, ?, ?, ?)"
        db.execute(sql, ("2999-01-01", "tangent-gaussian", 0.01, "pending", "elsewhere", 1))
    db.close()
    release(ledger.path)
    history = ledger.history()
    assert [entry["id"] for entry in history] == [1, 2]
    assert history[0]["state"] == "pending"  # another machine's: not ours to judge
    assert history[1]["created"] >= history[0]["created"]


# --- identity of the data ------------------------------------------------------------------------------------------------


def test_bound_to_its_data(tmp_path):
    path = tmp_path / "l"
    Ledger(path, epsilon=1.0, delta=1e-6, key=b"secret").bind(X)
    bound = Ledger(path, key=b"secret")
    private_mean(X, epsilon=0.1, delta=1e-6, ledger=bound, **OPTIONS)
    private_mean(list(X), epsilon=0.1, delta=1e-6, ledger=bound, **OPTIONS)
    with pytest.raises(LedgerError, match="not the data"):
        private_mean(X[:-1], epsilon=0.1, delta=1e-6, ledger=bound, **OPTIONS)
    with pytest.raises(LedgerError, match="key is needed"):
        private_mean(X, epsilon=0.1, delta=1e-6, ledger=Ledger(path), **OPTIONS)
    with pytest.raises(LedgerError, match="not the data"):
        private_mean(X, epsilon=0.1, delta=1e-6, ledger=Ledger(path, key=b"other"), **OPTIONS)
    with pytest.raises(LedgerError, match="only once"):
        private_mean(as_records(iter([X])), epsilon=0.1, delta=1e-6, ledger=bound, **OPTIONS)
    with pytest.raises(LedgerError, match="bound to other data"):
        bound.bind(X[:-1])
    with pytest.raises(ParameterError, match="needs a key"):
        Ledger(path).bind(X)
    assert bound.spent()["entries"] == 2


# --- command line --------------------------------------------------------------------------------------------------------


def test_command_line(tmp_path):
    np.save(tmp_path / "data.npy", X)
    spdp = shutil.which("spdp", path=f"{sys.prefix}/bin")

    def run(*words, env=None):
        return subprocess.run([spdp, *words], cwd=tmp_path, capture_output=True, text=True, env={**os.environ, **(env or {})}, timeout=120)

    assert run("ledger", "create", "a.ledger", "--epsilon", "1", "--delta", "1e-6").returncode == 0
    assert run("ledger", "create", "a.ledger", "--epsilon", "1", "--delta", "1e-6").returncode == 2
    mean = ("mean", "data.npy", "--delta", "1e-6", "--radius", "2", "--ledger", "a.ledger", "--mechanism", "gaussian")
    assert run(*mean, "--epsilon", "0.8", "--label", "first").returncode == 0
    refused = run(*mean, "--epsilon", "0.8", "-o", "out")
    assert refused.returncode == 2
    assert "budget exceeded" in refused.stderr
    assert not (tmp_path / "out").exists()
    shown = run("ledger", "show", "a.ledger", "--plot", "a.png")
    assert "ε = 1" in shown.stdout
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(run("ledger", "show", "a.ledger", "--json").stdout)["spent"]["entries"] == 1
    assert "first" in run("ledger", "history", "a.ledger").stdout
    assert json.loads(run("ledger", "history", "a.ledger", "--json").stdout)[0]["state"] == "done"
    assert run("ledger", "export", "a.ledger").stdout.splitlines()[1].startswith("1,")
    assert run("ledger", "bind", "a.ledger", "data.npy", env={"SPDP_LEDGER_KEY": "k"}).returncode == 0
    assert "key is needed" in run(*mean, "--epsilon", "0.1").stderr
    assert run(*mean, "--epsilon", "0.1", env={"SPDP_LEDGER_KEY": "k"}).returncode == 0
