import json

import msgspec
import numpy as np
import pytest
from scipy import special

from spdp.error.laws import (
    ACCURACY,
    Chi2,
    GammaSquare,
    StretchedLaplace,
    WeightedSum,
    law_of,
    mean_law,
    weighted_chi2,
    weighted_tails,
)


@pytest.mark.parametrize(
    "law",
    [
        Chi2(5, 0.3),
        GammaSquare(4, 0.2),
        StretchedLaplace(4, 0.2, 0.5),
        weighted_chi2(np.array([1.0, 2.0, 0.1, 5.0])),
    ],
)
def test_laws_are_right(law):
    assert law_of(json.loads(json.dumps(msgspec.to_builtins(law)))) == law
    found = law.distribution()
    draws = found.rvs(size=4000, random_state=0)
    assert law.mean() == pytest.approx(found.mean(), rel=1e-9)
    assert found.mean() == pytest.approx(draws.mean(), rel=0.1)
    for p in (0.1, 0.5, 0.95):
        assert (draws <= found.ppf(p)).mean() == pytest.approx(p, abs=0.025)
    assert found.cdf(found.ppf(0.7)) == pytest.approx(0.7, abs=1e-6)
    levels = np.array([0.1, 0.5, 0.95])
    np.testing.assert_allclose(law.quantile(levels), found.ppf(levels), rtol=1e-6)


def test_weighted_law_reduces_to_chi2():
    assert weighted_chi2(np.full(4, 0.5)) == Chi2(4, 0.5)
    nearly = weighted_chi2(np.array([0.5, 0.5, 0.5, 0.5 * (1 + 1e-6)])).distribution()
    assert nearly.ppf(0.9) == pytest.approx(Chi2(4, 0.5).distribution().ppf(0.9), rel=1e-4)


def pairs_beyond(rates, x):
    """P(Σ v_i (Z_i² + Z_i'²) > x): exponential laws of rates 1/2v_i, added up."""
    total = np.zeros_like(x)
    for i, rate in enumerate(rates):
        others = np.delete(rates, i)
        total += np.prod(others / (others - rate)) * np.exp(-rate * x)
    return total


@pytest.mark.parametrize(
    "pairs", [[1.0], [1.0, 1e-4], [1.0, 0.9], [1.0, 0.6, 0.02], [1.0, 0.5, 0.25, 1e-3]]
)
def test_weighted_sums_of_pairs_have_a_closed_form(pairs):
    rates, weights = 0.5 / np.array(pairs), np.repeat(pairs, 2)
    law, mean = WeightedSum(weights), weights.sum()
    x = mean * np.concatenate([np.geomspace(1e-8, 1.0, 20), np.linspace(1.0, 12.0, 20)])
    below = law.below(x)
    np.testing.assert_allclose(1.0 - below, pairs_beyond(rates, x), rtol=0, atol=ACCURACY)
    assert np.abs(1.0 - below - pairs_beyond(1.001 * rates, x)).max() > 1e5 * ACCURACY
    squares = 3.0 * mean * np.linspace(1.0, 4.0, 80)
    tails, exact = weighted_tails(3.0 * weights, squares), pairs_beyond(rates / 3.0, squares)
    assert (tails > exact).all()  # rounded up
    np.testing.assert_allclose(tails, exact, rtol=0, atol=3 * ACCURACY)


@pytest.mark.parametrize("d", [1, 2, 3, 50, 465, 20_000])
def test_equal_weights_are_chi2(d):
    x = d * np.concatenate([np.geomspace(1e-8, 1.0, 9), 1.0 + np.linspace(0, 20, 9) / d**0.5])
    law = WeightedSum(np.ones(d))
    np.testing.assert_allclose(law.below(x), special.chdtr(d, x), rtol=0, atol=ACCURACY)


def test_one_weight_among_small_ones():
    """By quadrature over the small part: the case in which transforms fall slowest."""
    small = 0.01
    law, x = WeightedSum(np.array([1.0, small, small])), np.linspace(1.0, 20.0, 30)
    nodes, mass = np.polynomial.laguerre.laggauss(60)  # small·(Z² + Z'²) is exponential
    beyond = special.chdtrc(1, np.maximum(x[:, None] - 2 * small * nodes, 0.0)) @ mass
    np.testing.assert_allclose(1.0 - law.below(x), beyond, rtol=0, atol=ACCURACY)


def series(weights, x):
    """Davies' series, where it converges: P(Σ w_j Z_j² > x) by the unbent line."""
    reach = weights.sum() + 40.0 * np.sqrt(2.0 * weights @ weights)
    t = (np.arange(1 << 13) + 0.5) * np.pi / (2.0 * reach)
    angles = 2.0 * np.multiply.outer(weights, t)
    size = np.exp(-0.25 * np.log1p(angles**2).sum(axis=0)) / (t * 2.0 * reach)
    assert size[-1] < 1e-13
    phase = 0.5 * np.arctan(angles).sum(axis=0)
    return 0.5 + np.sin(phase - np.multiply.outer(x, t)) @ size


@pytest.mark.parametrize(  # the series converges for these
    ("many", "small"),
    [(10, 0.3), (10, 0.9), (100, 0.3), (464, 0.05), (464, 0.9), (5000, 0.01), (5000, 0.05)],
)
def test_one_weight_among_many(many, small):
    """Together the small ones turn the integrand upward where a line bends too far."""
    weights = np.append(1.0, np.full(many, small))
    law, mean, sd = WeightedSum(weights), weights.sum(), np.sqrt(2.0 * weights @ weights)
    x = mean + sd * np.linspace(-min(4.0, 0.9 * mean / sd), 10.0, 30)
    below = law.below(x)
    np.testing.assert_allclose(1.0 - below, series(weights, x), rtol=0, atol=2 * ACCURACY)
    assert (np.diff(below) > -ACCURACY).all()
    squares = np.linspace(mean, mean + 10.0 * sd, 80)
    tails = weighted_tails(weights, squares)
    np.testing.assert_allclose(tails, series(weights, squares), rtol=0, atol=4 * ACCURACY)


def test_quantiles_of_a_noisy_count_in_many_dimensions():
    """A large weight of the count beside 464 of the coordinates."""
    law = mean_law(False, 465, 1.0, 100.0)
    levels = np.array([0.05, 0.5, 0.9, 0.99])
    weights = np.array(law.weights)
    found = 1.0 - series(weights / weights.max(), law.quantile(levels) / weights.max())
    np.testing.assert_allclose(found, levels, rtol=0, atol=1e-7)


@pytest.mark.parametrize("weights", [[1.0, -0.9999999999, 1e-12], [0.0, 0.0], []])
def test_hostile_weights_are_refused(weights):
    with pytest.raises((msgspec.ValidationError, ValueError)):
        law_of({"family": "weighted-chi2", "weights": weights}).quantile(np.array([0.5]))
