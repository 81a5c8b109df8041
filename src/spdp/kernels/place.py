"""Where arrays lie: in this machine's memory, or on a device.

Nothing here imports CuPy or torch unless an array of theirs is at hand.
"""

from typing import Any

import numpy as np

from spdp.errors import ParameterError

__all__ = ["as_array", "beside", "home", "on_device", "take_rows"]


def on_device(array: Any) -> bool:
    """Whether an array is CuPy's."""
    return type(array).__module__.partition(".")[0] == "cupy"


def as_array(X: Any) -> Any:
    """CuPy arrays and torch CUDA tensors in place, everything else as NumPy's array."""
    if on_device(X):
        return X
    if getattr(X, "is_cuda", False):
        try:
            from cupy import from_dlpack
        except ImportError:
            raise ParameterError(
                "a tensor on a GPU needs CuPy: pip install 'spdp[gpu]', or pass tensor.cpu()"
            ) from None
        return from_dlpack(X.detach())
    return np.asarray(X)


def beside(values: Any, array: Any) -> Any:
    """Values where an array lies."""
    if not on_device(array):
        return values
    import cupy

    return cupy.asarray(values)


def home(array: Any) -> Any:
    """An array in this machine's memory."""
    return array.get() if on_device(array) else array


def take_rows(array: Any, places: Any, out: Any) -> None:
    """Copy some rows of an array to where ``out`` lies beside it."""
    if on_device(array):
        out[...] = array[beside(places, array)]
    else:
        np.take(array, places, axis=0, out=out, mode="clip")
