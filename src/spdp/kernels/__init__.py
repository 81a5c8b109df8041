"""Batch kernels on stacks of symmetric matrices: logarithms, lattice points, sums.

Implementations of the :class:`Kernels` protocol: :mod:`spdp.kernels.reference` (NumPy);
where it was built, :mod:`spdp.kernels.native` (C++, one matrix per SIMD lane, all
cores); and for CuPy's arrays :mod:`spdp.kernels.cuda`. :func:`kernels_for` chooses by
where an array lies and by what an engine asks for; ``SPDP_KERNELS=numpy`` selects the
reference for NumPy arrays, ``SPDP_NUM_THREADS`` and threadpoolctl limit the native
threads.
"""

import os
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from spdp.errors import ParameterError, SlowBuild, warn
from spdp.kernels.base import Kernels

MODULES = {"native": "spdp.kernels.native", "numpy": "spdp.kernels.reference"}
DEVICE_MODULES = {"cuda": "spdp.kernels.cuda"}
SLOWER = "23 times slower for 3×3 matrices, 10 times for 9×9, 5 times for 30×30"  # one thread
PREFERRED = {"numpy": ("native", "numpy"), "cupy": ("cuda",)}  # by the library an array belongs to


def kernels_for(array: Any = None, wanted: str | None = None) -> Kernels:
    """The kernels for an array: those an engine asks for, or the fastest available."""
    home = type(array).__module__.partition(".")[0]
    names = PREFERRED.get(home, PREFERRED["numpy"])
    if home == "cupy" or wanted == "cuda":  # NumPy arrays are copied to the device
        return _load(PREFERRED["cupy"])
    choice = wanted or os.environ.get("SPDP_KERNELS", "")
    if choice:
        if choice not in names:
            *most, last = map(repr, names)
            asked = "kernels" if wanted else "SPDP_KERNELS"
            raise ParameterError(f"{asked} must be {', '.join(most)} or {last}, got {choice!r}")
        return _load((choice,))
    return _load(names)


@lru_cache(maxsize=8)
def _load(names: tuple[str, ...]) -> Kernels:
    for name in names[:-1]:
        try:
            return import_module(MODULES[name])
        except ImportError as error:
            _say_slow(error)
    return import_module((MODULES | DEVICE_MODULES)[names[-1]])


def _say_slow(error: ImportError) -> None:
    """Warn once that NumPy replaces the compiled kernels, unless it was chosen."""
    if os.environ.get("SPDP_KERNELS") == "numpy":
        return
    missing = find_spec("spdp.kernels._native") is None
    why = "was built without compiled kernels" if missing else f"cannot load its kernels ({error})"
    warn(
        f"spdp {why} and runs on NumPy: the same guarantee, but {SLOWER}. Install GCC or Clang "
        "and reinstall spdp; or SPDP_KERNELS=numpy chooses NumPy without this warning.",
        SlowBuild,
    )


def backend() -> str:
    """Name of the kernels that NumPy arrays get: ``"native"`` or ``"numpy"``."""
    return kernels_for().NAME


def instruction_set() -> str:
    """Instruction set that the kernels for NumPy arrays use on this machine."""
    native = getattr(kernels_for(), "_native", None)
    return "nothing compiled" if native is None else str(native.instruction_set())


def threads() -> int:
    """Threads that one call may use: the kernels' limit holds for all work."""
    return int(getattr(kernels_for(), "threads", int)()) or 1


_load(PREFERRED["numpy"])  # now, so that threadpoolctl's limits reach the native threads
