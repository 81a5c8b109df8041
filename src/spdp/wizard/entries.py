"""Fields of the page as values."""

from typing import Any

from shiny import Inputs

from spdp.wizard.instruments import Connectomes, Diffusion, Images, Kind, Other, Signals


def text(value: Any) -> str | None:
    """A text field, or None where nothing was entered."""
    text = str(value or "").strip()
    return text or None


def number(value: Any, otherwise: float) -> float:
    return otherwise if value is None else float(value)


def instrument_of(input: Inputs) -> Kind:
    """The instrument that is entered."""
    kind = input.instrument()
    if kind == "diffusion":
        return Diffusion(input.d_unit())
    if kind == "signals":
        low, high = number(input.s_low(), 0.0), number(input.s_high(), 0.0)
        return Signals(low, high, input.s_unit(), input.s_data())
    if kind == "connectomes":
        return Connectomes(number(input.c_shrinkage(), 0.0))
    if kind == "images":
        return Images(int(input.i_channels()), number(input.i_eta(), 0.0))
    low, high = number(input.o_low(), 0.0), number(input.o_high(), 0.0)
    bound = input.o_bound()
    value: Any = (low, high) if bound in ("eigenvalues", "trace") else high
    return Other(**{bound: value, "distance": input.o_metric()})
