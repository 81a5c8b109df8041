"""Excess beyond a ball, of rows of classes."""

import numpy as np
import pytest

from spdp.choices import Adjacency
from spdp.kernels import RECORD_NORM, kernels_for
from spdp.queries import WHOLE, ClassExcess, Rows


def test_it_is_the_sum_of_what_a_ball_takes_away(rng):
    Y = rng.standard_normal((300, 4)) * 3.0
    label = rng.integers(-1, 2, 300)
    query = ClassExcess("", np.ones(4), 2.0, 3.0)
    excess = np.clip(np.linalg.norm(Y - 1.0, axis=1) - 2.0, 0.0, 3.0)
    total = query.over(Rows(Y, label=label), kernels_for())
    assert total[0] * 3.0 / RECORD_NORM == pytest.approx(excess[label >= 0].sum(), abs=1e-5)


def test_a_person_in_many_classes_counts_once(rng):
    """Whatever a person's rows, they add an integer between 0 and 2³⁰."""
    query = ClassExcess("", np.zeros(2), 1.0, 1.0)
    for _ in range(100):
        rows = int(rng.integers(1, 6))
        share = rng.multinomial(WHOLE, np.ones(rows) / rows)
        Y = rng.standard_normal((rows, 2)) * 10.0 ** rng.uniform(-1, 5)
        total = query.over(Rows(Y, np.arange(rows), share), kernels_for())[0]
        assert 0 <= total <= query.sensitivity(Adjacency.REPLACE_ONE)
    far = Rows(np.full((2, 2), 1e300), np.arange(2), np.full(2, WHOLE // 2))
    assert query.over(far, kernels_for())[0] == RECORD_NORM
