"""The certificate of a release: one versioned dataclass, its JSON, its seal.

*Enforced.* A certificate is filled by :func:`spdp.publishing.publish` from an account,
whose steps hold released values only, and from public numbers; no function of the
records is an argument there. A seeded result is a simulation and is certified as not
private.
"""

import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from spdp.choices import Unit
from spdp.errors import DataError
from spdp.privacy.bounds import Bound
from spdp.statements import EXACT_LAW

__all__ = [
    "Certificate",
    "class_estimand",
    "estimand_of",
    "mean_estimand",
    "population_estimand",
    "seal_of",
    "stated_bounds",
    "strict_json",
]

SCHEMA = 3
STATED = {"95%": 0.95, "99%": 0.99}  # levels of the bounds that are stated
LARGEST = 1.7976931348623157e308  # a float64 number; infinities and NaN are above


ESTIMAND = "the {distance} Fréchet mean of {whom}, each clipped to the domain"
WHOM: dict[str, str] = {
    Unit.RECORD: "the records",
    Unit.VOXEL: "the voxels",
    Unit.PERSON: "the persons, a person being the mean of their records",
}
SPREAD_TOO = ", and their spread"
COMPONENTS_TOO = ", and their principal components"
WEIGHTED = "the records, at most {most} of a person's counted"
CLASS_PERSONS = (
    "the persons, a person being the mean of their records there and counting in each class by "
    "the share of their records that lie in it"
)


def _whom(unit: str | None, classes: bool = False) -> str:
    """Who counts, and how much; a person may count in several classes."""
    if classes and unit == Unit.PERSON:
        return CLASS_PERSONS
    return WHOM.get(unit or "", WHOM[Unit.RECORD])


def mean_estimand(distance: str, unit: str | None, most: int | None = None) -> str:
    """What a mean estimates, in words.

    ``most`` is how many of a person's records count, where they do by their number.
    """
    whom = _whom(unit) if most is None else WEIGHTED.format(most=most)
    return ESTIMAND.format(distance=distance, whom=whom)


POPULATION = (
    "the {distance} Fréchet mean of the population, each {unit} clipped to the domain; assumed: "
    "{unit}s drawn independently, and enough of them for the normal limit"
)


def population_estimand(distance: str, unit: str) -> str:
    """What a mean estimates beyond the records at hand, in words."""
    return POPULATION.format(distance=distance, unit=unit)


OTHERS = {
    "median": "the geometric median, in the {distance} distance, of {whom}, each clipped to the "
    "domain",
    "regression": "the least-squares regression, in the {distance} chart, of {whom}, each clipped "
    "to the domain, on covariates ({covariates}) of public range",
    "difference": "the difference, in the {distance} chart, of the means of two classes of "
    "{whom}, each clipped to the domain",
}
CLASS_ESTIMAND = "the {distance} Fréchet mean of each class of {whom}, each clipped to the domain"


def class_estimand(distance: str, unit: str | None) -> str:
    """What means of classes estimate, in words."""
    return CLASS_ESTIMAND.format(distance=distance, whom=_whom(unit, classes=True))


