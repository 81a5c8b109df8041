"""Means of classes, and their difference: counts, and bounds that follow from them."""

from collections.abc import Iterator
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from spdp.privacy.bounds import SURE, SURE_PART, Bound
from spdp.privacy.joint import count_reach, joint_law, least_count
from spdp.privacy.laws import chi2_law, weighted_chi2_law
from spdp.queries import RECORD_NORM, MomentSum
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
    of_kind,
    region_in,
    step_named,
)
from spdp.verification.searched import at_least
from spdp.verification.table import known
from spdp.verification.values import Values, at_edge, released_vectors, tolerance

__all__ = ["class_counts", "class_means", "class_places", "difference", "not_more"]

Array = NDArray[np.float64]
TALLIED = ("classes", "shape", "moments")  # steps whose counts are averaged
UNLIKELY = 7.0  # standard deviations of noise that numbers do not disagree by


def _query(c: Fields, name: str) -> MomentSum:
    return of_kind(MomentSum, known(c).kinds(c)[name])


def tally_sd(c: Fields) -> float:
    """Noise of the counts of classes, over all steps that counted."""
    counted = [step for step in c["steps"] if step["step"] in TALLIED]
    if "width" not in c["steps"][-1]:
        counted = counted[-1:]  # over the whole domain, the last counts alone
    sds = [step["scale"] / _query(c, step["step"]).weight for step in counted]
    return 1.0 / sqrt(sum(sd**-2.0 for sd in sds))


def class_counts(c: Fields) -> Iterator[Check]:
    """Classes are not seen where their count is the least that can be."""
    if c["statistic"] != "class-means":
        return
    last, least = c["steps"][-1], least_count(tally_sd(c))
    counts, names, unseen = last["counts"], last["classes"], last["unseen"]
    yield equal("counts", len(counts), len(names))
    ok = all(count >= least * (1.0 - CLOSE) for count in counts)
    yield Check("counts", ok, f"at least {least:.9g}")
    hidden = [name for name, count in zip(names, counts, strict=True) if close(count, least)]
    yield Check("classes not seen", unseen == hidden, f"those counted as {least:.9g}")


def not_more(c: Fields, values: Values) -> Iterator[Check]:
    """Classes do not hold more records than there are, noise aside."""
    if "counts" not in values:
        return
    last, counts = c["steps"][-1], values["counts"]
    sd, first = last["scale"] / _query(c, last["step"]).weight, step_named(c, "count")
    own = sd * sqrt(len(counts)) + (0.0 if first is None else first["scale"] / RECORD_NORM)
    floor = len(counts) * least_count(sd)
    most = divisor(c) + UNLIKELY * own + floor
    total = float(counts.sum())
    ok = total <= most or (c["statistic"] == "class-means" and not is_public(c))
    yield Check("counts", ok, f"{total:.9g} in all, at most {most:.9g}")


def class_means(c: Fields) -> Iterator[Check]:
    """Bounds on the joint error of class means follow from scale, counts and radius."""
    if c["statistic"] != "class-means":
        return
    if c["error_bound_parts"] is not None:
        yield from _whole(c, c["error_bound_parts"])
    if c["error_bound_within"] is not None:
        yield from _pulled(c, c["error_bound_within"]["parts"])


def _whole(c: Fields, parts: Fields) -> Iterator[Check]:
    last, region, d = c["steps"][-1], region_in(c), dimension(c)
    counts, scale = np.asarray(last["counts"], float), last["scale"]
    sum_sd, count_sd = scale * region.radius / RECORD_NORM, scale / _query(c, "moments").weight
    law = joint_law(counts, d, sum_sd, count_sd, region.radius)
    yield Check("law of the noise", close(parts["noise"], law), "from σ, counts and radius")
    step = 2.0 * region.radius / RECORD_NORM
    rounding = step * max(1.0, float(counts.sum()) / float(counts.min()))
    yield at_least("slack", parts["slack"], sqrt(len(counts) * d) * rounding, "rounding")
    least = sqrt(len(last["unseen"])) * region.radius
    yield at_least("classes not seen", parts["shift"], least, "each a radius, or more")
    yield equal("share of the risk", parts["part"], SURE_PART)


def class_places(c: Fields, values: Values) -> Iterator[Check]:
    """A class not seen may be as far as the domain's other side; none is farther."""
    if c["statistic"] != "class-means" or c["error_bound_parts"] is None:
        return
    last, region, parts = c["steps"][-1], region_in(c), c["error_bound_parts"]
    far = np.linalg.norm(released_vectors(c, values) - region.center, axis=1) + region.radius
    hidden = np.array([name in last["unseen"] for name in last["classes"]])
    room = sqrt(len(far)) * tolerance(c, values["means"])
    least = float(np.linalg.norm(far[hidden])) - room
    yield at_least("classes not seen", parts["shift"], least, "the domain's other side")
    yield at_least("farthest", parts["farthest"], float(np.linalg.norm(far)) - room, "the same")


