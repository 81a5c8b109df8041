"""The stated error: a law or the parts of a bound, never both, and what follows."""

from collections.abc import Iterator
from math import isfinite, sqrt
from typing import Any

from spdp.certificate import STATED, population_estimand
from spdp.privacy.bounds import (
    ELLIPSOID_PART,
    RETREAT_PART,
    SURE_PART,
    Bound,
    sampled_sd,
)
from spdp.privacy.laws import mean_of, quantiles
from spdp.statements import CLIPPED, PULLED_MEANS, WITHIN
from spdp.verification.base import (
    CLOSE,
    Check,
    Fields,
    close,
    dimension,
    equal,
    is_public,
    number_of,
    region_in,
    same,
    step_named,
)
from spdp.verification.table import LAW, MAY, MUST, NONE, PARTS, known

__all__ = ["forms", "law_or_parts", "population", "within"]

SHARES = (1.0, ELLIPSOID_PART, RETREAT_PART, SURE_PART)  # of the risk


def _form(c: Fields) -> str:
    law, parts = c["squared_error_law"] is not None, c["error_bound_parts"] is not None
    if law and parts:
        return "a law and parts"
    return LAW if law else PARTS if parts else NONE


def forms(c: Fields) -> Iterator[Check]:
    """The error is stated in one form that the statistic knows, and at known levels."""
    form, line = _form(c), known(c)
    yield Check("form of the error", form in line.forms[c["method"]], form)
    yield equal("levels", _levels(c["error_bound"]), None if form == NONE else sorted(STATED))
    for name in ("expected_squared_error", "squared_error_quantiles"):
        there = c[name] is not None
        yield Check(name.replace("_", " "), there == (form == LAW), "where there is a law")
    for name in ("within", "population"):
        rule, there = line.beside.get(name), c[f"error_bound_{name}"] is not None
        ok = rule in (MAY, MUST) if there else rule != MUST
        yield Check(f"bound, {name}", ok, "where it can be stated")


def _levels(stated: Fields | None) -> list[str] | None:
    return None if stated is None else sorted(stated)


def law_or_parts(c: Fields) -> Iterator[Check]:
    """The stated error follows from its law, or from the parts of its bound."""
    form = _form(c)
    if form == LAW:
        yield from _law(c)
    if form != PARTS:
        return
    parts = c["error_bound_parts"]
    yield from _parts(c, parts)
    yield from _bounds(c["error_bound"], parts)
    if c["method"] is None or (c["statistic"], c["method"]) == ("mean", "oneshot"):
        shifted = Bound.shifted(parts["noise"], parts["shift"]).describe()
        yield Check("value moved", close(parts, shifted), "by what is added to the noise")
    elif c["statistic"] == "class-means":
        yield from _classes(c, parts)
    elif c["statistic"] != "difference":
        stretch = 1.0 if is_public(c) else number_of(c).stretch
        square = dimension(c) * (c["sigma"] * stretch) ** 2  # units have mean square 1
        yield same("noise of the error", mean_of(parts["noise"]), square, "d·σ²")


def _law(c: Fields) -> Iterator[Check]:
    law = c["squared_error_law"]
    yield same("expected error", c["expected_squared_error"], mean_of(law), "mean of the law")
    found = quantiles(law)
    yield equal("quantiles", sorted(c["squared_error_quantiles"]), sorted(found))
    for level, value in found.items():
        yield same("quantile", c["squared_error_quantiles"][level], value, level)
        if level in STATED:
            yield same("error bound", c["error_bound"][level], sqrt(value), level)


def _parts(c: Fields, parts: Fields) -> Iterator[Check]:
    """Parts that a bound can have: not negative, nor short of the domain's radius."""
    numbers = [parts[name] for name in ("excess_sd", "shift", "slack", "farthest")]
    ok = all(isfinite(x) and x >= 0 for x in numbers) and isfinite(parts["excess"])
    yield Check("parts of the bound", ok, "numbers that are not negative")
    yield Check("share of the risk", parts["part"] in SHARES, f"{parts['part']}")
    least = 0.0 if c["domain"] is None else region_in(c).radius
    reaches = parts["farthest"] >= least
    yield Check("farthest", reaches, f"at least the domain's radius, {least:.9g}")


def _bounds(stated: Any, parts: Fields) -> Iterator[Check]:
    """Bounds by level follow from the parts they are made of."""
    bound = Bound(**parts)
    for name, level in STATED.items():
        yield same("error bound", stated[name], bound.at(level), name)


def _classes(c: Fields, parts: Fields) -> Iterator[Check]:
    """The joint bound of class means is that of the whole domain."""
    radius = region_in(c).radius
    yield same("radius", c["steps"][-1]["radius"], radius, "the whole domain's")
    excess = parts["excess"] == parts["excess_sd"] == 0
    yield Check("nothing was clipped", excess, "but to the domain")


def _but(parts: Fields, *names: str) -> Fields:
    return {name: value for name, value in parts.items() if name not in names}


def within(c: Fields) -> Iterator[Check]:
    """The sharper bound, for another target: the bound with another excess."""
    stated = c["error_bound_within"]
    if stated is None:
        return
    parts, excess = stated["parts"], ["excess", "excess_sd"]
    yield from _parts(c, parts)
    yield from _bounds(stated, parts)
    names = {*STATED, "parts", "estimand"}
    if c["statistic"] == "class-means":
        yield equal("target", stated["estimand"], PULLED_MEANS.format(unit=c["unit"]))
        yield equal("bound, within", sorted(stated), sorted(names))
        return
    if c["statistic"] == "mean":
        excess, names = [*excess, "shift", "farthest"], names | {"reach"}
        yield equal("target", stated["estimand"], WITHIN.format(reach=stated["reach"]))
        own = c["error_bound_parts"]  # both may have been moved, but not equally far
        ok = parts["farthest"] >= (own["farthest"] - own["shift"]) * (1.0 - CLOSE)
        yield Check("farthest, within", ok, "at least that for all, before either was moved")
    else:
        yield equal("target", stated["estimand"], CLIPPED)
        yield equal("excess", (parts["excess"], parts["excess_sd"]), (0.0, 0.0))
    yield equal("bound, within", sorted(stated), sorted(names))
    alike = close(_but(c["error_bound_parts"], *excess), _but(parts, *excess))
    yield Check("bound, within", alike, f"that for all, but for {', '.join(excess)}")


def population(c: Fields) -> Iterator[Check]:
    """The bound for the population's mean: more variance, of noise and of excess."""
    stated, own = c["error_bound_population"], c["error_bound_parts"]
    if stated is None:
        return
    parts = stated["parts"]
    yield from _parts(c, parts)
    yield from _bounds(stated, parts)
    yield equal("bound, population", sorted(stated), sorted([*STATED, "parts", "estimand"]))
    yield equal("target", stated["estimand"], population_estimand(c["distance"], c["unit"]))
    random = ("noise", "excess_sd")
    alike = close(_but(own, *random), _but(parts, *random))
    yield Check("bound for the population", alike, "but for its variance, that for the records")
    more = mean_of(parts["noise"]) >= mean_of(own["noise"])
    yield Check("variance of sampling", more, "adds to that of noise")
    pulled, number = step_named(c, "excess"), number_of(c)
    reach = 0.0 if pulled is None else pulled["reach"][0]
    sd = sampled_sd(own["excess"], own["excess_sd"], reach, number.value / number.stretch)
    yield same("sampling of the excess", parts["excess_sd"], sd, "noise and sampling")
