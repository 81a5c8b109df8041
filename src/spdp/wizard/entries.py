"""Fields of the page as values."""

from collections.abc import Callable
from typing import Any

from shiny import Inputs

from spdp.wizard.instruments import KINDS, Kind, Other


def text(value: Any) -> str | None:
    """A text field, or None where nothing was entered."""
    text = str(value or "").strip()
    return text or None


def number(value: Any, otherwise: float) -> float:
    return otherwise if value is None else float(value)


def instrument_of(input: Inputs) -> Kind:
    """The instrument that is entered."""
    name = input.instrument()
    kind = KINDS[name]
    if kind is not Other:
        asked = {q.name: q.value(input[f"{name}_{q.name}"]() or 0) for q in kind.questions}
        return kind.answered(asked)
    low, high = number(input.other_low(), 0.0), number(input.other_high(), 0.0)
    bound = input.other_bound()
    value: Any = (low, high) if bound in ("eigenvalues", "trace") else high
    return Other(**{bound: value, "distance": input.other_metric()})


def unfilled(name: str, value_of: Callable[[str], Any]) -> str | None:
    """The first number of an instrument that was left empty, by its field's label.

    ``value_of`` gives what a field holds.
    """
    kind = KINDS[name]
    if kind is not Other:
        asked = [(q.text, f"{name}_{q.name}") for q in kind.questions if not q.choices]
    else:
        asked = [("Upper limit, shrinkage or radius", "other_high")]
        if value_of("other_bound") in ("eigenvalues", "trace"):
            asked.insert(0, ("Lower limit", "other_low"))
    return next((_empty(label) for label, field in asked if value_of(field) is None), None)


def unchosen(mode: str, value_of: Callable[[str], Any]) -> str | None:
    """The first number of the step on privacy that was left empty."""
    first = ("Within", "within") if mode == "accuracy" else ("Privacy loss ε", "epsilon")
    asked = [first, ("δ, what ε may fall short by", "delta")]
    return next((_empty(label) for label, field in asked if value_of(field) is None), None)


def _empty(label: str) -> str:
    return f"“{label}” is empty: enter a number"
