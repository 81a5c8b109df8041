"""Checks that a certificate agrees with itself: what can be recomputed is recomputed.

Verification proves that value and certificate are those that were sealed (and, with a
signature, by whom), and that the numbers follow from each other: sensitivities from the
kind of query, scales and prices from those and the budget, the error from the noise. It
does NOT prove that the noise was drawn, that the records were those of the dataset,
that the domain was chosen without looking at them, that each person owned one record
(or that the ids of persons were right), or that a ledger was kept.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import isclose, sqrt
from typing import Any, NamedTuple

import numpy as np

from spdp.certificate import (
    COMPONENTS_TOO,
    SPREAD_TOO,
    class_estimand,
    estimand_of,
    mean_estimand,
)
from spdp.charts import Chart, chart_of
from spdp.choices import Adjacency, Method, Noise, Unit
from spdp.domain import domain_of
from spdp.errors import DataError, ParameterError
from spdp.frame import Frame
from spdp.kernels import Region
from spdp.privacy.account import NAMES, laplace_scale_exact, noise_scale, price
from spdp.privacy.bounds import Bound, Number
from spdp.privacy.costs import Budget
from spdp.privacy.laws import mean_law, mean_of, quantiles
from spdp.queries import (
    RECORD_NORM,
    AbsoluteSum,
    CentredDistance,
    CentredHistogram,
    CentredSpread,
    CorrelationSum,
    DistanceSum,
    EdgeCount,
    ExcessSum,
    Histogram,
    MomentSum,
    Query,
    SpreadSum,
    VectorSum,
    count_weight,
    share_sum,
    whole_domain_sum,
)
from spdp.queries.kinds import difference_kinds, median_kinds, regression_kinds
from spdp.queries.spread import COUNTED

__all__ = ["NOT_PROVEN", "Check", "checks"]

NOT_PROVEN = (
    "Not proven: that the noise was drawn, that the records were the dataset's, that the "
    "domain was chosen without looking at them, that each person owned one record (or that the "
    "ids of persons were right), and that every release of the dataset was accounted for."
)
CLOSE = 1e-9
# The step that gives the mean, by the statistic that searches for one.
LAST = {"mean": "mean", "dispersion": "spread moments", "pca": "moments"}


class Check(NamedTuple):
    """One thing that was verified."""

    name: str
    ok: bool
    detail: str


def checks(certificate: dict[str, Any]) -> list[Check]:
    """Recompute what a certificate states from its other fields."""
    results: list[Check] = []
    for check in (
        _words,
        _budget,
        _steps,
        _sensitivities,
        _one_shot,
        _adaptive,
        _last_moments,
        _last_answer,
        _error,
    ):
        try:
            results.extend(check(certificate))
        except (DataError, ParameterError, ValueError, KeyError, TypeError, ArithmeticError) as e:
            results.append(Check(check.__name__.strip("_"), False, f"cannot be recomputed: {e}"))
    return results


def _same(name: str, stated: float | None, found: float | None, what: str) -> Check:
    if stated is None or found is None:
        return Check(name, stated is found, what)
    ok = isclose(stated, found, rel_tol=CLOSE)
    return Check(name, ok, f"{what}: stated {stated:.9g}, recomputed {found:.9g}")


def _equal(name: str, stated: Any, found: Any) -> Check:
    return Check(name, stated == found, f"stated {stated!r}, expected {found!r}")


def _budget_of(c: dict[str, Any]) -> Budget:
    if c["calibration"] == "laplace":
        return Budget.pure(c["epsilon"])
    return Budget.gaussian(c["epsilon"], c["delta"], c["calibration"])


def _words(c: dict[str, Any]) -> Iterator[Check]:
    """Names that follow from other fields."""
    yield _equal("private", c["private"], c["seed"] is None)
    yield _equal("float_safe", c["float_safe"], c["private"])
    if c["method"] is None:
        yield Check("unit", c["unit"] is None, "a stated summary has no unit of its own")
        return
    yield Check("unit", c["unit"] in set(Unit), str(c["unit"]))
    yield from _shapes(c)
    yield _equal("estimand", c["estimand"], ESTIMANDS[c["statistic"]](c))
    yield _equal("mechanism", c["mechanism"], NAMES[_budget_of(c).noise])
    yield _equal("distance", c["distance"], _chart(c).distance)
    methods = (Method.ONESHOT, Method.ADAPTIVE)
    yield Check("method", c["method"] in methods, str(c["method"]))


def _shapes(c: dict[str, Any]) -> Iterator[Check]:
    """What is released has the shape its sensitivity is for; counts are possible."""
    if c["statistic"] == "mean":
        parts = [] if c["parts"] is None else [c["parts"]]
        yield _equal("arrays", c["arrays"], {"mean": [*parts, c["k"], c["k"]]})
    n, most = c["n"], c["max_records"]
    yield Check("number of records", n is None or n >= 1, f"n is {n}")
    possible = most is None or (most >= 1 and c["unit"] == Unit.PERSON)
    yield Check("records that count", possible, f"max_records is {most}")
    if c["statistic"] == "mean" and c["method"] == Method.ADAPTIVE:
        seen = [step for step in c["steps"] if step["step"] == "edge"]
        found = {name: seen[0][name] for name in ("share", "sd")} if seen else None
        yield _equal("outside", c["outside"], found)


def _budget(c: dict[str, Any]) -> Iterator[Check]:
    budget = _budget_of(c)
    yield _equal("delta", c["delta"], budget.delta)
    if budget.mu is None:
        yield Check("mu", c["mu"] is None, "pure differential privacy has no μ")
    else:
        spent = f"μ spent {c['mu']:.9g}, of {budget.mu:.9g} that ε and δ allow"
        ok = isclose(c["mu"], budget.mu, rel_tol=CLOSE) and c["mu"] <= budget.mu
        yield Check("mu", ok, spent)


def _steps(c: dict[str, Any]) -> Iterator[Check]:
    """Each step's price follows from its sensitivity and scale, and all add up to μ."""
    if _budget_of(c).mu is None:
        (step,) = c["steps"]
        scale = float(laplace_scale_exact(step["sensitivity"], c["epsilon"]))
        yield _same("scale", step["scale"], scale, "scale Δ/ε of the noise")
        yield _equal("step's epsilon", step["epsilon"], c["epsilon"])
        return
    for i, step in enumerate(c["steps"]):
        cost = price(step["sensitivity"], step["scale"])
        what = f"μ of step {i + 1}, {step['step']}"
        yield Check("step", step["mu"] == cost, f"{what}: {step['mu']:.9g} for {cost:.9g}")
    total = sum((Fraction(step["mu"]) ** 2 for step in c["steps"]), Fraction(0))
    ok = 0 < total <= Fraction(c["mu"]) ** 2 and isclose(float(total), c["mu"] ** 2, rel_tol=CLOSE)
    yield Check("sum of steps", ok, f"√Σμᵢ² = {float(total) ** 0.5:.9g} of μ = {c['mu']:.9g}")


