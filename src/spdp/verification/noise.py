"""Budget, prices, sensitivities and noise: what was paid, and for what."""

from collections.abc import Iterator
from fractions import Fraction
from math import isclose, sqrt

from spdp.choices import Adjacency, Method, Noise
from spdp.privacy.account import laplace_scale_exact, lattice_scale, noise_scale
from spdp.privacy.laws import mean_law
from spdp.queries import RECORD_NORM, VectorSum
from spdp.verification.base import (
    CLOSE,
    Check,
    Fields,
    budget_of,
    close,
    divisor,
    equal,
    is_public,
    of_kind,
    same,
)
from spdp.verification.table import known

__all__ = ["budget", "last_answer", "one_shot", "sensitivities", "steps"]

PUBLIC = "public iff replace-one"


def budget(c: Fields) -> Iterator[Check]:
    """δ and μ follow from ε, δ and the calibration."""
    allowed = budget_of(c)
    yield equal("delta", c["delta"], allowed.delta)
    if allowed.mu is None:
        yield Check("mu", c["mu"] is None, "pure differential privacy has no μ")
    else:
        spent = f"μ spent {c['mu']:.9g}, of {allowed.mu:.9g} that ε and δ allow"
        ok = isclose(c["mu"], allowed.mu, rel_tol=CLOSE) and c["mu"] <= allowed.mu
        yield Check("mu", ok, spent)


def steps(c: Fields) -> Iterator[Check]:
    """Each step's noise follows from its sensitivity and price, and all add up to μ."""
    if budget_of(c).mu is None:
        (step,) = c["steps"]
        scale = float(laplace_scale_exact(step["sensitivity"], c["epsilon"]))
        yield equal("scale", step["scale"], scale)
        yield equal("step's epsilon", step["epsilon"], c["epsilon"])
        return
    for i, step in enumerate(c["steps"]):
        mu, scale = step["mu"], lattice_scale(step["sensitivity"], step["mu"])
        stated = f"stated {step['scale']:.9g}, {scale:.9g} for μ = {mu:.9g}"
        ok = mu > 0 and step["scale"] == scale
        yield Check("step", ok, f"scale of step {i + 1}, {step['step']}: {stated}")
    total = sum((Fraction(step["mu"]) ** 2 for step in c["steps"]), Fraction(0))
    ok = 0 < total <= Fraction(c["mu"]) ** 2 and isclose(float(total), c["mu"] ** 2, rel_tol=CLOSE)
    yield Check("sum of steps", ok, f"√Σμᵢ² = {float(total) ** 0.5:.9g} of μ = {c['mu']:.9g}")


def sensitivities(c: Fields) -> Iterator[Check]:
    """The sensitivity of each step follows from the kind of its query."""
    if c["method"] is None:
        return
    kinds, adjacency = known(c).kinds(c), Adjacency(c["adjacency"])
    for step in c["steps"]:
        query = kinds.get(step["step"])
        found = None if query is None else query.sensitivity(adjacency)
        yield equal(f"sensitivity of {step['step']}", step["sensitivity"], found)


def _is_plain(c: Fields) -> bool:
    """Whether a certificate is of a mean by one noisy sum."""
    return bool(c["method"] == Method.ONESHOT and c["statistic"] == "mean")


def one_shot(c: Fields) -> Iterator[Check]:
    """All of one noisy sum follows from budget, domain and number of records."""
    if not _is_plain(c):
        return
    ((step,), allowed) = c["steps"], budget_of(c)
    query = of_kind(VectorSum, known(c).kinds(c)["mean"])
    yield Check("number of records", (c["n"] is not None) == is_public(c), PUBLIC)
    count = divisor(c)
    bound, unit = query.sensitivity(Adjacency(c["adjacency"])), query.step
    scale = noise_scale(allowed, bound)
    yield same("scale", step["scale"], scale, "scale of the noise")
    yield same("lattice step", c["lattice_step"], unit, "radius/2³⁰")
    yield same("sensitivity", c["sensitivity"], bound * unit / count, "Δ·step/n")
    yield same("sigma", c["sigma"], scale * unit / count, "σ of the noise")
    d, square = len(query.frame.center), (scale * unit / count) ** 2
    law = mean_law(allowed.noise is Noise.LAPLACE, d, square, query.stretch)
    stated = c["squared_error_law"] or c["error_bound_parts"]["noise"]
    yield Check("law of the error", close(stated, law), law["family"])


def last_answer(c: Fields) -> Iterator[Check]:
    """σ and sensitivity follow from the last step, its size and the number."""
    if c["method"] is None or _is_plain(c):
        return
    line, last, count = known(c), c["steps"][-1], divisor(c)
    if c["statistic"] == "mean":
        yield Check("adjacency", is_public(c), c["adjacency"])
    yield Check("number of records", (c["n"] is not None) == is_public(c), PUBLIC)
    yield same("noisy number", c["n_estimate"], _noisy_number(c), "as it was released")
    yield equal("last step", last["step"], line.last)
    unit, root = last[line.size] / RECORD_NORM, sqrt(line.averaged)
    yield same("lattice step", c["lattice_step"], unit, f"{line.size}/2³⁰")
    yield same("sensitivity", c["sensitivity"], last["sensitivity"] * unit / count, "Δ·step/n")
    yield same("sigma", c["sigma"], last["scale"] * unit / count / root, "σ of the last noise")


def _noisy_number(c: Fields) -> float | None:
    """The last number of records that a step released, where it is private."""
    if is_public(c):
        return None
    if c["statistic"] == "class-means":
        return float(sum(c["steps"][-1]["counts"]))
    return float([step["n_estimate"] for step in c["steps"] if "n_estimate" in step][-1])
