"""Costs: what noise costs, rounded up, whatever its scale."""

import math
from fractions import Fraction

import pytest

from spdp.privacy.costs import mu_upward


@pytest.mark.parametrize("scale", [1e-290, 1.0, 3.7, 2.0**57, 1e200, 1e308])
def test_a_price_is_the_next_double_whatever_the_scale(scale):
    """Also where its square is no number: a certificate may state any scale."""
    mu = mu_upward(1 << 31, Fraction(scale) ** 2)
    exact = Fraction(1 << 31) / Fraction(scale)
    assert Fraction(mu) >= exact > Fraction(math.nextafter(mu, 0.0))
