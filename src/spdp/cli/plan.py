"""``spdp plan``: how accurate a release would be, from public numbers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spdp.choices import Adjacency, Mechanism, Method
from spdp.cli import options
from spdp.cli.output import console, print_json, say
from spdp.errors import ParameterError

if TYPE_CHECKING:
    from spdp.statistics.planner import Needed, Planner
    from spdp.statistics.prediction import Plan
    from spdp.statistics.reference import Reference

__all__ = ["plan"]

Size = Annotated[int, typer.Option("--k", min=1, help="Size of the matrices.")]
Number = Annotated[int, typer.Option("--n", min=1, help="Number of records, or of persons.")]
Wanted = Annotated[
    float | None,
    typer.Option(metavar="ERROR", help="Wanted rms error: what n or ε would reach it?"),
]
Spread = Annotated[
    str | None,
    typer.Option(
        metavar="SPREAD",
        help="Root mean square distance of records from their mean: a number, a share of the "
        "domain's radius such as 10%, or a file of spdp reference whose data are as wide.",
    ),
]
Offset = Annotated[
    str | None,
    typer.Option(
        metavar="OFFSET",
        help="Distance of the data's mean from the domain's centre, a number or a share; "
        "30% unless a reference says.",
    ),
]
Runs = Annotated[int, typer.Option(min=1, metavar="RUNS", help="Releases to simulate.")]


def plan(
    k: Size,
    n: Number,
    epsilon: options.Epsilon,
    delta: options.Delta,
    eigenvalues: options.Eigenvalues = None,
    trace: options.Trace = None,
    correlation: options.Correlation = None,
    radius: options.Radius = None,
    metric: options.Metric = "logeuclid",
    spread: Spread = None,
    offset: Offset = None,
    reference: options.Reference = None,
    error: Wanted = None,
    mechanism: options.Mechanism = Mechanism.AUTO,
    method: options.Method = Method.AUTO,
    adjacency: options.Adjacency = Adjacency.REPLACE_ONE,
    runs: Runs = 12,
    plot: options.Plot = None,
    as_json: options.Json = False,
) -> None:
    """Show how accurate a release would be; no data is needed."""
    from spdp.report import plan_picture
    from spdp.statistics.planner import Planner
    from spdp.statistics.prediction import plan_of

    if error is not None and not error > 0:
        raise ParameterError(f"--error must be positive, got {error:g}")
    planner = Planner(
        n=n,
        k=k,
        epsilon=epsilon,
        delta=delta,
        domain=options.domain_from(eigenvalues, trace, correlation, radius),
        spread=_spread(spread),
        offset=offset,
        reference=options.load_reference(reference),
        metric=metric,
        adjacency=adjacency,
        mechanism=mechanism,
        method=method,
    )
    made = plan_of(planner, runs)
    needed = [] if error is None else planner.needed(error)
    if plot is not None:
        plan_picture(plot, *planner.curves(), n, made.distance)
    if as_json:
        answers = [answer._asdict() for answer in needed]
        print_json({**made.describe(), "wanted_error": error, "needed": answers})
        return
    _show(made)
    for answer in needed:
        say(_needed(answer, error, made))
    _draw(planner, made)
    if plot is not None:
        say(f"wrote {plot}")


def _spread(text: str | None) -> "str | Reference | None":
    """What ``--spread`` names: a number or share, or a file."""
    if text is not None and text.endswith(".npz"):
        return options.load_reference(Path(text))
    return text


def _show(made: "Plan") -> None:
    from rich.table import Table

    title = f"n = {made.n:,}, k = {made.k}, ε = {made.epsilon:g}, δ = {made.delta:g}, "
    title += f"domain radius {made.radius:.4g} ({made.distance} distance)"
    table = Table("release", "rms error", "95 % bound", title=title, title_justify="left")
    for noise, row in made.one_shot.items():
        runs = made.method == Method.ONESHOT and noise == made.noise
        _add(table, f"one shot, {noise}", row, runs)
    for row in made.adaptive:
        assert row.spread is not None  # what is simulated has one
        share = f"({row.spread / made.radius:.0%} of the radius)"
        text = f"adaptive, spread {row.spread:.3g} {share}"
        _add(table, text, row, made.method == Method.ADAPTIVE)
    console().print(table)
    say(f"{_names(made)} will run (marked >); {_from(made)}.")
    if made.method == Method.ONESHOT and any(row.rms < 0.9 * _runs(made) for row in made.adaptive):
        say("If the data are as narrow as that, --method adaptive would err less.")
    if made.hopeless:
        say("Hopeless: the budget is too small for so few records.", style="red")
    say(made.compared[0].upper() + made.compared[1:] + ".")


def _add(table: Any, text: str, row: Any, runs: bool) -> None:
    verdict = ": hopeless" if row.hopeless else ""
    numbers = f"{row.rms:.4g}", f"{row.bound:.4g}"
    table.add_row((f"> {text}" if runs else text) + verdict, *numbers, style="bold" if runs else "")


def _runs(made: "Plan") -> float:
    """Error of the method that will run, at worst."""
    return max(row.rms for row in made.predictions)


def _names(made: "Plan") -> str:
    return "The adaptive method" if made.method == Method.ADAPTIVE else "One shot"


def _from(made: "Plan") -> str:
    if not made.adaptive:
        return "its error's law is exact"
    return "errors of one shot are exact, those of the adaptive method are simulated"


def _needed(answer: "Needed", error: float | None, made: "Plan") -> str:
    spread = "" if answer.spread is None else f" with spread {answer.spread:.3g}"
    n = "more than 2**32 records" if answer.n is None else f"n = {answer.n:,}"
    epsilon = "a larger ε than any" if answer.epsilon is None else f"ε = {answer.epsilon:g}"
    about = "about " if made.adaptive else ""
    return f"rms error {error:g}{spread} needs {about}{n} at this ε, or {epsilon} at this n"


def _draw(planner: "Planner", made: "Plan") -> None:
    """The curve of the method that will run, for the narrowest data."""
    from spdp.report import terminal_curve

    grid, errors = planner.curves(1)
    name = f"one shot, {made.noise}" if made.method == Method.ONESHOT else list(errors)[-1]
    say("")
    say(f"rms error by number of records, {name} (logarithmic bars):")
    for line in terminal_curve(grid, errors[name], "n"):
        say(line)
