"""Private statistics, one file each; STATISTICS is the table of them.

A new statistic needs one line here: its name, as certificates, plans and the command
line use it. Its module has the same name, with underscores, and loads when the
statistic is first used.
"""

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from spdp.errors import DataError

if TYPE_CHECKING:
    from spdp.statistics.base import Statistic

__all__ = ["STATISTICS", "every", "find"]

STATISTICS = (
    "mean",
    "class-means",
    "dispersion",
    "pca",
    "median",
    "regression",
    "difference",
    "anova",
)
SUMMARY = "summary"  # of a mechanism; its sensitivity is stated by the caller


def module_of(name: str) -> str:
    """Name of a statistic's module."""
    return name.replace("-", "_")


@lru_cache(maxsize=32)
def find(name: str) -> Any:
    """The declaration of a statistic by its name."""
    if name == SUMMARY:
        return import_module("spdp.statistics.mechanisms").SUMMARY
    if name not in STATISTICS:
        raise DataError(f"unknown statistic {name!r}; there are {', '.join(STATISTICS)}")
    return import_module(f"spdp.statistics.{module_of(name)}").STATISTIC


def every() -> "list[Statistic]":
    """All statistics."""
    return [find(name) for name in STATISTICS]