def estimand_of(statistic: str, distance: str, unit: str | None, covariates: int = 0) -> str:
    """What a statistic other than a mean estimates, in words."""
    whom = _whom(unit, classes=statistic == "difference")
    return OTHERS[statistic].format(distance=distance, whom=whom, covariates=covariates)


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    return {
        "spdp": version("spdp"),
        "numpy": np.__version__,
        "opendp": version("opendp"),
        "python": platform.python_version(),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What a release guarantees, what it estimates, and how far off it may be."""

    schema: int = SCHEMA
    private: bool
    float_safe: bool
    mechanism: str
    calibration: str
    statistic: str = "mean"
    method: str | None = None  # "oneshot" or "adaptive"; None for a stated summary
    epsilon: float
    delta: float
    mu: float | None
    adjacency: str
    unit: str | None = Unit.RECORD.value  # whose data are protected
    metric: str
    reference_point: list[Any] | None = None  # public matrix that the metric is seen from
    estimand: str  # what the value estimates, in words
    distance: str  # the distance that errors are measured in
    error_statement: str = EXACT_LAW  # what the law of the error, or its bound, covers
    error_bound: dict[str, float] | None  # with at least this probability it is below
    error_bound_parts: dict[str, Any] | None = None  # of a bound that is no quantile
    error_bound_within: dict[str, Any] | None = None  # a sharper one, for another target
    error_bound_population: dict[str, Any] | None = None  # for the population's mean
    n: int | None = None
    n_estimate: float | None = None
    max_records: int | None = None  # of a person that count
    k: int
    parts: int | None = None  # matrices of one record
    arrays: dict[str, list[int]]  # names and shapes of what is released, the value first
    domain: dict[str, Any] | None = None
    sensitivity: float
    sigma: float
    lattice_step: float
    steps: list[dict[str, Any]] = field(default_factory=list)
    expected_squared_error: float | None = None  # where the law of the error is known
    squared_error_quantiles: dict[str, float] | None = None
    squared_error_law: dict[str, Any] | None = None
    outside: dict[str, float] | None = None  # share of records at the domain's edge
    reference: str | None = None  # digest of the public reference that was offered
    seed: int | str | None = None
    versions: dict[str, str] = field(default_factory=lambda: dict(_versions()))
    created: str = field(default_factory=_now)

    def as_dict(self) -> dict[str, Any]:
        """Its fields by name, JSON-ready."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, content: Any) -> "Certificate":
        """The certificate that :meth:`as_dict` wrote, or what is wrong with it."""
        if not isinstance(content, dict):
            raise DataError("a certificate is a JSON object")
        if content.get("schema") != SCHEMA:
            raise DataError(
                f"its certificate has schema {content.get('schema')!r}; this version of spdp "
                f"reads {SCHEMA}"
            )
        for problem in _problems(content):
            raise DataError(problem)
        return cls(**content)


def _problems(content: dict[str, Any]) -> Iterator[str]:
    """What keeps a JSON object from being a certificate: names, types, numbers."""
    hints = get_type_hints(Certificate)
    for name in hints.keys() ^ content.keys():
        what = "lacks" if name in hints else "has an unknown"
        yield f"its certificate {what} field {name!r}"
    for name, hint in hints.items():
        if not _fits(content[name], hint):
            yield f"its certificate's {name} is {content[name]!r:.80}, not {_in_words(hint)}"
    for name in ("k", "parts"):
        if content[name] is not None and content[name] < 1:
            yield f"its certificate's {name} is {content[name]}, not a number of matrices or rows"
    if content["outside"] is not None and content["outside"].keys() != {"share", "sd"}:
        yield "its certificate's outside is not a share and its standard deviation"
    if content["squared_error_law"] is not None and content["error_bound_parts"] is not None:
        yield "its certificate states two errors: a law, and the parts of a bound"


def _fits(value: Any, hint: Any) -> bool:
    options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return any(_is_all(value, option) for option in options)


def _is_all(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, and what it holds of those that it names."""
    kind, inside = get_origin(hint) or hint, get_args(hint)
    if not _is(value, kind):
        return False
    held = value.values() if kind is dict else value if kind is list else ()
    return not inside or all(_fits(one, inside[-1]) for one in held)


def _is(value: Any, kind: Any) -> bool:
    if kind is Any:
        return True
    if kind is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and abs(value) <= LARGEST
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def _in_words(hint: Any) -> str:
    return str(hint) if get_args(hint) else str(getattr(hint, "__name__", hint))


def strict_json(text: str) -> Any:
    """JSON as everyone reads it: no name twice, no NaN, no infinity."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError("a name stands twice")
        return dict(pairs)

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is not a number")

    return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)


def seal_of(values: Mapping[str, NDArray[Any]], certificate: dict[str, Any]) -> str:
    """SHA-256 over all values and the certificate, in one canonical form.

    Of each array its name, its shape and its float64 numbers (little-endian, row by
    row), then the certificate as JSON with sorted keys and no spaces. A complex array
    says so after its shape, and has real and imaginary parts in turn.
    """
    mark = sha256(b"spdp release\n")
    for name, value in values.items():
        paired = np.iscomplexobj(value)
        head = [name, *value.shape, *(["complex"] if paired else [])]
        mark.update(json.dumps(head).encode())
        mark.update(np.ascontiguousarray(value, dtype="<c16" if paired else "<f8").tobytes())
    plain = json.dumps(certificate, sort_keys=True, separators=(",", ":"), allow_nan=False)
    mark.update(plain.encode())
    return mark.hexdigest()


def stated_bounds(bound: Bound) -> dict[str, float]:
    """The bounds on the error that a certificate states."""
    return {name: bound.at(level) for name, level in STATED.items()}
