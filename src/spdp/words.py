"""A certificate in plain words.

Each sentence is put together from the certificate's own fields. What a release
estimates and what its error law covers is written there by whoever made the release; it
is repeated here and never inferred from the mechanism, the method or the steps.
"""

from collections.abc import Sequence
from math import exp, sqrt
from sys import float_info
from typing import Any, NamedTuple

from spdp.cautions import hopeless, reach
from spdp.certificate import COMPONENTS_TOO, SPREAD_TOO
from spdp.choices import counted
from spdp.errors import ParameterError, named
from spdp.privacy.laws import mean_of

__all__ = [
    "Verdict",
    "accuracy",
    "check_names",
    "coverage",
    "facts",
    "found_of",
    "heading",
    "meaning",
    "subject",
    "verdict",
]

Certificate = dict[str, Any]

LEVEL = 0.05  # of a test, above which a difference may be noise
LARGEST_EXPONENT = 700.0  # beyond it, e^ε leaves float64

SECRETS = {
    ("replace-one", "record"): "whether any one record had been another one",
    ("replace-one", "person"): "whether any one person's records had been other ones",
    ("replace-one", "voxel"): "whether any one voxel had been another one",
    ("add-remove", "record"): "whether any one record was in the data at all",
    ("add-remove", "voxel"): "whether any one voxel was in the data at all",
    ("add-remove", "person"): "whether any one person's records were in the data at all",
}
STATISTICS = {  # what is released, for a heading that goes on: of so large matrices
    "mean": "mean",
    "dispersion": "mean and spread",
    "pca": "principal components",
    "median": "geometric median",
    "regression": "regression on covariates",
    "difference": "comparison of two classes",
}
# From what to what an error is measured.
RELEASED = {
    "mean": "this matrix",
    "dispersion": "the released mean",
    "pca": "the released mean",
}
# What a domain of correlation matrices claims, where the metric does not make them so.
OFFLOG = "offlog"
CLAIM = (
    "eigenvalues of at least the shrinkage and trace k, as of correlation matrices shrunk by it. "
    "Records were not divided by their variances, and the diagonal of a mean need not be 1 "
    "(metric offlog does both)"
)
# What a guarantee does not promise, where it might be taken to.
LIMITS = {"voxel": "The voxels of one image are one person's: this does not protect a person."}


class Verdict(NamedTuple):
    """Private or not, in a few words and in full."""

    private: bool
    brief: str
    full: str


def heading(c: Certificate) -> str:
    """Which statistic a release is, and of what size its matrices are."""
    kind = "Private" if c["private"] else "Simulated"
    size = f"{c['k']}×{c['k']}"
    if c["unit"] is None:  # a stated summary may be anything
        return f"{kind} {size} matrix"
    if c["statistic"] == "mean" and c["parts"]:
        return f"{kind} means of {c['parts']} {size} matrices"
    if c["statistic"] == "class-means":
        classes = next(iter(c["arrays"].values()))[0]
        return f"{kind} means of {classes} classes of {size} matrices"
    return f"{kind} {STATISTICS.get(c['statistic'], c['statistic'])} of {size} matrices"


def subject(c: Certificate) -> str:
    """What a release estimates."""
    what = "This matrix estimates" if len(c["arrays"]) == 1 else "These numbers estimate"
    return f"{what} {c['estimand']}."


def check_names(names: Sequence[str] | None, k: int) -> list[str] | None:
    """Names of the k rows of a matrix as a list, or an error."""
    if names is None:
        return None
    found = [str(name) for name in names]
    if isinstance(names, str) or len(found) != k:
        raise ParameterError(
            f"{named('names')}: {len(found)} names, but the matrices have {k} rows"
        )
    return found


def verdict(c: Certificate) -> Verdict:
    """The guarantee: P(A | D) ≤ e^ε · P(A | D') + δ for adjacent D, D' and all A."""
    if not c["private"]:
        warning = "This is a seeded simulation and must not be published as a private release."
        return Verdict(False, "Not private.", warning)
    brief = f"({c['epsilon']:g}, {c['delta']:g})-differentially private."
    return Verdict(True, brief, " ".join([_secret(c), _odds(c), *_rounding(c)]))


