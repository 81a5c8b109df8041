"""The account of a dataset: spending, refusing, crashing, binding, copying."""

import copy
import json
import math
import multiprocessing
import os
import pickle
import random
import resource
import signal
import sys
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

import spdp
from spdp import Ball
from spdp.errors import DataError, LedgerError, ParameterError, ReleaseNotStored
from spdp.ledger import BudgetExceeded, Ledger
from spdp.ledger.ledger import LedgerView
from spdp.options import Adjacency
from spdp.privacy import gaussian_mu, noise
from spdp.privacy.account import Account
from spdp.privacy.budget import Budget
from spdp.statistics.mechanisms import GivenStore

X = np.stack([np.diag([1.0, 2.0])] * 40)
OPTIONS = {"domain": Ball(2.0), "mechanism": "gaussian", "anyway": True}
KEY = b"a key of sixteen bytes, or more"
FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Stated:
    """A summary whose replacement costs some multiple of an addition."""

    factor: float = 1.0
    name: str = "stated"

    def sensitivity(self, adjacency):
        unit = 2**30
        return round(self.factor * unit) if adjacency is Adjacency.REPLACE_ONE else unit

    def estimate(self, answer, scale, n):
        return answer


def release(ledger, epsilon, delta=1e-6, adjacency=Adjacency.REPLACE_ONE, factor=1.0, label=None):
    """One noisy answer through an account, kept with its entry."""
    budget = Budget.pure(epsilon) if delta == 0 else Budget.gaussian(epsilon, delta)
    account = Account(budget, adjacency, ledger=ledger, label=label)
    answer = account.ask(Stated(factor), GivenStore(np.zeros(3, dtype=np.int64)))
    account.keep(answer.estimate, {"epsilon": epsilon, "delta": delta})
    return answer.estimate


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "account.ledger", epsilon=1.0, delta=1e-6)


# --- spending -------------------------------------------------------------------------


def test_spending_until_it_is_refused(ledger):
    for label in ("first", "second"):
        release(ledger, 0.4, label=label)
    spent = ledger.spent()
    assert spent["entries"] == 2
    assert spent["mu"] == pytest.approx(math.sqrt(2) * gaussian_mu(0.4, 1e-6), rel=1e-9)
    assert 0.4 < spent["epsilon"] < 0.8
    assert ledger.would_fit(0.5, 1e-6)
    assert not ledger.would_fit(1.0, 1e-6)
    assert ledger.would_fit(0.1, 0)
    with pytest.raises(BudgetExceeded, match=r"asked for.*left is mu.*would still fit") as refused:
        release(ledger, 1.0)
    assert ledger.spent()["entries"] == 2
    assert ledger.remaining()["epsilon"] == refused.value.fits
    release(ledger, refused.value.fits)
    assert ledger.spent()["epsilon"] <= 1.0
    assert ledger.remaining()["epsilon"] < 0.01
    labels = [(entry["label"], entry["state"]) for entry in ledger.history()]
    assert labels == [("first", "done"), ("second", "done"), (None, "done")]


def test_the_whole_budget_fits_exactly_once(ledger):
    release(ledger, 1.0)
    assert ledger.spent()["epsilon"] <= 1.0
    with pytest.raises(BudgetExceeded, match="nothing is left") as refused:
        release(ledger, 1e-3)
    assert refused.value.fits == 0


@pytest.mark.parametrize("delta", [1e-6, 1e-9, 1e-4, 0.0])
@pytest.mark.parametrize("factor", [1.0, 1.37, 2.0])
def test_an_account_accepts_what_the_ledger_offers(tmp_path, rng, delta, factor):
    """The δ and the adjacency that were asked for, not the ledger's own."""
    for trial in range(3):
        ledger = Ledger(tmp_path / f"{trial}", epsilon=2.0, delta=1e-6)
        asked = {"delta": delta, "adjacency": Adjacency.ADD_REMOVE, "factor": factor}
        release(ledger, rng.uniform(0.02, 0.1), **asked)
        release(ledger, rng.uniform(0.02, 0.1))
        with pytest.raises(BudgetExceeded) as refused:
            release(ledger, 30.0, **asked)
        release(ledger, refused.value.fits, **asked)
        with pytest.raises(BudgetExceeded):
            release(ledger, 1e-3 * refused.value.fits, **asked)


