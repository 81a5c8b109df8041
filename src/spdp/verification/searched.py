"""The bound of a mean that a search found: its parts follow from the last steps."""

from collections.abc import Iterator
from math import isclose, sqrt

import numpy as np
from numpy.typing import NDArray

from spdp.frame import Frame
from spdp.privacy.bounds import (
    ELLIPSOID_PART,
    RETREAT_PART,
    SURE_PART,
    UPPER,
    along_one_axis,
)
from spdp.privacy.laws import mean_of, weighted_chi2_law
from spdp.queries import RECORD_NORM, MomentSum, SpreadSum
from spdp.queries.triangle import ON_DIAGONAL
from spdp.verification.base import (
    CLOSE,
    Check,
    Fields,
    chart_in,
    close,
    dimension,
    divisor,
    equal,
    is_public,
    number_of,
    of_kind,
    region_in,
    same,
    step_named,
)
from spdp.verification.table import known
from spdp.verification.values import Values, at_edge, released_vectors, tolerance

__all__ = ["farthest", "pulled", "sampling", "searched"]

Array = NDArray[np.float64]
SEARCHED = ("mean", "dispersion", "pca")
PULL = {"p", "sigma", "length", "factor", "alone"}


def _is_searched(c: Fields) -> bool:
    return c["method"] == "adaptive" and c["statistic"] in SEARCHED


def at_least(name: str, stated: float, least: float, what: str) -> Check:
    ok = stated >= least * (1.0 - CLOSE)
    return Check(name, ok, f"{what}: stated {stated:.9g}, at least {least:.9g}")


def _clipped(c: Fields) -> bool:
    """Whether the last answer is of less than the whole domain."""
    last, region = c["steps"][-1], region_in(c)
    if last["radius"] < region.radius:
        return True
    moved = "center" in last and not np.allclose(last["center"], region.center, atol=1e-12)
    return moved or (c["statistic"] != "mean" and step_named(c, "excess") is not None)


def variances_of(law: Fields) -> Array:
    """Variances of noise along the axes of its law."""
    if law["family"] == "chi2":
        return np.full(law["df"], law["scale"])
    return np.asarray(law["weights"], float)


def searched(c: Fields) -> Iterator[Check]:
    """Noise, excess, slack and share of the risk, from σ and what was measured."""
    if not _is_searched(c):
        return
    parts, looks = c["error_bound_parts"], [s for s in c["steps"] if s["step"] == "excess"]
    clipped, mean = _clipped(c), c["statistic"] == "mean"
    yield Check("excess", bool(looks) or not clipped, "measured where records were pulled")
    if mean:
        part = 1.0 if not looks else ELLIPSOID_PART if clipped and len(looks) == 1 else RETREAT_PART
    else:
        part = 1.0 if is_public(c) else SURE_PART
        yield from _number(c)
    yield equal("share of the risk", parts["part"], part)
    yield from _excess(c, parts, looks[-1] if clipped else None, 0)
    if c["error_bound_within"] is not None:
        near = c["error_bound_within"]
        yield equal("reach", near["reach"], looks[-1]["reach"][1])
        yield from _excess(c, near["parts"], looks[-1], 1)
    yield from _noise(c, parts, clipped)


def _number(c: Fields) -> Iterator[Check]:
    """The noise of a private number is that of the last answer."""
    if not is_public(c):
        query, last = known(c).kinds(c)[known(c).last], c["steps"][-1]
        weight = float(query.weight)  # type: ignore[attr-defined]
        yield same("noise of the number", last["count_sd"], last["scale"] / weight, "from σ")


def _excess(c: Fields, parts: Fields, look: Fields | None, i: int) -> Iterator[Check]:
    """Measured, over the last number of records; its noise is no less than paid for."""
    if look is None:
        yield equal("excess", (parts["excess"], parts["excess_sd"]), (0.0, 0.0))
        return
    first = step_named(c, "count")
    count = divisor(c) if first is None else float(first["n_estimate"])
    ratio = 1.0 if first is None else count / divisor(c) * number_of(c).stretch
    least = look["scale"] * look["reach"][i] / RECORD_NORM / count
    yield same("excess", parts["excess"], ratio * look["excess"][i], "as it was measured")
    yield at_least("noise of the excess", parts["excess_sd"], ratio * least, "from its step")
    if "excess_sd" in look:
        yield same("noise of the excess", parts["excess_sd"], ratio * look["excess_sd"][i], "step")
        square = look["scale"] * look["reach"][1] ** 2 / RECORD_NORM / count
        yield at_least("noise of squares", look["excess_sd"][1], square, "from its step")
    yield at_least("reach", look["reach"][0], region_in(c).radius, "the domain's")


def _noise(c: Fields, parts: Fields, clipped: bool) -> Iterator[Check]:
    """The law of the noise by the stated units, and what rounding adds."""
    stretch = 1.0 if is_public(c) else number_of(c).stretch
    own, found = variances_of(parts["noise"]), step_named(c, "correlation")
    widths = np.sqrt(own) / (c["sigma"] * stretch)
    yield equal("dimension", len(own), dimension(c))
    if found is not None and clipped:
        law = weighted_chi2_law((np.asarray(found["width"]) * c["sigma"] * stretch) ** 2)
        yield Check("law of the noise", close(parts["noise"], law), "from σ and units")
    slack = 2.0 * sqrt(len(own)) * c["lattice_step"] * float(widths.max())
    yield at_least("slack", parts["slack"], slack, "rounding to the lattice")


