"""``spdp plan``: how accurate a release would be, from public numbers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spdp import choices
from spdp.choices import Adjacency, Mechanism, Method, counted
from spdp.cli import options
from spdp.cli.groups import Bounds, Budget
from spdp.cli.output import check_free, check_report, console, print_json, say, write_page

if TYPE_CHECKING:
    from spdp.statistics.planner import Planner
    from spdp.statistics.prediction import Plan
    from spdp.statistics.reference import Reference

__all__ = ["plan"]

Size = Annotated[int, typer.Option("--k", min=1, help="Size of the matrices.")]
Number = Annotated[
    int, typer.Option("--n", min=1, help="Number of records, or of persons (--unit person).")
]
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
Whose = Annotated[choices.Unit, typer.Option(help="What n is a number of, and is protected.")]
Page = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write a page about the plan, .html (needs report)."),
]
Runs = Annotated[int, typer.Option(min=1, metavar="RUNS", help="Releases to simulate.")]


def plan(
    *,
    k: Size,
    n: Number,
    budget: Budget,
    bounds: Bounds,
    metric: options.Metric = "logeuclid",
    spread: Spread = None,
    offset: Offset = None,
    reference: options.Reference = None,
    error: Wanted = None,
    mechanism: options.Mechanism = Mechanism.AUTO,
    method: options.Method = Method.AUTO,
    adjacency: options.Adjacency = Adjacency.REPLACE_ONE,
    unit: Whose = choices.Unit.RECORD,
    runs: Runs = 12,
    plot: options.Plot = None,
    html: Page = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Show how accurate a release would be; no data is needed."""
    from spdp.statistics.planner import Planner
    from spdp.statistics.prediction import plan_of

    if html is not None:
        check_report()
        if not force:
            check_free(html)
    planner = Planner(
        n=n,
        k=k,
        epsilon=budget.epsilon,
        delta=budget.delta,
        domain=bounds.domain(),
        spread=_spread(spread),
        offset=offset,
        reference=options.load_reference(reference),
        metric=metric,
        adjacency=adjacency,
        mechanism=mechanism,
        method=method,
        unit=unit,
    )
    made = plan_of(planner, runs, error)
    written = _write(planner, made, runs, plot, html)
    if as_json:
        print_json(made.describe())
        return
    _show(made)
    _draw(planner, made, runs)
    for file in written:
        say(f"wrote {file}")


def _write(
    planner: "Planner", made: "Plan", runs: int, plot: Path | None, html: Path | None
) -> list[Path]:
    """A picture and a page, where they are wanted."""
    from spdp.report import plan_page, plan_picture
    from spdp.statistics.plan_words import answers

    wanted = [file for file in (plot, html) if file is not None]
    curves = planner.curves(runs=runs) if wanted else None
    if plot is not None and curves is not None:
        plan_picture(plot, *curves, made.n, made.distance, counted(made.unit))
    if html is not None and curves is not None:
        write_page(html, plan_page(made, *curves, answers(made)))
    return wanted


def _spread(text: str | None) -> "str | Reference | None":
    """What ``--spread`` names: a number or share, or a file."""
    if text is not None and text.endswith(".npz"):
        return options.load_reference(Path(text))
    return text


def _show(made: "Plan") -> None:
    from rich.table import Table

    from spdp.statistics import plan_words as words

    table = Table(*words.COLUMNS, title=words.title(made), title_justify="left")
    for row in words.rows(made):
        table.add_row(*row.cells, style="bold" if row.runs else "")
    console().print(table)
    for sentence in words.notes(made):
        say(sentence, style="red" if sentence.startswith("Hopeless") else None)
    for answer in words.answers(made):
        say(answer)


def _draw(planner: "Planner", made: "Plan", runs: int) -> None:
    """The curve of the method that will run, for the narrowest data."""
    from spdp.report import terminal_curve

    grid, errors = planner.curves(1, runs)
    name = f"one shot, {made.noise}" if made.method == Method.ONESHOT else list(errors)[-1]
    say("")
    say(f"rms error by number of {counted(made.unit)}, {name} (logarithmic bars):")
    for line in terminal_curve(grid, errors[name], "n"):
        say(line)
