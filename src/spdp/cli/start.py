"""``spdp start``: questions that end in one command.

*Enforced.* No file of records is opened: what is shown is computed from answers alone,
until the command runs. *Assumed.* Answers on the domain, the number of records and the
error that is wanted come from public knowledge, as the questions say.
"""

import shlex
from collections.abc import Mapping
from dataclasses import fields
from math import log
from pathlib import Path
from typing import Any

import typer
from msgspec.structs import replace

from spdp.cli.output import say
from spdp.cli.plan import show
from spdp.errors import ParameterError
from spdp.options import counted
from spdp.planning import plan
from spdp.statistics import STATISTICS, find
from spdp.wizard.instruments import KINDS, Question
from spdp.wizard.recipe import WHOSE, Recipe, Whose
from spdp.wizard.writing import command

RUNS = 6  # releases that are simulated for the plan
MOST_DELTA = 1e-6
RISKS = 10  # δ is at most 1 over so many times n
PLANNED = ("statistic", "n", "k", "delta", "unit", "metric")  # fields of a recipe
WHERE = {
    Whose.COLUMN: {"groups_column": "Name of that column?"},
    Whose.IDS: {"groups": "Which file?"},
}
COLUMNS = {
    "label": ("labels", "File with the class of each record?"),
    "x": ("covariates", "File with the covariates of each record?"),
}


def start() -> None:
    """Ask questions, and write the command for your release."""
    say("No file is opened before the command runs. An answer in [brackets] is taken by Enter.")
    whose = _choose("Whose records are they?", WHOSE)
    where = {name: typer.prompt(text) for name, text in WHERE.get(whose, {}).items()}
    kind = _choose("What measured them?", {kind: kind.title for kind in KINDS.values()})
    blank = kind()
    say(blank.reason)
    if blank.before:
        say(blank.before, style="yellow")
    asked = {q.name: _ask(q, getattr(blank, q.name, None)) for q in kind.questions}
    instrument = kind.answered(asked)
    k = instrument.size or _number(kind.rows, int)
    instrument.domain(k)  # raises now if there is none
    titles = {name: f"{name}: {find(name).command.strip().splitlines()[0]}" for name in STATISTICS}
    statistic = _choose("Which statistic?", titles)
    own = _own(statistic, whose)
    recipe = Recipe(whose=whose, **where, instrument=instrument, k=k, statistic=statistic, **own)
    n = _number(f"How many {counted(recipe.unit)} are there (a public number)?", int)
    delta = min(MOST_DELTA, 10.0 ** -len(str(RISKS * n)))
    recipe = _budget(replace(recipe, n=n, delta=delta))
    data = typer.prompt("Which file or folder holds the matrices?")
    if Path(data).suffixes[:1] == [".nii"] or Path(data).is_dir():
        text = "Order of a NIfTI tensor's components (fsl, dipy, mrtrix; Enter: as the header says)"
        recipe = replace(recipe, order=typer.prompt(text, "", show_default=False) or None)
    ledger, first = _ledger(recipe)
    folder = typer.prompt("Directory for the release", "release")
    _finish([*first, command(replace(recipe, files=(data,), ledger=ledger, output=folder))])


# --- asking


def _choose(question: str, titles: Mapping[Any, str]) -> Any:
    say("")
    say(question)
    for i, title in enumerate(titles.values(), 1):
        say(f"  {i}  {title}")
    found = typer.prompt("Number", 1, type=int)
    while not 1 <= found <= len(titles):
        found = typer.prompt(f"A number from 1 to {len(titles)}", type=int)
    return list(titles)[found - 1]


def _ask(question: Question, default: Any) -> Any:
    if not question.choices:
        return _number(question.text, float, default)
    words = ", ".join(question.choices)
    found = typer.prompt(f"{question.text} ({words})", question.word(default))
    while found not in question.choices:
        found = typer.prompt(f"One of {words}")
    return question.value(found)


def _number(text: str, kind: type, default: Any = None) -> Any:
    """A positive number."""
    found = typer.prompt(text, default, type=kind)
    while not found > 0:
        found = typer.prompt("A number above zero", type=kind)
    return found


def _own(statistic: str, whose: Whose) -> dict[str, Any]:
    """What a statistic must be told, as fields of a recipe."""
    told: dict[str, Any] = {"options": {}}
    for column in find(statistic).columns:
        if column == "label" and whose is Whose.MANIFEST:
            continue  # its column
        name, question = COLUMNS[column]
        told[name] = typer.prompt(question)
    for field in fields(find(statistic)):
        if field.metadata.get("required"):
            shown = f"{field.metadata['help'].rstrip('.')} ({field.metadata['metavar']})"
            told["options"][field.name] = typer.prompt(shown, type=field.metadata["kind"])
    return told


def _budget(recipe: Recipe) -> Recipe:
    """The recipe with its ε: asked for, or solved for the error that is wanted."""
    kinds = {True: "I know ε", False: "I know how far off the result may be"}
    known = _choose("How private, how accurate?", kinds)
    given: dict[str, Any] = {name: getattr(recipe, name) for name in PLANNED} | {"runs": RUNS}
    given["domain"] = recipe.instrument.domain(recipe.k)
    if known:
        epsilon = _number("ε (1 is strong, above 10 protects hardly)", float, 1.0)
        made = plan(epsilon=epsilon, **given)
    else:
        made = plan(error=_wanted(recipe.metric), **given)
        epsilon = float(f"{made.epsilon:.3g}")
    show(made)
    say(f"δ = {recipe.delta:g} is below 1/n.")
    if not typer.confirm(f"Go on with ε = {epsilon:g}?", True):
        return _budget(recipe)
    return replace(recipe, epsilon=epsilon)


def _wanted(metric: str) -> float:
    """The root mean square error that is wanted, in the metric's distance."""
    if metric == "offlog":
        return float(_number("Typical off-log distance that is acceptable", float, 0.1))
    text = "Within which factor should eigenvalues typically be? (1.1 is 10 %)"
    factor = _number(text, float, 1.1)
    while factor <= 1:
        factor = typer.prompt("A factor above 1", type=float)
    return log(factor)


def _ledger(recipe: Recipe) -> tuple[str | None, list[list[str]]]:
    """The ledger's file, and the commands that come before."""
    kinds = {
        "new": "a new one, for this dataset",
        "old": "one that exists",
        "none": "none: this is the only release",
    }
    kind = _choose("Which ledger pays?", kinds)
    if kind == "none":
        return None, []
    if kind == "old":
        return typer.prompt("Which file?"), []
    file = typer.prompt("Name of its file", "budget.ledger")
    whole = _number("Total ε of the dataset, for all releases", float, 2 * recipe.epsilon)
    if whole < recipe.epsilon:
        raise ParameterError(f"the total ε = {whole:g} is below this release's, {recipe.epsilon:g}")
    budget = ["--epsilon", f"{whole:g}", "--delta", f"{2 * recipe.delta:g}"]
    return file, [["ledger", "create", file, *budget]]


def _finish(commands: list[list[str]]) -> None:
    """Show the commands, and run them if that is wanted."""
    say("")
    say("Run:" if len(commands) == 1 else "Run, one after the other:")
    for words in commands:
        say(f"  {shlex.join(['spdp', *words])}")
    if not typer.confirm("Now?", False):
        return
    from spdp.cli import app

    for words in commands:
        code = app(words, standalone_mode=False)
        if code:
            raise typer.Exit(code)