def _chart(c: dict[str, Any]) -> Chart:
    return chart_of(c["metric"], c["reference_point"], c["parts"])


def _kinds(c: dict[str, Any]) -> dict[str, Query]:
    """A query of each kind that a statistic may ask, by the name of its step."""
    return KINDS[c["statistic"]](c)


def _mean_kinds(c: dict[str, Any]) -> dict[str, Query]:
    region = domain_of(c["domain"]).region(c["k"], _chart(c))
    frame, weight = Frame.plain(region.center), 0
    if c["adjacency"] == Adjacency.ADD_REMOVE:
        weight = count_weight(len(region.center))
    kinds: dict[str, Query] = {"mean": whole_domain_sum(region, weight)}
    if c["max_records"] is not None:
        kinds["mean"] = share_sum(region, Adjacency(c["adjacency"]))
    if c["method"] == Method.ADAPTIVE:
        kinds |= {
            "edge": EdgeCount("", _chart(c), region),
            "centre": VectorSum("", frame, 1.0),
            "spread": AbsoluteSum("", frame, 1.0),
            "correlation": CorrelationSum("", frame, 1.0),
            "distance": DistanceSum("", frame, 1.0),
            "excess": ExcessSum("", frame, 1.0, (1.0,), (RECORD_NORM,)),
            "tail": Histogram("", frame, region.center[:1]),
        }
    return kinds


