"""The default rule: which method runs, and with which noise, row by row."""

import pytest

from spdp import Ball, plan, private_mean
from spdp.errors import ParameterError
from spdp.statistics.method import Rule, plan_one_shot

ONE, PURE, GAUSS = ("oneshot", "laplace"), ("adaptive", "laplace"), ("adaptive", "gaussian")


def chosen(n, k, epsilon=1.0, delta=1e-6, *, mechanism="auto", method="auto", **options):
    given = {"epsilon": epsilon, "delta": delta, "domain": Ball(20.0), "mechanism": mechanism}
    shot = plan_one_shot(k, **given, **options)
    found = Rule(shot, epsilon, delta, mechanism).choose(n, method)
    assert found.reason
    return str(found.method), str(found.budget.noise)


@pytest.mark.parametrize(
    ("row", "numbers", "expected"),
    [
        ("1×1 matrices", (10_000, 1), ONE),
        ("2×2", (10_000, 2), PURE),
        ("2×2, few records", (9, 2), PURE),
        ("2×2, a large δ", (10_000, 2, 1.0, 0.3), GAUSS),
        ("3×3, resolution 140 and more", (908, 3), PURE),
        ("3×3, from 15 to 140", (907, 3), GAUSS),
        ("3×3, a large ε, resolution 60 and more", (195, 3, 2.0), PURE),
        ("3×3, a large ε, from 15 to 60", (194, 3, 2.0), GAUSS),
        ("3×3, a small ε, however large the resolution", (5000, 3, 0.3), GAUSS),
        ("3×3, below 5,000", (32_403, 3), PURE),
        ("3×3, resolution 5,000 and more", (32_404, 3), GAUSS),
        ("3×3, from 15 on", (98, 3), GAUSS),
        ("3×3, below 15", (97, 3), PURE),
        ("3×3, Laplace noise not far better", (100_000, 3, 0.1), GAUSS),
        ("3×3, a larger δ", (10_000, 3, 1.0, 1e-3), GAUSS),
        ("4×4 and larger", (10_000, 4), GAUSS),
        ("4×4, few records", (20, 4), GAUSS),
        ("δ = 0", (10_000, 9, 1.0, 0.0), PURE),
        ("δ = 0, few records", (400, 9, 1.0, 0.0), PURE),
        ("number not known before reading", (None, 9), ("oneshot", "gaussian")),
    ],
)
def test_rows_of_the_default_rule(row, numbers, expected):
    assert chosen(*numbers) == expected, row


@pytest.mark.parametrize(
    ("row", "k", "delta", "expected"),
    [
        ("2×2", 2, 1e-6, PURE),
        ("3×3", 3, 1e-6, PURE),
        ("3×3, a larger δ", 3, 1e-3, GAUSS),
        ("4×4 and larger", 4, 1e-6, GAUSS),
        ("δ = 0", 9, 0.0, PURE),
    ],
)
def test_where_the_number_is_private_the_rule_does_not_look_at_it(row, k, delta, expected):
    assert chosen(None, k, delta=delta, adjacency="add-remove") == expected, row


def test_records_that_can_be_read_only_once_are_summed_in_one_shot(random_spd):
    """Whether they can be is public: an iterator is one."""
    options = {"epsilon": 1.0, "delta": 1e-6, "domain": Ball(5.0), "adjacency": "add-remove"}
    X = random_spd(40, 3)
    told = [private_mean(given, **options).certificate["method"] for given in (X, iter([X]))]
    assert told == ["adaptive", "oneshot"]


def test_a_named_noise_or_method_is_kept():
    assert chosen(10_000, 3, mechanism="gaussian") == GAUSS
    assert chosen(10_000, 9, mechanism="laplace") == PURE
    assert chosen(10_000, 3, method="oneshot") == ONE
    assert chosen(10, 3, method="adaptive", delta=0.0) == PURE


def test_beside_a_ledger_noise_is_gaussian(tmp_path, random_spd):
    from spdp import Ledger

    ledger, options = Ledger(tmp_path / "a.ledger", epsilon=3.0, delta=1e-5), {"delta": 1e-6}
    X = random_spd(2000, 3, condition=4.0)
    own = private_mean(X, epsilon=1.0, domain=Ball(5.0), ledger=ledger, **options).certificate
    assert (own["method"], own["mechanism"]) == ("adaptive", "tangent-gaussian")


def test_the_number_of_records_does_not_steer_where_it_is_private(random_spd):
    """Under add-remove the law of the noise is the same, however many there are."""
    options = {"epsilon": 1.0, "delta": 1e-6, "domain": Ball(5.0), "adjacency": "add-remove"}
    X = random_spd(3000, 3, condition=4.0)
    told = [private_mean(X[:n], **options, random_state=0).certificate for n in (0, 1, 50, 3000)]
    assert {(c["method"], c["mechanism"]) for c in told} == {("adaptive", "riemannian-laplace")}
    assert all(c["steps"][0]["step"] == "count" for c in told)


def test_what_cannot_be_combined_is_refused(random_spd):
    X, budget = random_spd(30, 3), {"epsilon": 1.0, "delta": 1e-6, "domain": Ball(5.0)}
    with pytest.raises(ParameterError, match="method must be"):
        private_mean(X, **budget, method="best")
    with pytest.raises(ParameterError, match="Gaussian noise cannot"):
        private_mean(X, **budget | {"delta": 0}, mechanism="gaussian")


def test_a_plan_names_the_method_that_runs(random_spd):
    """And the one that would have the smaller bound, with its error."""
    options = {"epsilon": 1.0, "delta": 1e-6, "domain": Ball(5.0)}
    made = plan(n=2000, k=3, **options, spread="6%", runs=2)
    own = private_mean(random_spd(2000, 3, condition=3.0), **options, random_state=0).certificate
    assert (made.method, made.noise) == (own["method"], "laplace")
    assert own["mechanism"] == "riemannian-laplace"
    assert made.predictions[0].rms < 0.5 * made.one_shot["laplace"].rms
    assert made.one_shot["laplace"].bound < made.predictions[0].bound
    assert "search with Laplace noise errs least on average" in made.reason
    assert list(made.searches) == ["laplace", "gaussian"]