def test_add_remove_releases_cost_their_own_price(tmp_path):
    ledger = Ledger(tmp_path / "l", epsilon=20.0, delta=1e-6)
    for delta in (1e-6, 0.0):
        release(ledger, 0.5, delta)
        release(ledger, 0.5, delta, adjacency=Adjacency.ADD_REMOVE, factor=1.5)
    gaussian, wider, pure, double = ledger.history()
    assert wider["mu"] == pytest.approx(1.5 * gaussian["mu"], rel=1e-9)
    assert (pure["pure"], double["pure"]) == (0.5, 0.75)


def test_costs_and_words_are_checked_before_they_are_written(ledger):
    wrong = [
        {"mechanism": "m"},
        {"mechanism": "m", "mu": 0.1, "pure": 0.1},
        {"mechanism": "m", "mu": -0.1},
        {"mechanism": "m", "mu": math.nan},
        {"mechanism": "m", "pure": math.inf},
        {"mechanism": "m", "pure": 0.0},
        {"mechanism": 3, "mu": 0.1},
        {"mechanism": "m", "mu": 0.1, "label": "half a \ud83d letter"},
        {"mechanism": "m", "mu": 0.1, "label": b"bytes"},
        {"mechanism": "m", "mu": 9.0, "factor": 0.0},
    ]
    for cost in wrong:
        with pytest.raises(ParameterError):
            ledger.spend(**cost)
    for label in ("", "a\0b", "é\n[/b]", np.str_("numpy"), Adjacency.ADD_REMOVE):
        ledger.spend(mechanism="m", mu=np.float32(0.01), label=label)
    assert [entry["label"] for entry in Ledger(ledger.path).history()][3:] == [
        "numpy",
        "add-remove",
    ]


def test_the_budget_is_fixed(ledger, tmp_path):
    assert Ledger(ledger.path).epsilon == 1.0
    assert Ledger(ledger.path, epsilon=1.0, delta=1e-6).delta == 1e-6
    with pytest.raises(ParameterError, match="only by change_budget"):
        Ledger(ledger.path, epsilon=2.0, delta=1e-6)
    for reason in (" ", None):
        with pytest.raises(ParameterError, match="reason"):
            ledger.change_budget(2.0, 1e-6, reason)
    release(ledger, 0.9)
    with pytest.raises(BudgetExceeded, match="spent already"):
        ledger.change_budget(0.5, 1e-6, "less")
    assert ledger.epsilon == 1.0
    other = Ledger(ledger.path)
    ledger.change_budget(2.0, 1e-6, "ethics board, second round")
    assert other.epsilon == 2.0
    assert "ethics board" in ledger.acts()[0]["what"]
    release(other, 0.9)
    with pytest.raises(ParameterError, match="both"):
        Ledger(tmp_path / "x", epsilon=1.0)
    with pytest.raises(LedgerError, match="no such ledger"):
        Ledger(tmp_path / "x")
    for epsilon, delta in ((0.0, 1e-6), (1.0, 1.5), (1.0, 1e-200)):
        with pytest.raises(ParameterError):
            Ledger(tmp_path / "x", epsilon=epsilon, delta=delta)
    assert not (tmp_path / "x").exists()


def test_pure_ledgers(tmp_path):
    ledger = Ledger(tmp_path / "p", epsilon=1.0, delta=0.0)
    release(ledger, 0.5, 0.0)
    release(ledger, 0.5, 0.0)
    for delta in (0.0, 1e-6):
        with pytest.raises(BudgetExceeded, match="nothing is left"):
            release(ledger, 0.01, delta)
    assert ledger.spent()["epsilon"] == pytest.approx(1.0)
    ledger.change_budget(2.0, 0.0, "more people agreed")
    assert ledger.remaining()["pure_epsilon"] == pytest.approx(1.0)


# --- results --------------------------------------------------------------------------


def test_only_who_paid_stores_and_once(ledger):
    entry = ledger.spend(mechanism="tangent-gaussian", mu=0.01)
    for stranger in (Ledger(ledger.path), copy.deepcopy(ledger)):
        assert stranger.history()[0]["state"] == "pending"
        with pytest.raises(LedgerError, match="not paid for here"):
            stranger.store(entry, np.eye(2), {})
    with pytest.raises(LedgerError, match="no entry"):
        ledger.store(7, np.eye(2), {})
    ledger.store(entry, np.eye(2), {"a": 1})
    with pytest.raises(LedgerError, match="already"):
        ledger.store(entry, np.zeros((2, 2)), {})
    history = Ledger(ledger.path).history()[0]
    assert (history["state"], history["value"]) == ("done", [[1.0, 0.0], [0.0, 1.0]])


