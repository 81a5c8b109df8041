"""Bounds where the number of records is noisy, too."""

import numpy as np
import pytest
from scipy import special

from spdp.error.bound import SPLITS, SURE_SHARE, Bound, Count, noise_quantiles
from spdp.error.class_means import RISK
from spdp.error.laws import Chi2
from spdp.error.shrinkage import Shrinkage
from spdp.errors import ParameterError


def coverage(n, sd, length, with_count=True, d=4, runs=800):
    """How often the bound holds for a mean of this length with a noise of 1/n."""
    rng = np.random.default_rng(0)
    mean, hits = np.full(d, length / np.sqrt(d)), 0
    for _ in range(runs):
        count = Count(max(n + sd * rng.standard_normal(), 1.0), sd)
        v = (n * mean + rng.standard_normal(d)) / count.value
        scale, shift = count.stretch / count.value, count.shift(np.linalg.norm(v), 1e3)
        if not with_count:
            scale, shift = 1.0 / count.value, 0.0
        bound = Bound(Chi2(d, scale**2), 0.0, 0.0, shift, 0.0, 1e3, count.risk_share)
        hits += np.linalg.norm(v - mean) <= bound.at(0.95)
    return hits / runs


@pytest.mark.parametrize(
    ("n", "sd", "length"), [(100, 1.0, 1.0), (100, 10.0, 0.01), (30, 5.0, 2.0)]
)
def test_a_noisy_count_is_covered(n, sd, length):
    assert coverage(n, sd, length) >= 0.95


def test_without_its_share_it_would_not_be():
    assert coverage(100, 5.0, 3.0, with_count=False) < 0.6


def test_a_risk_that_counts_have_spent_is_not_promised_again():
    """2·10⁻⁵ is reserved for the counts: beyond 0.998 the rest of the risk is less."""
    noisy = Bound(Chi2(3, 1.0), 0.0, 0.0, 0.0, 0.0, 1e3, SURE_SHARE)
    assert noisy.at(0.998) > noisy.at(0.99)
    for confidence in (0.9981, 0.9999, 1 - 1e-12):
        with pytest.raises(ParameterError, match="at most 0.998"):
            noisy.at(confidence)
        assert noisy.replace(risk_share=1.0).at(confidence) < 1e3
    assert RISK <= (1.0 - SURE_SHARE) * (1.0 - 0.998) * (1.0 + 1e-12)


def test_how_the_risk_is_split_does_not_depend_on_what_was_observed():
    """A split chosen by the observed length would be the best of nine chances."""
    law, sd, biases = Chi2(40, 1.0), 0.7, np.array(SPLITS)
    rest = sd * special.ndtri(1.0 - 0.05 * (1.0 - biases))
    split = int(np.argmin(noise_quantiles(law, 0.05 * biases) + rest))
    for length in (0.1, 3.0, 6.0, 9.0, 30.0):
        shrunk = Shrinkage(40, 1.0, length, max(0.0, 1.0 - 38.0 / length**2))
        bound = Bound(law, 0.4, sd, 0.0, 0.0, 1e3, 1.0, shrunk)
        mine = shrunk.quantiles(np.array([0.05, *(0.05 * biases)]))
        assert bound.at(0.95) == pytest.approx(max(mine[0], mine[1 + split] + rest[split] + 0.4))


def test_a_public_count_changes_nothing():
    count = Count(100.0)
    assert (count.stretch, count.shift(3.0, 9.0), count.risk_share) == (1.0, 0.0, 1.0)


def test_a_count_that_cannot_be_told_from_none_leaves_the_largest_distance():
    count = Count(10.0, 5.0)
    assert not count.seen
    assert (count.stretch, count.shift(3.0, 9.0)) == (1.0, 9.0)


def test_what_is_moved_may_be_farther_than_the_domain_is_wide():
    bound = Bound(Chi2(3, 100.0), 0.0, 0.0, 0.0, 0.0, 2.0, 1.0)
    assert bound.at() == 2.0
    assert bound.moved(5.0).at() == 7.0
