"""Median, regression and difference: replayed, verified, for records and persons."""

import numpy as np
import pytest
from replay import Caught, audit, datasets

from spdp import Ball, private_difference, private_median, private_regression
from spdp.errors import ParameterError
from spdp.queries import ClassExcess, CrossSum, DirectionSum, MomentSum, ResidualDistance
from spdp.statistics.regression import check_ranges, predict

DOMAIN = Ball(2.0)
COMMON = {"delta": 1e-6, "domain": DOMAIN, "on_invalid": "center"}
STATISTICS = ["median", "regression", "difference"]


def columns(rng, n):
    """Labels (one of no class), covariates (one no number) and ids of records."""
    y = rng.integers(0, 2, n)
    x = rng.uniform(-1.5, 1.5, (n, 2))
    return {"y": y, "x": x, "person": rng.integers(0, max(2, n // 3), n)}


def statistic(name, epsilon, grouped=False, adjacency="replace-one"):
    def run(data):
        X, beside = data
        options = {**COMMON, "epsilon": epsilon, "adjacency": adjacency}
        options["groups"] = beside["person"] if grouped else None
        if name == "median":
            return private_median(X, **options)
        if name == "regression":
            return private_regression(X, beside["x"], ranges=[(-1, 1), (-1, 1)], **options)
        return private_difference(X, beside["y"], classes=(0, 1), **options)

    return run


def neighbours(rng, grouped, removed=False):
    """A dataset and one in which a record, or a person with all records, differs."""
    k = int(rng.integers(1, 4))
    X, other = datasets(rng, k, 2.0)
    many = [X] * 24  # enough for a trend, at a large budget
    X, other = np.concatenate([X, *many]), np.concatenate([other, *many])
    first = columns(rng, len(X))
    second = {name: column.copy() for name, column in first.items()}
    changed = np.zeros(len(X), bool)
    changed[0] = True
    if grouped:
        changed = first["person"] == first["person"][0]
        other = X.copy()
        other[changed] = datasets(rng, k, 2.0)[1][:1]
    second["y"][changed] = rng.choice([0, 1, 7])
    second["x"][changed] = rng.choice([-1.0, 1.0, np.nan, 40.0])
    if removed:
        kept = ~changed
        return (X, first), (X[kept], {name: column[kept] for name, column in first.items()})
    return (X, first), (other, second)


def replays(name, count, seed, grouped=False, adjacency="replace-one"):
    rng = np.random.default_rng(seed)
    shares = []
    for i in range(count):
        data, other = neighbours(rng, grouped, adjacency == "add-remove")
        run = statistic(name, rng.choice([20.0, 60.0]), grouped, adjacency)
        shares.append(audit(run, data, other, seed=i))
    return np.array(shares)


@pytest.mark.parametrize("grouped", [False, True], ids=["record", "person"])
@pytest.mark.parametrize("name", STATISTICS)
def test_replays_pass(name, grouped):
    shares = replays(name, 40, 3, grouped)
    assert 0.1 < shares.max() <= 1


@pytest.mark.parametrize("grouped", [False, True], ids=["record", "person"])
@pytest.mark.parametrize("name", STATISTICS)
def test_replays_pass_where_the_number_is_private(name, grouped):
    shares = replays(name, 25, 5, grouped, "add-remove")
    assert 0.1 < shares.max() <= 1


@pytest.mark.audit
@pytest.mark.parametrize("name", STATISTICS)
def test_replays_pass_hundreds_of_times(name):
    for grouped in (False, True):
        shares = replays(name, 400, 13, grouped)
        print(f"{name}, {grouped=}: largest cost {shares.max():.6f} of the budget")
        assert shares.max() <= 1


PLANTED = [
    ("median", DirectionSum),
    ("regression", CrossSum),
    ("regression", ResidualDistance),
    ("difference", MomentSum),
    ("difference", ClassExcess),
]


@pytest.mark.parametrize(("name", "query"), PLANTED)
def test_a_halved_sensitivity_is_caught(monkeypatch, name, query):
    honest = query.sensitivity
    monkeypatch.setattr(query, "sensitivity", lambda self, adjacency: honest(self, adjacency) // 2)
    with pytest.raises(Caught, match="more than its stated sensitivity"):
        replays(name, 80, 3)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("grouped", [False, True], ids=["record", "person"])
@pytest.mark.parametrize("name", STATISTICS)
def test_certificates_verify_and_survive_a_folder(name, grouped, adjacency, tmp_path):
    from spdp import Release

    data, _ = neighbours(np.random.default_rng(1), grouped)
    release = statistic(name, 60.0, grouped, adjacency)(data)
    assert [check for check in release.verify() if not check.ok] == []
    c = release.certificate
    assert c["statistic"] == name
    assert c["unit"] == ("person" if grouped else "record")
    assert (c["n"] is None) == (adjacency == "add-remove")
    again = Release.load(release.save(tmp_path / "out"))
    assert again.certificate == c
    for array, value in release.values.items():
        np.testing.assert_array_equal(again.values[array], value)


@pytest.mark.parametrize("name", STATISTICS)
def test_a_forged_certificate_is_found_out(name):
    from spdp.verification import checks

    data, _ = neighbours(np.random.default_rng(1), False)
    c = statistic(name, 60.0)(data).certificate
    for field, value in (("sigma", 2 * c["sigma"]), ("estimand", "the truth"), ("n", c["n"] + 1)):
        assert not all(check.ok for check in checks({**c, field: value})), field
    c["steps"][-1]["sensitivity"] //= 2
    assert not all(check.ok for check in checks(c))


@pytest.mark.parametrize("name", STATISTICS)
def test_a_ledger_is_charged_and_keeps_the_release(name, tmp_path):
    from spdp import BudgetExceeded, Ledger

    ledger = Ledger(tmp_path / "a.ledger", epsilon=60.0, delta=1e-6)
    (X, beside), _ = neighbours(np.random.default_rng(1), False)
    options = {**COMMON, "epsilon": 50.0, "ledger": ledger, "label": name}
    calls = {
        "median": lambda: private_median(X, **options),
        "regression": lambda: private_regression(X, beside["x"], ranges=[(-1, 1)] * 2, **options),
        "difference": lambda: private_difference(X, beside["y"], classes=(0, 1), **options),
    }
    calls[name]()
    (entry,) = ledger.history()
    assert entry["label"] == name
    with pytest.raises(BudgetExceeded):
        calls[name]()


@pytest.mark.parametrize("odd", ["n/a", 10**400, [1, 2], 1.7e308, 1j, None, float("nan")])
def test_a_list_of_covariates_with_an_odd_one_passes_the_replay(random_spd, odd):
    X, x = random_spd(40, 2), np.linspace(0, 1, 40).tolist()

    def statistic(covariates):
        return private_regression(
            X,
            covariates,
            ranges=(0, 1),
            epsilon=2.0,
            delta=1e-6,
            domain=Ball(3.0),
            on_invalid="center",
        )

    for seed in range(3):
        audit(statistic, x, [odd, *x[1:]], seed=seed)


def test_predictions_for_records_of_several_matrices():
    X, _ = datasets(np.random.default_rng(2), 2, 2.0)
    X = np.stack([np.concatenate([X] * 40)] * 2, axis=1)
    x = np.linspace(-1, 1, len(X))
    release = private_regression(X, x, ranges=(-1, 1), epsilon=60.0, **COMMON)
    assert predict(release, [0.0, 0.5]).shape == (2, 2, 2, 2)


def test_ranges_too_narrow_for_numbers_are_refused():
    with pytest.raises(ParameterError, match="slopes along less than 1e-140"):
        check_ranges([(0.0, 1e-150)])
    assert check_ranges([(0.0, 1e-130)]).shape == (1, 2)
