"""Batch kernels on stacks of symmetric matrices: the only place where matrices are decomposed.

Two implementations share these signatures and their tests: :mod:`spdp.kernels.reference` (NumPy) and, where it was built,
:mod:`spdp.kernels.native` (C++, one matrix per SIMD lane, all cores). ``SPDP_KERNELS=numpy`` selects the reference,
``SPDP_NUM_THREADS`` and threadpoolctl limit the threads. Inputs are stacks ``(m, k, k)`` of float32 or float64 with any
strides; every function returns one :class:`Status` per matrix instead of raising, so that callers decide what an unusable
matrix means.
"""

import os
from types import ModuleType
from typing import TYPE_CHECKING

from spdp.errors import ParameterError
from spdp.kernels import reference
from spdp.kernels.reference import Region, Status, encode_vectors

__all__ = [
    "Region",
    "Status",
    "backend",
    "eigh",
    "encode",
    "encode_vectors",
    "expm",
    "lattice_sum",
    "log_sum",
    "log_vectors",
    "logm",
    "vector_norms",
    "vector_sum",
]


def _choose(wanted: str) -> tuple[str, ModuleType]:
    if wanted not in ("", "native", "numpy"):
        raise ParameterError(f"SPDP_KERNELS must be 'native' or 'numpy', got {wanted!r}")
    if wanted != "numpy":
        try:
            from spdp.kernels import native

            return "native", native
        except ImportError:
            if wanted == "native":
                raise
    return "numpy", reference


_name, _module = _choose(os.environ.get("SPDP_KERNELS", ""))
if TYPE_CHECKING:
    from spdp.kernels.reference import eigh, encode, expm, lattice_sum, log_sum, log_vectors, logm, vector_norms, vector_sum
else:
    eigh = _module.eigh
    logm = _module.logm
    expm = _module.expm
    log_sum = _module.log_sum
    log_vectors = _module.log_vectors
    encode = _module.encode
    lattice_sum = _module.lattice_sum
    vector_sum = _module.vector_sum
    vector_norms = _module.vector_norms


def backend() -> str:
    """Name of the implementation in use: ``"native"`` or ``"numpy"``."""
    return _name
