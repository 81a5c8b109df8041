"""Symmetric matrices as weighted integers."""

import numpy as np
import pytest

from spdp.queries.triangle import OFF_DIAGONAL, OFF_NOISE, ON_DIAGONAL, packed, unpacked


def symmetric(rng, *shape):
    A = rng.integers(-1000, 1000, (*shape, shape[-1]))
    return A + np.swapaxes(A, -1, -2)


def test_diagonal_then_upper_triangle_row_by_row():
    C = np.array([[1, 2, 3], [2, 4, 5], [3, 5, 6]])
    assert packed(C).tolist() == [5, 20, 30, 14, 21, 35]


@pytest.mark.parametrize("d", [1, 2, 7])
def test_back_and_forth(rng, d):
    C = symmetric(rng, 3, d)
    values = np.stack([packed(one) for one in C])
    assert (unpacked(values.astype(float), d) == C).all()
    assert (unpacked(values[0].astype(float), d) == C[0]).all()


def test_the_length_is_at_most_that_of_a_matrix(rng):
    """What sensitivities rest on; largest where nothing is on the diagonal."""
    assert OFF_DIAGONAL**2 <= 2 * ON_DIAGONAL**2
    for d in (2, 5):
        C = symmetric(rng, d)
        for one in (C, C - np.diag(np.diagonal(C)), np.diag(np.diagonal(C))):
            assert (packed(one) ** 2).sum() <= ON_DIAGONAL**2 * (one**2).sum()


def test_noise_of_entries(rng):
    """The same noise in every number is less in an entry off the diagonal."""
    noisy = unpacked(rng.standard_normal((20_000, 3)), 2).std(axis=0)
    assert noisy[0, 1] / noisy[0, 0] == pytest.approx(OFF_NOISE, rel=0.05)
