r"""The private Fréchet mean of a dataset: clip, encode, add up exactly, add noise.

One shot adds noise once, for the whole public domain; :mod:`spdp.adaptive` finds a smaller ball first. ``method="auto"`` chooses from
public numbers.

*Enforced.* Every record is forced into the public domain and onto the integer lattice (:mod:`spdp.lattice`), so one record moves the
released integers by a known amount: 2³¹ when it is replaced (``adjacency="replace-one"``), √(2⁶⁰ + w²) when it is added or removed
(``"add-remove"``, where the number of records is private too and travels as one more coordinate of weight w). Noise is calibrated to that.
*Assumed.* The domain is public, each person owns at most one record, and under replace-one the number of records is public.
*Therefore.* The noisy integers are (ε, δ)-DP (ε-DP for the Laplace law, up to its floating-point sampler), and the matrix, its certificate
and its error law are computed from them and from public numbers alone.
"""

from dataclasses import dataclass
from math import ceil, isqrt, nextafter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp import lattice
from spdp.adaptive import adaptive_mean
from spdp.domain import Domain, check_domain
from spdp.errors import ParameterError
from spdp.laws import chi2_law, gamma_square_law, mean_of, weighted_chi2_law
from spdp.ledger import Ledger
from spdp.mechanisms import matrix_of
from spdp.privacy import check_budget, check_positive, gaussian_mu, laplace_scale
from spdp.records import Records, as_records
from spdp.release import Purse, Release, certify
from spdp.sums import LatticeSum

__all__ = ["OneShot", "choose_method", "plan_one_shot", "private_mean", "release_sum"]

Seed = int | np.random.Generator | None

NAMES = {"gaussian": "tangent-gaussian", "laplace": "riemannian-laplace"}


@dataclass(frozen=True)
class OneShot:
    """One noisy sum, planned from public numbers: which noise, how much, and the error that follows."""

    noise: str  # "gaussian" or "laplace"
    epsilon: float
    delta: float
    adjacency: str
    domain: Domain
    k: int
    scale: float  # of the noise, in lattice units
    sensitivity: int  # in lattice units
    weight: int  # of the count coordinate; 0 when n is public

    @property
    def mu(self) -> float | None:
        """The release is μ-GDP; None for Laplace noise."""
        return gaussian_mu(self.epsilon, nextafter(self.delta, 0.0)) if self.noise == "gaussian" else None

    @property
    def step(self) -> float:
        return lattice.step(self.domain.region(self.k))

    def law(self, n: float) -> dict[str, Any]:
        """Law of ρ²(mean of clipped records, release) for n records.

        Exact under replace-one. Under add-remove the error is (N − N'·m)/n with the count's noise N' and the offset ‖m‖ ≤ r of the mean
        from the centre: its law at the worst m is given (for Laplace noise, one of the same mean).
        """
        d = self.k * (self.k + 1) // 2
        unit = (self.scale * self.step / n) ** 2
        count = 0.0 if self.weight == 0 else (lattice.RECORD_NORM / self.weight) ** 2
        if self.noise == "laplace":
            free = d + (self.weight > 0)
            return gamma_square_law(free, unit * (d + count) / free)
        weights = np.full(d, unit)
        weights[0] += unit * count
        return chi2_law(d, unit) if count == 0 else weighted_chi2_law(weights)

    def expected_squared_error(self, n: float) -> float:
        return mean_of(self.law(n))

    def draw(self, total: NDArray[np.int64], n: int, random_state: Seed) -> tuple[NDArray[np.float64], float]:
        """Noisy log-mean and the (public, or privately estimated) number of records."""
        exact = np.append(total, n * self.weight) if self.weight else total
        add_noise = lattice.gaussian_noise if self.noise == "gaussian" else lattice.laplace_noise
        noisy = add_noise(exact, self.scale, random_state)
        count = max(1.0, float(noisy[-1] / self.weight)) if self.weight else float(n)
        region = self.domain.region(self.k)
        return region.center + noisy[: len(total)] * (self.step / count), count

    def certificate(self, count: float, random_state: Seed) -> dict[str, Any]:
        """What is known of a release of this plan; ``count`` is n, or its private estimate."""
        public = self.weight == 0
        return certify(
            law=self.law(count),
            random_state=random_state,
            float_safe=self.noise == "gaussian",
            mechanism=NAMES[self.noise],
            calibration="analytic" if self.noise == "gaussian" else "laplace",
            method="oneshot",
            epsilon=self.epsilon,
            delta=self.delta,
            mu=self.mu,
            adjacency=self.adjacency,
            n=int(count) if public else None,
            n_estimate=None if public else count,
            k=self.k,
            domain=self.domain.describe(),
            sensitivity=self.sensitivity * self.step / count,
            sigma=self.scale * self.step / count,
            lattice_step=self.step,
        )


