"""Whose records are in a file, and how many: checked with its header.

A record counts as a person of its own unless a column says whose it is. So a column
that is not used is a reason to warn, and one that is named for persons to be proposed.

*Enforced.* Names of columns, and numbers of records, are all that is looked at.
"""

from typing import Any

from spdp.options import Unit, counted
from spdp.wizard.folder import SUFFIXES
from spdp.wizard.headers import Seen
from spdp.wizard.recipe import WHOSE, Recipe, Whose

PERSONS = ("subject", "participant", "person", "patient", "id", "sub")
TABLES = (".csv", ".parquet")
SHOWN = 6  # names of columns that a warning lists


def likely(columns: tuple[str, ...]) -> str | None:
    """The column whose name says persons, if there is exactly one."""
    found = [name for name in columns if name.lower().removesuffix("_id") in PERSONS]
    return found[0] if len(found) == 1 else None


def warning(recipe: Recipe, seen: Seen) -> str | None:
    """What is said where columns are not used and every record counts as a person."""
    if recipe.whose is not Whose.RECORD or not seen.unused:
        return None
    more = " …" if len(seen.unused) > SHOWN else ""
    one = len(seen.unused) == 1
    names, verb = ", ".join(seen.unused[:SHOWN]) + more, "is" if one else "are"
    what = ("column" if seen.table else "array") + ("" if one else "s")
    says = "it says" if one else "one of them says"
    choice = WHOSE[Whose.COLUMN if seen.table else Whose.IDS]
    return (
        f"The {what} {names} {verb} not used. If {says} whose the records are, choose at the first "
        f"step “{choice}”; otherwise every record counts as a person of its own, and somebody with "
        "many records is protected for one of them only."
    )


def may_be_table(files: tuple[str, ...]) -> bool:
    """Whether entries in a row may be asked for: a folder may hold tables."""
    others = tuple(suffix for suffix in SUFFIXES if suffix not in TABLES)
    return not any(file.lower().endswith(others) for file in files)


def label(unit: Unit) -> str:
    """What the page calls the field of the number."""
    of = {Unit.RECORD: "persons, a matrix each", Unit.VOXEL: "voxels"}.get(unit, "persons")
    return f"How many {of}?"


def whole(value: Any) -> int | None:
    """A whole number of at least 1 that was entered, or None."""
    number = 0.0 if value is None or isinstance(value, str) else float(value)
    return int(number) if number >= 1 and number == int(number) else None


def number_problem(value: Any, unit: Unit, matrices: int | None) -> str | None:
    """Why the number of persons, as it was entered, cannot be right."""
    n, field = whole(value), f"“{label(unit)}”"
    if value is None or value == "":
        return f"{field} is empty: enter a whole number of at least 1"
    if n is None:
        return f"{field} must be a whole number of at least 1, not {value:g}"
    if matrices is not None and n > matrices:
        own = "voxels" if unit is Unit.VOXEL else "matrices"
        return (
            f"{field} is {n:,}, but the file has {matrices:,} {own}: there cannot be more "
            f"{counted(unit) if unit is Unit.VOXEL else 'persons'}"
        )
    return None


def rows_problem(value: Any) -> str | None:
    """Why the number of rows, as it was entered, cannot be right."""
    if whole(value) is not None:
        return None
    said = "is empty: enter" if value in (None, "") else f"must not be {value:g}: enter"
    return f"“Rows of a matrix” {said} a whole number of at least 1"
