"""What users pass.

Choices with a few values (enums inside, strings at the surface), numbers.
"""

from enum import StrEnum
from math import isfinite
from typing import Any, TypeVar

from spdp.errors import ParameterError, named

__all__ = [
    "Adjacency",
    "Covariance",
    "Mechanism",
    "Method",
    "Noise",
    "OnInvalid",
    "Place",
    "Unit",
    "Weights",
    "choose",
    "counted",
    "positive",
    "positive_int",
    "real",
]


class Adjacency(StrEnum):
    """Which datasets are neighbours: whose difference a release must hide."""

    REPLACE_ONE = "replace-one"  # same size, one record replaced: n is public
    ADD_REMOVE = "add-remove"  # one record more or less: n is protected too


class Noise(StrEnum):
    """Law of the noise."""

    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"


class Mechanism(StrEnum):
    """Law of the noise, as asked for."""

    AUTO = "auto"
    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"


class Method(StrEnum):
    """One noisy sum over the whole domain, or a private search first."""

    AUTO = "auto"
    ONESHOT = "oneshot"
    ADAPTIVE = "adaptive"


class OnInvalid(StrEnum):
    """What an unusable record does.

    An error that names it, or it counts as the centre.
    """

    RAISE = "raise"
    CENTER = "center"


class Place(StrEnum):
    """Where to work."""

    LOCAL = "local"
    GPU = "gpu"


class Unit(StrEnum):
    """Whose data the guarantee protects."""

    RECORD = "record"
    VOXEL = "voxel"  # of an image, which is all one person's
    PERSON = "person"


def counted(unit: str | None) -> str:
    """What a number counts, in the plural: records where nobody says whose they are."""
    return f"{unit if unit in tuple(Unit) else Unit.RECORD}s"


class Covariance(StrEnum):
    """Second moments to release beside means: none, or those within classes."""

    NONE = "none"
    DIAGONAL = "diagonal"
    FULL = "full"


class Weights(StrEnum):
    """What a person counts: once, or by the number of their records."""

    PERSONS = "persons"
    RECORDS = "records"


Choice = TypeVar("Choice", bound=StrEnum)


def choose(kind: type[Choice], value: str, name: str) -> Choice:
    """The member of ``kind`` that ``value`` names, or an error that lists them all."""
    try:
        return kind(value)
    except (TypeError, ValueError):  # an array is compared, and says neither yes nor no
        *most, last = (repr(str(member)) for member in kind)
        wanted = f"{', '.join(most)} or {last}"
        raise ParameterError(f"{named(name)} must be {wanted}, got {value!r}") from None


def real(name: str, value: Any) -> float:
    """``value`` as a float, or an error that names it."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"{named(name)} must be a number, got {value!r}") from None


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
