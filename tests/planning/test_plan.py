import json
import re

import numpy as np
import pytest

from spdp import Ball, EigenvalueBounds, Reference, plan, private_mean
from spdp.errors import ParameterError
from spdp.geometry import distance_logeuclid, expm, invvecd, mean_logeuclid
from spdp.planning.model import Planner
from spdp.statistics.method import plan_one_shot

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
RUNS = 72


def matrices(Y):
    return expm(invvecd(Y))


def realised(X, domain, **options):
    """Root mean square error of seeded releases, and the median of their bounds."""
    truth = mean_logeuclid(domain.clip(X))
    releases = [private_mean(X, domain=domain, random_state=s, **options) for s in range(RUNS)]
    errors = [distance_logeuclid(release.value, truth) for release in releases]
    return np.sqrt(np.mean(np.square(errors))), np.median([r.error_bound() for r in releases])


def drawn(rng, n, widths, offset):
    """Log-vectors with given widths along random axes, their mean off the origin."""
    d = len(widths)
    axes, _ = np.linalg.qr(rng.standard_normal((d, d)))
    center = np.zeros(d)
    center[-1] = offset
    return matrices(center + (rng.standard_normal((n, d)) * widths) @ axes.T)


@pytest.mark.parametrize(("n", "k", "epsilon"), [(2000, 3, 1.0), (1500, 5, 1.0), (600, 5, 0.2)])
def test_errors_of_round_data_are_predicted_from_their_spread(rng, n, k, epsilon):
    d, domain = k * (k + 1) // 2, Ball(6.0)
    X = drawn(rng, n, np.full(d, 0.6 / np.sqrt(d)), 1.8)
    budget = {"epsilon": epsilon, "delta": 1e-6, "method": "adaptive"}
    made = plan(n=n, k=k, domain=domain, spread=0.6, runs=RUNS, **budget)
    rms, bound = realised(X, domain, **budget)
    assert made.predictions[0].rms == pytest.approx(rms, rel=0.25)
    assert made.predictions[0].bound == pytest.approx(bound, rel=0.25)


@pytest.mark.parametrize("n", [400, 4000])
def test_errors_of_long_data_are_predicted_from_a_reference(rng, n):
    widths = 0.5 * 0.7 ** np.arange(15)
    X = drawn(rng, 3 * n, widths, 1.5)
    public, X = Reference.from_public(X[n:]), X[:n]
    options = {"n": n, "k": 5, "domain": Ball(6.0), "runs": RUNS, **BUDGET}
    rms, bound = realised(X, Ball(6.0), **BUDGET)
    without = plan(spread=public, **options).predictions[0]
    assert without.spread == public.spread
    assert without.rms == pytest.approx(rms, rel=0.25)
    assert without.bound == pytest.approx(bound, rel=0.25)
    rms, _ = realised(X, Ball(6.0), reference=public, **BUDGET)
    assert plan(reference=public, **options).predictions[0].rms == pytest.approx(rms, rel=0.25)


def test_skewed_and_heavy_data_are_predicted_from_a_reference(rng):
    widths = 0.4 * 0.8 ** np.arange(10)
    Y = rng.lognormal(sigma=0.8, size=(9000, 10)) * widths
    public = Reference.from_public(matrices(Y[3000:]))
    options = {"domain": Ball(12.0), "epsilon": 2.0, "delta": 1e-6}
    rms, _ = realised(matrices(Y[:3000]), **options)
    made = plan(n=3000, k=4, spread=public, runs=RUNS, **options).predictions[0]
    assert made.rms == pytest.approx(rms, rel=0.25)


def test_one_shot_is_exact():
    domain = EigenvalueBounds(0.1, 10.0)
    one_shot = {"n": 300, "k": 3, "domain": domain, "method": "oneshot"}
    made = plan(adjacency="add-remove", **one_shot, **BUDGET)
    assert (made.method, made.adaptive) == ("oneshot", ())
    for noise, row in made.one_shot.items():
        shot = plan_one_shot(3, domain=domain, adjacency="add-remove", mechanism=noise, **BUDGET)
        assert row.rms**2 == pytest.approx(shot.expected_squared_error(300))
    assert made.predictions == (made.one_shot[made.noise],)
    pure = plan(epsilon=1.0, delta=0.0, **one_shot)
    assert list(pure.one_shot) == ["laplace"]
    named = plan(mechanism="laplace", **one_shot, **BUDGET)
    assert (list(named.one_shot), named.adaptive) == (["laplace"], ())


def test_the_method_that_will_run_is_the_one_predicted(random_spd):
    X, domain = random_spd(400, 3), Ball(6.0)
    for wanted in ("auto", "oneshot", "adaptive"):
        made = plan(n=400, k=3, domain=domain, method=wanted, runs=1, **BUDGET)
        release = private_mean(X, domain=domain, method=wanted, **BUDGET)
        assert made.method == release.certificate["method"]


