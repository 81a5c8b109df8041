"""Suspicions before and after a release: bounds that worst cases nearly reach."""

from math import exp, log

import numpy as np
import pytest
from scipy.stats import norm

from spdp.privacy import gaussian_delta, gaussian_mu
from spdp.privacy.odds import PRIORS, after, largest_loss, percent, table


def loss_exceeds(mu, t):
    """P(L > t) of one Gaussian answer, whose loss is normal with mean μ²/2 and sd μ."""
    return norm.sf((t - mu * mu / 2) / mu)


def merged(mu, low):
    """The loss of all outcomes of a Gaussian with L > low, taken as one outcome."""
    p, q = norm.sf(low / mu - mu / 2), norm.sf(low / mu + mu / 2)
    return log(p / q), p


BUDGETS = [(0.1, 1e-6), (0.5, 1e-9), (1.0, 1e-6), (2.0, 1e-5), (5.0, 1e-3), (10.0, 1e-12)]


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_more_loss_than_stated_has_at_most_the_stated_probability(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    t = largest_loss(epsilon, delta, mu)
    assert t > epsilon
    assert loss_exceeds(mu, t) <= delta
    assert loss_exceeds(mu, 0.9 * t) > delta  # the bound is not wide of the mark


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_post_processing_may_raise_a_tail_and_is_covered(epsilon, delta):
    """Outcomes merged into one: its loss may exceed a Gaussian's quantile at δ."""
    mu = gaussian_mu(epsilon, delta)
    t = largest_loss(epsilon, delta, mu)
    quantile = mu * mu / 2 + mu * norm.isf(delta)
    for low in np.linspace(0.5 * epsilon, 2 * t, 400):
        loss, probability = merged(mu, low)
        assert loss <= t or probability <= delta
    low = quantile - 1e-3 * mu  # merged, these outcomes are likelier than δ
    assert merged(mu, low)[0] > quantile
    assert merged(mu, low)[1] > delta


def test_with_any_curve_point_the_probability_is_bounded():
    """P(L > t) ≤ δ(s)/(1 − e^{s − t}), for the exact tail and all s < t."""
    mu = 0.7
    for t in (0.5, 1.0, 2.0, 4.0):
        for s in np.linspace(0.05, t - 0.05, 9):
            assert loss_exceeds(mu, t) <= gaussian_delta(float(s), mu) / (1 - exp(s - t))


def test_pure_privacy_has_no_exception():
    assert largest_loss(1.5, 0.0, None) == 1.5
    assert largest_loss(1.5, 1e-6, None) == float("inf")


@pytest.mark.parametrize("prior", PRIORS)
def test_odds_change_by_the_loss(prior):
    low, high = after(prior, 1.3)
    assert high / (1 - high) == pytest.approx(exp(1.3) * prior / (1 - prior))
    assert low / (1 - low) == pytest.approx(exp(-1.3) * prior / (1 - prior))
    assert after(prior, 0.0) == (prior, prior)
    assert after(prior, 1e4) == (0.0, 1.0)


def test_shares_are_rounded_outward():
    assert (percent(0.12345, up=True), percent(0.12345, up=False)) == ("12.4 %", "12.3 %")
    assert percent(0.99999, up=True) == "100 %"
    assert percent(1e-9, up=False) == "0 %"


def test_the_table_of_a_pure_release():
    assert table(1.0, 0.0, None) == [
        ("1 %", "0.3 %", "2.7 %"),
        ("10 %", "3.9 %", "23.2 %"),
        ("50 %", "26.8 %", "73.2 %"),
    ]


def test_a_hopeless_budget_promises_nothing_and_raises_nothing():
    for epsilon, delta in ((1e6, 1e-6), (700.0, 0.4), (0.001, 0.9)):
        rows = table(epsilon, delta, gaussian_mu(epsilon, delta))
        assert len(rows) == len(PRIORS)