def plan_one_shot(
    k: int, *, epsilon: float, delta: float, domain: Domain, mechanism: str = "auto", adjacency: str = "replace-one"
) -> OneShot:
    """Choose and calibrate the noise of a one-shot release from public numbers only.

    ``mechanism="auto"`` takes the law with the smaller expected squared error; δ = 0 asks for pure differential privacy.
    """
    if mechanism not in ("auto", *NAMES):
        raise ParameterError(f"mechanism must be 'auto', 'gaussian' or 'laplace', got {mechanism!r}")
    if adjacency not in ("replace-one", "add-remove"):
        raise ParameterError(f"adjacency must be 'replace-one' or 'add-remove', got {adjacency!r}")
    check_domain(domain)
    if delta == 0:
        if mechanism == "gaussian":
            raise ParameterError("delta = 0 asks for pure differential privacy, which Gaussian noise cannot give")
        mechanism = "laplace"
    else:
        check_budget(epsilon, delta)
    if mechanism == "auto":
        options = [
            plan_one_shot(k, epsilon=epsilon, delta=delta, domain=domain, mechanism=name, adjacency=adjacency)
            for name in (NAMES if epsilon > 0 else ("gaussian",))
        ]
        return min(options, key=lambda option: option.expected_squared_error(1.0))
    d = k * (k + 1) // 2
    if adjacency == "replace-one":
        weight, sensitivity = 0, lattice.REPLACE_ONE
    else:  # w = 2³⁰·d^(-1/4) minimises the worst-case error of (noisy sum)/(noisy count)
        weight = ceil(lattice.RECORD_NORM * d**-0.25)
        sensitivity = isqrt(lattice.RECORD_NORM**2 + weight**2) + 1
    if mechanism == "gaussian":
        scale = lattice.gaussian_scale(sensitivity, epsilon, delta)
    else:
        check_positive("epsilon", epsilon)
        scale, delta = laplace_scale(sensitivity, epsilon), 0.0
    return OneShot(mechanism, float(epsilon), float(delta), adjacency, domain, k, scale, sensitivity, weight)


def choose_method(shot: OneShot, n: int | None, epsilon: float, delta: float, mechanism: str) -> str:
    """ "adaptive" where public numbers predict a gain over ``shot``, else "oneshot".

    A smaller ball, or shrinkage where noise is too large to find one, gains in three dimensions or more. But where the Laplace law is far
    better in one shot (small k), data that fill the domain would lose by the change to Gaussian noise.
    """
    if n is None or delta == 0 or mechanism == "laplace" or shot.adjacency != "replace-one" or shot.k == 1:
        return "oneshot"
    if shot.expected_squared_error(n) > 0.5 * shot.domain.radius_for(shot.k) ** 2:
        return "adaptive"
    gaussian = plan_one_shot(shot.k, epsilon=epsilon, delta=delta, domain=shot.domain, mechanism="gaussian")
    return "oneshot" if shot.expected_squared_error(n) * 2.0 < gaussian.expected_squared_error(n) else "adaptive"


