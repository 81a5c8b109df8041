"""What checks share: comparing numbers, and what a certificate's fields stand for."""

from math import isclose
from typing import Any, NamedTuple, TypeVar

from spdp.charts import Chart, chart_of
from spdp.choices import Adjacency
from spdp.domain import domain_of
from spdp.errors import DataError
from spdp.kernels import Region
from spdp.privacy.bounds import Number
from spdp.privacy.costs import Budget

__all__ = [
    "CLOSE",
    "Check",
    "Fields",
    "budget_of",
    "chart_in",
    "close",
    "dimension",
    "divisor",
    "equal",
    "is_public",
    "number_of",
    "of_kind",
    "region_in",
    "same",
    "step_named",
]

CLOSE = 1e-9
Fields = dict[str, Any]  # of a certificate, by name
Kind = TypeVar("Kind")


class Check(NamedTuple):
    """One thing that was verified."""

    name: str
    ok: bool
    detail: str


def of_kind(kind: type[Kind], query: Any) -> Kind:
    """A query of the kind that a step must have."""
    if not isinstance(query, kind):
        raise DataError(f"a step asks no {kind.__name__}")
    return query


def same(name: str, stated: float | None, found: float | None, what: str) -> Check:
    """Whether two numbers agree, up to rounding."""
    if stated is None or found is None:
        return Check(name, stated is found, what)
    ok = isclose(stated, found, rel_tol=CLOSE)
    return Check(name, ok, f"{what}: stated {stated:.9g}, recomputed {found:.9g}")


def equal(name: str, stated: Any, found: Any) -> Check:
    return Check(name, stated == found, f"stated {stated!r}, expected {found!r}")


def close(a: Any, b: Any) -> bool:
    """Whether two specifications agree, up to rounding."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[name], b[name]) for name in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, str) or isinstance(b, str) or a is None or b is None:
        return bool(a == b)
    return isclose(a, b, rel_tol=CLOSE)


def budget_of(c: Fields) -> Budget:
    if c["calibration"] == "laplace":
        return Budget.pure(c["epsilon"])
    return Budget.gaussian(c["epsilon"], c["delta"], c["calibration"])


def chart_in(c: Fields) -> Chart:
    return chart_of(c["metric"], c["reference_point"], c["parts"])


def region_in(c: Fields) -> Region:
    return domain_of(c["domain"]).region(c["k"], chart_in(c))


def dimension(c: Fields) -> int:
    return chart_in(c).dimension(c["k"])


def is_public(c: Fields) -> bool:
    """Whether the number of records is."""
    return bool(c["adjacency"] == Adjacency.REPLACE_ONE)


def step_named(c: Fields, name: str) -> Fields | None:
    """The last step of a name, if there is one."""
    found = [step for step in c["steps"] if step["step"] == name]
    return found[-1] if found else None


def divisor(c: Fields) -> float:
    """What sums were divided by: the number of records, or a noisy one."""
    return float(c["n"] if c["n_estimate"] is None else c["n_estimate"])


def number_of(c: Fields) -> Number:
    """The same, with its noise where the last answer counts."""
    last = c["steps"][-1]
    return Number(c["n"]) if is_public(c) else Number(last["n_estimate"], last["count_sd"])
