"""``spdp start``: questions that end in one command. ``spdp help``: help by name.

*Enforced.* No file of records is opened: what is shown is computed from answers alone,
until the command runs. *Assumed.* Answers on the domain, the number of records and the
error that is wanted come from public knowledge, as the questions say.
"""

import shlex
from collections.abc import Sequence
from dataclasses import fields
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import typer

from spdp.cli.output import say
from spdp.cli.plan import show
from spdp.domain.base import Domain
from spdp.errors import ParameterError
from spdp.planning import plan
from spdp.planning.instruments import INSTRUMENTS, Instrument, Question
from spdp.statistics import STATISTICS, find

RUNS = 6  # releases that are simulated for the plan
MOST_DELTA = 1e-6
RISKS = 10  # δ is at most 1 over so many times n


class Person(NamedTuple):
    """Whose records they are: an answer, what is protected, the options it becomes."""

    title: str
    unit: str
    asked: str = ""  # question for the value of the option
    option: str = ""


PERSONS = (
    Person("one record per person", "record"),
    Person(
        "several records per person, in a table with a column of subject IDs",
        "person",
        "Name of that column?",
        "--groups-column",
    ),
    Person(
        "several records per person, with the subject IDs in a file of their own",
        "person",
        "Which file?",
        "--groups",
    ),
    Person("several files, each of them one person", "person", "", "--per-file"),
    Person("voxels of one image (this does not protect the person)", "voxel", "", "--unit voxel"),
)
ASKED_FILES = {
    "label": ("--labels", "File with the class of each record?"),
    "x": ("--covariates", "File with the covariates of each record?"),
}


def start() -> None:
    """Ask questions, and write the one command that makes your release."""
    say("No file is opened before the command runs. An answer in [brackets] is taken by Enter.")
    person = _choose("Whose records are they?", PERSONS, [p.title for p in PERSONS])
    told = _told(person)
    tool = _choose("Where do the matrices come from?", INSTRUMENTS, [i.title for i in INSTRUMENTS])
    say(tool.reason)
    if tool.before:
        say(tool.before, style="yellow")
    answers = {question.name: _ask(question) for question in tool.questions}
    domain = tool.domain(answers)
    k = tool.k(answers) or _number("How many rows has a matrix?", int)
    found = [find(name) for name in STATISTICS]
    statistic = _choose(
        "Which statistic?", found, [f"{s.name}: {_first(s.command)}" for s in found]
    )
    own = _own_options(statistic)
    n = _number(f"How many {person.unit}s are there (a public number)?", int)
    epsilon, delta = _budget(tool, statistic.name, domain, k, n, person.unit)
    name = ["mean"] if statistic.name == "mean" else ["stats", statistic.name]
    data = typer.prompt("Which file or folder holds the matrices?")
    words = ["spdp", *name, data, *own, *told]
    if Path(data).suffixes[:1] == [".nii"] or Path(data).is_dir():
        order = typer.prompt("Order of a NIfTI tensor's components (fsl, dipy, mrtrix)", "fsl")
        words += ["--order", order]
    words += [*_domain_words(domain), "--metric", tool.metric]
    words += ["--epsilon", f"{epsilon:g}", "--delta", f"{delta:g}"]
    first, paid = _ledger(epsilon, delta)
    folder = typer.prompt("Directory for the release", "release")
    _finish([*first, [*words, *paid, "-o", folder, "--report"]])


# --- asking


def _choose(question: str, what: Sequence[Any], titles: Sequence[str]) -> Any:
    say("")
    say(question)
    for i, title in enumerate(titles, 1):
        say(f"  {i}  {title}")
    found = typer.prompt("Number", 1, type=int)
    while not 1 <= found <= len(what):
        found = typer.prompt(f"A number from 1 to {len(what)}", type=int)
    return what[found - 1]


def _ask(question: Question) -> Any:
    if question.choices:
        text = f"{question.text} ({', '.join(question.choices)})"
        found = typer.prompt(text, question.default)
        while found not in question.choices:
            found = typer.prompt(f"One of {', '.join(question.choices)}")
        return found
    return _number(question.text, question.kind, question.default)


def _number(text: str, kind: type, default: Any = None) -> Any:
    """A positive number."""
    found = typer.prompt(text, default, type=kind)
    while not found > 0:
        found = typer.prompt("A number above zero", type=kind)
    return found


