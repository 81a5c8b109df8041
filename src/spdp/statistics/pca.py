r"""Private principal directions in the tangent space: mean, covariance, components.

In a flat metric, principal geodesic analysis is principal component analysis of the
records' vectors y. A private search finds centre, axes and units (:mod:`.search`); in
that ellipsoid one query (:class:`spdp.queries.MomentSum`) gives the noisy mean and all
noisy second moments of z = Vᵀ(y − c)/w, for the price of a mean. The covariance is

    Ŝ = V·W·(mean of zzᵀ − z̄z̄ᵀ + σ²·I)·W·Vᵀ,   W = diag(w),

σ² for the noise of z̄. The noise of second moments has a known law: its part in the
spectrum is undone as in :func:`spdp.statistics.search.shape.cleaned`. Components are
leading eigenvectors of Ŝ, explained variances those of the cleaned Ŝ along them.

*How far to trust them.* Ŝ = S + E, with E of known law and S the covariance of the
pulled records. For the projection P onto k components and K a quantile of the sum of
the k largest eigenvalues of E, the components hold tr(PS) ≥ tr(PŜ) − K, and the best k
at most Σ λ_i(Ŝ) + K (Ky Fan): the share (tr(PŜ) − K)/(Σ λ_i(Ŝ) + K) of what the best k
hold is certain (95 %).

*A private number.* Where records may be added or removed, their number is asked first,
for a share of 1 % (:mod:`.counted`), and steers the search. The last query counts them
in any case: the sums are divided by its n̂. With |n̂ − n| ≤ E it scales Ŝ, which cancels
in the share, but for z̄z̄ᵀ: K grows by ‖z̄‖²·E/(n̂ − E), and by n̂/(n̂ − E).

*A public rule.* The noise of second moments is as large as the variances themselves
where n·μ ≲ d^1.5: below 2·d^1.5 a warning says so, below d^1.5/4 nothing is released.
(A private n is known by a noisy answer only, when some of the budget is spent: then
there is a warning only.)

*Enforced*, *assumed*, *therefore*: as in :mod:`spdp.statistics.mean`. Pulling records
to the ellipsoid lowers variances: they are lower estimates.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.certificate import COMPONENTS_TOO, mean_estimand
from spdp.choices import real
from spdp.domain import Domain
from spdp.engines import Engine
from spdp.errors import ParameterError, TooNoisy, carrying, named, warn
from spdp.frame import Frame
from spdp.kernels.base import symmetric
from spdp.privacy.account import Seed
from spdp.privacy.bounds import UPPER
from spdp.privacy.ledger import Ledger
from spdp.queries import MomentSum
from spdp.queries.triangle import OFF_NOISE
from spdp.release import Release
from spdp.statements import PCA
from spdp.statistics.counted import countable
from spdp.statistics.pulled import Pulled, publish_with_mean
from spdp.statistics.search import Search
from spdp.statistics.search.run import MAX_ROUNDS, ROUNDS_FROM, SHAPE_FROM
from spdp.statistics.search.shape import cleaned
from spdp.statistics.search.state import Outside
from spdp.statistics.search.taken import SQUARE_SHARE, Taken, ask_taken, bounded
from spdp.statistics.setting import Setting, prepare

__all__ = ["private_pca"]

Array = NDArray[np.float64]

RADIUS = 1.4  # of the ellipsoid, over the typical distance
ENOUGH, LEAST = 2.0, 0.25  # n·μ over d^1.5: no warning from here on, and refused below
NOISES, CERTAIN, SEED = 200, 0.975, 0  # draws of noise of known law, to know its spectrum

FEW = (
    "n·μ = {have:.4g} is less than 2·d^1.5 = {want:.4g}: noise is large beside the covariance of "
    "{d} coordinates"
)


@dataclass(frozen=True, eq=False)
class Principal(Pulled):
    """What :class:`Axes` found, in the records' own coordinates."""

    covariance: Array
    components: Array  # (p, d)
    variances: Array  # (p,)
    trusted: float