# --- crashes and company --------------------------------------------------------------


def _spender(path, attempts, seed, results):
    rng = random.Random(seed)
    ledger = Ledger(path)
    paid = []
    for _ in range(attempts):
        mu = rng.uniform(0.001, 0.02)
        try:
            ledger.spend(mechanism="tangent-gaussian", mu=mu)
            paid.append(mu)
        except BudgetExceeded:
            pass
    results.put(paid)


def test_sixteen_processes_spend_at_once(ledger):
    results = FORK.Queue()
    workers = [
        FORK.Process(target=_spender, args=(ledger.path, 63, seed, results)) for seed in range(16)
    ]
    for worker in workers:
        worker.start()
    paid = [mu for _ in workers for mu in results.get(timeout=300)]
    for worker in workers:
        worker.join(timeout=60)
        assert worker.exitcode == 0
    again = Ledger(ledger.path)
    assert sorted(entry["mu"] for entry in again.history()) == sorted(paid)
    assert again.spent()["epsilon"] <= 1.0
    assert 16 * 63 > len(paid) > 50


def _create(path, budget, results):
    try:
        results.put(Ledger(path, epsilon=budget, delta=1e-6).epsilon)
    except ParameterError:
        results.put(None)


def test_one_of_several_creators_wins(tmp_path):
    results = FORK.Queue()
    workers = [
        FORK.Process(target=_create, args=(tmp_path / "l", budget, results))
        for budget in (1.0, 2.0) * 4
    ]
    for worker in workers:
        worker.start()
    got = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(timeout=60)
    assert sorted(got, key=str) == [Ledger(tmp_path / "l").epsilon] * 4 + [None] * 4
    assert os.listdir(tmp_path) == ["l"]


def _die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def _releases(path, point):
    """A child that releases and, at a given point, dies by its own hand."""
    if point == "before spend":
        Ledger.spend = _die
    elif point == "after spend":
        noise.gaussian = _die
    elif point == "after noise":
        Ledger.store = _die
    elif point == "after store":
        store = Ledger.store
        Ledger.store = lambda *a, **k: (store(*a, **k), _die())
    release(Ledger(path), 0.02)


@pytest.mark.parametrize(
    ("point", "state"),
    [
        ("before spend", None),
        ("after spend", "lost"),
        ("after noise", "lost"),
        ("after store", "done"),
    ],
)
def test_killed_at_each_point(ledger, point, state):
    child = FORK.Process(target=_releases, args=(ledger.path, point))
    child.start()
    child.join(timeout=60)
    assert child.exitcode == -signal.SIGKILL
    again = Ledger(ledger.path)
    assert [entry["state"] for entry in again.history()] == ([] if state is None else [state])
    assert again.spent()["entries"] == (state is not None)
    if state == "lost":
        with pytest.raises(LedgerError, match="not paid for here"):
            again.store(1, np.eye(2), {})
        with pytest.raises(LedgerError, match="entry 1 is lost"):
            again.recover(1)


# Phases of a release, and what may be left of it that is killed there.
OUTCOMES = {
    "opening": [[]],
    "paying": [[], ["lost"]],
    "drawing": [["lost"]],
    "storing": [["lost"], ["done"]],
}
PACKAGE = os.path.dirname(spdp.__file__)