def _told(person: Person) -> list[str]:
    """The options that say whose the records are."""
    if person.asked:
        return [person.option, typer.prompt(person.asked)]
    return person.option.split()


def _first(text: str) -> str:
    return text.strip().split("\n")[0]


def _own_options(statistic: Any) -> list[str]:
    """What a statistic must be told, as words of its command."""
    words: list[str] = []
    for column in statistic.columns:
        flag, question = ASKED_FILES[column]
        words += [flag, typer.prompt(question)]
    for field in fields(statistic):
        if not field.metadata.get("required"):
            continue
        flag = field.metadata.get("flag", f"--{field.name.replace('_', '-')}")
        shown = f"{field.metadata['help'].rstrip('.')} ({field.metadata['metavar']})"
        words += [flag, typer.prompt(shown)]
    return words


def _budget(
    tool: Instrument, statistic: str, domain: Domain, k: int, n: int, unit: str
) -> tuple[float, float]:
    """ε and δ: asked for, or solved for the error that is wanted."""
    kinds = ("I know ε", "I know how far off the result may be")
    known = _choose("How private, how accurate?", (True, False), kinds)
    delta = min(MOST_DELTA, 10.0 ** -len(str(RISKS * n)))
    given: dict[str, Any] = {"n": n, "k": k, "delta": delta, "domain": domain, "unit": unit}
    given |= {"metric": tool.metric, "runs": RUNS}
    if known:
        epsilon = _number("ε (1 is strong, above 10 protects hardly)", float, 1.0)
        made = plan(statistic, epsilon=epsilon, **given)
    else:
        made = plan(statistic, error=_wanted(tool), **given)
        epsilon = float(f"{made.epsilon:.3g}")
    show(made)
    say(f"δ = {delta:g} is below 1/n.")
    if not typer.confirm(f"Go on with ε = {epsilon:g}?", True):
        return _budget(tool, statistic, domain, k, n, unit)
    return epsilon, delta


def _wanted(tool: Instrument) -> float:
    """The root mean square error that is wanted, in the metric's distance."""
    if tool.metric == "offlog":
        return float(_number("Typical off-log distance that is acceptable", float, 0.1))
    text = "Within which factor should eigenvalues typically be? (1.1 is 10 %)"
    factor = _number(text, float, 1.1)
    while factor <= 1:
        factor = typer.prompt("A factor above 1", type=float)
    return log(factor)


def _domain_words(domain: Domain) -> list[str]:
    """A domain as the options of a command."""
    told = domain.describe()
    options = {
        "EigenvalueBounds": ("--eigenvalues", "low", "high"),
        "TraceBounds": ("--trace", "low", "trace"),
        "CorrelationBounds": ("--correlation", "shrinkage"),
    }
    flag, *names = options[told["type"]]
    return [flag, *(f"{told[name]!r}" for name in names)]


def _ledger(epsilon: float, delta: float) -> tuple[list[list[str]], list[str]]:
    """Commands that come before, and words of the release, for its ledger."""
    kinds = ("a new one, for this dataset", "one that exists", "none: this is the only release")
    kind = _choose("Which ledger pays?", ("new", "old", "none"), kinds)
    if kind == "none":
        return [], []
    if kind == "old":
        return [], ["--ledger", typer.prompt("Which file?")]
    file = typer.prompt("Name of its file", "budget.ledger")
    whole = _number("Total ε of the dataset, for all releases", float, 2 * epsilon)
    if whole < epsilon:
        raise ParameterError(f"the total ε = {whole:g} is below this release's, {epsilon:g}")
    budget = ["--epsilon", f"{whole:g}", "--delta", f"{2 * delta:g}"]
    return [["spdp", "ledger", "create", file, *budget]], ["--ledger", file]


def _finish(commands: list[list[str]]) -> None:
    """Show the commands, and run them if that is wanted."""
    say("")
    say("Run:" if len(commands) == 1 else "Run, one after the other:")
    for words in commands:
        say(f"  {shlex.join(words)}")
    if not typer.confirm("Now?", False):
        return
    from spdp.cli import app

    for words in commands:
        code = app(words[1:], standalone_mode=False)
        if code:
            raise typer.Exit(code)
