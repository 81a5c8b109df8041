"""What a wanted error needs: the fewest records, and the smallest ε, that reach it."""

from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_CEILING, Context
from math import ceil, sqrt
from typing import NamedTuple

from spdp.choices import positive
from spdp.errors import ParameterError, named
from spdp.lattice import MAX_RECORDS
from spdp.progress import track
from spdp.statistics.planner import Advance, Planner
from spdp.statistics.simulation import Population

__all__ = ["Needed", "needed", "with_needed_epsilon", "with_needed_n"]

EXACTLY, ABOUT = 1.005, 1.05  # ratio to which a needed number is found
SMALLEST_EPSILON, LARGEST_EPSILON = 1e-6, 500.0  # between which a needed ε is sought
STRIDE = 4.0  # of the steps that find where to look


class Needed(NamedTuple):
    """Records, and ε, that reach a wanted rms error; None where no number does."""

    spread: float | None
    n: int | None
    epsilon: float | None


def needed(planner: Planner, error: float) -> list[Needed]:
    """What reaches an rms error with the method that will run, for each spread.

    Records at the planner's ε, and ε at the planner's number of records.
    """
    spreads = [None if made is None else made.spread for made in planner.kinds]
    answers = zip(spreads, _records(planner, error), _epsilons(planner, error), strict=True)
    return [Needed(*answer) for answer in answers]


def with_needed_n(planner: Planner, error: float) -> Planner:
    """The planner with the fewest records that reach an rms error for every spread."""
    counts = [n for n in _records(planner, error) if n is not None]
    if len(counts) < len(planner.kinds):
        raise ParameterError(
            f"no number of records reaches {named('error')} {error:g} at this {named('epsilon')}"
        )
    return replace(planner, n=max(counts))


def with_needed_epsilon(planner: Planner, error: float) -> Planner:
    """The planner with the smallest ε that reaches an rms error for every spread."""
    epsilons = [epsilon for epsilon in _epsilons(planner, error) if epsilon is not None]
    if len(epsilons) < len(planner.kinds):
        raise ParameterError(
            f"no {named('epsilon')} reaches {named('error')} {error:g} with this {named('n')}"
        )
    return replace(planner, epsilon=max(epsilons))


def _records(planner: Planner, error: float) -> list[int | None]:
    """Fewest records, for each spread."""

    def rms(n: float, made: Population | None, advance: Advance) -> float:
        return planner.rms(ceil(n), planner.epsilon, made, advance)

    found = _for_each_spread(planner, error, rms, planner.n, (1.0, MAX_RECORDS))
    return [None if n is None else ceil(n) for n in found]


def _epsilons(planner: Planner, error: float) -> list[float | None]:
    """Smallest ε, for each spread."""

    def rms(epsilon: float, made: Population | None, advance: Advance) -> float:
        return planner.rms(planner.n, epsilon, made, advance)

    limits = SMALLEST_EPSILON, LARGEST_EPSILON
    found = _for_each_spread(planner, error, rms, planner.epsilon, limits)
    return [None if epsilon is None else _shown(epsilon) for epsilon in found]


def _shown(epsilon: float) -> float:
    """Three digits, and no smaller: what is needed must be enough."""
    return float(Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(epsilon))


def _for_each_spread(
    planner: Planner,
    error: float,
    rms: Callable[[float, Population | None, Advance], float],
    start: float,
    limits: tuple[float, float],
) -> list[float | None]:
    """Smallest number whose rms error is small enough; None where none is."""
    positive("error", error)
    with track("looking for what is needed", None) as advance:

        def found(made: Population | None) -> float | None:
            ratio = EXACTLY if made is None else ABOUT
            return _smallest(
                lambda number: rms(number, made, advance) <= error, start, *limits, ratio
            )

        return [found(made) for made in planner.kinds]


def _smallest(
    enough: Callable[[float], bool], start: float, least: float, most: float, ratio: float
) -> float | None:
    """Smallest number that is enough, to a ratio, near ``start``; None beyond most."""
    high = min(max(start, least), most)
    if enough(high):
        while high > least and enough(max(high / STRIDE, least)):
            high = max(high / STRIDE, least)
        low = max(high / STRIDE, least)
    else:
        low = high
        while low == high or not enough(high):
            if high >= most:
                return None
            low, high = high, min(STRIDE * high, most)
    while high / low > ratio:
        middle = sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
