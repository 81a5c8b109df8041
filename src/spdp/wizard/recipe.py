"""A recipe: everything that was entered for one release, without any user interface.

It is saved and loaded as YAML, checked, planned, turned into a command line, a script
or a notebook (:mod:`spdp.wizard.writing`), and run (``spdp run plan.yaml``).

*Enforced.* A recipe holds what a person entered: nothing in it is computed from
records. Its certificate is that of the command it stands for, since running it is
running that command. *Assumed.* The numbers of records and persons, the domain and the
classes are public; ``n`` is for predictions alone.
"""

import re
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from spdp.errors import DataError, ParameterError, named, need, reason, spelt
from spdp.options import Adjacency, OnInvalid, Unit, choose
from spdp.wizard.instruments import Kind, Other

FORMAT = 1
# The library that reads YAML calls itself for each level, until the stack ends.
LARGEST = 1 << 20  # bytes of a recipe; lists by indentation are then 1,400 levels deep at most
NESTED = 2000
OPENING = re.compile(rb"[\[{]|[-?] +(?=[-?] )")  # of lists and tables within a line


class Whose(StrEnum):
    """Whose the records are, and where it is written."""

    RECORD = "record"  # each matrix is another person's
    COLUMN = "column"  # a column of the table says whose
    IDS = "ids"  # a file of ids, or an array beside the matrices
    FILE = "file"  # each file is one person's
    MANIFEST = "manifest"  # a list of files and their persons
    VOXEL = "voxel"  # single voxels are what is protected


WHOSE = {
    Whose.RECORD: "Each matrix is another person’s",
    Whose.COLUMN: "A column of the table says whose each record is",
    Whose.IDS: "A file beside the data says whose each record is",
    Whose.FILE: "Each file is one person’s, with all its records",
    Whose.MANIFEST: "The file is a list of files and their persons",
    Whose.VOXEL: "Single voxels are to be protected, not persons",
}