class Axes(Search):
    """A ball, axes and units in it, and all second moments in that ellipsoid."""

    def find(self, p: int) -> Principal:
        """All steps; where there is no ball to be found, nothing is pulled."""
        if self.resolution < ROUNDS_FROM or not self.find_ball(MAX_ROUNDS):
            self.frame = Frame.plain(self.home)
            return self.measure(p, self.far, Taken())
        if self.resolution >= SHAPE_FROM and not self.wide:
            self.find_shape()
            self.find_centre()
        radius = RADIUS * self.distance
        return self.measure(p, radius, ask_taken(self, radius))

    def later_share(self) -> float:
        return super().later_share() + SQUARE_SHARE

    def measure(self, p: int, radius: float, taken: Taken) -> Principal:
        """Moments with all that is left, and what they mean."""
        query = MomentSum("moments", self.frame, radius, second="full")
        answer = self.account.measure(query, self.held.total(query, True), 1.0)
        number = self.number(answer.values[0] / query.weight, answer.scale / query.weight)
        found = query.moments(answer.values / number.value, answer.scale / number.value)
        z, width, sigma = found.sums[0], self.frame.width, found.sum_sd
        raw = found.second[0] - np.outer(z, z) + sigma**2 * np.eye(self.d)
        units = np.outer(width, width)
        covariance = cleaned(raw, sqrt(2.0 * self.d) * found.second_sd) * units
        vectors, variances = _leading(raw * units, covariance, p)
        v = z * width
        counted = number.shift(float(v @ v), float(np.trace(covariance)))
        noisy = found.second_sd * number.stretch
        trusted = _trusted(raw * units, vectors, noisy, width, counted)
        self.account.note(radius=radius, second_sd=found.second_sd, trusted=trusted)
        noise, taken = (width * sigma) ** 2, taken.times(self.n / number.value)
        y, bound = bounded(self, v, noise, radius, taken, number)
        upper = _larger(covariance, found.second_sd * float(np.sqrt((width**4).sum())))
        both = number.stretch**2 * (np.diag(noise) + upper / number.value)
        sampling = np.asarray(np.linalg.eigvalsh(both), np.float64)
        axes = np.eye(self.d) if self.axes is None else self.axes
        return Principal(
            y=self.original(y),
            radius=radius,
            bound=bound,
            taken=taken,
            sampling=sampling,
            number=number,
            covariance=symmetric(axes @ covariance @ axes.T),
            components=_signed((axes @ vectors).T),
            variances=variances,
            trusted=trusted,
        )


def _leading(raw: Array, covariance: Array, p: int) -> tuple[Array, Array]:
    """Leading eigenvectors (d, p) of a noisy covariance, and variances along them.

    Where nothing stands out from noise, the noisy one still knows more than a cleaned
    one; variances are those of the cleaned one, whose noise is undone.
    """
    vectors = np.linalg.eigh(raw)[1][:, ::-1][:, :p]
    variances = np.einsum("ji,jk,ki->i", vectors, covariance, vectors)
    falling = np.argsort(-variances, kind="stable")
    return vectors[:, falling], variances[falling]


def _larger(covariance: Array, sd: float) -> Array:
    """A covariance with what noise may have taken off its trace."""
    return covariance * (1.0 + UPPER * sd / float(np.trace(covariance)))


def _signed(components: Array) -> Array:
    """Rows whose largest entry is positive: signs are arbitrary otherwise."""
    largest = np.abs(components).argmax(axis=1)
    signs = np.sign(components[np.arange(len(components)), largest])
    return np.asarray(components * signs[:, None])


def _trusted(raw: Array, vectors: Array, sd: float, width: Array, counted: float) -> float:
    """Share of the best components' variance that these hold for certain.

    ``counted`` is what the noise of the number may add.
    """
    d, p = vectors.shape
    rng = np.random.default_rng(SEED)
    sums = []
    for _ in range(NOISES):
        E = np.tril(rng.standard_normal((d, d)), -1) * OFF_NOISE
        E = (E + E.T + np.diag(rng.standard_normal(d))) * np.outer(width, width)
        sums.append(sd * float(np.linalg.eigvalsh(E)[-p:].sum()))
    noise = float(np.quantile(sums, CERTAIN)) + counted
    held = float(np.einsum("ji,jk,ki->", vectors, raw, vectors))
    best = float(np.linalg.eigvalsh(raw)[-p:].sum())
    return (held - noise) / (best + noise) if held > noise else 0.0


