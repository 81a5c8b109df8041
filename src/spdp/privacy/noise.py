"""The samplers. Only :mod:`spdp.privacy.account` may call them."""

import ctypes
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.kernels import threads
from spdp.kernels.arrays import Ints
from spdp.privacy.exact_laplace import check_scale as check_scale
from spdp.privacy.exact_laplace import laplace_vector

Generator = np.random.Generator | None

LIMIT = (1 << 63) - 1
FEW = 64  # fewest coordinates of a piece but the last: a millisecond's work


def gaussian(total: Ints, scale: float, rng: Generator) -> Ints:
    """``total`` plus discrete Gaussian noise, P(N = q) ∝ exp(−‖q‖²/2·scale²).

    OpenDP's exact sampler on operating-system entropy, or a seeded simulation that is
    not private. The sum itself goes through OpenDP, which saturates at the ends of
    int64 after adding noise: post-processing. Long vectors are shared among threads,
    which take pieces until there are none: the law is that of independent coordinates,
    whoever draws them.
    """
    if rng is not None:
        return _simulated(total, rng.standard_normal(total.shape) * scale)
    add_noise = _opendp_gaussian(scale)
    if len(total) < 2 * FEW or threads() < 2:
        return add_noise(total)
    with ThreadPoolExecutor(threads()) as pool:  # ctypes releases the GIL meanwhile
        return np.concatenate(list(pool.map(add_noise, _pieces(total, threads()))))


def _pieces(total: Ints, sharers: int) -> list[Ints]:
    """Smaller and smaller pieces: few calls, and threads end at about the same time."""
    pieces = []
    while len(total):
        size = max(FEW, len(total) // (2 * sharers))
        pieces.append(total[:size])
        total = total[size:]
    return pieces


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
    """OpenDP's C functions for one invocation; None if the library lacks any."""
    try:
        from opendp import _lib

        def function(name: str, *arguments: Any) -> Any:
            kind = ctypes.CFUNCTYPE(_lib.FfiResult, *arguments)
            return kind((f"opendp_{name}", _lib.lib))

        address = ctypes.c_void_p
        return (
            _lib,
            function("data__slice_as_object", address, ctypes.c_char_p),
            function("core__measurement_invoke", address, address),
            function("data__object_as_slice", address),
            function("data__slice_free", address),
            function("data__object_free", address),
        )
    except (ImportError, AttributeError):
        return None


def _invoke(measurement: Any, total: Ints) -> Ints:
    """A measurement's answer, with vectors passed as they lie in memory.

    The same calls as ``measurement(total.tolist())`` makes, without an object and
    checks in Python for each coordinate.
    """
    lib, load, invoke, unload, free_slice, free = _library()

    def address(result: Any) -> int:
        failed = result.tag != 0
        return int(lib.unwrap(result, ctypes.c_void_p) if failed else result.payload.Ok)

    given = np.ascontiguousarray(total, np.int64)
    piece = lib.FfiSlice(given.ctypes.data, len(given))
    record = address(load(ctypes.addressof(piece), b"Vec<i64>"))
    try:
        answer = address(invoke(ctypes.addressof(measurement.contents), record))
    finally:
        free(record)
    try:
        found = address(unload(answer))
        content = lib.FfiSlice.from_address(found)
        drawn = np.frombuffer(ctypes.string_at(content.ptr, 8 * content.len), np.int64)
        free_slice(found)
        return drawn
    finally:
        free(answer)


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


def key(rng: Generator) -> int:
    """A random key from operating-system entropy, unless seeded."""
    return secrets.randbits(64) if rng is None else int(rng.spawn(1)[0].integers(1 << 63))


def _simulated(total: Ints, noise: NDArray[np.float64]) -> Ints:
    return np.clip(total + np.rint(noise), -(2.0**62), 2.0**62).astype(np.int64)