class Step(StrEnum):
    """What is asked together; a problem names one of them."""

    RECORDS = "records"
    INSTRUMENT = "instrument"
    STATISTIC = "statistic"
    PRIVACY = "privacy"
    LEDGER = "ledger"


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A wanted accuracy, such as mean diffusivity within 5 %.

    ``term`` is one of :data:`spdp.wizard.accuracy.TERMS`, ``within`` in its unit.
    """

    term: str
    within: float


class Recipe(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """One release, as it was entered.

    Attributes
    ----------
    files : tuple of str
        Files of records, as :func:`spdp.data.open_records` takes them.
    whose : Whose
    groups_column, groups : str, optional
        The column, or the file, that says whose the records are.
    key, order, mask, entries : str, optional
        How files are read.
    labels, label_column, covariates : str, optional
        The file or column of classes, and the file of covariates.
    k, n : int
        Public size of the matrices, and number of records, or of persons.
    instrument : Kind
        It gives domain and metric.
    statistic : str
        One of ``spdp.statistics.STATISTICS``.
    options : dict
        The statistic's own options, by name.
    adjacency, on_invalid, anyway
        As in :func:`spdp.private_mean`.
    epsilon, delta : float
    wanted : Wanted, optional
        The accuracy that ε was solved for.
    spread : str
        How far records are expected to lie from their mean, for predictions.
    ledger, label : str, optional
        The ledger's file, and the entry's name.
    output : str
        Directory of the release.
    names : str, optional
        Names of the rows, for the page.
    """

    spdp: int = FORMAT
    files: tuple[str, ...] = ()
    whose: Whose = Whose.RECORD
    groups_column: str | None = None
    groups: str | None = None
    key: str | None = None
    order: str | None = None
    mask: str | None = None
    entries: str | None = None
    labels: str | None = None
    label_column: str | None = None
    covariates: str | None = None
    k: int = 3
    n: int = 1000
    instrument: Kind = Other(radius=5.0)
    statistic: str = "mean"
    options: dict[str, Any] = {}
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    on_invalid: OnInvalid = OnInvalid.RAISE
    anyway: bool = False
    epsilon: float = 1.0
    delta: float = 1e-6
    wanted: Wanted | None = None
    spread: str = "20%"
    ledger: str | None = None
    label: str | None = None
    output: str = "published"
    names: str | None = None

    def __post_init__(self) -> None:
        for name, kind in (("whose", Whose), ("adjacency", Adjacency), ("on_invalid", OnInvalid)):
            value = choose(kind, getattr(self, name), name)  # texts in Python, too
            msgspec.structs.force_setattr(self, name, value)

    # --- what follows from it

    @property
    def unit(self) -> Unit:
        """What the guarantee protects."""
        if self.whose is Whose.VOXEL:
            return Unit.VOXEL
        return Unit.RECORD if self.whose is Whose.RECORD else Unit.PERSON

    @property
    def metric(self) -> str:
        return self.instrument.metric

    @property
    def classes(self) -> list[Any] | None:
        """The public list of classes, for statistics that have one."""
        listed = self.options.get("classes")
        return None if listed is None else list(listed)

    # --- checks

    def problems(self) -> dict[Step, str]:
        """What cannot be used, by step, one sentence each; nothing is opened."""
        found: dict[Step, str] = {}
        for step, check in CHECKS.items():
            try:
                check(self)
            except (ParameterError, DataError) as error:
                found[step] = explained(error)
        return found

    def check(self) -> "Recipe":
        """The recipe, or an error that names the first step that cannot be used."""
        for step, problem in self.problems().items():
            raise ParameterError(f"{step}: {problem}")
        return self

    # --- files

    def yaml(self) -> str:
        """As YAML; what was not entered is left out."""
        needed_yaml()
        plain = msgspec.to_builtins(self)
        blank = msgspec.to_builtins(Recipe())
        kept = {name: value for name, value in plain.items() if value != blank[name]}
        kept = {"spdp": FORMAT, **kept, "instrument": plain["instrument"]}
        always = {name: plain[name] for name in ALWAYS}
        whole = {name: kept.get(name, always.get(name)) for name in plain if name in kept | always}
        return msgspec.yaml.encode(whole, order=None).decode()

    @classmethod
    def read(cls, text: str | bytes, name: str = "recipe") -> "Recipe":
        """The recipe of a YAML text; ``name`` is what messages call it."""
        needed_yaml()
        plain = text.encode() if isinstance(text, str) else text
        if len(plain) > LARGEST or len(OPENING.findall(plain)) > NESTED:
            raise DataError(f"{name}: is no recipe of a release (it is too long, or too nested)")
        try:
            made = msgspec.yaml.decode(text, type=cls)
        except (msgspec.MsgspecError, ValueError) as error:
            raise DataError(f"{name}: is no recipe of a release ({reason(error)})") from None
        if made.spdp != FORMAT:
            raise DataError(f"{name}: recipe of format {made.spdp}, this version reads {FORMAT}")
        return made

    @classmethod
    def load(cls, file: str | Path) -> "Recipe":
        """The recipe of a file."""
        try:
            text = Path(file).read_bytes()
        except OSError as error:
            raise DataError(f"{file}: cannot be read ({reason(error)})") from None
        return cls.read(text, str(file))


# What the page calls the options that messages speak of.
NAMES = {
    "groups_column": "the column of the persons",
    "label_column": "the column of the classes",
    "entries": "the entries in a row",
    "groups": "the file of ids",
    "key": "the array",
    "order": "the order of the components",
    "mask": "the mask",
    "y": "the classes",
    "epsilon": "ε",
    "delta": "δ",
    "low": "the lower limit",
    "high": "the upper limit",
    "trace": "the trace",
    "shrinkage": "the shrinkage",
    "eta": "the number added to the diagonal",
    "radius": "the radius",
}


# What can be done on the page where an error asks for an option.
HELPS = {
    "force": "choose another folder at the step Ledger",
    "anyway": "choose a larger ε, or count more persons",
    "ledger_key": "set SPDP_LEDGER_KEY before the wizard is started",
}


def explained(error: Exception) -> str:
    """An error in the words of the page, without the options of Python's functions."""
    if not isinstance(error, (ParameterError, DataError)):
        return str(error)

    def spell(name: str, value: str | None) -> str:
        known = NAMES.get(name, name)
        return known if value is None else f"{known} {value}"

    asks = [HELPS.get(name) or f"choose {spell(name, None)}" for name in error.asks]
    return spelt(error.message, spell) + (f": {' or '.join(asks)}" if asks else "")


