"""Checks that a certificate agrees with itself: it is derived again, and compared.

Verification proves that value and certificate are those that were sealed (and, with a
signature, by whom), and that the numbers follow from each other: sensitivities from the
kind of query, scales and prices from those and the budget, the error from the noise. It
does NOT prove that the noise was drawn, that the records were those of the dataset,
that the domain was chosen without looking at them, that each person owned one record
(or that the ids of persons were right), or that a ledger was kept.

What follows from other fields is compared with :func:`.declaration.derived_fields`;
what is an inequality, and what is known of the values, is checked here for all
statistics, and beside each statistic for its own.
"""

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from math import inf, isclose, isfinite, log, prod
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from spdp.error.bound import COUNTED_SHARES, SHARES, Bound, sampled_sd
from spdp.error.laws import WeightedChi2
from spdp.kernels.arrays import Array
from spdp.options import Adjacency, Noise
from spdp.privacy.account import Step, distributed_scale, laplace_scale_exact, lattice_scale
from spdp.release.certificate import Certificate, Facts, OtherBound
from spdp.release.declaration import (
    LAW,
    MAY,
    MUST,
    NONE,
    PARTS,
    Check,
    Values,
    derived_fields,
    mu_spent,
)

NOT_PROVEN = (
    "Not proven: that the noise was drawn, that the records were the dataset's, that the "
    "domain was chosen without looking at them, that each person owned one record (or that the "
    "ids of persons were right), and that every release of the dataset was accounted for."
)
# Parts of sentences as earlier versions wrote them, and as they are written now, oldest
# first. Whoever changes a sentence of certificates adds a line, so that releases of
# earlier versions keep verifying.
REWORDED: tuple[tuple[str, str], ...] = ()
CLOSE = 1e-9  # relative rounding between two computations of one number
# the same of quantiles of sums with unequal weights, which were once less exact
FORMERLY, QUANTILES = 1e-3, ("error_bound", "squared_error_quantiles")
EUCLID = "euclid"  # metric of a summary with noise on the matrix itself
# Patterns of fields that do not follow from others.
DIGEST = re.compile(r"[0-9a-f]{64}")
VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,39}")
WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
MADE_WITH = ["numpy", "python", "sampler", "spdp"]
# What draws each noise. Certificates made while OpenDP drew all Gaussian noise state
# its version instead.
SAMPLER = {
    "simulation": re.compile(r"simulation"),
    "sites": re.compile(r"sites"),
    "laplace": re.compile(r"laplace-[0-9]{1,3}"),
    "gaussian": re.compile(r"strips-[0-9]{1,3}|opendp-" + VERSION.pattern),
}
BEFORE = ["numpy", "opendp", "python", "spdp"]
# How well matrices of float64 numbers hold a vector.
HARDLY = 1e10  # ratio of eigenvalues from which on matrices may have been moved
EPS = float(np.finfo(np.float64).eps)
ROUNDING = 1e-7  # of a vector, over its domain's radius
NEAR = 1.01  # times as far from the centre, a point of the domain's edge is outside


def checks(certificate: Any, values: Values | None = None) -> list[Check]:
    """Derive a certificate again from what it states, and compare.

    With ``values``, also what it states of those. Their shapes come first, and if they
    do not agree nothing else is looked at: what deriving takes grows with the stated
    size, so that a few bytes could otherwise ask for hours and gigabytes.
    """
    try:
        facts = stated = Certificate.read(certificate)
        declaration, _ = facts.declaration, facts.answers
    except Exception as error:  # edited numbers may cause any error
        return [Check("certificate", False, f"cannot be read: {error}")]
    shapes = [] if values is None else _asked(_shapes, facts, values)
    if not all(check.ok for check in shapes):
        return shapes
    results = _asked(_derived, stated) + shapes
    for check in (_budget, _steps, _first, _error, _free, declaration.check):
        results += _asked(check, facts)
    if values is not None:
        arrays = Arrays(facts, values)
        results += _asked(_matrices, facts, arrays)
        results += _asked(declaration.check_values, facts, arrays)
    return results


