"""A plan in words: for a terminal, a notebook or a page."""

from typing import TYPE_CHECKING, NamedTuple

from spdp.choices import Method, counted
from spdp.markup import card, grid, note

if TYPE_CHECKING:
    from spdp.statistics.needed import Needed
    from spdp.statistics.prediction import Plan

__all__ = ["COLUMNS", "Row", "answers", "facts", "html_of", "notes", "rows", "title"]

COLUMNS = ("release", "rms error", "95 % bound")
WORTH_SAYING = 0.9  # of an error: a method that errs less than this much of it is named


class Row(NamedTuple):
    """What one method reaches, and whether it is the one that will run."""

    name: str
    rms: float
    bound: float
    hopeless: bool
    runs: bool

    @property
    def cells(self) -> tuple[str, str, str]:
        """As texts, in the order of :data:`COLUMNS`."""
        verdict = ": hopeless" if self.hopeless else ""
        mark = "> " if self.runs else ""
        return f"{mark}{self.name}{verdict}", f"{self.rms:.4g}", f"{self.bound:.4g}"


def title(made: "Plan") -> str:
    numbers = (
        f"{made.n:,} {counted(made.unit)}, k = {made.k}, ε = {made.epsilon:g}, δ = {made.delta:g}"
    )
    return f"{numbers}, domain radius {made.radius:.4g} ({made.distance} distance)"


def rows(made: "Plan") -> list[Row]:
    """One shot with each noise, then the adaptive method for each spread."""
    one_shot, adaptive = made.method == Method.ONESHOT, made.method == Method.ADAPTIVE
    found = [
        Row(
            f"one shot, {noise}", row.rms, row.bound, row.hopeless, one_shot and noise == made.noise
        )
        for noise, row in made.one_shot.items()
    ]
    for row in made.adaptive:
        assert row.spread is not None  # what is simulated has one
        name = f"adaptive, spread {row.spread:.3g} ({row.spread / made.radius:.0%} of the radius)"
        found.append(Row(name, row.rms, row.bound, row.hopeless, adaptive))
    return found


def notes(made: "Plan") -> list[str]:
    """What the numbers mean, one sentence each."""
    told = [f"{_names(made)} will run (marked >); {_from(made)}."]
    worst = max(row.rms for row in made.predictions)
    gains = any(row.rms < WORTH_SAYING * worst for row in made.adaptive)
    if made.method == Method.ONESHOT and gains:
        told.append("If the data are as narrow as that, the adaptive method would err less.")
    if made.hopeless:
        told.append(f"Hopeless: the budget is too small for so few {counted(made.unit)}.")
    return [*told, made.compared[0].upper() + made.compared[1:] + "."]


def _names(made: "Plan") -> str:
    return "The adaptive method" if made.method == Method.ADAPTIVE else "One shot"


def _from(made: "Plan") -> str:
    if not made.adaptive:
        return "its error's law is exact"
    return "errors of one shot are exact, those of the adaptive method are simulated"


def answers(made: "Plan") -> list[str]:
    """What reaches the wanted error, a sentence for each spread."""
    return [_needed(answer, made) for answer in made.needed]


def _needed(answer: "Needed", made: "Plan") -> str:
    spread = "" if answer.spread is None else f" with spread {answer.spread:.3g}"
    n = f"more than 2**32 {counted(made.unit)}"
    n = n if answer.n is None else f"{answer.n:,} {counted(made.unit)}"
    epsilon = "a larger ε than any" if answer.epsilon is None else f"ε = {answer.epsilon:g}"
    about = "about " if made.adaptive else ""
    wanted = f"rms error {made.wanted_error:g}{spread}"
    return f"{wanted} needs {about}{n} at this ε, or {epsilon} at this n"


def facts(made: "Plan") -> dict[str, str]:
    """The public numbers that a plan is made of."""
    domain = [f"{key} {v:g}" for key, v in made.domain.items() if isinstance(v, int | float)]
    return {
        counted(made.unit): f"{made.n:,}",
        "size of the matrices": f"{made.k}×{made.k}",
        "guarantee": f"ε = {made.epsilon:g}, δ = {made.delta:g}, {made.adjacency}, per {made.unit}",
        "domain": f"{made.domain['type']}: {', '.join(domain)}; radius {made.radius:.4g}",
        "metric": made.metric,
        "reference": made.reference or "none",
    }


def html_of(made: "Plan") -> str:
    """A card for notebooks."""
    table = rows(made)
    marked = [i for i, row in enumerate(table) if row.runs]
    shown = grid(COLUMNS, [row.cells for row in table], marked)
    return card(f"Plan: {title(made)}", {}, shown, *map(note, [*notes(made), *answers(made)]))