def _class_kinds(c: dict[str, Any]) -> dict[str, Query]:
    """What a search for classes asks, besides what one for a mean does."""
    region = domain_of(c["domain"]).region(c["k"], _chart(c))
    frame, C = Frame.plain(region.center), c["arrays"]["means"][0]
    second = ("none", "diagonal", "full")[len(c["arrays"].get("covariance", ()))]
    kinds: dict[str, Query] = {"moments": MomentSum("", frame, 1.0, C, second)}
    if c["method"] == Method.ADAPTIVE:
        centers, common = np.tile(region.center, (C, 1)), ("edge", "centre", "distance")
        searched = _mean_kinds(c)
        kinds |= {name: searched[name] for name in common}
        kinds |= {
            "classes": MomentSum("", frame, 1.0, C),
            "shape": MomentSum("", frame, 1.0, C, "full"),
            "within": CentredDistance("", frame, centers, 1.0),
            "spread": CentredSpread("", frame, centers, 1.0),
            "tail": CentredHistogram("", frame, centers, region.center[:1]),
        }
    return kinds


def _spread_kinds(c: dict[str, Any]) -> dict[str, Query]:
    """What a search for spread or principal axes asks last."""
    frame = Frame.plain(domain_of(c["domain"]).region(c["k"], _chart(c)).center)
    kinds = _mean_kinds(c)
    del kinds["mean"]
    private = c["adjacency"] == Adjacency.ADD_REMOVE
    if private:
        kinds["count"] = whole_domain_sum(_region(c), RECORD_NORM)
    last = {"spread moments": SpreadSum("", frame, 1.0, COUNTED if private else 0)}
    axes = {"moments": MomentSum("", frame, 1.0, second="full")}
    return kinds | (last if c["statistic"] == "dispersion" else axes)


def _last_moments(c: dict[str, Any]) -> Iterator[Check]:
    """σ and sensitivity of class means follow from the last step and the number."""
    if c["statistic"] != "class-means":
        return
    last, count = c["steps"][-1], c["n"] if c["n_estimate"] is None else c["n_estimate"]
    public = c["adjacency"] == Adjacency.REPLACE_ONE
    yield Check("number of records", (c["n"] is not None) == public, "public iff replace-one")
    yield _equal("last step", last["step"], "moments")
    yield _equal("classes", len(last["classes"]), c["arrays"]["means"][0])
    unit = last["radius"] / RECORD_NORM
    yield _same("lattice step", c["lattice_step"], unit, "radius/2³⁰")
    yield _same("sensitivity", c["sensitivity"], last["sensitivity"] * unit / count, "Δ·step/n")
    yield _same("sigma", c["sigma"], last["scale"] * unit / count, "σ of the last noise")


# Statistics that end in one query: its step, and what there is a lattice unit's size.
ENDS = {
    "median": ("direction", "size"),
    "regression": ("cross moments", "radius"),
    "difference": ("class moments", "radius"),
}


