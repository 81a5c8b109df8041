"""Costs: exact, or rounded up."""

import math
from fractions import Fraction

import pytest

from spdp.privacy.budget import sqrt_upward


@pytest.mark.parametrize("scale", [1e-290, 1.0, 3.7, 2.0**57, 1e200, 1e308])
def test_a_root_is_the_next_double_also_where_its_square_is_no_number(scale):
    square = (Fraction(1 << 31) / Fraction(scale)) ** 2 + Fraction(1, 7)
    root = sqrt_upward(square)
    assert Fraction(root) ** 2 >= square > Fraction(math.nextafter(root, 0.0)) ** 2
