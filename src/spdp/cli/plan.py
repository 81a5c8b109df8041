"""``spdp plan``: how accurate a release would be, from public numbers."""

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import typer
from rich.table import Table

from spdp.cli import options
from spdp.cli.options import Bounds, Budget, option
from spdp.cli.output import check_free, check_report, console, print_json, say, write_page
from spdp.kernels.arrays import Array
from spdp.options import METHOD_HELP, Adjacency, Covariance, Mechanism, Method, Unit, counted
from spdp.planning import Plan
from spdp.planning import text as words
from spdp.planning.model import Planner
from spdp.planning.plan import plan_of
from spdp.planning.text import page_of
from spdp.rendering.figures import plan_picture

ALARMS = ("Uninformative", "Caution")  # how red sentences begin


@dataclass(frozen=True)
class Planned(options.Group):
    """Data, statistic and options of the release to plan."""

    k: int = option("Size of the matrices.", "--k", default=..., min=1)
    n: int = option("Number of records, or of persons (--unit person).", "--n", default=..., min=1)
    metric: str = options.METRIC
    spread: str | None = option(
        "Root mean square distance of records from their mean: a number, a share of the domain's "
        "radius such as 10%, or a file of spdp reference, whose spread is taken.",
        metavar="SPREAD",
    )
    offset: str | None = option(
        "Distance of the data's mean from the domain's centre: a number, or a share of its radius. "
        "By default as in the reference, or 30%.",
        metavar="OFFSET",
    )
    reference: Path | None = option("Public reference, .npz, from spdp reference.", metavar="FILE")
    effect: float | None = option(
        "Distance of two class means, or of several from their common mean; by default half the "
        "spread.",
        metavar="D",
    )
    classes: int = option("Number of classes.", default=2, min=1, metavar="C")
    covariance: Covariance = option("Covariance within classes.", default=Covariance.NONE)
    covariates: int = option("Number of covariates.", default=1, min=1, metavar="P")
    n_components: int = option(
        "Number of components.", "--components", default=1, min=1, metavar="P"
    )
    mechanism: Mechanism = options.MECHANISM
    method: Method = option(METHOD_HELP, default=Method.AUTO)
    adjacency: Adjacency = options.ADJACENCY
    unit: Unit = option("What n counts, and what is protected.", default=Unit.RECORD)


def plan(
    *,
    statistic: str = typer.Argument(
        "mean",
        metavar="STATISTIC",
        help="What would be released: mean, or a command of spdp stats.",
    ),
    planned: Planned,
    budget: Budget,
    bounds: Bounds,
    error: float | None = option("Wanted rms error: what n or ε would reach it?", metavar="ERROR"),
    power: float | None = option("Wanted power of a test of class means.", metavar="POWER"),
    runs: int = option("Releases to simulate.", default=12, min=1, metavar="RUNS"),
    plot: Path | None = options.PLOT,
    html: Path | None = option(
        "Write a page about the plan, .html (needs the report extra).", metavar="FILE"
    ),
    force: bool = options.FORCE,
    as_json: bool = options.JSON,
) -> None:
    """Show how accurate a release would be; no data is needed."""
    if html is not None:
        check_report()
        if not force:
            check_free(html)
    given = asdict(planned) | asdict(budget) | {"domain": bounds.domain()}
    if planned.spread is not None and planned.spread.endswith(".npz"):
        given["spread"] = options.load_reference(Path(planned.spread))
    given["reference"] = options.load_reference(planned.reference)
    planner = Planner(statistic=statistic, **given)
    made = plan_of(planner, runs, error, power)
    written = _write(planner, made, runs, plot, html)
    if as_json:
        print_json(made.describe())
        return
    show(made)
    _draw(planner, made, runs)
    for file in written:
        say(f"wrote {file}")


def _write(
    planner: Planner, made: Plan, runs: int, plot: Path | None, html: Path | None
) -> list[Path]:
    """Write the picture and the page that are asked for."""
    wanted = [file for file in (plot, html) if file is not None]
    curves = planner.curves(runs=runs) if wanted else None
    if plot is not None and curves is not None:
        plan_picture(plot, *curves, made.n, made.distance, counted(made.unit))
    if html is not None and curves is not None:
        write_page(html, page_of(made, *curves))
    return wanted


def show(made: Plan) -> None:
    """Print a plan as a table, with what it warns of."""
    table = Table(*words.columns(made), title=words.title(made), title_justify="left")
    for row in words.rows(made):
        table.add_row(*row.cells, style="bold" if row.runs else "")
    console().print(table)
    for sentence in words.notes(made):
        say(sentence, style="red" if sentence.startswith(ALARMS) else None)
    for answer in words.answers(made):
        say(answer)


def _draw(planner: Planner, made: Plan, runs: int) -> None:
    """The curve of the method that will run, for the narrowest data."""
    grid, errors = planner.curves(1, runs)
    if not errors:  # nothing would be released
        return
    one_shot = made.one_shot and made.method == Method.ONESHOT
    name = f"one shot, {made.noise}" if one_shot else list(errors)[-1]
    say("")
    measure = made.predictions[0].measure
    say(f"{measure} by number of {counted(made.unit)}, {name} (logarithmic bars):")
    for line in terminal_curve(grid, errors[name], "n"):
        say(line)


def terminal_curve(x: Array, y: Array, label: str, width: int = 44) -> list[str]:
    """A positive curve as bars on a logarithmic scale, one line per point."""
    logs = np.log10(y)
    low, high = np.floor(logs.min()), logs.max()
    bars = np.maximum(1, np.rint(width * (logs - low) / max(high - low, 1e-9))).astype(int)
    return [
        f"{label} = {a:>13,.0f}  {'█' * bar:<{width}}  {value:.3g}"
        for a, bar, value in zip(x, bars, y, strict=True)
    ]
