"""Honest releases of data that do not fit their domain verify, too."""

import pytest

from spdp import EigenvalueBounds, private_difference


@pytest.mark.filterwarnings("ignore::spdp.errors.DataWarning")
def test_a_difference_of_records_far_outside_their_domain_verifies(rng):
    """Its noisy centre lies outside; projected means may be farther from it."""
    for _ in range(25):
        H = rng.standard_normal((30, 3, 6))
        X, labels = 1e6 * H @ H.swapaxes(-1, -2), (rng.random(30) < 0.5).astype(int)
        options = {"epsilon": 8.0, "delta": 1e-6, "domain": EigenvalueBounds(0.01, 100.0)}
        release = private_difference(X, labels, classes=[0, 1], **options)
        assert [check for check in release.verify() if not check.ok] == []