def _last_answer(c: dict[str, Any]) -> Iterator[Check]:
    """σ and sensitivity follow from the last step, its size and the number."""
    if c["statistic"] not in ENDS:
        return
    name, size = ENDS[c["statistic"]]
    last, count = c["steps"][-1], c["n"] if c["n_estimate"] is None else c["n_estimate"]
    public = c["adjacency"] == Adjacency.REPLACE_ONE
    yield Check("number of records", (c["n"] is not None) == public, "public iff replace-one")
    yield _equal("last step", last["step"], name)
    unit, root = last[size] / RECORD_NORM, sqrt(last.get("averaged", 1))
    yield _same("lattice step", c["lattice_step"], unit, "size/2³⁰")
    yield _same("sensitivity", c["sensitivity"], last["sensitivity"] * unit / count, "Δ·step/n")
    yield _same("sigma", c["sigma"], last["scale"] * unit / count / root, "σ of the last noise")


def _region(c: dict[str, Any]) -> Region:
    return domain_of(c["domain"]).region(c["k"], _chart(c))


def _covariates(c: dict[str, Any]) -> int:
    return int(c["arrays"]["at"][0])


ESTIMANDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "mean": lambda c: mean_estimand(c["distance"], c["unit"], c["max_records"]),
    "class-means": lambda c: class_estimand(c["distance"], c["unit"]),
    "dispersion": lambda c: mean_estimand(c["distance"], c["unit"]) + SPREAD_TOO,
    "pca": lambda c: mean_estimand(c["distance"], c["unit"]) + COMPONENTS_TOO,
    "median": lambda c: estimand_of("median", c["distance"], c["unit"]),
    "difference": lambda c: estimand_of("difference", c["distance"], c["unit"]),
    "regression": lambda c: estimand_of("regression", c["distance"], c["unit"], _covariates(c)),
}
KINDS: dict[str, Callable[[dict[str, Any]], dict[str, Query]]] = {
    "mean": _mean_kinds,
    "class-means": _class_kinds,
    "dispersion": _spread_kinds,
    "pca": _spread_kinds,
    "median": lambda c: median_kinds(_chart(c), _region(c)),
    "difference": lambda c: difference_kinds(_chart(c), _region(c)),
    "regression": lambda c: regression_kinds(_chart(c), _region(c), _covariates(c)),
}


def _sensitivities(c: dict[str, Any]) -> Iterator[Check]:
    """The sensitivity of each step follows from the kind of its query."""
    if c["method"] is None:
        return
    kinds, adjacency = _kinds(c), Adjacency(c["adjacency"])
    for step in c["steps"]:
        query = kinds.get(step["step"])
        found = None if query is None else query.sensitivity(adjacency)
        yield _equal(f"sensitivity of {step['step']}", step["sensitivity"], found)


def _one_shot(c: dict[str, Any]) -> Iterator[Check]:
    """All of one noisy sum follows from budget, domain and number of records."""
    if c["method"] != Method.ONESHOT or c["statistic"] != "mean":
        return
    ((step,), budget) = c["steps"], _budget_of(c)
    query = _kinds(c)["mean"]
    assert isinstance(query, VectorSum)
    public = c["adjacency"] == Adjacency.REPLACE_ONE
    yield Check("number of records", (c["n"] is not None) == public, "public iff replace-one")
    count = c["n"] if c["n_estimate"] is None else c["n_estimate"]
    bound, unit = query.sensitivity(Adjacency(c["adjacency"])), query.step
    scale = noise_scale(budget, bound)
    yield _same("scale", step["scale"], scale, "scale of the noise")
    yield _same("lattice step", c["lattice_step"], unit, "radius/2³⁰")
    yield _same("sensitivity", c["sensitivity"], bound * unit / count, "Δ·step/n")
    yield _same("sigma", c["sigma"], scale * unit / count, "σ of the noise")
    d, square = len(query.frame.center), (scale * unit / count) ** 2
    law = mean_law(budget.noise is Noise.LAPLACE, d, square, query.stretch)
    stated = c["squared_error_law"] or c["error_bound_parts"]["noise"]
    yield Check("law of the error", _close(stated, law), law["family"])


