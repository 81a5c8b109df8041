"""Arrays through JSON and back, to the bit."""

import json

import numpy as np
import pytest

from spdp.kernels.arrays import array_of, numbers, plain

ARRAYS = {
    "real": np.array([[1.5, -0.0], [5e-324, 1e308]]),
    "complex": np.array([[1.0, complex(0.1, -0.0)], [complex(-0.0, 1e-310), -3j]]),
    "named": {"mean": np.eye(2), "spread": np.array([1j])},
}


@pytest.mark.parametrize("value", ARRAYS.values(), ids=ARRAYS)
def test_there_and_back(value):
    again = array_of(json.loads(json.dumps(plain(value))))
    pairs = (
        [(again, value)]
        if not isinstance(value, dict)
        else zip(again.values(), value.values(), strict=True)
    )
    for got, wanted in pairs:
        assert got.dtype == wanted.dtype
        assert got.tobytes() == wanted.tobytes()


def test_numbers_are_real_unless_complex():
    assert numbers([1, 2]).dtype == np.float64
    assert numbers(np.array([1j], np.complex64)).dtype == np.complex128
