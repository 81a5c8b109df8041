"""A plan in words: for a terminal, a notebook or a page."""

from typing import TYPE_CHECKING, NamedTuple

from spdp.options import Method, counted
from spdp.rendering.figures import plan_curves
from spdp.rendering.html import card, grid, note, render
from spdp.statistics import find

if TYPE_CHECKING:
    from spdp.kernels.arrays import Array
    from spdp.planning.plan import Plan
    from spdp.planning.sample_size import Needed

WORTH_SAYING = 0.9  # a method is recommended if its error is below this share of another's


REFUSED = (
    "Uninformative wherever the data lie: the release is refused, unless it is asked for anyway."
)


class Row(NamedTuple):
    """What one method reaches, and whether it is the one that will run."""

    name: str
    rms: float
    bound: float | None
    uninformative: bool
    runs: bool

    @property
    def cells(self) -> tuple[str, str, str]:
        """As texts, in the order of :func:`columns`."""
        verdict = ": uninformative" if self.uninformative else ""
        mark = "> " if self.runs else ""
        bound = "none" if self.bound is None else f"{self.bound:.4g}"
        return f"{mark}{self.name}{verdict}", f"{self.rms:.4g}", bound


def columns(made: "Plan") -> tuple[str, str, str]:
    """What the cells of :func:`rows` are: which error is predicted, and the bound."""
    measure = made.predictions[0].measure if made.predictions else "rms error"
    return "release", measure, f"95 % bound{find(made.statistic).bound_on}"


def title(made: "Plan") -> str:
    """The public numbers of a plan."""
    numbers = (
        f"{made.n:,} {counted(made.unit)}, k = {made.k}, ε = {made.epsilon:g}, δ = {made.delta:g}"
    )
    return f"{numbers}, domain radius {made.radius:.4g} ({made.distance} distance)"


def rows(made: "Plan") -> list[Row]:
    """One shot with each noise, then what is simulated for each spread."""
    one_shot, adaptive = made.method == Method.ONESHOT, made.method == Method.ADAPTIVE
    found = []
    for noise, row in made.one_shot.items():
        runs = one_shot and noise == made.noise
        found.append(Row(f"one shot, {noise}", row.rms, row.bound, row.uninformative, runs))
    for noise, predicted in made.searches.items():
        kind = f"adaptive, {noise}" if made.one_shot else made.statistic
        runs = predicted is made.adaptive and (adaptive or not made.one_shot)
        for row in predicted:
            assert row.spread is not None  # what is simulated has one
            name = f"{kind}, spread {row.spread:.3g} ({row.spread / made.radius:.0%} of the radius)"
            found.append(Row(name, row.rms, row.bound, row.uninformative, runs))
    return found


def notes(made: "Plan") -> list[str]:
    """What the numbers mean, one sentence each."""
    if not made.one_shot:
        return [*_measures(made), made.verdict[0].upper() + made.verdict[1:] + ".", *weak(made)]
    runs = "The adaptive method" if made.method == Method.ADAPTIVE else "One shot"
    known = "errors of one shot are exact, those of the adaptive method are simulated"
    known = known if made.adaptive else "its error's law is exact"
    told = [f"{runs} will run (marked >): {made.reason}. {known[0].upper()}{known[1:]}."]
    worst = max(row.rms for row in made.predictions)
    gains = any(row.rms < WORTH_SAYING * worst for row in made.adaptive)
    if made.method == Method.ONESHOT and gains:
        told.append("If the data have such a small spread, the adaptive method would err less.")
    if made.uninformative:
        told.append(f"Uninformative: the budget is too small for so few {counted(made.unit)}.")
    return [*told, made.compared[0].upper() + made.compared[1:] + ".", *weak(made)]


def weak(made: "Plan") -> list[str]:
    """That the release will be refused, and what is weak about its guarantee."""
    told = [REFUSED] if made.refused else []
    return [*told, *(f"Caution: {caution}" for caution in made.cautions)]


def _measures(made: "Plan") -> list[str]:
    """What is predicted of a statistic other than a mean."""
    if not made.predictions:
        return ["Nothing would be released."]
    first = made.predictions[0]
    told = [f"The {first.measure} was simulated on synthetic records."]
    for row in made.predictions:
        others = [f"{name} {value:.3g}" for name, value in row.numbers.items()]
        if others:
            told.append(f"With spread {row.spread:.3g}: {'; '.join(others)}.")
    return told


def answers(made: "Plan") -> list[str]:
    """What reaches the wanted error, a sentence for each spread."""
    return [_needed(answer, made) for answer in made.needed]


def _needed(answer: "Needed", made: "Plan") -> str:
    spread = "" if answer.spread is None else f" with spread {answer.spread:.3g}"
    n = f"more than 2**32 {counted(made.unit)}"
    n = n if answer.n is None else f"{answer.n:,} {counted(made.unit)}"
    epsilon = "more than ε = 500" if answer.epsilon is None else f"ε = {answer.epsilon:g}"
    about = "" if answer.spread is None else "about "
    error = made.wanted_error is not None
    wanted = f"rms error {made.wanted_error:g}" if error else f"power {made.wanted_power:g}"
    return f"{wanted}{spread} needs {about}{n} at this ε, or {epsilon} at this n"


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


def brief(made: "Plan") -> str:
    """A few lines, for Python's prompt."""
    lines = [
        f"<Plan of {made.statistic}, n={made.n} {made.unit}s, k={made.k}, "
        f"epsilon={made.epsilon:g}, delta={made.delta:g}, domain radius {made.radius:.4g} "
        f"({made.distance}): {made.method} will run"
    ]
    for row in rows(made):
        _, measure, told = columns(made)
        bound = "" if row.bound is None else f", {told} {row.bound:.4g}"
        verdict = " (uninformative)" if row.uninformative else ""
        lines.append(f"{row.name}: {measure} {row.rms:.4g}{bound}{verdict}")
    if not made.one_shot:
        lines += _measures(made)[1:]
        lines.append(made.verdict)
    elif made.uninformative:
        lines.append(f"uninformative: {made.compared}")
    return "\n  ".join([*lines, *answers(made), *weak(made)]) + ">"


def card_of(made: "Plan") -> str:
    """A card for notebooks."""
    table = rows(made)
    marked = [i for i, row in enumerate(table) if row.runs]
    shown = grid(columns(made), [row.cells for row in table], marked)
    return card(f"Plan: {title(made)}", {}, shown, *map(note, [*notes(made), *answers(made)]))


def page_of(made: "Plan", n_grid: "Array", errors: "dict[str, Array]") -> str:
    """A page about a plan."""
    counts = counted(made.unit)
    curve = plan_curves(n_grid, errors, made.n, made.distance, counts)
    return render(
        "plan.html.j2",
        heading=f"Plan of a private {made.statistic} of {made.k}×{made.k} matrices",
        subject=f"{title(made)}. Predicted from public numbers: no data were read.",
        alarm=made.uninformative or made.refused or made.cautions,
        notes=notes(made),
        answers=answers(made),
        columns=columns(made),
        rows=rows(made),
        figures=[(curve, f"Root mean square error by the number of {counts}.")],
        facts=facts(made),
    )
