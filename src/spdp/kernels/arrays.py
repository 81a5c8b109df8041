"""Arrays: in this machine's memory or on a device, and as plain data for JSON.

Nothing here imports CuPy or torch unless an array of theirs is at hand. As JSON, real
arrays are nested lists, complex ones ``{"real": …, "imag": …}`` of two such lists,
several arrays an object of them by name.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.errors import need

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Statuses = NDArray[np.uint8]  # the status of each matrix

REAL, IMAGINARY = "real", "imag"


def on_device(array: Any) -> bool:
    """Whether an array is CuPy's."""
    return type(array).__module__.partition(".")[0] == "cupy"


def as_array(X: Any) -> Any:
    """CuPy arrays and torch CUDA tensors in place, everything else as a NumPy array."""
    if on_device(X):
        return X
    if getattr(X, "is_cuda", False):
        return need("cupy", "gpu", "a tensor on a GPU (or pass tensor.cpu())", "CuPy").from_dlpack(
            X.detach()
        )
    return np.asarray(X)


def to_device_of(values: Any, array: Any) -> Any:
    """Values on the device on which an array lies."""
    if not on_device(array):
        return values
    import cupy

    return cupy.asarray(values)


def to_host(array: Any) -> Any:
    """An array in this machine's memory."""
    return array.get() if on_device(array) else array


def take_rows(array: Any, places: Any, out: Any) -> None:
    """Copy some rows of an array to ``out``, which lies on the same device."""
    if on_device(array):
        out[...] = array[to_device_of(places, array)]
    else:
        np.take(array, places, axis=0, out=out, mode="clip")


def numbers(value: Any) -> NDArray[Any]:
    """An array of float64 numbers, or of complex128 ones where it is complex."""
    return np.asarray(value, dtype=np.complex128 if np.iscomplexobj(value) else np.float64)


def plain(value: Any) -> Any:
    """An array, or several by name, as data for JSON; a missing number is None."""
    if isinstance(value, Mapping):
        return {name: plain(array) for name, array in value.items()}
    A = np.asarray(value)
    if A.dtype.kind == "c":
        return {REAL: A.real.tolist(), IMAGINARY: A.imag.tolist()}
    return None if A.ndim == 0 and np.isnan(A) else A.tolist()


def array_of(data: Any) -> Any:
    """The array that :func:`plain` turned into data, to the bit."""
    if not isinstance(data, dict):
        return np.array(np.nan if data is None else data)
    if data.keys() != {REAL, IMAGINARY}:
        return {name: array_of(value) for name, value in data.items()}
    value = np.array(data[REAL], dtype=np.complex128)
    value.imag = data[IMAGINARY]  # adding 1j times it would change signs of zeros
    return value
