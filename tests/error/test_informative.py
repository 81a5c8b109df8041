"""From how many records on a release is not known to be uninformative."""

from math import sqrt

import numpy as np
import pytest

from spdp.error.informative import UNINFORMATIVE, informative_from
from spdp.error.laws import mean_law, quantiles


@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize("d", [1, 3, 6, 36, 820])
def test_there_the_bound_of_one_shot_is_the_radius(d, laplace):
    n = informative_from(d, 0.3, laplace, shrunk=False)
    for radius in (0.1, 20.0):
        law = mean_law(laplace, d, (2.0 * radius / (0.3 * n)) ** 2, 0.0)
        assert sqrt(quantiles(law)["95%"]) == pytest.approx(radius, rel=1e-12)


@pytest.mark.parametrize("d", [6, 21, 800])
def test_below_a_shrunk_mean_gains_less_than_a_tenth_wherever_the_data_lie(d, rng):
    """James and Stein's estimate itself; with a fifth more records it gains more."""

    def ratio(n, offset):
        sigma, truth = 2.0 / (0.3 * n), np.zeros(d)
        truth[0] = offset
        y = truth + sigma * rng.standard_normal((4_000, d))
        factor = np.maximum(0.0, 1.0 - (d - 2) * sigma**2 / (y**2).sum(axis=1))
        return sqrt(((factor[:, None] * y - truth) ** 2).sum(axis=1).mean()) / offset

    least = informative_from(d, 0.3, False, shrunk=True)
    for offset in (0.2, 0.5, 1.0):
        assert ratio(0.95 * least, offset) > UNINFORMATIVE
    if d > 100:  # in few dimensions it gains less than the formula, and is not refused
        assert ratio(1.2 * least, 1.0) < UNINFORMATIVE


def test_more_budget_needs_fewer_records():
    for shrunk in (False, True):
        for laplace in (False, True):
            needed = [informative_from(6, price, laplace, shrunk) for price in (0.1, 1.0, 5.0)]
            assert needed == sorted(needed, reverse=True)