def private_mean(
    X: Any,
    *,
    epsilon: float,
    delta: float,
    domain: Domain,
    mechanism: str = "auto",
    method: str = "auto",
    adjacency: str = "replace-one",
    on_invalid: str = "raise",
    ledger: Ledger | None = None,
    label: str | None = None,
    random_state: Seed = None,
) -> Release:
    """Release the log-Euclidean Fréchet mean of SPD matrices with differential privacy.

    Parameters
    ----------
    X : array (n, k, k), or anything :func:`spdp.records.as_records` takes
        One record per person.
    epsilon, delta : float
        The guarantee; ``delta=0`` means pure differential privacy.
    domain : Ball or EigenvalueBounds
        Public set every record is forced into. Must not be computed from the data.
    mechanism : "auto", "gaussian" or "laplace"
        "auto" takes the one with the smaller expected error, from public numbers only.
    method : "auto", "oneshot" or "adaptive"
        One noisy sum over the whole domain, whose error law is exact; or a private search for the data's centre and spread first
        (:mod:`spdp.adaptive`), usually far more accurate. "auto" takes the latter where public numbers predict a gain.
    adjacency : "replace-one" or "add-remove"
        Whether the number of records is public, or protected too.
    on_invalid : "raise" or "center"
        What an unusable record does: an error that names it (for the curator's eyes), or counts as the domain's centre, so that
        no data-dependent error escapes. Errors of shape always raise. When a call fails, nothing has been released.
    ledger : Ledger, optional
        Account of the dataset's budget: the cost is committed to it before any noise is drawn, or the release is refused.
    label : str, optional
        What the ledger's entry is called.
    random_state : None, int or Generator
        None: operating-system entropy, a private result. A seed means simulation: the certificate says ``private: false``.

    Returns
    -------
    Release

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds, private_mean
    >>> X = np.stack([np.diag([1.0, 1.5 + i / 1000]) for i in range(1000)])
    >>> release = private_mean(X, epsilon=1.0, delta=1e-6, domain=EigenvalueBounds(0.1, 10.0))
    >>> release.value.shape, release.certificate["private"]
    ((2, 2), True)
    """
    if on_invalid not in ("raise", "center"):
        raise ParameterError(f"on_invalid must be 'raise' or 'center', got {on_invalid!r}")
    if method not in ("auto", "oneshot", "adaptive"):
        raise ParameterError(f"method must be 'auto', 'oneshot' or 'adaptive', got {method!r}")
    check_domain(domain)
    records = as_records(X)
    shot = plan_one_shot(records.k, epsilon=epsilon, delta=delta, domain=domain, mechanism=mechanism, adjacency=adjacency)
    if method == "adaptive" and (delta == 0 or mechanism == "laplace" or adjacency != "replace-one"):
        raise ParameterError("method='adaptive' needs Gaussian noise: delta > 0, mechanism 'auto' or 'gaussian', replace-one adjacency")
    if method == "auto":
        method = choose_method(shot, records.n, epsilon, delta, mechanism)
    purse = Purse(ledger, label, random_state)
    purse.check(records)
    if method == "adaptive":
        return _adaptive(records, float(epsilon), float(delta), domain, on_invalid, purse, random_state)
    return _one_shot(shot, LatticeSum.of(records, domain, on_invalid), purse, random_state)


def release_sum(
    total: LatticeSum,
    *,
    epsilon: float,
    delta: float,
    mechanism: str = "auto",
    adjacency: str = "replace-one",
    ledger: Ledger | None = None,
    label: str | None = None,
    random_state: Seed = None,
) -> Release:
    """Release the mean of records of which only the exact sum is at hand: one shot, with the options of :func:`private_mean`."""
    shot = plan_one_shot(total.k, epsilon=epsilon, delta=delta, domain=total.domain, mechanism=mechanism, adjacency=adjacency)
    return _one_shot(shot, total, Purse(ledger, label, random_state), random_state)


def _one_shot(shot: OneShot, total: LatticeSum, purse: Purse, random_state: Seed) -> Release:
    # a ledger keeps its budget for replace-one, and a replacement is a removal and an addition
    price = 2.0 if shot.adjacency == "add-remove" else 1.0
    pure = price * shot.epsilon if shot.noise == "laplace" else None
    purse.pay(NAMES[shot.noise], mu=None if shot.mu is None else price * shot.mu, pure=pure)
    y, count = shot.draw(total.total, total.n, random_state)
    return purse.keep(Release(matrix_of(y), shot.certificate(count, random_state)))


def _adaptive(records: Records, epsilon: float, delta: float, domain: Domain, on_invalid: str, purse: Purse, random_state: Seed) -> Release:
    def pay(mu: float) -> None:
        purse.pay(NAMES["gaussian"], mu=mu)

    found = adaptive_mean(records, epsilon=epsilon, delta=delta, domain=domain, on_invalid=on_invalid, pay=pay, random_state=random_state)
    final = found.steps[-1]
    certificate = certify(
        law=weighted_chi2_law(found.variances),
        random_state=random_state,
        float_safe=True,
        mechanism=NAMES["gaussian"],
        calibration="analytic",
        method="adaptive",
        epsilon=epsilon,
        delta=delta,
        mu=found.mu,
        adjacency="replace-one",
        n=found.n,
        k=records.k,
        domain=domain.describe(),
        sensitivity=2.0 * found.radius / found.n,
        sigma=2.0 * found.radius / found.n / final["mu"],
        lattice_step=found.radius / lattice.RECORD_NORM,
        steps=found.steps,
        error_statement="the law is that of the noise; the bias from clipping records outside the last ball is not known",
    )
    return purse.keep(Release(matrix_of(found.y), certificate))