def test_errors_fall_with_records_and_rise_with_spread():
    options = {"k": 4, "domain": Ball(6.0), "runs": 6, **BUDGET}
    by_n = [plan(n=n, spread="10%", **options).predictions[0].rms for n in (50, 500, 5000, 10**8)]
    assert sorted(by_n, reverse=True) == by_n
    # n·μ is all that counts: a thousand times the records, a thousandth of the error
    large = [plan(n=n, spread="10%", **options).predictions[0].rms for n in (10**6, 10**9)]
    assert large[0] == pytest.approx(1000 * large[1], rel=0.1)
    unknown = plan(n=2000, **options)
    assert [row.spread / 6.0 for row in unknown.adaptive] == pytest.approx([0.05, 0.1, 0.2, 0.5])
    by_spread = [row.rms for row in unknown.adaptive]
    assert sorted(by_spread) == by_spread


def test_uninformative_is_said_with_what_it_is_compared_to():
    poor = {"n": 20, "k": 6, "epsilon": 0.05, "delta": 1e-6, "domain": Ball(3.0), "runs": 6}
    made = plan(**poor)
    assert made.uninformative
    assert "uninformative" in repr(made)
    assert "errs by 0.9" in made.compared
    assert "assumed to be 30%" in made.compared
    assert "as given" in plan(offset="60%", **poor).compared
    assert not plan(**{**poor, "n": 20_000}).uninformative
    # where the mean may be closer to the centre, more records are needed to beat it
    few = {**poor, "n": 3000, "spread": 0.1}
    assert not plan(**few).uninformative
    assert plan(**few, offset=0.001).uninformative
    one_shot = plan(**{**poor, "delta": 0.0})
    assert one_shot.uninformative
    assert not plan(**{**poor, "delta": 0.0, "n": 10**6}).uninformative


def test_a_plan_is_described_in_json_and_repeats():
    options = {"n": 900, "k": 4, "domain": Ball(4.0), "spread": 0.4, "runs": 3, **BUDGET}
    made = plan(**options)
    assert json.loads(json.dumps(made.describe())) == plan(**options).describe()
    assert plan(**options, random_state=1).adaptive != made.adaptive
    for word in ("adaptive will run", "one shot, laplace", "spread 0.4"):
        assert word in repr(made)


def test_curves_go_through_the_plan():
    planner = Planner(n=1000, k=4, domain=Ball(4.0), spread=0.5, **BUDGET)
    grid, errors = planner.curves()
    assert list(errors) == ["one shot, gaussian", "one shot, laplace", "adaptive, spread 0.5"]
    middle = list(grid).index(1000)
    predicted = plan(n=1000, k=4, domain=Ball(4.0), spread=0.5, **BUDGET).predictions[0].rms
    assert errors["adaptive, spread 0.5"][middle] == pytest.approx(predicted, rel=0.5)
    assert all(np.all(np.diff(values) < 0) for values in errors.values())


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("spread must be a positive number, or a share", {"spread": -1.0}),
        ("spread must be a positive number, or a share", {"spread": "ten%"}),
        ("spread must be a positive number, or a share", {"spread": ""}),
        ("spread 8 is more than the domain's radius 4", {"spread": "200%"}),
        ("offset 5 is more than the domain's radius 4", {"offset": 5}),
        ("n must be an integer from 1", {"n": 0}),
        ("n must be an integer from 1", {"n": 1.5}),
        ("k must be an integer from 1", {"k": -1}),
        ("runs must be at least 1", {"runs": 0}),
        ("leak", {"domain": None}),
        ("mechanism must be", {"mechanism": "cauchy"}),
        ("adjacency must be", {"adjacency": "none"}),
        ("method must be", {"method": "best"}),
        ("Gaussian noise cannot", {"mechanism": "gaussian", "delta": 0.0}),
    ],
)
def test_what_cannot_be_planned_is_refused(message, options):
    with pytest.raises(ParameterError, match=message):
        plan(**{"n": 100, "k": 3, "domain": Ball(4.0), **BUDGET, **options})


def test_a_reference_of_another_size_is_refused(random_spd):
    public = Reference.from_public(random_spd(50, 4))
    for options in ({"spread": public}, {"reference": public}):
        with pytest.raises(ParameterError, match="4×4, records are 3×3"):
            plan(n=100, k=3, domain=Ball(4.0), **BUDGET, **options)


def test_a_notebook_shows_a_plan():
    """The table with the method that will run in bold, and what n counts."""
    made = plan(
        n=40, k=3, epsilon=1.0, delta=1e-6, domain=Ball(4.0), spread="10%", runs=2, unit="person"
    )
    page = made._repr_html_()
    assert "Plan: 40 persons, k = 3" in page
    bold = re.search(r'<tr style="[^"]*font-weight:600">(.*?)</tr>', page).group(1)
    assert "&gt; " in bold
    assert f">{made.predictions[0].rms:.4g}<" in bold
    assert "so few persons" in page
    assert made.describe()["unit"] == "person"
    assert repr(made).startswith("<Plan of mean, n=40 persons, k=3")
    with pytest.raises(ParameterError, match="unit .*'person'"):
        plan(n=40, k=3, epsilon=1.0, delta=1e-6, domain=Ball(4.0), unit="patient")