def pulled(c: Fields, values: Values) -> Iterator[Check]:
    """How a mean was pulled follows from σ, its dimension and its own length."""
    parts = c["error_bound_parts"]
    if parts is None or parts.get("pull") is None:
        return
    pull, d = parts["pull"], dimension(c)
    plain = c["statistic"] == "mean" and c["method"] == "adaptive"
    yield Check("pull", plain and pull.keys() == PULL, "of a searched mean")
    yield Check("pull", pull["alone"] in (0, 1) and pull["p"] + pull["alone"] == d, "dimensions")
    own = variances_of(parts["noise"])
    yield Check("pull", bool(np.ptp(own) <= CLOSE * own.max()), "where all units are equal")
    yield same("noise of what was pulled", pull["sigma"], sqrt(float(own.max())), "σ")
    p, square = pull["p"], pull["length"] ** 2
    factor = max(0.0, 1.0 - (p - 2) * pull["sigma"] ** 2 / square) if square else 1.0
    ok = isclose(pull["factor"], factor, rel_tol=1e-6, abs_tol=1e-9)
    yield Check("factor of the pull", ok, "James and Stein's")
    if any(s["step"] == "centre" for s in c["steps"]) and not _clipped(c):
        return  # pulled to a centre that no step states
    if c["reference"] is not None and not _clipped(c):
        return
    (y,) = released_vectors(c, values)
    if at_edge(c, y):
        return  # brought back into the domain, it is shorter or longer
    rest = y - np.asarray(c["steps"][-1]["center"], float)
    if pull["alone"]:
        rest = rest - chart_in(c).components(rest)[0].v
    most = pull["factor"] * pull["length"] + tolerance(c, values["mean"])
    length = float(np.linalg.norm(rest))
    yield Check("length of the pull", length <= most, f"{length:.9g}, at most {most:.9g}")


def farthest(c: Fields, values: Values) -> Iterator[Check]:
    """No error is larger than from the value to the domain's other side."""
    if not _is_searched(c):
        return
    (y,), region, parts = released_vectors(c, values), region_in(c), c["error_bound_parts"]
    least = region.radius + float(np.linalg.norm(y - region.center))
    least -= tolerance(c, values["mean"])
    yield at_least("farthest", parts["farthest"], least, "the domain's other side")


def sampling(c: Fields, values: Values) -> Iterator[Check]:
    """The population's bound adds the released variance, over the number, to noise."""
    if c["error_bound_population"] is None:
        return
    found = variances_of(c["error_bound_population"]["parts"]["noise"])
    check = _spread if c["statistic"] == "dispersion" else _components
    yield from check(c, values, found)


def _spread(c: Fields, values: Values, found: Array) -> Iterator[Check]:
    last, number, d = c["steps"][-1], number_of(c), dimension(c)
    sd, variance = last["variance_sd"], float(values["variance"])
    frame = Frame.plain(region_in(c).center)
    unit = SpreadSum("", frame, last["radius"]).units(number.value)[1]
    least = sqrt((last["scale"] * unit) ** 2 + 2.0 * d * c["sigma"] ** 4)
    yield at_least("noise of the variance", sd, least, "from σ")
    noise = (c["sigma"] * number.stretch) ** 2
    added = (variance + UPPER * sd) * number.stretch / number.value
    law = weighted_chi2_law(along_one_axis(d, noise, added))
    same_law = close(c["error_bound_population"]["parts"]["noise"], law)
    yield Check("variance of sampling", same_law, "from the variance released")


def _components(c: Fields, values: Values, found: Array) -> Iterator[Check]:
    """By trace, and eigenvalue by eigenvalue up to how noise differs along the axes."""
    last, number, C = c["steps"][-1], number_of(c), values["covariance"]
    query = of_kind(MomentSum, known(c).kinds(c)["moments"])
    square = (last["radius"] / query.factor) ** 2 / ON_DIAGONAL
    yield same("noise of squares", last["second_sd"], last["scale"] * square / number.value, "σ")
    yield Check("trusted", 0.0 <= last["trusted"] < 1.0, "a share below 1")
    own = variances_of(c["error_bound_parts"]["noise"])
    fourth = float((own**2).sum()) / (c["sigma"] * number.stretch) ** 4
    trace, values_ = float(np.trace(C)), np.linalg.eigvalsh(C)
    larger = 1.0 + UPPER * last["second_sd"] * sqrt(fourth) / trace
    added = values_ * larger * number.stretch**2 / number.value
    total = float(own.sum() + added.sum())
    yield same("variance of sampling", float(found.sum()), total, "from the covariance released")
    low, high = added + own.min(), added + own.max()
    rising, room = np.sort(found), 1e-7 * float(found.max())
    ok = bool((rising >= low - room).all() and (rising <= high + room).all())
    yield Check("variance of sampling", ok, "along each axis")
    yield Check("noise", mean_of(c["error_bound_parts"]["noise"]) > 0, "there is some")
