"""The certificate of a release: one versioned, typed object, derived from facts.

:class:`Facts` are public and released numbers that do not follow from others; a
:class:`Certificate` has them and all that is derived from them
(:func:`.declaration.derive`).

*Enforced.* Facts come from an account, whose steps hold released values only, and from
public numbers; no function of the records is among them. A seeded result is a
simulation and is certified as not private.
"""

import platform
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from spdp.charts import Chart, chart_of
from spdp.domain.base import Space
from spdp.domain.sets import domain_of
from spdp.error.bound import Bound, Count
from spdp.error.laws import AnyLaw
from spdp.errors import DataError
from spdp.kernels.base import RECORD_NORM
from spdp.options import Adjacency, counted
from spdp.privacy.budget import Budget

SCHEMA: Literal[4] = 4
# Standard deviations by which a share stands out from its noise, Gaussian or Laplace:
# noise alone exceeds either once in 740 releases.
CLEAR, CLEAR_LAPLACE = 3.0, 4.18
COMPUTATIONAL = "X25519+ML-KEM-768, HKDF-SHA256, ChaCha20"
Positive = Annotated[int, msgspec.Meta(ge=1)]


class Outside(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Private estimate of the share of records at the domain's edge, and its noise."""

    share: float
    sd: float


class OtherBound(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A bound on the distance to a target other than the certificate's estimand."""

    at_95: float = msgspec.field(name="95%")
    at_99: float = msgspec.field(name="99%")
    parts: Bound
    estimand: str
    reach: float | None = None

    @classmethod
    def of(cls, bound: Bound, estimand: str, reach: float | None = None) -> "OtherBound":
        """The bound for a target, from its parts."""
        at_95, at_99 = bound.stated().values()
        return cls(at_95=at_95, at_99=at_99, parts=bound, estimand=estimand, reach=reach)


class Trust(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who trusted whom: sites that share the noise, and mask what they answer.

    The noise is enough if at most ``colluding`` sites pool what they know. If all
    others of a site do, that site's own noise is left, and the stated ε.
    """

    model: Literal["distributed"] = "distributed"
    study: str  # SHA-256
    sites: Annotated[int, msgspec.Meta(ge=2, le=200)]
    colluding: Positive
    computational: str = COMPUTATIONAL  # what the guarantee rests on, besides noise
    noise_per_site: float = 0.0  # scale of the last answer's noise, in lattice units
    noise_factor: float = 0.0  # over the noise of one curator
    epsilon_if_all_others_collude: float = 0.0

    @classmethod
    def of(cls, study: str, sites: int, colluding: int) -> "Trust":
        """The facts; deriving a certificate adds what follows from them."""
        return cls(study=study, sites=sites, colluding=colluding)

    @property
    def honest(self) -> int:
        """Sites whose noise must be enough."""
        return self.sites - self.colluding


@lru_cache(maxsize=8)
def made_with(sampler: str) -> dict[str, str]:
    """Versions of what makes a release, and the sampler that drew its noise."""
    return {
        "spdp": version("spdp"),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "sampler": sampler,
    }


def now() -> str:
    """The current time, as certificates state it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def registry() -> Any:
    """:mod:`spdp.statistics`, which stands above this package and is found by name."""
    return import_module("spdp.statistics")


class Facts(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, dict=True):
    """What a release states, and the objects that these numbers describe."""

    schema: Literal[4] = 4
    statistic: str
    method: Literal["oneshot", "adaptive"] | None  # None for a stated summary
    calibration: Literal["analytic", "classical", "laplace"]
    epsilon: float
    delta: float
    adjacency: str
    unit: Literal["record", "voxel", "person"] | None  # whose data are protected
    metric: str
    reference_point: list[Any] | None = None  # public matrix that records are whitened by
    k: Positive
    parts: Positive | None = None  # matrices of one record
    domain: dict[str, Any] | None = None
    n: Positive | None = None
    max_records: Positive | None = None  # that count of one person
    arrays: dict[str, list[int]] = {}  # names and shapes of what is released, the value first
    error_bound_parts: Bound | None = None  # of a bound that is not a quantile of a law
    error_bound_within: OtherBound | None = None  # a sharper one, for another target
    error_bound_population: OtherBound | None = None  # for the population's mean
    sensitivity: float = 0.0  # a fact for a stated summary only; else derived
    steps: list[Any]
    reference: str | None = None  # digest of the public reference that was offered
    seed: int | str | None = None
    trust: Trust | msgspec.UnsetType = msgspec.UNSET  # absent where one curator has the data
    versions: dict[str, str]
    created: str = msgspec.field(default_factory=now)

    @cached_property
    def declaration(self) -> Any:
        """What its statistic declares."""
        return registry().find(self.statistic)

    @cached_property
    def budget(self) -> Budget:
        """The privacy budget of the release."""
        if self.calibration == "laplace":
            return Budget.pure(self.epsilon)
        return Budget.gaussian(self.epsilon, self.delta, self.calibration)

    @cached_property
    def _metric(self) -> Chart:
        return chart_of(self.metric, self.reference_point, self.parts, curved=True)

    @cached_property
    def chart(self) -> Chart:
        """The chart of the metric, seen from where the domain is."""
        return self._metric if self.domain is None else self.space.chart

    @cached_property
    def space(self) -> Space:
        """Chart and public domain."""
        return Space.of(self._metric, domain_of(self.domain), self.k)

    @cached_property
    def d(self) -> int:
        """Dimension of the records' vectors; it does not ask for the domain."""
        return self._metric.dimension(self.k)

    @cached_property
    def public(self) -> bool:
        """Whether the number of records is public."""
        return self.adjacency == Adjacency.REPLACE_ONE

    @cached_property
    def searched(self) -> bool:
        """Whether a private search came first."""
        return self.method == "adaptive"

    @cached_property
    def bound(self) -> Bound | None:
        return self.error_bound_parts

    @cached_property
    def within(self) -> Bound | None:
        other = self.error_bound_within
        return None if other is None else other.parts

    @cached_property
    def population(self) -> Bound | None:
        other = self.error_bound_population
        return None if other is None else other.parts

    @cached_property
    def answers(self) -> list[Any]:
        """The steps, each as an object of its class."""
        kinds = self.declaration.kinds(self.method)
        if not self.steps:
            raise DataError("a release must have steps")
        try:
            return [
                msgspec.convert(step, kinds[step["step"]]) if isinstance(step, dict) else step
                for step in self.steps
            ]
        except (LookupError, msgspec.ValidationError) as error:
            raise DataError(f"a step that this statistic does not know: {error}") from None

    @cached_property
    def last(self) -> Any:
        """The step whose answer is released."""
        return self.answers[-1]

    def step(self, name: str) -> Any:
        """The last step of a name, or None."""
        found = [step for step in self.answers if step.step == name]
        return found[-1] if found else None

    @cached_property
    def noisy_count(self) -> Any:
        """The last step that released a number of records, or None."""
        noisy = [step for step in self.answers if getattr(step, "n_estimate", None) is not None]
        return noisy[-1] if noisy else None

    @cached_property
    def count(self) -> Count:
        """Number of records and, if it is private, the sd of its noise."""
        count: Count = self.declaration.count(self)
        return count

    @cached_property
    def queries(self) -> dict[str, Any]:
        """A query of each kind that a step may ask."""
        queries: dict[str, Any] = self.declaration.queries(self)
        return queries

    @cached_property
    def unit_step(self) -> float:
        """Length of one lattice unit of the last answer."""
        return float(self.declaration.last_radius(self) / RECORD_NORM)

    @cached_property
    def noise_scale(self) -> float:
        """Scale of the last noise, in the metric's distance."""
        return float(self.declaration.sigma(self))


class Certificate(Facts, kw_only=True, forbid_unknown_fields=True, dict=True):
    """What a release guarantees, what it estimates, and how far off it may be."""

    private: bool
    float_safe: bool
    mechanism: str
    mu: float | None
    estimand: str  # what the value estimates, in words
    distance: str  # the distance that errors are measured in
    error_statement: str  # what the law of the error, or its bound, covers
    error_bound: dict[str, float] | None  # by the least probability that the error is below
    n_estimate: float | None
    sigma: float
    lattice_step: float
    expected_squared_error: float | None  # where the law of the error is known
    squared_error_quantiles: dict[str, float] | None
    squared_error_law: AnyLaw | None
    outside: Outside | None  # share of records at the domain's edge

    @property
    def clear(self) -> float:
        """Standard deviations by which a share stands out from this release's noise."""
        return CLEAR if self.budget.mu is not None else CLEAR_LAPLACE

    @property
    def clipped(self) -> str | None:
        """How many records lie at the domain's edge, in words, if any are seen."""
        out = self.outside
        if out is None or out.share <= self.clear * out.sd:
            return None
        units = counted(self.unit)
        return f"about {out.share:.0%} of the {units} lie at its edge or were clipped to it"

    @classmethod
    def read(cls, content: Any) -> "Certificate":
        """The certificate that plain data hold, or an error that says what is wrong."""
        if not isinstance(content, dict):
            raise DataError("a certificate is a JSON object")
        if content.get("schema") != SCHEMA:
            raise DataError(
                f"its certificate has schema {content.get('schema')!r}; this spdp reads {SCHEMA}"
            )
        names = {field.encode_name for field in msgspec.structs.fields(cls)}
        missing = names - content.keys() - {"trust"}
        if missing:
            raise DataError(f"its certificate lacks field {sorted(missing)[0]!r}")
        if None not in (content["squared_error_law"], content["error_bound_parts"]):
            raise DataError("its certificate states two errors: a law, and the parts of a bound")
        try:
            return msgspec.convert(content, cls)
        except (msgspec.ValidationError, OverflowError, SystemError) as error:
            # msgspec before 0.22 raises SystemError for integers that no float64 holds
            raise DataError(f"its certificate cannot be read: {error}") from None
