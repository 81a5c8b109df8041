"""The samplers. Only :meth:`spdp.privacy.account.Account.measure` may call them."""

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.kernels import threads
from spdp.privacy.exact_laplace import check_scale, laplace_vector

__all__ = ["check_scale", "gaussian", "laplace"]

Ints = NDArray[np.int64]
Generator = np.random.Generator | None

LIMIT = (1 << 63) - 1
FEW = 64  # coordinates a thread draws at least: some millisecond


def gaussian(total: Ints, scale: float, rng: Generator) -> Ints:
    """``total`` plus discrete Gaussian noise, P(N = q) ∝ exp(−‖q‖²/2·scale²).

    OpenDP's exact sampler on operating-system entropy, or a seeded simulation that is
    not private. The sum itself goes through OpenDP, which saturates at the ends of
    int64 after adding noise: post-processing. Long vectors are shared among threads:
    the law is that of independent coordinates, whoever draws them.
    """
    if rng is not None:
        return _simulated(total, rng.standard_normal(total.shape) * scale)
    add_noise = _opendp_gaussian(scale)
    parts = min(threads(), len(total) // FEW) if len(total) >= 2 * FEW else 1
    if parts < 2:
        return add_noise(total)
    with ThreadPoolExecutor(parts) as pool:  # OpenDP holds no lock of Python's meanwhile
        return np.concatenate(list(pool.map(add_noise, np.array_split(total, parts))))


@lru_cache(maxsize=64)
def _opendp_gaussian(scale: float) -> Callable[[Ints], Ints]:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), l2_distance(T="f64")
    measurement = make_gaussian(*space, scale=scale)
    if _library() is None:
        return lambda total: np.array(measurement(total.tolist()), np.int64)
    return lambda total: _invoke(measurement, total)


@lru_cache(maxsize=1)
def _library() -> Any:
    """OpenDP's library with the three functions of an invocation, if it is as known."""
    try:
        from opendp import _data, _lib

        names = ("slice_as_object", "object_as_slice", "slice_free")
        if not all(hasattr(_data, name) for name in names):
            return None
        load, unload = (getattr(_lib.lib, f"opendp_data__{name}") for name in names[:2])
        invoke = _lib.lib.opendp_core__measurement_invoke
        load.argtypes = [_lib.FfiSlicePtr, ctypes.c_char_p]
        unload.argtypes = [_lib.AnyObjectPtr]
        load.restype = unload.restype = invoke.restype = _lib.FfiResult
        return _lib, _data.slice_free, load, invoke, unload
    except (ImportError, AttributeError):
        return None


def _invoke(measurement: Any, total: Ints) -> Ints:
    """A measurement's answer, with vectors handed over as they lie in memory.

    The very calls that ``measurement(total.tolist())`` makes, without an object and
    checks in Python for each coordinate.
    """
    lib, free, load, invoke, unload = _library()
    given = np.ascontiguousarray(total, np.int64)
    piece = lib.FfiSlice(given.ctypes.data, len(given))
    pointer = ctypes.cast(ctypes.pointer(piece), lib.FfiSlicePtr)
    record = lib.unwrap(load(pointer, b"Vec<i64>"), lib.AnyObjectPtr)
    answer = lib.unwrap(invoke(measurement, record), lib.AnyObjectPtr)
    found = lib.unwrap(unload(answer), lib.FfiSlicePtr)
    try:
        content = found.contents
        return np.frombuffer(ctypes.string_at(content.ptr, 8 * content.len), np.int64)
    finally:
        free(found)


def laplace(total: Ints, scale: Fraction, rng: Generator) -> Ints:
    """``total`` plus discrete ℓ2 Laplace noise, P(N = q) ∝ exp(−‖q‖/scale).

    Exact (:mod:`spdp.privacy.exact_laplace`) on operating-system entropy, or a seeded
    simulation that is not private. Saturates at the ends of int64 after adding noise.
    """
    if rng is not None:
        direction = rng.standard_normal(len(total))
        radius = float(rng.gamma(len(total), float(scale)))
        return _simulated(total, direction * (radius / np.sqrt(direction @ direction)))
    noise = laplace_vector(len(total), scale)
    sums = [int(t) + q for t, q in zip(total, noise, strict=True)]
    return np.array([min(max(s, -LIMIT), LIMIT) for s in sums], np.int64)


def _simulated(total: Ints, noise: NDArray[np.float64]) -> Ints:
    return np.clip(total + np.rint(noise), -(2.0**62), 2.0**62).astype(np.int64)