def _secret(c: Certificate) -> str:
    secret = SECRETS.get((c["adjacency"], c["unit"]))
    if secret is not None:
        tell = f"Whoever sees this page, or anything made from it, can hardly tell {secret}."
        return " ".join([tell, *([LIMITS[c["unit"]]] if c["unit"] in LIMITS else [])])
    return (
        "The guarantee holds between any two datasets whose summaries are at most "
        f"{c['sensitivity']:g} apart ({c['distance']} distance). That bound was stated by "
        "whoever made the release; it was not checked."
    )


def _odds(c: Certificate) -> str:
    factor = f"e^ε = {exp(min(c['epsilon'], LARGEST_EXPONENT)):.3g}"
    slack = f", plus δ = {c['delta']:g}" if c["delta"] else ""
    return f"The probability of any outcome grows by at most a factor of {factor}{slack}."


def _rounding(c: Certificate) -> list[str]:
    if c["float_safe"]:
        return []
    return ["The noise was sampled in floating point, so the guarantee holds up to rounding."]


def accuracy(c: Certificate) -> str:
    """The 95 % bound, as a bound on the error that :func:`coverage` describes."""
    if c["error_bound"] is None:
        return "No bound on the error is stated."
    what = RELEASED.get(c["statistic"], "what was released")
    target = c["estimand"].removesuffix(SPREAD_TOO).removesuffix(COMPONENTS_TOO)
    return (
        f"With a probability of at least 95 %, the {c['distance']} distance from {what} to "
        f"{target}, is at most {c['error_bound']['95%']:.4g}."
    )


def meaning(c: Certificate) -> str:
    """What the bound is worth, beside the domain's radius or a difference's length."""
    if c["statistic"] == "difference":
        return f"The released difference: {_compared(c)}; {found_of(c)}."
    warning, radius = hopeless(c), reach(c)
    if warning is not None:
        return f"{warning}."
    if radius is None or c["error_bound"] is None:
        return ""
    of = "all class means together" if c["statistic"] == "class-means" else "any mean"
    return (
        f"For scale: without looking at any data, the domain's centre is known to be within "
        f"{radius:.4g} of {of}; this bound is {c['error_bound']['95%'] / radius:.2%} of that."
    )


def coverage(c: Certificate) -> str:
    what = "What is known of it" if c["error_bound"] is None else "What the statement covers"
    return f"{what}: {c['error_statement'].rstrip('.')}."


def facts(c: Certificate) -> dict[str, str]:
    """Short names and values, for tables."""
    covered = "known of the error" if c["error_bound"] is None else "the error covers"
    rows = {
        "private": "yes" if c["private"] else "NO: seeded simulation",
        "guarantee": _guarantee(c),
        "estimates": c["estimand"],
        "mechanism": f"{c['mechanism']} ({c['calibration']}), {_noise(c)}",
        "method": _method(c),
        counted(c["unit"]): _size(c),
        "domain": _domain(c),
        "error, rms": _rms(c),
        "error, 95 %": _bound(c),
        "within reach, 95 %": _within(c),
        "population, 95 %": _population(c),
        "difference": _compared(c),
        "test": _test(c),
        "outside the domain": _outside(c),
        "reference": _reference(c),
        covered: c["error_statement"],
        "worth": hopeless(c),
    }
    return {name: text for name, text in rows.items() if text}


def _compared(c: Certificate) -> str | None:
    """How long a difference is, beside what chance and noise make of none."""
    if c["statistic"] != "difference":
        return None
    test, law = c["steps"][-1]["test"], c["error_bound_within"]["parts"]["noise"]
    length, chance = sqrt(test["statistic"]), sqrt(test["scale"] * test["freedom"])
    noise = sqrt(mean_of(law) / c["arrays"]["difference"][0])
    entry = f"; noise of each coordinate about {noise:.3g} rms" if noise else ""
    return f"length {length:.4g} ({c['distance']}), about {chance:.4g} by chance alone{entry}"


