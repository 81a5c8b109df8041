"""Batch kernels on stacks of symmetric matrices: the only place where matrices are decomposed.

Two implementations share these signatures and their tests: :mod:`spdp.kernels.reference` (NumPy) and, where it was
built, a native one. ``SPDP_KERNELS=numpy`` selects the reference. Inputs are stacks ``(m, k, k)`` of float32 or
float64 with any strides; every function returns one :class:`Status` per matrix instead of raising, so that callers
decide what an unusable matrix means.
"""

from spdp.kernels.reference import (
    Region,
    Status,
    eigh,
    encode,
    encode_vectors,
    expm,
    lattice_sum,
    log_sum,
    log_vectors,
    logm,
)

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
]


def backend() -> str:
    """Name of the implementation in use: ``"native"`` or ``"numpy"``."""
    return "numpy"