def check_enough(n: int, d: int, mu: float, public: bool = True) -> str | None:
    """The public rule: an error, what to warn of, or None."""
    have, want = n * mu, ENOUGH * d**1.5
    text = FEW.format(have=have, want=want, d=d)
    if public and have < LEAST * d**1.5:
        raise ParameterError(
            f"{text}, far too large: principal components would be noise. Use more records, a "
            f"larger {named('epsilon')}, or fewer coordinates"
        )
    return text if have < want else None


def private_pca(
    X: Any,
    *,
    n_components: int,
    epsilon: float,
    delta: float,
    domain: Domain,
    metric: str = "logeuclid",
    reference_point: Any = None,
    adjacency: str = "replace-one",
    groups: Any = None,
    on_invalid: str = "raise",
    ledger: Ledger | None = None,
    label: str | None = None,
    random_state: Seed = None,
    engine: Engine | None = None,
) -> Release:
    """Release mean, covariance and principal components, under one budget.

    The options are those of :func:`spdp.private_mean`. Warns
    (:class:`spdp.errors.TooNoisy`) or refuses where n·μ is too small for the number of
    coordinates. Under "add-remove" the number of records (or persons) is private, and
    released with the rest; then it warns only.

    Returns
    -------
    Release
        ``values["mean"]`` (k, k); ``"components"`` (p, d), orthonormal rows in the
        metric's chart; ``"explained_variance"`` (p,), debiased for noise;
        ``"covariance"`` (d, d), positive definite. This module's text says how far they
        can be trusted; the share is in the certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds, private_pca
    >>> from spdp.distributions import LogGaussian
    >>> X = LogGaussian(np.eye(2), np.diag([1.0, 0.04, 0.04])).rvs(4000, 0)
    >>> domain = EigenvalueBounds(0.01, 100.0)
    >>> release = private_pca(X, n_components=1, epsilon=1.0, delta=1e-6, domain=domain)
    >>> bool(release.values["components"][0, 0] > 0.95)
    True
    """
    setting = prepare(
        X,
        epsilon=epsilon,
        delta=delta,
        domain=domain,
        metric=metric,
        reference_point=reference_point,
        adjacency=adjacency,
        groups=groups,
        on_invalid=on_invalid,
        ledger=ledger,
        label=label,
        random_state=random_state,
        engine=engine,
    )
    d = len(setting.region.center)
    count = real("n_components", n_components)
    if not (1 <= count <= d and count == int(count)):
        raise ParameterError(
            f"{named('n_components')} must be a whole number between 1 and {d}, got "
            f"{n_components!r}"
        )
    held = countable(setting.gather(), setting.account, setting.region)
    few = check_enough(held.n, d, setting.account.mu, not setting.private_count)
    search = Axes(held, setting.account, setting.region, setting.chart)
    outside = search.ask_outside()
    found = search.find(int(count))
    release = _publish(setting, found, outside)
    if few is not None:
        held_share = f"the components hold at least {found.trusted:.0%} of what the best would"
        with carrying(release):
            warn(f"{few}; {held_share}", TooNoisy)
    return release


def _publish(setting: Setting, found: Principal, outside: Outside | None) -> Release:
    unit = setting.source.unit
    values = {
        "components": found.components,
        "explained_variance": found.variances,
        "covariance": found.covariance,
    }
    return publish_with_mean(
        setting,
        found,
        outside,
        values,
        statistic="pca",
        estimand=mean_estimand(setting.chart.distance, unit) + COMPONENTS_TOO,
        error_statement=PCA.format(unit=unit.value, trusted=found.trusted),
    )
