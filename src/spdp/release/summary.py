"""A certificate in plain words.

Each sentence is made of the certificate's own fields. What a release estimates and what
its error statement covers are repeated from there, and never inferred from the
mechanism, the method or the steps.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from math import ceil, exp, sqrt
from typing import Any, NamedTuple

from spdp.errors import ParameterError, named
from spdp.options import counted
from spdp.release.certificate import Certificate, Trust
from spdp.release.declaration import Values
from spdp.release.publishing import domain_mismatch, uninformative

LARGEST_EXPONENT = 700.0  # beyond it, e^ε leaves float64

SECRETS = {
    ("replace-one", "record"): "whether any one record had been another one",
    ("replace-one", "person"): "whether any one person's records had been other ones",
    ("replace-one", "voxel"): "whether any one voxel had been another one",
    ("add-remove", "record"): "whether any one record was in the data at all",
    ("add-remove", "voxel"): "whether any one voxel was in the data at all",
    ("add-remove", "person"): "whether any one person's records were in the data at all",
}
# What a domain of correlation matrices means, unless the metric enforces the diagonal.
OFFLOG = "offlog"
CLAIM = (
    "eigenvalues of at least the shrinkage and trace k, as of correlation matrices shrunk by it. "
    "Records were not divided by their variances, and the diagonal of a mean need not be 1 "
    "(metric offlog does both)"
)
# What a guarantee does not cover, although a reader may think so.
LIMITS = {"voxel": "The voxels of one image are one person's: this does not protect a person."}


LARGEST_EPSILON = 10.0  # from which on a guarantee limits hardly anything


def cautions(epsilon: float, delta: float, n: int | None, unit: str | None) -> list[str]:
    """What is weak about a guarantee, a sentence each; n where it is public."""
    told, one = [], unit or "record"
    if epsilon > LARGEST_EPSILON:
        factor = exp(min(epsilon, LARGEST_EXPONENT))
        told.append(
            f"ε = {epsilon:g} is above {LARGEST_EPSILON:g}: the probability of an outcome may "
            f"change by a factor of {factor:.3g} with one {one}, which limits hardly anything."
        )
    if n is not None and delta > 1 / n:
        told.append(
            f"δ = {delta:g} is above 1/n = {1 / n:.3g}: publishing the data of one {one}, chosen "
            "at random, would satisfy it, too."
        )
    return told


class Verdict(NamedTuple):
    """Private or not, in a few words and in full."""

    private: bool
    brief: str
    full: str


def check_names(names: Sequence[str] | None, k: int) -> list[str] | None:
    """Names of the k rows of a matrix as a list, or an error."""
    if names is None:
        return None
    found = [str(name) for name in names]
    if isinstance(names, str) or len(found) != k:
        raise ParameterError(f"{named('names')}: {len(found)} names, but matrices have {k} rows")
    return found


class Summary:
    """What a certificate says, in sentences and as named facts."""

    def __init__(self, certificate: dict[str, Any]) -> None:
        self.c = Certificate.read(certificate)
        self.declaration = self.c.declaration

    @property
    def heading(self) -> str:
        """Which statistic a release is, and of what size its matrices are."""
        kind = "Private" if self.c.private else "Simulated"
        return f"{kind} {self.declaration.heading(self.c)}"

    @property
    def subject(self) -> str:
        """What a release estimates."""
        what = "This matrix estimates" if len(self.c.arrays) == 1 else "These numbers estimate"
        return f"{what} {self.c.estimand}."

    @property
    def verdict(self) -> Verdict:
        """The guarantee: P(A | D) ≤ e^ε·P(A | D') + δ for neighbouring D, D'."""
        c = self.c
        if not c.private:
            warning = "This is a seeded simulation and must not be published as a private release."
            return Verdict(False, "Not private.", warning)
        brief = f"({c.epsilon:g}, {c.delta:g})-differentially private."
        return Verdict(True, brief, f"{self._secret} {self._odds}")

    @property
    def _secret(self) -> str:
        c = self.c
        secret = SECRETS.get((c.adjacency, c.unit or ""))
        if secret is not None:
            tell = (
                "ε and δ limit how well anyone who sees this page, or anything made from it, can "
                f"tell {secret}."
            )
            return " ".join([tell, *([LIMITS[c.unit]] if c.unit in LIMITS else [])])
        return (
            "The guarantee holds between any two datasets whose summaries are at most "
            f"{c.sensitivity:g} apart ({c.distance} distance). That bound was stated by "
            "whoever made the release; it was not checked."
        )

    @property
    def _odds(self) -> str:
        factor = f"e^ε = {exp(min(self.c.epsilon, LARGEST_EXPONENT)):.3g}"
        slack = f", plus δ = {self.c.delta:g}" if self.c.delta else ""
        return f"The probability of any outcome grows by at most a factor of {factor}{slack}."

    @property
    def accuracy(self) -> str:
        """The 95 % bound, as a bound on the error that :attr:`coverage` describes."""
        c = self.c
        if c.error_bound is None:
            return "No bound on the error is stated."
        return (
            f"With a probability of at least 95 %, the {c.distance} distance from "
            f"{self.declaration.measured_from} to {self.declaration.bounded(self.c)}, is at most "
            f"{c.error_bound['95%']:.4g}{self._beyond}.{self._noise}"
        )

    @property
    def _noise(self) -> str:
        """What the noise alone does, where a bound says more: its law is exact."""
        rms = self.noise_alone
        if rms is None:
            return ""
        return (
            f" The noise alone has a root mean square of {rms:.4g}; the rest of the bound allows "
            "for what clipping may have done, whatever the records are."
        )

    @property
    def noise_alone(self) -> float | None:
        """Root mean square of the last noise, where records were clipped as well."""
        bound = self.c.error_bound_parts
        if bound is None or not bound.clipping_bias_sd:
            return None
        return sqrt(bound.noise.mean())

    @property
    def meaning(self) -> str:
        """What the bound is worth, beside the domain's radius or in other terms."""
        own: str | None = self.declaration.meaning(self.c)
        if own is not None:
            return own
        radius = self.c.declaration.free_distance(self.c)
        if radius is None or self.c.error_bound is None or self.uninformative is not None:
            return ""
        share = self.c.error_bound["95%"] / radius
        return (
            f"For scale: without looking at any data, the domain's centre is known to be within "
            f"{radius:.4g} of {self.declaration.any_mean}; this bound is {share:.2%} of that."
        )

    @property
    def coverage(self) -> str:
        """What the statement of the error covers."""
        bounded = self.c.error_bound is not None
        what = "What the statement covers" if bounded else "What is known of it"
        return f"{what}: {self.c.error_statement.rstrip('.')}."

    @cached_property
    def uninformative(self) -> str | None:
        """A warning if the domain's centre is as good an estimate."""
        return uninformative(self.c)

    @cached_property
    def cautions(self) -> list[str]:
        """What is weak about the guarantee, a sentence each."""
        c = self.c
        return cautions(c.epsilon, c.delta, c.n if c.public else None, c.unit)

    def mismatch(self, values: Values) -> str | None:
        """A warning if the domain clearly does not fit the records."""
        return domain_mismatch(self.c, values)

    def rows(self) -> dict[str, str]:
        """Short names and values, for tables."""
        c, square, out = self.c, self.c.expected_squared_error, self.c.outside
        guarantee = f"ε = {c.epsilon:g}, δ = {c.delta:g}, {c.adjacency}"
        noise = "exact integer noise" if c.float_safe else "floating-point noise (not float-safe)"
        about = c.n_estimate and f"about {c.n_estimate:,.0f} (itself private)"
        covered = "known of the error" if c.error_bound is None else "the error covers"
        rows: dict[str, Any] = {
            "private": "yes" if c.private else "NO: seeded simulation",
            "guarantee": f"{guarantee}, per {c.unit}" if c.unit else guarantee,
            "caution": " ".join(self.cautions),
            "estimates": c.estimand,
            "mechanism": f"{c.mechanism} ({c.calibration}), {noise}",
            "trust": c.trust and _trusted(c.trust),
            "method": self._method,
            counted(c.unit): about if c.n is None else f"{c.n:,}",
            "domain": self._domain,
            "error, rms": square is not None and f"{sqrt(square):.4g} ({c.distance})",
            "error, 95 %": c.error_bound and self._bound,
            "for clipped records, 95 %": _other(c.error_bound_within),
            "population, 95 %": _other(c.error_bound_population),
            **self.declaration.rows(self.c),
            "outside the domain or at its edge": out
            and f"{out.share:.0%} of the {counted(c.unit)} (± {2 * out.sd:.0%})",
            covered: c.error_statement,
            "worth": self.uninformative,
        }
        return {name: text for name, text in rows.items() if text}

    @property
    def _bound(self) -> str:
        assert self.c.error_bound is not None
        bound, rms = self.c.error_bound["95%"], self.noise_alone
        noise = "" if rms is None else f", whatever the records; noise alone {rms:.4g} rms"
        return f"at most {bound:.4g} ({self.c.distance}){noise}{self._beyond}"

    @property
    def _beyond(self) -> str:
        """What the bound does not count, where it is seen."""
        clipped = self.c.clipped
        return "" if clipped is None else f", not counting what the domain did: {clipped}"

    @property
    def _method(self) -> str | None:
        steps = [(name, len(list(same))) for name, same in groupby(s.step for s in self.c.answers)]
        told = [name if times == 1 else f"{name} ×{times}" for name, times in steps]
        method = self.c.method
        return f"{method}: {', '.join(told)}" if method and len(told) > 1 else method

    @property
    def _domain(self) -> str | None:
        """``EigenvalueBounds: low 0.1, high 10``; a centre is too long for it."""
        domain = self.c.domain
        if domain is None:
            return None
        numbers = [f"{key} {v:g}" for key, v in domain.items() if isinstance(v, (int, float))]
        unmade = domain["type"] == "CorrelationBounds" and self.c.metric != OFFLOG
        return f"{domain['type']}: {', '.join(numbers)}{f'; {CLAIM}' if unmade else ''}"


def _trusted(trust: Trust) -> str:
    """Who trusted whom."""
    alone = ceil(100 * trust.epsilon_if_all_others_collude) / 100
    return (
        f"noise and masks of {trust.sites} sites; nobody saw a site's sum. The guarantee is "
        f"computational ({trust.computational}) and holds if at most {trust.colluding} of them "
        f"collude; ε = {alone:g} if all others of a site do"
    )


def _other(bound: Any) -> str | None:
    """A bound for another target, and which."""
    return None if bound is None else f"at most {bound.at_95:.4g}, from {bound.estimand}"
