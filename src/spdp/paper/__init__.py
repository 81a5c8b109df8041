"""Every experiment of the paper, one module per figure.

A figure module defines ``NAME``, ``TITLE``, ``CLAIM``, ``cells(settings)``,
``measure(cell, settings)``, ``draw(rows)`` and ``verdict(rows)``.
:mod:`spdp.paper.common` runs it, keeps finished cells so that an interrupted run
resumes, and writes the results; :mod:`spdp.paper.page` puts all figures on one page.
"""

from importlib import import_module
from types import ModuleType

__all__ = ["FIGURES", "figure"]

FIGURES = (
    "utility_epsilon",
    "utility_delta",
    "extrinsic",
    "medical",
    "images",
    "runtime",
    "burn_in",
    "tightness",
)


def figure(name: str) -> ModuleType:
    """The module of one figure."""
    return import_module(f"spdp.paper.{name}")