def _adaptive(c: dict[str, Any]) -> Iterator[Check]:
    """σ and sensitivity of the last step of a search follow from its radius and n."""
    if c["method"] != Method.ADAPTIVE or c["statistic"] not in LAST:
        return
    last, public = c["steps"][-1], c["adjacency"] == Adjacency.REPLACE_ONE
    if c["statistic"] == "mean":
        yield Check("adjacency", public, c["adjacency"])
    yield Check("number of records", (c["n"] is not None) == public, "public iff replace-one")
    yield _equal("last step", last["step"], LAST[c["statistic"]])
    number = Number(c["n"]) if public else Number(last["n_estimate"], last["count_sd"])
    yield _equal("noisy number", c["n_estimate"], None if public else number.value)
    unit, n = last["radius"] / RECORD_NORM, number.value
    yield _same("lattice step", c["lattice_step"], unit, "radius/2³⁰")
    yield _same("sensitivity", c["sensitivity"], last["sensitivity"] * unit / n, "Δ·step/n")
    yield _same("sigma", c["sigma"], last["scale"] * unit / n, "σ of the last noise")
    d = _chart(c).dimension(c["k"])  # units have mean square 1: Σ w²σ² = d·σ²
    noise = mean_of(c["error_bound_parts"]["noise"])
    yield _same("noise of the error", noise, d * (c["sigma"] * number.stretch) ** 2, "d·σ²")


def _close(a: Any, b: Any) -> bool:
    """Whether two specifications agree, up to rounding."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_close(a[name], b[name]) for name in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_close, a, b))
    if isinstance(a, str) or isinstance(b, str):
        return bool(a == b)
    return isclose(a, b, rel_tol=CLOSE)


def _error(c: dict[str, Any]) -> Iterator[Check]:
    """The stated error follows from its law, or from the parts of its bound."""
    law, parts = c["squared_error_law"], c["error_bound_parts"]
    if law is None and parts is None:
        yield Check("no bound", c["error_bound"] is None, c["error_statement"])
        yield from _within(c)
        return
    if law is None:
        yield from _bounds(c["error_bound"], parts)
        yield from _within(c)
        if c["error_bound_population"] is not None:
            yield from _population(c)
        return
    yield _same("expected error", c["expected_squared_error"], mean_of(law), "mean of the law")
    found = quantiles(law)
    yield _equal("quantiles", sorted(c["squared_error_quantiles"]), sorted(found))
    for level, value in found.items():
        yield _same("quantile", c["squared_error_quantiles"][level], value, level)
        if level in c["error_bound"]:
            yield _same("error bound", c["error_bound"][level], value**0.5, level)


def _within(c: dict[str, Any]) -> Iterator[Check]:
    """The sharper bound, for another target."""
    if c["error_bound_within"] is not None:
        stated = {k: v for k, v in c["error_bound_within"].items() if k.endswith("%")}
        yield from _bounds(stated, c["error_bound_within"]["parts"])


def _population(c: dict[str, Any]) -> Iterator[Check]:
    """The bound for the population's mean: the bound with more variance."""
    parts = c["error_bound_population"]["parts"]
    stated = {k: v for k, v in c["error_bound_population"].items() if k.endswith("%")}
    yield from _bounds(stated, parts)
    rest = {name: value for name, value in c["error_bound_parts"].items() if name != "noise"}
    same = _close(rest, {name: value for name, value in parts.items() if name != "noise"})
    yield Check("bound for the population", same, "but for its variance, that for the records")
    more = mean_of(parts["noise"]) >= mean_of(c["error_bound_parts"]["noise"])
    yield Check("variance of sampling", more, "adds to that of noise")


def _bounds(stated: dict[str, float], parts: dict[str, Any]) -> Iterator[Check]:
    """Bounds by level follow from the parts they are made of."""
    bound = Bound(**parts)
    for level, value in stated.items():
        found = bound.at(float(level.strip("%")) / 100)
        yield _same("error bound", value, found, level)