ALWAYS = ("files", "whose", "k", "n", "statistic", "epsilon", "delta", "output")


def needed_yaml() -> None:
    """An error that says what is missing, where recipes cannot be read."""
    need("yaml", "wizard", "a recipe", "PyYAML")


# --- the checks of each step: public numbers and names alone


def _check_records(recipe: Recipe) -> None:
    whose, column = recipe.whose, recipe.groups_column
    if not recipe.files or not all(recipe.files):
        raise ParameterError("name the file, or the folder, that holds the matrices")
    if whose is Whose.COLUMN and not column:
        raise ParameterError("name the column that says whose each record is")
    if whose is Whose.IDS and not recipe.groups:
        raise ParameterError("name the file that says whose each record is")
    if whose not in (Whose.COLUMN, Whose.IDS) and column is not None:
        raise ParameterError(f"{named('groups_column')} has no meaning where whose is {whose!s}")
    if whose is not Whose.IDS and recipe.groups is not None:
        raise ParameterError(f"{named('groups')} has no meaning where whose is {whose!s}")
    for name in ("n", "k"):
        value = getattr(recipe, name)
        if not 1 <= value <= 1 << 32:
            raise ParameterError(f"{named(name)} must be from 1 to 2**32, got {value}")


def _check_instrument(recipe: Recipe) -> None:
    from spdp.charts import chart_of

    chart = chart_of(recipe.metric, curved=True)
    recipe.instrument.domain(recipe.k).radius_for(recipe.k, chart)


def _check_statistic(recipe: Recipe) -> None:
    from spdp.wizard.writing import asked

    statistic = asked(recipe)
    if "label" in statistic.columns and not (recipe.labels or recipe.label_column):
        if recipe.whose is Whose.MANIFEST:
            return  # its column
        raise ParameterError("each record needs a class: name the column or the file of classes")
    if "x" in statistic.columns and not recipe.covariates:
        raise ParameterError("each record needs covariates: name their file")


def _check_privacy(recipe: Recipe) -> None:
    from spdp.privacy.budget import Budget

    if recipe.delta == 0:
        Budget.pure(recipe.epsilon)
    else:
        Budget.gaussian(recipe.epsilon, recipe.delta)


def listed(names: str | None, k: int) -> list[str] | None:
    """Names of rows that are listed; None where a file holds them, or nothing does."""
    if names is None or ("," not in names and k > 1):
        return None
    return [name.strip() for name in names.split(",") if name.strip()]


def _check_ledger(recipe: Recipe) -> None:
    if not recipe.output:
        raise ParameterError("name the folder for the release")
    if recipe.ledger == "":
        raise ParameterError("name the ledger's file")
    rows = listed(recipe.names, recipe.k)
    if rows is not None and len(rows) != recipe.k:
        raise ParameterError(
            f"names of the rows: {len(rows)} names, but matrices have {recipe.k} rows"
        )


CHECKS = {
    Step.RECORDS: _check_records,
    Step.INSTRUMENT: _check_instrument,
    Step.STATISTIC: _check_statistic,
    Step.PRIVACY: _check_privacy,
    Step.LEDGER: _check_ledger,
}
