"""Private statistics of symmetric positive definite matrices.

Heavy modules load when a name is first used.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from spdp.statistics import STATISTICS as _STATISTICS
from spdp.statistics import module_of as _module

_NAMES = {
    "domain.sets": "Ball CorrelationBounds EigenvalueBounds TraceBounds amplitude_bounds "
    "tensor_bounds",
    "errors": "BudgetExceeded",
    "ledger": "Ledger",
    "learn": "PrivateFrechetMean PrivateMDM PrivateTangentLDA PrivateTangentPCA "
    "PrivateGeodesicRegression",
    "planning": "plan plan_statistic",
    "release": "Release",
    "statistics.mechanisms": "ExtrinsicGaussian RiemannianLaplace TangentGaussian",
    "statistics.reference": "Reference",
}
_NAMES |= {f"statistics.{name}": f"private_{name}" for name in map(_module, _STATISTICS)}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

_ABSENT = () if find_spec("sklearn") else _NAMES["learn"].split()

__all__ = [*sorted(_HOME.keys() - _ABSENT), "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("spdp")
    if name in _HOME:
        found = globals()[name] = getattr(import_module(f"spdp.{_HOME[name]}"), name)
        return found
    raise AttributeError(f"module 'spdp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()} - {"Any", "find_spec", "import_module"})