class Arrays(dict[str, NDArray[Any]]):
    """The arrays of a release, and what several checks need of them, computed once."""

    def __init__(self, facts: Facts, values: Values) -> None:
        super().__init__(values)
        self._facts = facts

    @cached_property
    def vectors(self) -> Array:
        """Vectors (m, d) of the released matrices; an error if the chart has none."""
        f = self._facts
        return np.atleast_2d(f.chart.vector(self[f.declaration.matrices]))

    @cached_property
    def tolerance(self) -> float:
        """How far rounding of matrices may move their vectors.

        From a condition number of HARDLY on, the value itself may have been moved so
        that float64 can hold it: by its bound's shift, if the bound counts it, or by
        any distance.
        """
        f = self._facts
        M, Y = self[f.declaration.matrices], self.vectors
        ratio = condition(M) * (1.0 if f.reference_point is None else condition(f.reference_point))
        size = float(np.linalg.norm(Y, axis=1).max(initial=0.0))
        if f.metric == "logchol":  # rounding of a Cholesky factor grows with its entries
            coarse = ratio * max(1.0, size)
        else:  # rounding of a logarithm also grows with the distance to the identity
            coarse = ratio + size + abs(log(float(np.abs(M).max())))
        rounding = ROUNDING * f.space.region.radius + 16.0 * EPS * f.k * coarse
        if ratio <= HARDLY:
            return float(rounding)
        counted = f.bound is not None and f.declaration.counts_moves
        return float(f.bound.shift + rounding) if counted and f.bound is not None else inf


def _shapes(f: Facts, values: Values) -> Iterator[Check]:
    """Arrays have the shapes that follow from sizes, laws have no more numbers."""
    found = {name: list(array.shape) for name, array in values.items()}
    yield Check("values", found == f.arrays, f"arrays {found}")
    yield equal("arrays", f.arrays, f.declaration.shapes(f))
    most = prod(f.arrays[f.declaration.matrices])
    for bound in (f.bound, f.within, f.population):
        law = None if bound is None else bound.noise
        if isinstance(law, WeightedChi2):
            detail = f"{len(law.weights)}, for {most} released numbers"
            yield Check("weights", len(law.weights) <= most, detail)


def _asked(check: Callable[..., Iterator[Check]], *args: Any) -> list[Check]:
    """Results of a check; a check that raises an error has failed."""
    try:
        with np.errstate(all="ignore"):  # edited numbers overflow
            return list(check(*args))
    except Exception as error:
        name = check.__name__.strip("_").replace("_", " ")
        return [Check(name, False, f"cannot be recomputed: {error!r}")]


# --- comparing


def same(name: str, stated: float | None, found: float | None, what: str) -> Check:
    """Whether two numbers agree, up to rounding."""
    if stated is None or found is None:
        return Check(name, stated is found, what)
    ok = isclose(stated, found, rel_tol=CLOSE)
    return Check(name, ok, f"{what}: stated {stated:.9g}, recomputed {found:.9g}")


def equal(name: str, stated: Any, found: Any) -> Check:
    """Whether two things are the same."""
    return Check(name, stated == found, f"stated {stated!r}, expected {found!r}")


def at_least(name: str, stated: float, least: float, what: str) -> Check:
    """Whether a number is no smaller than it must be."""
    ok = stated >= least * (1.0 - CLOSE)
    return Check(name, ok, f"{what}: stated {stated:.9g}, at least {least:.9g}")