def _test(c: Certificate) -> str | None:
    """The test of whether two classes differ, where there is one."""
    if c["statistic"] != "difference":
        return None
    return f"{found_of(c)}, scaled χ² of {c['steps'][-1]['test']['freedom']:.3g} degrees of freedom"


def found_of(c: Certificate) -> str:
    """Whether two classes differ by more than noise."""
    p, least = c["steps"][-1]["test"]["p_value"], float_info.epsilon  # what rounding leaves
    shown = f"p < {least:.2g}" if p < least else f"p = {p:.3g}"
    return f"not distinguishable from noise at 5 %: {shown}" if p > LEVEL else f"differs: {shown}"


def _bound(c: Certificate) -> str | None:
    bound = c["error_bound"]
    return None if bound is None else f"at most {bound['95%']:.4g} ({c['distance']})"


def _guarantee(c: Certificate) -> str:
    parts = [f"ε = {c['epsilon']:g}", f"δ = {c['delta']:g}", c["adjacency"]]
    if c["unit"]:
        parts.append(f"per {c['unit']}")
    return ", ".join(part for part in parts if part)


def _noise(c: Certificate) -> str:
    return "exact integer noise" if c["float_safe"] else "floating-point noise (not float-safe)"


def _method(c: Certificate) -> str | None:
    steps = [step["step"] for step in c["steps"] or []]
    return f"{c['method']}: {', '.join(steps)}" if c["method"] and len(steps) > 1 else c["method"]


def _size(c: Certificate) -> str | None:
    if c["n"] is not None:
        return f"{c['n']:,}"
    return None if c["n_estimate"] is None else f"about {c['n_estimate']:,.0f} (itself private)"


def _domain(c: Certificate) -> str | None:
    """``EigenvalueBounds: low 0.1, high 10``; a centre is too long to be spelt out."""
    domain = c["domain"]
    if domain is None:
        return None
    numbers = [f"{key} {v:g}" for key, v in domain.items() if isinstance(v, (int, float))]
    claim = f"; {CLAIM}" if domain["type"] == "CorrelationBounds" and c["metric"] != OFFLOG else ""
    return f"{domain['type']}: {', '.join(numbers)}{claim}"


def _rms(c: Certificate) -> str | None:
    square = c["expected_squared_error"]
    return None if square is None else f"{sqrt(square):.4g} ({c['distance']})"


def _outside(c: Certificate) -> str | None:
    """The private estimate of how many records lie at the domain's edge."""
    if c["outside"] is None:
        return None
    share, sd = c["outside"]["share"], c["outside"]["sd"]
    return f"about {share:.0%} of the {c['unit']}s, or at its edge (± {2 * sd:.0%})"


def _reference(c: Certificate) -> str | None:
    """What became of a public reference: a search asks of it before any centre."""
    if c["reference"] is None:
        return None
    asked = [step["step"] for step in c["steps"] if step["step"] != "edge"]
    use = "checked privately, and started from if the data lie there"
    if c["method"] == "oneshot":
        use = "not used: one shot was foreseen to err less"
    elif asked[0] != "distance":
        use = "not used: with this many records the search finds the data by itself"
    return f"{use} (SHA-256 {c['reference'][:12]}…)"


def _within(c: Certificate) -> str | None:
    """The sharper bound, for the mean of records pulled to within a reach."""
    within = c["error_bound_within"]
    if within is None:
        return None
    return f"at most {within['95%']:.4g}, from {within['estimand']}"


def _population(c: Certificate) -> str | None:
    """The bound for the population's mean, and what it assumes."""
    wider = c["error_bound_population"]
    return None if wider is None else f"at most {wider['95%']:.4g}, from {wider['estimand']}"
