"""What a guarantee means for a suspicion: odds before a release, and after it.

Somebody knows all other records, and holds two hypotheses about one: H and its
alternative. Let P and Q be the laws of all that is published under them, with densities
p and q, and L = ln(p/q) at what was published. By Bayes' rule the odds of H afterwards
are e^L times the odds before. With several alternatives Q is their mixture, and what
follows holds for it too, because it holds for each and is convex.

*Pure.* With δ = 0, |L| ≤ ε always.

*Gaussian.* Let δ(s) bound P(A) − e^s·Q(A) over all sets A. The largest such difference
is E_P[(1 − e^{s−L})⁺], and where L > t > s the bracket exceeds 1 − e^{s−t}, hence

    P(L > t) ≤ δ(s) / (1 − e^{s−t}).

It is at most δ for t = s − ln(1 − δ(s)/δ). Every s with δ(s) < δ gives a valid t. The
curve used is δ(s; μ) of Gaussian differential privacy, which holds for everything
computed from the answers, after adaptive composition too: domination by a Gaussian is
inherited. (The exact tail of a Gaussian's own loss is not: a function of the answers
can have more loss just above a given t.) Under Q the event is rarer still:
Q(L > t) ≤ e^{−t}·P(L > t). The same holds with P and Q exchanged, hence for −L.

*Enforced.* Numbers are rounded outward. *Assumed.* The certificate's ε, δ and μ, and
beliefs about the other records that do not depend on H: who believes that many records
go together learns of one from the others, which no guarantee for one record prevents.
"""

from math import ceil, exp, expm1, floor, inf, log1p

from spdp.privacy.calibration import LARGEST_EPSILON, gaussian_delta, next_below

PRIORS = (0.01, 0.1, 0.5)  # suspicions that pages show
PLACES = 1000  # shown to a tenth of a percent
ALWAYS = 700.0  # e^700 is the end of float64, and certainty


def largest_loss(epsilon: float, delta: float, mu: float | None) -> float:
    """A t with |L| ≤ t, in either direction except with probability δ.

    ``mu`` is that of Gaussian differential privacy; without it δ must be 0.
    """
    if mu is None:
        return epsilon if delta == 0 else inf
    steep = max((epsilon / mu - mu / 2) / mu, 1e-3)  # −d ln δ(s)/ds at ε, about
    s = epsilon + log1p(steep) / steep  # where t is about smallest
    if s >= LARGEST_EPSILON:
        return inf
    left = gaussian_delta(s, mu) / next_below(delta)
    return s - log1p(-left) if left < 1 else inf


def after(prior: float, loss: float) -> tuple[float, float]:
    """The least and the largest probability of a suspicion after a release."""
    return _shifted(prior, -loss), _shifted(prior, loss)


def _shifted(prior: float, loss: float) -> float:
    """π·e^t / (1 − π + π·e^t), for odds times e^t."""
    if abs(loss) > ALWAYS:
        return 0.0 if loss < 0 else 1.0
    return prior * exp(loss) / (1.0 + prior * expm1(loss))


def percent(share: float, *, up: bool) -> str:
    """A share in percent, rounded up or down to a tenth of one."""
    tenths = (ceil if up else floor)(PLACES * share)
    return f"{100 * tenths / PLACES:g} %"


def table(epsilon: float, delta: float, mu: float | None) -> list[tuple[str, str, str]]:
    """For each of :data:`PRIORS`: a suspicion before, its least and largest after."""
    loss = largest_loss(epsilon, delta, mu)
    rows = []
    for prior in PRIORS:
        least, largest = after(prior, loss)
        rows.append((f"{100 * prior:g} %", percent(least, up=False), percent(largest, up=True)))
    return rows