def close(a: Any, b: Any, rounding: float = CLOSE) -> bool:
    """Whether plain data, or structs of them, agree up to rounding."""
    if isinstance(a, msgspec.Struct) or isinstance(b, msgspec.Struct):
        return close(msgspec.to_builtins(a), msgspec.to_builtins(b), rounding)
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(close(a[name], b[name], rounding) for name in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(close(x, y, rounding) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) or isinstance(b, float):
        return a is not None and b is not None and isclose(a, b, rel_tol=rounding)
    return bool(a == b)


def _derived(stated: Certificate) -> Iterator[Check]:
    """Every field that follows from others, derived again."""
    unequal = isinstance(stated.squared_error_law, WeightedChi2)
    for name, b in derived_fields(stated).items():
        a = _in_current_words(getattr(stated, name))
        agree = close(a, b, FORMERLY if unequal and name in QUANTILES else CLOSE)
        detail = f"stated {_brief(a)}" + ("" if agree else f", expected {_brief(b)}")
        yield Check(name.replace("_", " "), agree, detail)


def _in_current_words(value: Any) -> Any:
    """A field whose sentences an earlier version wrote, as this one writes them."""
    if isinstance(value, OtherBound):
        return msgspec.structs.replace(value, estimand=_in_current_words(value.estimand))
    if isinstance(value, str):
        for former, current in REWORDED:
            value = value.replace(former, current)
    return value


def _brief(value: Any) -> str:
    return f"{value!r:.200}"


# --- budget, prices, noise


def _budget(f: Facts) -> Iterator[Check]:
    """What was spent is what ε and δ allow, and the number of records is possible."""
    allowed, spent = f.budget.mu, mu_spent(f)
    if allowed is not None and spent is not None:
        ok = isclose(spent, allowed, rel_tol=CLOSE) and spent <= allowed
        yield Check("budget", ok, f"μ spent {spent:.9g}, of {allowed:.9g} that ε and δ allow")
    if allowed is None:
        costs = [step.epsilon for step in f.answers if step.epsilon is not None]
        total = sum(map(Fraction, costs), Fraction(0))
        ok = isclose(total, f.epsilon, rel_tol=CLOSE) and total <= Fraction(f.epsilon)
        yield Check("budget", ok, f"ε spent {float(total):.9g}, of {f.epsilon:.9g}")
    weighs = "max_records" in f.declaration.stated and f.unit == "person" and not f.searched
    yield Check("records that count", f.max_records is None or weighs, f"at most {f.max_records}")
    if f.method is None:
        return
    yield Check("unit", f.unit is not None, "states whose data are protected")
    yield Check("adjacency", f.adjacency in set(Adjacency), f.adjacency)
    yield Check("number of records", (f.n is not None) == f.public, "public iff replace-one")


def _steps(f: Facts) -> Iterator[Check]:
    """Sensitivities follow from queries, noise from these and from prices."""
    pure = f.budget.noise is Noise.LAPLACE
    if not f.searched:
        yield Check("steps", len(f.answers) == 1, "one answer, unless a search asks more")
    order = "".join(f"{step.step};" for step in f.answers)
    yield Check("steps", re.fullmatch(f.declaration.order, order) is not None, order)
    counted = not f.public or f.max_records is not None or f.noisy_count is None
    yield Check("number of records", counted, "asked only where it is private, or weights count")
    for i, step in enumerate(f.answers):
        where = f"step {i + 1}, {step.step}"
        if f.method is not None:
            found = f.queries[step.step].sensitivity(Adjacency(f.adjacency))
            yield equal(f"sensitivity of {step.step}", step.sensitivity, found)
        yield Check("step", *_priced(f, step, pure, where))
        plain = all(_is_numbers(value) for value in _notes(step)) and step.fits(f)
        yield Check("notes", plain, f"{where}: finite numbers that are possible")


def _first(f: Facts) -> Iterator[Check]:
    """The first round looks at the whole domain, unless a reference says where."""
    first = next((s for s in f.answers if s.step not in ("count", "edge")), f.last)
    if first.step == "center":
        region = f.space.region
        yield same("radius of the first round", first.radius, float(region.radius), "the domain's")
        yield Check("center of the first round", close(first.center, list(region.center)), "its")


def _priced(f: Facts, step: Step, pure: bool, where: str) -> tuple[bool, str]:
    """Whether the noise of a step is what its price buys."""
    if pure:
        ok = step.epsilon is not None and step.epsilon > 0 and step.mu is None
        scale = float(laplace_scale_exact(step.sensitivity, step.epsilon or inf)) if ok else inf
    else:
        ok = step.mu is not None and step.mu > 0 and step.epsilon is None
        scale = _gaussian_scale(f, step.sensitivity, step.mu) if ok and step.mu else inf
    return ok and step.scale == scale, f"scale of {where}: stated {step.scale:.9g}, {scale:.9g}"


def _gaussian_scale(f: Facts, sensitivity: int, mu: float) -> float:
    if f.trust:
        return distributed_scale(sensitivity, mu, f.trust.sites, f.trust.colluding)
    return lattice_scale(sensitivity, mu)


def _notes(step: Step) -> Iterator[Any]:
    for name, value in msgspec.to_builtins(step).items():
        if isinstance(value, dict):
            yield from (one for one in value.values() if not isinstance(one, str | None))
        elif name not in ("step", "classes", "unseen"):
            yield value


def _is_numbers(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_numbers, value))
    return type(value) in (int, float) and isfinite(value)


# --- the error


def _error(f: Facts) -> Iterator[Check]:
    """The error is stated in a form that the statistic allows; its parts follow."""
    line, form = f.declaration, PARTS if f.bound is not None else NONE
    if f.bound is None and line.law(f) is not None:
        form = LAW
    yield Check("form of the error", form in line.forms.get(f.method, ()), form)
    for name, rule, stated in (
        ("within", line.within, f.within),
        ("population", line.population, f.population),
    ):
        ok = rule in (MAY, MUST) if stated is not None else rule != MUST
        yield Check(f"bound, {name}", ok, "where it can be stated")
    least = f.space.region.radius if f.domain is not None and f.method is not None else 0.0
    for bound in (f.bound, f.within, f.population):
        if bound is not None:
            yield Check(
                "share of the risk",
                bound.risk_share in SHARES + COUNTED_SHARES,
                f"{bound.risk_share}",
            )
            yield at_least("max distance", bound.max_distance, least, "the domain's radius")
    if f.bound is None:
        return
    expected = line.expected_bound(f)
    ok = expected is not None and close(f.bound, expected)
    yield Check("error bound", ok, "" if ok else _parting(f.bound, expected))
    if f.population is not None:
        yield from _population(f, f.bound, f.population)


