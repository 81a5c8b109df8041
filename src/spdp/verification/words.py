"""Names, texts, shapes and numbers of records that follow from other fields."""

from collections.abc import Iterator

from spdp.choices import Method, Unit
from spdp.privacy.account import NAMES
from spdp.statements import ASSUMED
from spdp.verification.base import Check, Fields, budget_of, chart_in, equal, step_named
from spdp.verification.table import known

__all__ = ["counts", "released", "words"]


def words(c: Fields) -> Iterator[Check]:
    """Names and texts that follow from other fields."""
    yield equal("private", c["private"], c["seed"] is None)
    yield equal("float_safe", c["float_safe"], c["private"])
    line = known(c)
    yield Check("method", c["method"] in line.forms, str(c["method"]))
    yield equal("estimand", c["estimand"], line.estimand(c))
    yield equal("what is said of the error", c["error_statement"], line.statement(c))
    if c["method"] is None:
        yield Check("unit", c["unit"] is None, "a stated summary has no unit of its own")
        yield equal("adjacency", c["adjacency"], ASSUMED)
        yield equal("domain", (c["statistic"], c["domain"]), ("mean", None))
        return
    yield Check("unit", c["unit"] in set(Unit), str(c["unit"]))
    yield equal("mechanism", c["mechanism"], NAMES[budget_of(c).noise])
    yield equal("distance", c["distance"], chart_in(c).distance)


def released(c: Fields) -> Iterator[Check]:
    """What is released, and nothing else, in the shapes its sensitivity is for."""
    yield equal("arrays", list(c["arrays"].items()), known(c).arrays(c))


def counts(c: Fields) -> Iterator[Check]:
    """Numbers of records are possible, and those at the edge are what was asked."""
    n, most = c["n"], c["max_records"]
    yield Check("number of records", n is None or n >= 1, f"n is {n}")
    possible = most is None or (most >= 1 and c["unit"] == Unit.PERSON)
    yield Check("records that count", possible, f"max_records is {most}")
    if c["method"] == Method.ADAPTIVE:
        seen = step_named(c, "edge")
        found = None if seen is None else {name: seen[name] for name in ("share", "sd")}
        yield equal("outside", c["outside"], found)
