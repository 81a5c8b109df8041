"""Differentially private Fréchet means of symmetric positive definite matrices.

Heavy modules load when a name is first used.
"""

from importlib import import_module
from typing import Any

_HOME = {
    "Ball": "domain",
    "EigenvalueBounds": "domain",
    "TraceBounds": "domain",
    "CorrelationBounds": "domain",
    "tensor_bounds": "domain",
    "amplitude_bounds": "domain",
    "Reference": "statistics.reference",
    "Release": "release",
    "TangentGaussian": "mechanisms",
    "RiemannianLaplace": "mechanisms",
    "ExtrinsicGaussian": "mechanisms",
    "plan": "statistics.prediction",
    "plan_statistic": "statistics.forecast",
    "private_difference": "statistics.difference",
    "private_mean": "statistics.mean",
    "private_median": "statistics.median",
    "private_regression": "statistics.regression",
    "PrivateGeodesicRegression": "learn",
    "private_class_means": "statistics.classes",
    "private_dispersion": "statistics.dispersion",
    "private_pca": "statistics.pca",
    "PrivateFrechetMean": "learn",
    "PrivateMDM": "learn",
    "PrivateTangentLDA": "learn",
    "PrivateTangentPCA": "learn",
    "Ledger": "privacy.ledger",
    "BudgetExceeded": "privacy.ledger",
}

__all__ = [*sorted(_HOME), "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("spdp")
    if name in _HOME:
        return getattr(import_module(f"spdp.{_HOME[name]}"), name)
    raise AttributeError(f"module 'spdp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()} - {"Any", "import_module"})
