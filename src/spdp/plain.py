"""Arrays of numbers as plain data that JSON can hold, and back.

Real ones are nested lists, complex ones ``{"real": …, "imag": …}`` of two such lists,
several arrays an object of them by name.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["array_of", "numbers", "plain"]

REAL, IMAGINARY = "real", "imag"


def numbers(value: Any) -> NDArray[Any]:
    """An array of float64 numbers, or of complex128 ones where it is complex."""
    return np.asarray(value, dtype=np.complex128 if np.iscomplexobj(value) else np.float64)


def plain(value: Any) -> Any:
    """An array, or several by name, as data for JSON."""
    if isinstance(value, Mapping):
        return {name: plain(array) for name, array in value.items()}
    A = np.asarray(value)
    if A.dtype.kind == "c":
        return {REAL: A.real.tolist(), IMAGINARY: A.imag.tolist()}
    return A.tolist()


def array_of(data: Any) -> Any:
    """What :func:`plain` made data of, to the bit."""
    if not isinstance(data, dict):
        return np.array(data)
    if data.keys() != {REAL, IMAGINARY}:
        return {name: array_of(value) for name, value in data.items()}
    value = np.array(data[REAL], dtype=np.complex128)
    value.imag = data[IMAGINARY]  # adding 1j times it would change signs of zeros
    return value
