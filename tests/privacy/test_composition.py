"""Composition: what fits a budget, what is offered instead, and what was spent."""

import math
import pickle
import re
import sys

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.common import DifferentialPrivacyParameters

from spdp.errors import ParameterError
from spdp.privacy import gaussian_delta, gaussian_epsilon, gaussian_mu
from spdp.privacy.budget import Budget, at_most, pld_epsilon, pure_mu, pure_mu_estimate
from spdp.privacy.composition import Balance, BudgetExceeded, total_budget


def balance_of(epsilon, delta, mus=(), pures=()):
    """Gaussian releases, then pure ones."""
    costs = [*mus, *map(pure_mu, pures)]
    return Balance(epsilon, delta, costs, [None] * len(mus) + list(pures))


def random_balance(rng):
    """A budget with some of it spent, of one kind or of both."""
    epsilon, delta = float(10 ** rng.uniform(-2, 1.5)), float(10 ** rng.uniform(-12, -3))
    kind = rng.choice(["nothing", "gaussian", "pure", "both"])
    used, n = rng.uniform(0, 1), int(rng.integers(1, 8))
    shares = rng.dirichlet(np.ones(n)) * used
    mus = np.sqrt(shares) * gaussian_mu(epsilon, delta) if kind in ("gaussian", "both") else []
    pures = shares * epsilon / (n if kind == "both" else 1) if kind in ("pure", "both") else []
    return balance_of(epsilon, delta, [float(m) for m in mus], [float(p) for p in pures])


def own_price(epsilon, delta, factor):
    """What a release at (ε, δ) is charged, in the ledger's terms."""
    if delta == 0:
        return pure_mu(epsilon * factor), epsilon * factor
    return Budget.gaussian(epsilon, delta).mu * factor, None


# --- offers ---------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1.0, 1.37, 2.0])
@pytest.mark.parametrize("kind", ["gaussian", "pure"])
def test_what_is_offered_is_accepted_and_hardly_more_is(kind, factor, rng):
    """At the asked δ and adjacency: the number itself and the message's four digits."""
    offers = 0
    for _ in range(40):
        balance = random_balance(rng)
        delta = 0.0 if kind == "pure" else float(10 ** rng.uniform(-14, -2))
        asked = 3 * balance.epsilon + 1
        mu, pure = own_price(asked, delta, factor)
        if balance.plus(mu, pure).fits():
            continue
        refused = balance.refusal("l", mu, pure, delta, factor)
        if refused.fits == 0:
            assert "nothing is left" in str(refused)
            continue
        offers += 1
        assert balance.plus(*own_price(refused.fits, delta, factor)).fits()
        said = float(re.search(r"epsilon <= (\S+)", str(refused))[1])
        assert 0.998 * refused.fits < said <= refused.fits
        assert balance.plus(*own_price(said, delta, factor)).fits()
        more = refused.fits * (1 + 1e-5)
        assert not balance.plus(*own_price(more, delta, factor)).fits()
    assert offers > 20


def test_the_refusal_speaks_of_what_was_asked():
    balance = balance_of(1.0, 1e-6, [0.15])
    mu = gaussian_mu(2.0, 1e-8)
    text = str(balance.refusal("a.ledger", 1.37 * mu, None, 1e-8, 1.37))
    assert text.startswith("a.ledger: budget exceeded: asked for mu = ")
    assert "epsilon = 2 at delta = 1e-08" in text
    assert "1.37 times that under replace-one adjacency" in text
    assert "of epsilon = 1, delta = 1e-06" in text
    assert "epsilon = 2.5 (pure: mechanism 'laplace'), 2 times" in str(
        balance.refusal("a", 1.0, 5.0, 0.0, 2.0)
    )
    assert "times" not in str(balance.refusal("a", 1.0, None, None, 1.0))


def test_huge_requests_are_refused_in_words():
    balance = balance_of(1.0, 1e-6)
    for mu in (1e3, 1e160, 1e308):
        assert not balance.plus(mu).fits()
        assert balance.refusal("l", mu, None, 1e-6, 1.0).fits > 0.99
    with pytest.raises(ParameterError, match="epsilon must be .*700"):
        pure_mu(1e4)


def test_nothing_is_left_when_it_is_spent():
    mu = gaussian_mu(1.0, math.nextafter(1e-6, 0))
    spent = balance_of(1.0, 1e-6, [mu])
    assert spent.fits()
    assert spent.mu_left == spent.largest_gaussian(1e-6) == spent.largest_pure() == 0.0
    assert not spent.plus(1e-12).fits()
    whole = balance_of(1.0, 0.0, [], [0.25] * 4)
    assert whole.fits()
    assert whole.largest_pure() == whole.largest_gaussian(1e-6) == 0.0


def test_a_refusal_can_be_pickled():
    error = pickle.loads(pickle.dumps(BudgetExceeded("too much", 0.25)))
    assert (str(error), error.fits) == ("too much", 0.25)


def test_total_budgets():
    assert total_budget(1, 0) == (1.0, 0.0)
    assert total_budget(np.float64(2), "1e-6") == (2.0, 1e-6)
    for epsilon, delta in ((0, 1e-6), (math.nan, 1e-6), (1, 1.0), (1, -1e-9), (1, 1e-200), (0, 0)):
        with pytest.raises(ParameterError):
            total_budget(epsilon, delta)


# --- the filter -----------------------------------------------------------------------


