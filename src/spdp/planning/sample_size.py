"""Sample size: the fewest records, or the smallest ε, for a wanted error or power."""

from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_CEILING, Context
from math import ceil, sqrt
from typing import Any, NamedTuple

from spdp.data.progress import track
from spdp.engines.store import MAX_RECORDS
from spdp.errors import ParameterError, named
from spdp.options import positive
from spdp.planning.model import Advance, Planner
from spdp.planning.population import Population

EXACTLY, ABOUT = 1.005, 1.05  # precision of an answer, as a ratio: of exact laws, simulated
SOUGHT = {"n": (1.0, float(MAX_RECORDS)), "epsilon": (1e-6, 500.0)}  # least and most
STRIDE = 4.0  # factor between the numbers that bracket an answer
POWER = "power"  # its name among the errors of a statistic

Enough = Callable[[int, float, Population | None, Advance], bool]


class Found(NamedTuple):
    """The smallest number that is enough, if any, and whether an exact law says so."""

    value: Any
    exact: bool


class Needed(NamedTuple):
    """Records, and ε, that reach a wanted error or power; None where none does.

    ``spread`` is None where the method that will run has an exact law: the answer is
    then the same for all spreads.
    """

    spread: float | None
    n: int | None
    epsilon: float | None


def _enough(planner: Planner, error: float | None, power: float | None) -> Enough:
    """Whether n records at ε reach what is wanted."""
    if power is not None and POWER not in planner.planned.shares:
        raise ParameterError(f"{named('power')} is for a test of class means")

    def enough(n: int, epsilon: float, made: Population | None, advance: Advance) -> bool:
        try:
            if power is None:
                return planner.rms(n, epsilon, made, advance) <= positive("error", error)
            assert made is not None
            return planner.roughly(made, n, epsilon, advance).numbers[POWER] >= power
        except ParameterError:  # refused: too few
            return False

    if power is None:
        positive("error", error)
    elif not 0 < power < 1:
        raise ParameterError(f"{named('power')} must lie between 0 and 1, got {power!r}")
    return enough


def needed(planner: Planner, error: float | None, power: float | None = None) -> list[Needed]:
    """What reaches an error or power with the method that will run, for each spread.

    That is the number of records at the planner's ε, and ε at its number of records.
    Spreads with one exact answer have it once.
    """
    enough = _enough(planner, error, power)
    answers = zip(planner.kinds, *(_found(planner, enough, name) for name in SOUGHT), strict=True)
    told = [
        Needed(None if made is None or (n.exact and e.exact) else made.spread, n.value, e.value)
        for made, n, e in answers
    ]
    return list(dict.fromkeys(told))


def with_needed(planner: Planner, name: str, error: float | None, power: float | None) -> Planner:
    """The planner with the least "n" or "epsilon" that is enough for every spread."""
    found = [x.value for x in _found(planner, _enough(planner, error, power), name)]
    if None in found:
        wanted = f"{named('error')} {error:g}" if power is None else f"{named('power')} {power:g}"
        other = named("n" if name == "epsilon" else "epsilon")
        raise ParameterError(f"no {named(name)} reaches {wanted} at this {other}")
    return replace(planner, **{name: max(found)})


def _found(planner: Planner, enough: Enough, name: str) -> list[Found]:
    """Smallest "n" or "epsilon" that is enough, for each spread; None if none is."""
    (least, most), start = SOUGHT[name], getattr(planner, name)
    other = {"n": planner.n, "epsilon": planner.epsilon}
    shown: Callable[[float], Any] = ceil if name == "n" else _shown
    with track("looking for what is needed", None) as advance:

        def given(x: float) -> tuple[int, float]:
            all_ = other | {name: ceil(x) if name == "n" else x}
            return int(all_["n"]), all_["epsilon"]

        def smallest(made: Population | None) -> float | None:
            ratio = EXACTLY if made is None else ABOUT
            return _smallest(lambda x: enough(*given(x), made, advance), start, least, most, ratio)

        def exact(x: float | None) -> bool:
            return planner.is_mean and x is not None and planner.is_exact(*given(x))

        def found(made: Population | None) -> Found:
            x = smallest(made)
            if made is not None and exact(x) and exact(sharp := smallest(None)):
                x, made = sharp, None  # one shot runs there: its law needs no simulation
            return Found(None if x is None else shown(x), made is None)

        return [found(made) for made in planner.kinds]


def _shown(epsilon: float) -> float:
    """ε rounded up to three digits, so that it is enough."""
    return float(Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(epsilon))


def _smallest(
    enough: Callable[[float], bool], start: float, least: float, most: float, ratio: float
) -> float | None:
    """Smallest number that is enough, to a ratio; None if ``most`` is not enough."""
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
