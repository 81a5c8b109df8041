r"""The adaptive mean under pure differential privacy: every answer has Laplace noise.

Shares of ε add up, where those of Gaussian noise are shares of μ²: few and well-chosen
steps are worth it, and in few dimensions Laplace noise is small. So this search finds a
ball and no shape. Where the resolution is small it looks for nothing, and the mean over
the domain is shrunk toward the centre. Its steps:

- *edge*: the share of records at the domain's edge, as in :mod:`.search`;
- *rounds* of centre and distance, as in :mod:`.search`. Where the first round sees that
  no ball pays, all the rest is spent on the mean over the domain;
- *near bias*: what clipping to the radius would take off records within twice that
  radius. Where it stands out from noise the radius is grown, and looked at again;
- *clipping bias* of all records, for the guard and the bound: where it is large, the
  radius is doubled, or the rest is spent on the mean over the domain;
- the clipped *mean*, with the rest of ε.

*Enforced.* All choices are functions of public numbers and of released ones; the
account keeps Σ εᵢ ≤ ε in exact arithmetic. *Therefore* the release is ε-DP, δ = 0
(:mod:`spdp.privacy.account`). The bound is that of :mod:`spdp.error.bound`, with the
Laplace laws of noise and bias.
"""

from math import exp, sqrt

from scipy import special

from spdp.adaptive.mean import FoundMean, MeanSearch
from spdp.adaptive.search import Search, clip
from spdp.adaptive.steps import ClippingBiasStep, near_looks
from spdp.adaptive.tuning import PURE_TUNING, PureTuning
from spdp.errors import ParameterError, named
from spdp.kernels.base import RECORD_NORM
from spdp.privacy.account import LARGEST_RADIUS

ROOT2 = sqrt(2.0)  # standard deviation of Laplace noise over its scale


def check_pure_budget(epsilon: float, d: int) -> None:
    """Refuse, before anything is paid, an ε whose shares have noise beyond int64."""
    scale = 4.0 * RECORD_NORM / (PURE_TUNING.distance_least * epsilon)
    if scale * (d + 60.0 * sqrt(d)) > LARGEST_RADIUS:
        raise ParameterError(
            f"the privacy budget is too small for a search: {named('epsilon')} {epsilon:g} leaves "
            f"noise beyond the integer range; pass {named('method', 'oneshot')}"
        )


class PureMeanSearch(MeanSearch):
    """One run of a search for a mean with Laplace noise."""

    def __init__(self, search: Search, pure: PureTuning = PURE_TUNING) -> None:
        super().__init__(search)
        self.pure = pure

    def run(self) -> FoundMean:
        """Run the steps of the module's docstring."""
        s, t = self.search, self.pure
        s.ask_edge()
        if s.resolution < t.rounds_from:
            return self.whole()
        if not self.find_ball():
            return self.filled()
        s.arrive()
        radius = self.find_radius()
        return self.whole() if radius is None else self.guarded_ball(radius)

    # --- where the records are

    def find_ball(self) -> bool:
        """Shrink the ball round by round; False if no ball pays."""
        s, t = self.search, self.pure
        records = s.m * s.budget.epsilon
        share = clip(t.round_factor / s.resolution, t.round_least, t.round_most)
        distance_share = clip(t.distance_factor / records, t.distance_least, t.distance_most)
        s.rounds, start = (share, distance_share), s.account.left
        for turn in range(t.rounds):
            error = s.step_center(share)
            s.distance, sd = s.ask_distance(s.frame, s.radius, distance_share)
            clear = max(s.distance - t.clear * sd / ROOT2, 0.0)
            rest = s.account.left - t.bias_share
            if turn == 0 and not self.pays(self.best_radius(clear, rest), rest, t.pays):
                return False
            radius = min(t.ball * s.distance + sd / ROOT2, s.radius)
            stuck = radius > t.shrunk * s.radius and clear > t.full * s.radius
            s.radius = radius
            after_next = start - s.account.left + share + distance_share
            if stuck or error < t.settled * clear**2 or after_next > t.rounds_most:
                break
        return True

    def best_radius(self, distance: float, rest: float) -> float:
        """Radius that balances noise and clipping, for a share ``rest`` of ε.

        Distances are taken to be chi distributed with this mean. The share of records
        left outside is ``beyond`` times the noise of the mean over its radius.
        """
        s, t = self.search, self.pure
        noise = s.whole_noise * sqrt(s.d) / max(rest, t.bias_share)
        outside, freedom = min(t.beyond * noise / s.n, 0.9), min(s.d, t.freedom)
        far = sqrt(2.0 * float(special.gammainccinv(0.5 * freedom, outside)))
        mean = ROOT2 * exp(special.gammaln(0.5 * (freedom + 1)) - special.gammaln(0.5 * freedom))
        return max(far / mean, 1.0) * distance

    def pays(self, radius: float, rest: float, at_most: float) -> bool:
        """Whether the noise of a mean in the ball is small, for a share ``rest`` of ε.

        That is, at most ``at_most`` times that of a mean over the domain.
        """
        s = self.search
        return rest > 0 and radius / rest <= at_most * s.domain_radius / s.account.left

    def find_radius(self) -> float | None:
        """The last radius, grown as long as records are seen just beyond it.

        None if no ball pays that was looked beyond.
        """
        s, t = self.search, self.pure
        s.subsample_to(float("inf"))
        looking = near_looks(s.n, s.budget.epsilon, t)
        rest = s.account.left - t.bias_share - (t.near_share if looking else 0.0)
        far, looks = s.max_distance(), self.looks.near
        radius = min(self.best_radius(s.distance, rest), far)
        while looking and len(looks) < t.near_looks:
            if not self.pays(radius, rest, t.pays_last):
                return None
            reaches = (2.0 * radius,)
            look = s.ask_bias("near bias", radius, reaches, (RECORD_NORM,), t.near_share)
            looks.append(look)
            rest = s.account.left - t.bias_share
            if look.bias[0] < t.near_clear * look.sd[0] / ROOT2:
                break
            radius = min(radius * t.grow, far)
        return radius if self.pays(radius, rest, t.pays_last) else None

    # --- the guard

    def guarded_ball(self, radius: float) -> FoundMean:
        """The mean in the ball, or over the whole domain if that is to err less."""
        s, t = self.search, self.pure
        first = s.ask_clipping_bias(radius, (t.bias_share,))
        self.looks.all.append(first)
        if not self.large(first, t.doubt):
            return self.mean(radius)
        if first.bias[0] > t.alarm * first.sd[0] / ROOT2:
            radius *= 2.0
            if not self.pays(radius, s.account.left - t.again_share, t.pays):
                return self.whole()
        again = s.ask_clipping_bias(radius, (t.again_share,))
        self.looks.all.append(again)
        return self.whole() if self.large(again, t.again_doubt) else self.mean(radius)

    def large(self, look: ClippingBiasStep, doubt: float) -> bool:
        """Whether a bias exceeds what the mean over the domain would err, surely.

        It must also stand out from its noise, by ``doubt`` scales.
        """
        limit = self.pure.guard * sqrt(self.search.whole_loss())
        return look.bias[0] > max(limit, doubt * look.sd[0] / ROOT2)

    def mean(self, radius: float) -> FoundMean:
        """The clipped mean, with the rest of the budget."""
        step, estimate = self.ask(self.search.frame, radius, over_domain=False)
        return self.found(step, estimate, self.search.frame.back(estimate.value), 0.0)
