"""Every experiment of the paper, one module per figure or panel of one.

A figure module defines ``NAME``, ``TITLE``, ``CLAIM``, ``cells(settings)``,
``measure(cell, settings)``, ``draw(rows)`` and ``verdict(rows)``.
:mod:`spdp.paper.common` runs it, keeps finished cells so that an interrupted run
resumes, and writes the results and a page of all figures.
"""

from importlib import import_module
from types import ModuleType

from spdp.errors import ParameterError

__all__ = ["ALL", "FIGURES", "figure", "figures"]

ALL = "all"
# As the paper numbers them; letters count the panels. A module's name is an alias.
FIGURES = {
    "figure-1a": "utility_epsilon",
    "figure-1b": "utility_delta",
    "figure-1c": "extrinsic",
    "figure-2": "medical",
    "figure-3": "images",
    "figure-4a": "runtime",
    "figure-4b": "burn_in",
    "figure-4c": "tightness",
}


def figure(name: str) -> ModuleType:
    """The module of one figure, by the paper's name for it or by its own."""
    return import_module(f"spdp.paper.{FIGURES.get(name, name)}")


def figures(name: str) -> list[ModuleType]:
    """The modules that a name means: all, a figure with its panels, or one of them."""
    meant = [
        module
        for number, module in FIGURES.items()
        if name in (ALL, number, number.rstrip("abc"), module)
    ]
    if not meant:
        raise ParameterError(
            f"unknown figure {name!r}; expected {ALL}, figure-1 to figure-4, or one of "
            f"{', '.join(FIGURES)} (also called {', '.join(FIGURES.values())})"
        )
    return [import_module(f"spdp.paper.{module}") for module in meant]
