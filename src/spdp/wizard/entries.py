"""Fields of the page as values."""

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