def test_sums_are_compared_exactly():
    """Floats cannot tell √(1/3)² three times from 1; fractions can."""
    third = math.sqrt(1 / 3)
    below, above = math.nextafter(third, 0), math.nextafter(third, 1)
    assert at_most([below] * 3, 1.0, 2)
    assert not at_most([above] * 3, 1.0, 2)
    assert not at_most([0.1] * 10, 1.0, 1)  # the double 0.1 exceeds one tenth
    assert not at_most([1.0, 2.0**-60], 1.0, 2)
    assert not at_most([1e200], 1.0, 2)


def test_pure_releases_are_dominated_by_their_mu():
    """The Gaussian's δ is larger than that of ε-randomised response at every ε'."""
    for epsilon in (0.01, 0.5, 2.0, 10.0):
        mu = pure_mu(epsilon)
        for other in np.linspace(0, epsilon, 7):
            delta = (math.exp(epsilon) - math.exp(other)) / (1 + math.exp(epsilon))
            assert gaussian_delta(float(other), mu) >= delta * (1 - 1e-12)
        tighter = gaussian_delta(0.0, mu * (1 - 1e-6))
        assert tighter < (math.exp(epsilon) - 1) / (1 + math.exp(epsilon))


def test_small_pure_releases_cost_what_they_should():
    """μ → ε·√(π/2) as ε → 0, from below, and never less than the truth by rounding."""
    for epsilon in (1e-90, 1e-40, 1e-20, 1e-9):
        slope = pure_mu(epsilon) / epsilon
        assert slope == pytest.approx(math.sqrt(math.pi / 2), rel=1e-12)
    grid = np.geomspace(1e-90, 700, 60)
    exact = [pure_mu(float(epsilon)) for epsilon in grid]
    np.testing.assert_allclose(pure_mu_estimate(grid), exact, rtol=1e-13)


def test_pure_histories_take_the_better_filter():
    many = balance_of(1.0, 1e-6, [], [0.02] * 60)
    assert many.fits()
    assert many.spent() < 1.0 < 60 * 0.02
    two = balance_of(1.0, 1e-6, [], [0.5, 0.5])
    assert two.mu > two.limit
    assert two.fits()
    assert not two.plus(1e-3).fits()


def test_a_pure_budget_takes_pure_releases_only():
    balance = balance_of(1.0, 0.0, [], [0.5])
    assert balance.affords(Budget.pure(0.5))
    assert not balance.affords(Budget.gaussian(1e-3, 1e-9))
    assert not balance.affords(Budget.pure(0.5), 1.01)
    assert balance.largest_pure(2.0) == pytest.approx(0.25)
    assert balance.spent() == pytest.approx(0.5)


# --- what was spent -------------------------------------------------------------------


def test_gaussian_composition_agrees_with_dp_accounting(rng):
    for _ in range(5):
        mus = [float(mu) for mu in rng.uniform(0.05, 0.3, 6)]
        total = math.hypot(*mus)
        spent = balance_of(20.0, 1e-5, mus).spent()
        assert spent == pytest.approx(gaussian_epsilon(1e-5, total), rel=1e-9)
        referee = dp_accounting.get_epsilon_gaussian(1 / total, 1e-5)
        assert spent == pytest.approx(referee, rel=1e-6)


def test_spending_everything_spends_no_more_than_the_budget():
    for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-9), (8.0, 1e-3)):
        half = balance_of(epsilon, delta)
        for _ in range(2):
            half = half.plus(half.limit * math.sqrt(0.5) * (1 - 1e-15))
        assert half.fits()
        assert epsilon * (1 - 1e-9) < half.spent() <= epsilon


def referee_epsilon(mus, pures, delta, step=2e-5):
    """A fine privacy loss distribution of every release on its own."""
    truth = pld.from_gaussian_mechanism(1.0, math.hypot(*mus), value_discretization_interval=step)
    for pure in pures:
        part = DifferentialPrivacyParameters(pure)
        truth = truth.compose(pld.from_privacy_parameters(part, step))
    return truth.get_epsilon_for_delta(delta)


def test_mixtures_are_never_optimistic(rng, monkeypatch):
    """Not below a fine privacy loss distribution, with or without the extra."""
    for _ in range(2):
        mus = [float(mu) for mu in rng.uniform(0.1, 0.5, 3)]
        pures = [float(pure) for pure in rng.uniform(0.05, 0.5, 4)]
        balance = balance_of(50.0, 1e-6, mus, pures)
        floor = referee_epsilon(mus, pures, 1e-6) - (len(pures) + 1) * 2e-5
        with_extra = balance.spent()
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "dp_accounting.pld", None)
            assert pld_epsilon(1.0, pures, 1e-6) == []
            without = balance.spent()
        assert floor <= with_extra < without
        assert with_extra <= 1.001 * (floor + 1e-3)


def test_many_different_releases_are_summed_on_the_safe_side(rng):
    """The grid rounds up: 400 releases of one ε cost no less than their exact sum."""
    same = pld.from_privacy_parameters(DifferentialPrivacyParameters(0.05), 1e-4).self_compose(400)
    exact = same.get_epsilon_for_delta(1e-6)
    assert exact - 1e-3 <= pld_epsilon(0.0, [0.05] * 400, 1e-6)[0] <= 1.01 * exact
    lower = [float(e) for e in rng.uniform(0.04, 0.05, 400)]
    upper = [0.05] * 400
    assert pld_epsilon(0.3, lower, 1e-6)[0] <= pld_epsilon(0.3, upper, 1e-6)[0]


def test_no_distribution_where_it_could_be_wrong():
    assert pld_epsilon(0.1, [0.1], 1e-11) == []
    assert pld_epsilon(40.0, [0.1], 1e-6) == []
    assert pld_epsilon(0.0, [600.0, 200.0], 1e-6) == []