def _dies_at(path, paid, whole, wanted, line):
    """A child that makes some releases and dies by its own hand in the next.

    That is so many lines of the package into a phase of the release, or where the phase
    ends. ``paid`` is a file to which it writes which entries it may draw for.
    """
    now, left, last = "opening", line, False
    file = os.open(paid, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    spend, store = Ledger.spend, Ledger.store

    def turn_to(phase):
        nonlocal now
        if last and now == wanted:
            _die()
        now = phase

    def spends(*a, **k):
        turn_to("paying")
        entry = spend(*a, **k)
        os.write(file, f"{entry}\n".encode())
        turn_to("drawing")
        return entry

    def stores(*a, **k):
        turn_to("storing")
        store(*a, **k)
        turn_to("opening")

    def trace(frame, event, _):
        nonlocal left
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line" and last and now == wanted:
            left -= 1
            if left == 0:
                _die()
        return trace

    Ledger.spend, Ledger.store = spends, stores
    sys.settrace(trace)
    for count in range(whole + 1):
        last = count == whole
        release(Ledger(path), 0.02)


def _killed_at_random(path, kills):
    """Whatever a killed process may have drawn for is in the ledger, and stays."""
    rng = random.Random(5)
    paid = path.with_name("paid")
    before = []
    for turn in range(kills):
        phase, whole = list(OUTCOMES)[turn % len(OUTCOMES)], rng.randrange(3)
        moment = (whole, phase, rng.randrange(1, 220))
        child = FORK.Process(target=_dies_at, args=(path, paid, *moment))
        child.start()
        child.join(timeout=60)
        assert child.exitcode == -signal.SIGKILL
        again = Ledger(path)
        history = again.history()
        assert history[: len(before)] == before
        assert all(entry["state"] in ("done", "lost") for entry in history)
        assert all((entry["value"] is not None) == (entry["state"] == "done") for entry in history)
        assert again.spent()["epsilon"] <= again.epsilon
        drawn = [int(line) for line in paid.read_text().split()] if paid.exists() else []
        assert drawn == sorted(set(drawn))
        assert len(history) >= max(drawn, default=0)
        new = [entry["state"] for entry in history[len(before) :]]
        assert new[:whole] == ["done"] * whole
        assert new[whole:] in OUTCOMES[phase]
        before = history
    assert {entry["state"] for entry in history} == {"done", "lost"}
    return len(history)


def test_killed_at_random_moments(ledger):
    _killed_at_random(ledger.path, 25)


@pytest.mark.audit
def test_killed_at_two_hundred_random_moments(tmp_path):
    ledger = Ledger(tmp_path / "l", epsilon=20.0, delta=1e-6)
    entries = _killed_at_random(ledger.path, 200)
    print(f"ledger: 200 processes killed among {entries} releases, none forgotten")


# --- copies ---------------------------------------------------------------------------


def test_a_pickled_ledger_carries_only_its_path(tmp_path):
    """With key and fingerprint one could test a guess of the last record."""
    ledger = Ledger(tmp_path / "l", epsilon=1.0, delta=1e-6, key=KEY)
    ledger.bind(X)
    entry = ledger.spend(mechanism="tangent-gaussian", mu=0.01)
    mark, token = ledger._fingerprint(), ledger._tokens[entry]
    assert mark is not None
    data = pickle.dumps(ledger)
    for secret in (KEY, mark.encode(), mark.split(":")[1].encode(), token.encode()):
        assert secret not in data
    other = pickle.loads(data)
    assert (other.path, other.epsilon, other.is_bound) == (ledger.path, 1.0, True)
    with pytest.raises(LedgerError, match="key is needed"):
        _ = other.key
    assert "l'" in repr(other)
    ledger.path.unlink()
    moved = pickle.loads(data)  # a fitted estimator may be loaded where its ledger is not
    with pytest.raises(LedgerError, match="no such ledger"):
        moved.spend(mechanism="tangent-gaussian", mu=0.01)
    assert not ledger.path.exists()


def test_a_cloned_estimator_keeps_its_ledger(tmp_path):
    ledger = Ledger(tmp_path / "l", epsilon=1.0, delta=1e-6, key=KEY)
    ledger.bind(X)
    estimator = spdp.PrivateFrechetMean(0.2, 1e-6, Ball(2.0), ledger=ledger)
    twin = clone(estimator)
    assert twin.ledger is not ledger
    twin.fit(X)
    assert ledger.spent()["entries"] == 1
    pickled = pickle.dumps(twin)
    assert KEY not in pickled
    with pytest.raises(LedgerError, match="key is needed"):
        pickle.loads(pickled).fit(X)


def test_the_path_is_resolved_at_opening(tmp_path, monkeypatch):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    monkeypatch.chdir(tmp_path / "one")
    ledger = Ledger("account", epsilon=1.0, delta=1e-6)
    monkeypatch.chdir(tmp_path / "two")
    other = Ledger("account", epsilon=5.0, delta=1e-6)
    ledger.spend(mechanism="tangent-gaussian", mu=0.1)
    assert (ledger.epsilon, other.epsilon) == (1.0, 5.0)
    assert other.spent()["entries"] == 0
    (tmp_path / "link").symlink_to(tmp_path / "one" / "account")
    assert Ledger(tmp_path / "link").path == ledger.path
    with pytest.raises(LedgerError, match="not a usable path"):
        Ledger("a\0b", epsilon=1.0, delta=1e-6)


# --- means ----------------------------------------------------------------------------


def test_every_way_to_spend(tmp_path):
    ledger = Ledger(tmp_path / "l", epsilon=20.0, delta=1e-6)
    spdp.TangentGaussian(0.1, 0.5, 1e-6).release(np.eye(2), ledger=ledger, label="tangent")
    spdp.RiemannianLaplace(0.1, 0.5).release(np.eye(2), ledger=ledger, label="laplace")
    spdp.PrivateFrechetMean(0.5, 1e-6, ledger=ledger, label="estimator", **OPTIONS).fit(X)
    for method in ("oneshot", "adaptive"):
        spdp.private_mean(X, epsilon=0.5, delta=1e-6, method=method, ledger=ledger, **OPTIONS)
    release = spdp.private_mean(X, epsilon=0.5, delta=0, domain=Ball(2.0), ledger=ledger)
    history = ledger.history()
    assert [entry["pure"] for entry in history] == [None, 0.5, None, None, None, 0.5]
    assert {entry["state"] for entry in history} == {"done"}
    value, certificate = ledger.recover(6)
    np.testing.assert_array_equal(value, release.value)
    assert certificate == release.certificate
    with pytest.raises(ParameterError, match="seeded simulation"):
        spdp.private_mean(X, epsilon=0.5, delta=1e-6, ledger=ledger, random_state=0, **OPTIONS)
    assert ledger.spent()["entries"] == 6
    assert "fingerprint" not in json.dumps(certificate)


def test_a_path_is_no_ledger():
    """Whatever takes a ledger says how to open one."""
    options = {"epsilon": 1.0, "delta": 1e-6, "domain": Ball(3.0), "ledger": "h.ledger"}
    mean = spdp.PrivateFrechetMean(epsilon=1.0, delta=1e-6, domain=Ball(3.0), ledger="h.ledger")
    laplace = spdp.RiemannianLaplace(epsilon=1.0, sensitivity=1.0)
    for ask in (
        lambda: spdp.private_mean(X, **options),
        lambda: spdp.private_mean(X, mechanism="gaussian", **options),
        lambda: spdp.private_dispersion(X, **options),
        lambda: mean.fit(X),
        lambda: mean.partial_fit(X).release(),
        lambda: laplace.release(X[0], ledger="h.ledger"),
    ):
        with pytest.raises(ParameterError, match=r"ledger must be a Ledger, got 'h.ledger'.*path"):
            ask()


PAID = {"epsilon": 0.5, "delta": 1e-6}


@pytest.mark.parametrize(
    "made",
    [
        lambda ledger: spdp.private_mean(X, ledger=ledger, method="oneshot", **OPTIONS, **PAID),
        lambda ledger: spdp.TangentGaussian(1.0, **PAID).release(X[0], ledger=ledger),
        lambda ledger: spdp.PrivateFrechetMean(ledger=ledger, **OPTIONS, **PAID).fit(X).release_,
    ],
    ids=["statistic", "mechanism", "estimator"],
)
def test_a_disk_that_fills_after_the_payment_does_not_take_the_release(ledger, monkeypatch, made):
    """A limit on the size of files stands in for the disk."""
    draw, limits = noise.gaussian, resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(*options):
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        return draw(*options)

    monkeypatch.setattr(noise, "gaussian", fill)
    spent = r"entry 1 was paid for, and its result was not stored.*the only copy: save it"
    try:
        with pytest.warns(ReleaseNotStored, match=spent) as told:
            release = made(ledger)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert told[0].filename == __file__
    assert "nothing was released" not in str(told[0].message)
    assert all(check.ok for check in release.verify())
    assert [entry["state"] for entry in ledger.history()] == ["pending"]


def test_what_the_ledger_did_not_store_is_carried_by_a_warning_made_an_error(ledger, monkeypatch):
    def fail(*_):
        raise LedgerError("the disk is full")

    monkeypatch.setattr(ledger, "store", fail)
    with pytest.raises(ReleaseNotStored) as caught:
        spdp.private_mean(X, ledger=ledger, **OPTIONS, **PAID)
    assert all(check.ok for check in caught.value.release.verify())


def test_failures_spend_nothing(ledger):
    bad = X.copy()
    bad[3] = np.nan
    for method in ("oneshot", "adaptive"):
        with pytest.raises(DataError):
            spdp.private_mean(bad, epsilon=0.5, delta=1e-6, method=method, ledger=ledger, **OPTIONS)
    with pytest.raises(ParameterError):
        spdp.private_mean(X, epsilon=-1.0, delta=1e-6, ledger=ledger, **OPTIONS)
    assert ledger.spent()["entries"] == 0


@pytest.mark.parametrize(
    ("method", "adjacency"),
    [("oneshot", "replace-one"), ("oneshot", "add-remove"), ("adaptive", "replace-one")],
)
def test_a_mean_is_released_at_what_is_offered(ledger, method, adjacency):
    asked = {"delta": 1e-8, "method": method, "adjacency": adjacency, **OPTIONS}
    spdp.private_mean(X, epsilon=0.1, ledger=ledger, **asked)
    with pytest.raises(BudgetExceeded) as refused:
        spdp.private_mean(X, epsilon=3.0, ledger=ledger, **asked)
    spdp.private_mean(X, epsilon=refused.value.fits, ledger=ledger, **asked)
    assert ledger.spent()["epsilon"] <= 1.0


def test_a_notebook_shows_the_account(tmp_path):
    """Escaped, with what is left and whose data are protected; or why there is none."""
    ledger = Ledger(tmp_path / "budget.ledger", epsilon=2.0, delta=1e-6)
    assert "0 releases" in ledger._repr_html_()
    assert ledger.unit is None
    for i in range(10):
        label = f"<b>{i}</b>"
        ledger.spend(mechanism="tangent-gaussian", label=label, mu=0.1, unit="person")
    page = ledger._repr_html_()
    assert ledger.unit == "person"
    assert "ε = 2, δ = 1e-06 per person" in page
    assert "&lt;b&gt;9&lt;/b&gt;" in page
    assert "<b>" not in page
    assert "2, not shown" in page  # the eight newest are
    assert f"{ledger.spent()['epsilon'] / 2:.0%} of ε is spent" in page
    ledger.path.unlink()
    assert "cannot be read" in ledger._repr_html_()


# --- what it says ---------------------------------------------------------------------

MECHANISM = "tangent-gaussian"


@pytest.fixture
def view(ledger):
    return LedgerView(ledger.path)


def test_the_budget_and_what_is_left(ledger, view):
    assert (view.epsilon, view.delta, view.unit) == (1.0, 1e-6, None)
    assert view.would_fit(0.9, 1e-6)
    ledger.spend(mechanism=MECHANISM, mu=gaussian_mu(0.6, 1e-6), unit="person")
    assert view.unit == "person"
    assert view.spent()["epsilon"] == pytest.approx(0.6)
    assert view.would_fit(0.99 * view.remaining()["epsilon"], 1e-6)
    assert not view.would_fit(0.9, 1e-6)


def test_curve(ledger, view):
    assert view.curve([1e-6]) == [(1e-6, 0.0)]
    ledger.spend(mechanism=MECHANISM, mu=gaussian_mu(0.5, 1e-6))
    curve = view.curve()
    assert all(a[1] >= b[1] for a, b in pairwise(curve))
    assert dict(view.curve([1e-6]))[1e-6] == pytest.approx(0.5, rel=1e-6)


def test_a_paid_release_is_recovered(ledger, view):
    value, certificate = np.arange(3.0), {"epsilon": 0.3}
    ledger.store(ledger.spend(mechanism=MECHANISM, mu=0.1), value, certificate)
    pending = ledger.spend(mechanism=MECHANISM, mu=0.01)
    recovered, kept = view.recover(1)
    np.testing.assert_array_equal(recovered, value)
    assert kept == certificate
    assert [entry["state"] for entry in view.history()] == ["done", "pending"]  # costs nothing
    with pytest.raises(LedgerError, match=r"entry 2 is pending.*no result"):
        view.recover(pending)
    for entry in (0, 3, -1, 10**20):
        with pytest.raises(LedgerError, match="no entry"):
            view.recover(entry)


def test_complex_values_are_recovered(ledger, view):
    value = np.array([[2.0, -1j], [1j, complex(3.0, -0.0)]])
    ledger.store(ledger.spend(mechanism=MECHANISM, mu=0.1), value, {})
    again, _ = view.recover(1)
    assert again.dtype == np.complex128
    assert again.tobytes() == value.tobytes()


def test_acts_are_told(ledger, view):
    ledger.change_budget(2.0, 1e-6, "more people agreed")
    assert view.acts()[-1]["what"].endswith("more people agreed")
    assert view.epsilon == 2.0