def _pulled(c: Fields, parts: Fields) -> Iterator[Check]:
    last, d = c["steps"][-1], dimension(c)
    counts, width = np.asarray(last["counts"], float), np.asarray(last["width"], float)
    least = counts - count_reach(len(counts), tally_sd(c))
    yield Check("classes", not last["unseen"] and least.min() >= 1.0, "all of them seen")
    yield equal("units", len(width), d)
    unit = last["radius"] / RECORD_NORM
    variances = np.outer(least**-2.0, (width * last["scale"] * unit) ** 2).ravel()
    law = weighted_chi2_law(variances)
    yield Check("law of the noise", close(parts["noise"], law), "from σ, counts and units")
    slack = 2.0 * sqrt(len(counts) * d) * unit * float(width.max())
    slack *= divisor(c) / float(least.min())
    yield at_least("slack", parts["slack"], slack, "rounding to the lattice")
    yield equal("share of the risk", parts["part"], SURE_PART)
    yield equal("excess", (parts["excess"], parts["excess_sd"]), (0.0, 0.0))
    found = step_named(c, "spread")
    if found is not None and step_named(c, "shape") is None:
        spread = np.asarray(found["spread"], float)
        means_only = "covariance" not in c["arrays"]
        units = np.sqrt(spread / spread.mean()) if means_only else spread
        yield Check("units", close(width.tolist(), units.tolist()), "from the spread")


def difference(c: Fields, values: Values) -> Iterator[Check]:
    """The bound on a difference follows from counts, means and measured excess."""
    if c["statistic"] != "difference":
        return
    last, region, d = c["steps"][-1], region_in(c), dimension(c)
    counts, D = values["counts"], values["difference"]
    yield Check("counts", bool((counts >= 1.0).all()), "at least 1")
    unit = last["radius"] / RECORD_NORM
    sum_sd, count_sd = last["scale"] * unit, last["scale"] / _query(c, "class moments").weight
    Y, least = released_vectors(c, values), counts - SURE * count_sd
    center = np.asarray(last["center"], float)
    lengths = np.linalg.norm(Y - center, axis=1)
    yield from _chance(last["test"], d, float(((sum_sd / counts) ** 2).sum()))
    far = float(np.linalg.norm(D)) + 2.0 * region.radius
    both = (c["error_bound_parts"], c["error_bound_within"]["parts"])
    if least.min() < 1.0:
        certain = Bound.certain(d, far).describe()
        yield Check("bound", all(close(parts, certain) for parts in both), "the largest distance")
        return
    off = float((SURE * count_sd * lengths / least).sum())
    smaller = float(least.min())
    looked = step_named(c, "class excess")
    excess = (0.0, 0.0)
    if looked is not None:
        sd = looked["scale"] * looked["cap"] / RECORD_NORM
        excess = (looked["excess"] / smaller, sd / smaller)
        cap = region.radius - last["radius"]
        yield at_least("reach of the excess", looked["cap"], cap, "the domain's")
    else:
        yield at_least("radius", last["radius"], region.radius, "nothing was clipped")
    slack = 2.0 * sqrt(d) * unit * max(1.0, divisor(c) / smaller)
    noise, moved = chi2_law(d, sum_sd**2 * float((least**-2.0).sum())), both[0]["shift"]
    for parts, own in zip(both, (excess, (0.0, 0.0)), strict=True):
        bound = Bound(noise, *own, moved, slack, far, SURE_PART).describe()
        yield Check("bound", close(parts, bound), "from counts, σ and excess")
    noisy = float((SURE * count_sd / least).sum())
    room = noisy * tolerance(c, values["means"]) + 1e-9 * off
    # a centre outside the domain: a mean that is brought into it may get farther away
    outside = float(np.linalg.norm(chart_in(c).project(center, region) - center))
    edge = any(at_edge(c, y) for y in Y)
    ok = moved >= off - room - 2.0 * noisy * outside and (edge or moved <= off + room)
    yield Check("noise of the counts", ok, f"adds {moved:.9g}, expected {off:.9g}")


def _chance(test: Fields, d: int, added: float) -> Iterator[Check]:
    """What chance makes of a squared difference is no less than its noise."""
    mean = test["scale"] * test["freedom"]
    yield at_least("law of the test", mean, d * added, "noise alone")
    most = d + 1.0 + 1e-6  # noise of the counts is one more axis
    yield Check("law of the test", test["freedom"] <= most, f"at most {d + 1} axes")
