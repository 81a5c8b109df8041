"""Bounds where the number of records is noisy, too."""

import numpy as np
import pytest

from spdp.privacy.bounds import Bound, Number
from spdp.privacy.laws import chi2_law


def coverage(n, sd, length, with_number=True, d=4, runs=800):
    """How often the bound holds for a mean of this length with a noise of 1/n."""
    rng = np.random.default_rng(0)
    mean, hits = np.full(d, length / np.sqrt(d)), 0
    for _ in range(runs):
        number = Number(max(n + sd * rng.standard_normal(), 1.0), sd)
        v = (n * mean + rng.standard_normal(d)) / number.value
        scale, shift = number.stretch / number.value, number.shift(np.linalg.norm(v), 1e3)
        if not with_number:
            scale, shift = 1.0 / number.value, 0.0
        bound = Bound(chi2_law(d, scale**2), 0.0, 0.0, shift, 0.0, 1e3, number.part)
        hits += np.linalg.norm(v - mean) <= bound.at(0.95)
    return hits / runs


@pytest.mark.parametrize(
    ("n", "sd", "length"), [(100, 1.0, 1.0), (100, 10.0, 0.01), (30, 5.0, 2.0)]
)
def test_a_noisy_number_is_covered(n, sd, length):
    assert coverage(n, sd, length) >= 0.95


def test_without_its_part_it_would_not_be():
    assert coverage(100, 5.0, 3.0, with_number=False) < 0.6


def test_a_public_number_changes_nothing():
    number = Number(100.0)
    assert (number.stretch, number.shift(3.0, 9.0), number.part) == (1.0, 0.0, 1.0)


def test_a_number_that_cannot_be_told_from_none_leaves_the_largest_distance():
    number = Number(10.0, 5.0)
    assert not number.seen
    assert (number.stretch, number.shift(3.0, 9.0)) == (1.0, 9.0)


def test_what_is_moved_may_be_farther_than_the_domain_is_wide():
    bound = Bound(chi2_law(3, 100.0), 0.0, 0.0, 0.0, 0.0, 2.0, 1.0)
    assert bound.at() == 2.0
    assert bound.moved(5.0).at() == 7.0
