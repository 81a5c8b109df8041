"""User options: choices (enums inside, strings outside), and checks of numbers."""

from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache, wraps
from math import isfinite
from typing import Any, ParamSpec, TypeVar

from spdp.errors import ParameterError, named

P = ParamSpec("P")
R = TypeVar("R")


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """Cache results by arguments; with unhashable ones, compute each time."""
    kept = lru_cache(maxsize=256, typed=True)(function)

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        try:
            return kept(*args, **options)  # type: ignore[arg-type]
        except TypeError:  # an argument has no hash, or the function raised it
            return function(*args, **options)

    return call


class Adjacency(StrEnum):
    """Neighbouring datasets: a release must hardly tell which of two it is of."""

    REPLACE_ONE = "replace-one"  # same size, one record replaced: n is public
    ADD_REMOVE = "add-remove"  # one record more or less: n is protected too


class Noise(StrEnum):
    """Law of the noise."""

    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"


class Mechanism(StrEnum):
    """Law of the noise, as the user asks for it."""

    AUTO = "auto"
    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"


class Method(StrEnum):
    """One noisy sum over the whole domain, or adaptive clipping."""

    AUTO = "auto"
    ONESHOT = "oneshot"
    ADAPTIVE = "adaptive"


METHOD_HELP = (
    "oneshot: one noisy sum over the whole domain; adaptive: find out privately where the data "
    "lie first; auto: whichever public numbers predict to be better."
)


class OnInvalid(StrEnum):
    """How to handle invalid records.

    Stop with an error that names the record, or replace it with the domain's centre.
    """

    RAISE = "raise"
    CENTER = "center"


class Place(StrEnum):
    """Where computations run."""

    LOCAL = "local"
    GPU = "gpu"


class Unit(StrEnum):
    """The unit of privacy: what the guarantee protects."""

    RECORD = "record"
    VOXEL = "voxel"  # of an image; the voxels of an image are one person's data
    PERSON = "person"


class MatrixKind(StrEnum):
    """What matrices are, where that is stated; numbers are never asked."""

    COVARIANCE = "covariance"
    CORRELATION = "correlation"
    PRECISION = "precision"
    PARTIAL_CORRELATION = "partial correlation"


class BidsData(StrEnum):
    """What is read of a BIDS dataset."""

    TENSOR = "tensor"
    CONNECTIVITY = "connectivity"


def counted(unit: str | None) -> str:
    """The unit's name in the plural; "records" where the unit is unknown."""
    return f"{unit if unit in tuple(Unit) else Unit.RECORD}s"


class Covariance(StrEnum):
    """Covariance within classes to release with the means."""

    NONE = "none"
    DIAGONAL = "diagonal"
    FULL = "full"


class Weights(StrEnum):
    """How a person is weighted: once, or by the number of their records."""

    PERSONS = "persons"
    RECORDS = "records"


Choice = TypeVar("Choice", bound=StrEnum)


def choose(kind: type[Choice], value: str, name: str) -> Choice:
    """The member of ``kind`` that ``value`` names, or an error that lists them all."""
    try:
        return kind(value)
    except (TypeError, ValueError):  # an array has no truth value
        *most, last = (repr(str(member)) for member in kind)
        wanted = f"{', '.join(most)} or {last}"
        raise ParameterError(f"{named(name)} must be {wanted}, got {value!r}") from None


def check_choices(*asked: tuple[type[StrEnum], Any, str]) -> None:
    """Each value is a member of its kind, or an error that lists them all."""
    for kind, value, name in asked:
        if not isinstance(value, str) or value not in kind._value2member_map_:
            choose(kind, value, name)


def real(name: str, value: Any) -> float:
    """``value`` as a float, or an error that names it."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"{named(name)} must be a number, got {value!r}") from None


def truth(name: str, value: Any) -> bool:
    """``value`` if it is True or False, else an error."""
    if not isinstance(value, bool):
        raise ParameterError(f"{named(name)} must be True or False, got {value!r}")
    return value


def positive_int(name: str, value: Any) -> int:
    """``value`` as an int if it is a positive whole number, else an error."""
    number = positive(name, value)
    if number != int(number):
        raise ParameterError(f"{named(name)} must be a whole number, got {value!r}")
    return int(number)


def positive(name: str, value: Any) -> float:
    """``value`` as a float if it is positive and finite, else an error."""
    number = real(name, value)
    if not (isfinite(number) and number > 0):
        raise ParameterError(f"{named(name)} must be a positive finite number, got {value!r}")
    return number
