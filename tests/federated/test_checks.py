"""What the replay of a study takes for the same."""

import numpy as np

from spdp.federated.checks import UNSIGNED, _same


def test_only_axes_may_have_the_other_sign():
    M = np.array([[2.0, 0.5], [0.5, 1.0]])
    turned = M * [[1.0], [-1.0]]
    assert "mean" not in UNSIGNED
    assert _same(M, M * (1 + 1e-12))
    assert not _same(M, turned)
    assert _same(M, turned, unsigned=True)
    assert not _same(M, 1.01 * turned, unsigned=True)
