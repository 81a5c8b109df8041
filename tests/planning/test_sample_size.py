"""What a wanted error needs, and plans that are made to reach it."""

import pytest

from spdp import Ball, plan
from spdp.errors import ParameterError
from spdp.planning.model import Planner
from spdp.planning.sample_size import needed

PUBLIC = {"k": 3, "domain": Ball(4.0), "delta": 1e-6}
ONE_SHOT = {**PUBLIC, "method": "oneshot", "mechanism": "gaussian"}


@pytest.mark.parametrize(("adjacency", "rough"), [("replace-one", 0.4), ("add-remove", 0.1)])
def test_what_is_needed_reaches_the_wanted_error(adjacency, rough):
    options = {**PUBLIC, "adjacency": adjacency}
    planner = Planner(n=500, epsilon=0.5, spread="20%", **options)
    for error in (rough, 0.02):
        (answer,) = needed(planner, error)
        for n, epsilon in ((answer.n, 0.5), (500, answer.epsilon)):
            row = plan(n=n, epsilon=epsilon, spread="20%", runs=40, **options).predictions[0]
            assert row.rms == pytest.approx(error, rel=0.3 if row.spread else 0.02)
    assert needed(planner, 1e-15)[0][1:] == (None, None)
    assert needed(planner, 1e6)[0].n == 1


@pytest.mark.parametrize("given", [{"epsilon": 0.7}, {"n": 300}])
def test_a_plan_takes_the_smallest_number_that_reaches_an_error(given):
    made = plan(error=0.05, **given, **ONE_SHOT)
    assert (made.wanted_error, made.needed) == (0.05, ())
    assert made.predictions[0].rms <= 0.05
    fewer = {"n": int(0.99 * made.n), "epsilon": made.epsilon}
    less = {"n": made.n, "epsilon": 0.98 * made.epsilon}
    short = plan(**(less if "n" in given else fewer), **ONE_SHOT)
    assert short.predictions[0].rms > 0.05


def test_a_plan_reaches_the_error_for_every_spread():
    made = plan(error=0.1, epsilon=1.0, method="adaptive", runs=40, **PUBLIC)
    assert len(made.predictions) == 4
    assert max(row.rms for row in made.predictions) == pytest.approx(0.1, rel=0.3)


def test_a_plan_of_both_says_what_else_would_reach_it():
    """The same answers as where one is left out, and in words."""
    made = plan(error=0.05, n=300, epsilon=0.7, **ONE_SHOT)
    (answer,) = made.needed
    assert (made.n, made.epsilon, answer.spread) == (300, 0.7, None)
    assert plan(error=0.05, epsilon=0.7, **ONE_SHOT).n == pytest.approx(answer.n, rel=0.01)
    assert plan(error=0.05, n=300, **ONE_SHOT).epsilon == pytest.approx(answer.epsilon, rel=0.02)
    described = made.describe()
    assert (described["wanted_error"], described["needed"]) == (0.05, [answer._asdict()])
    for shown in (repr(made), made._repr_html_()):
        assert "rms error 0.05 needs" in shown
        assert f"{answer.n:,} records at this ε" in shown


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("pass n and epsilon, or one of them with error or power", {"n": 100}),
        ("pass n and epsilon, or one of them with error or power", {"epsilon": 1.0}),
        ("pass n and epsilon, or one of them with error or power", {"error": 0.1}),
        ("error must be a positive", {"error": -0.1, "n": 100}),
        ("error must be a positive", {"error": 0.0, "n": 100, "epsilon": 1.0}),
        ("no n reaches error 1e-15", {"error": 1e-15, "epsilon": 1.0}),
        ("no epsilon reaches error 1e-15", {"error": 1e-15, "n": 100}),
    ],
)
def test_what_cannot_be_reached_is_refused(message, options):
    with pytest.raises(ParameterError, match=message):
        plan(**options, **ONE_SHOT)
