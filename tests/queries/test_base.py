import numpy as np
import pytest

from spdp.queries.base import in_units


@pytest.mark.parametrize("whole", [1, 7, 1 << 30])
def test_shares_are_whole_numbers_in_their_range_whatever_they_are(whole):
    share = np.array([-np.inf, -0.1, 0.0, 0.5, np.nextafter(1.0, 0.0), 1.0, 1.5, np.inf, np.nan])
    units = in_units(share, whole)
    almost = whole - 1
    assert units.dtype == np.int64
    assert units.tolist() == [0, 0, 0, whole // 2, almost, whole, whole, whole, 0]
