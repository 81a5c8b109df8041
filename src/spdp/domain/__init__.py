r"""Where a record may lie: public sets, chosen without looking at the data.

Records are CLIPPED to the domain one by one, so the sensitivity of their mean is
enforced, not assumed: with all vectors in a ball of radius r, replacing one of n
records moves the mean by at most 2r/n (theorem 3). A radius or bounds computed from the
data themselves leak the data; no function here computes one.
"""

from importlib import import_module
from typing import Any

_SETS = ("Ball", "CorrelationBounds", "EigenvalueBounds", "TraceBounds")
__all__ = [*_SETS, "amplitude_bounds", "tensor_bounds"]


def __getattr__(name: str) -> Any:
    """The public sets, which are imported when they are asked for."""
    if name in __all__:
        return getattr(import_module("spdp.domain.sets"), name)
    raise AttributeError(f"module 'spdp.domain' has no attribute {name!r}")