def _parting(stated: Bound, expected: Bound | None) -> str:
    """The parts in which a stated bound differs from the derived one."""
    if expected is None:
        return "none can be stated"
    names = [
        n for n in Bound.__struct_fields__ if not close(getattr(stated, n), getattr(expected, n))
    ]
    return ", ".join(f"{n}: stated {_brief(getattr(stated, n))}" for n in names)


def _population(f: Facts, own: Bound, wider: Bound) -> Iterator[Check]:
    """The bound for the population's mean adds the variance of sampling."""
    alike = own.replace(noise=wider.noise, clipping_bias_sd=wider.clipping_bias_sd)
    yield Check("bound, population", close(alike, wider), "as for the records, but for variances")
    more = wider.noise.mean() >= own.noise.mean()
    yield Check("variance of sampling", more, "adds to the variance of noise")
    look = f.step("clipping bias")
    reach = 0.0 if look is None else look.reach[0]
    n = f.count.value / f.count.stretch
    sd = sampled_sd(own.clipping_bias, own.clipping_bias_sd, reach, n)
    yield same("sampling of the bias", wider.clipping_bias_sd, sd, "noise and sampling")


def _free(f: Facts) -> Iterator[Check]:
    """Free-form fields match their pattern and appear only where allowed."""
    versions = dict(f.versions)
    ok = sorted(versions) in (MADE_WITH, BEFORE)
    drawn = versions.pop("sampler", None)
    ok = ok and all(VERSION.fullmatch(text) is not None for text in versions.values())
    yield Check("versions", ok, "of what made the release")
    noise = "simulation" if f.seed is not None else f.budget.noise.value
    noise = "sites" if f.trust else noise
    fits = drawn is None or SAMPLER[noise].fullmatch(drawn) is not None
    yield Check("sampler", fits, "one that draws this noise")
    yield Check("created", WHEN.fullmatch(f.created) is not None, "a time, UTC")
    searches = "reference" in f.declaration.stated and f.max_records is None
    ok = f.reference is None or (searches and DIGEST.fullmatch(f.reference) is not None)
    yield Check("reference", ok, "the digest of one, where a search could start from it")
    edge = f.step("edge") is None or f.searched
    yield Check("outside", edge, "where a search asked for it")
    ok = not f.trust or (DIGEST.fullmatch(f.trust.study) is not None and f.seed is None)
    yield Check("study", ok, "the digest of one, and no simulation")
    yield Check("seed", f.seed in (None, "generator") or type(f.seed) is int, "a number, or none")


# --- values


def _matrices(f: Facts, values: Arrays) -> Iterator[Check]:
    """Matrices are finite, symmetric, and inside the stated domain."""
    told = (array for name, array in values.items() if name not in f.declaration.missing)
    yield Check("numbers", all(np.isfinite(array).all() for array in told), "finite")
    M = values[f.declaration.matrices]
    ok = bool((np.conj(np.swapaxes(M, -1, -2)) == M).all())
    yield Check("matrices", ok, "symmetric")
    if f.metric == EUCLID:
        return
    Y = values.vectors
    if f.domain is None:
        return
    chart, region = f.chart, f.space.region
    inside = np.array([chart.project(y, region) for y in Y])
    off, limit = float(np.abs(inside - Y).max()), values.tolerance
    held = float(np.abs(chart.representable(inside) - inside).max())
    yield Check("in the domain", off <= limit + held, f"off by {off:.3g}, allowed {limit:.3g}")


def condition(M: Any) -> float:
    """The largest over the smallest eigenvalue, of the worst matrix."""
    values = np.linalg.eigvalsh(np.asarray(M))
    return float((1.0 / np.maximum(values[..., 0] / values[..., -1], 1e-300)).max())


def at_edge(f: Facts, y: Array) -> bool:
    """Whether a point lies at its domain's edge, where projection may have put it."""
    region = f.space.region
    beyond = region.center + NEAR * (y - region.center)
    gap = np.linalg.norm(f.chart.project(beyond, region) - beyond)
    return bool(gap > 1e-3 * np.linalg.norm(beyond - y))


def farthest(f: Facts, values: Arrays) -> Check:
    """The largest possible error is the distance from the value to the far side."""
    assert f.bound is not None
    (y,), region = values.vectors, f.space.region
    least = region.radius + float(np.linalg.norm(y - region.center)) - values.tolerance
    return at_least("max distance", f.bound.max_distance, least, "the domain's other side")


def covariance(C: Array) -> Check:
    """A covariance, or its diagonal, is symmetric without negative eigenvalues."""
    least = float(C.min()) if C.ndim == 1 else float(np.linalg.eigvalsh(C)[0])
    size = float(np.abs(C).max())
    ok = least >= -1e-9 * size and (C.ndim == 1 or bool(np.abs(C - C.T).max() <= 1e-9 * size))
    return Check("covariance", ok, f"symmetric, its least eigenvalue {least:.3g}")
