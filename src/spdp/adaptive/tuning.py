"""The numbers that steer a search, each with its provenance.

None of them is a privacy parameter: whatever they are, each query's sensitivity is
proven beside it and shares of μ² add up in the account. They decide how accurate a
release is. "Tuned" means: chosen for a small geometric mean of squared errors over
MNIST, FashionMNIST, CIFAR-10, PathMNIST, ABIDE, one DTI volume and synthetic Gaussian,
Student t, bimodal and outlier data, at ε = 0.1 to 3, and checked on sets that were left
out (benchmarks/results/utility.md).
"""

from dataclasses import dataclass
from typing import NamedTuple


class Share(NamedTuple):
    """Share of μ², clip((factor/resolution)², least, most), of a step."""

    factor: float
    least: float
    most: float


DEVIATION, CORRELATION = Share(5.0, 0.01, 0.02), Share(12.0, 0.04, 0.08)
CENTER = Share(9.0, 0.03, 0.10)


@dataclass(frozen=True)
class Tuning:
    """Resolutions are n·μ/√d; shares are of μ²."""

    # --- resolutions from which a step pays
    rounds_from: float = 4.0  # tuned: below, one shrunk mean over the domain errs less
    trace_from: float = 2.0  # tuned: below, keeping the trace apart hurts by 1.1 to 1.5
    shape_from: float = 18.0  # tuned
    correlate_from: float = 30.0  # tuned; 40 in the first study, at another ball
    reference_up_to: float = 15.0  # tuned: beyond, the search finds the data by itself
    wide_from: float = 8.0  # tuned: a ball in a nearly filled domain pays from here on
    sharp_enough: float = 1500.0  # beyond, records are subsampled; for speed
    clear_enough: float = 800.0  # the same for the ball and axes of a mean; for speed
    many: int = 20  # dimensions from which a trace, or a ball in a full domain, pays
    correlate_up_to: int = 500  # dimensions; beyond, the matrix takes longer than it gains

    count_share: float = 0.01  # of a private number of records, which all else divides by

    # --- the edge query
    edge_looks: int = 4096  # records in the subsample: a share of 1 % is seen to ±0.3 %
    edge_most_looks: int = 1 << 14  # from those up to these the rounds' subsample will do
    edge_factor: float = 20.0  # noise of 1/20 of the subsample
    edge_least: float = 0.0005  # at most 2 % of μ², at which the mean loses 1 %
    edge_most: float = 0.02
    edge_seen: float = 4.0  # not asked where its noise would exceed a quarter of the subsample

    # --- rounds: a share of (factor/resolution)² shrinks the ball to about half
    max_rounds: int = 8  # each halves the radius: 2⁸ is wider than any domain seen
    round_factor: float = 3.6  # tuned, below resolution ``sharp``
    round_factor_sharp: float = 4.0  # tuned, above it; 5 in the first study
    sharp: float = 15.0  # tuned
    round_least: float = 0.015  # tuned
    round_most: float = 0.2  # tuned
    distance_part: float = 0.2  # of a round's share, for its distance; tuned
    distance_factor: float = 10.0  # at least (10/nμ)²: small d needs it (study of d = 3, 6)
    distance_most: float = 0.05
    ball: float = 0.8  # next radius over the typical distance; tuned, below 0.6 it breaks
    ball_wide: float = 0.95  # the same for data that nearly fill the domain; tuned
    shrunk: float = 0.85  # a ball above this share of the last one has stopped shrinking
    settled: float = 0.12  # squared error of the centre over squared distance; tuned
    wide: float = 0.45  # distance over the domain's radius of data that nearly fill it
    wide_clear: float = 2.0  # by so many sd of its noise
    kept: float = 0.23  # for the last mean at least; tuned

    # --- shape, centre, radius
    deviation: Share = DEVIATION  # tuned
    correlation: Share = CORRELATION  # tuned
    center: Share = CENTER  # tuned: the largest gain at high resolution
    correlation_ball: float = 0.7  # radius over √d: noise grows with its square; tuned
    center_ball: float = 1.2  # radius over the typical distance; tuned
    frame_factor: float = 25.0  # distance in the shape, noise over n·μ; tuned
    frame_least: float = 0.002
    frame_most: float = 0.03
    frame_cap: float = 2.5  # over the distance before
    tail_share: float = 0.04  # tuned; 6 % in the first study

    # --- clipping bias, for the error bound and the guard
    bias_factor: float = 3.0  # share factor/d: a mean's noise is √d times a number's
    bias_least: float = 0.03  # study of bounds: below, the bound grows fast
    bias_most: float = 0.07  # above, the mean loses more than the bound gains
    low: float = 8.0  # resolution below which the bias gets a larger share
    low_from: int = 20  # from d dimensions on
    low_factor: float = 8.0
    low_most: float = 0.12
    reach_share: float = 0.008  # of the second, sharper bound
    reach: float = 3.0  # and its target: records within so many typical distances
    square_share: float = 0.03  # of the bias of squares, for a variance
    square_reach: float = 2.0  # over the longest half axis

    # --- the guard: what false alarms may add to the loss, and when to retreat
    look_again: float = 0.06  # chance of a second look, over its cost; by simulation
    false_alarm: float = 0.002  # chance of a needless retreat, over its cost
    guard: float = 0.8  # squared bias over the whole domain's loss from which to retreat
    similar: float = 1.3  # radii up to this ratio estimate the same clipped mean; tuned
    length_from: int = 20  # dimensions from which a mean's own length sharpens its bound
    length_up_to: float = 4.0  # in a ball up to so many times its noise

    # --- a public reference
    fit_factor: float = 10.0  # noise of the check
    fit_least: float = 0.02
    fit_most: float = 0.12
    fit: float = 0.6  # of the domain's radius: how near the data must lie; tuned
    fit_clear: float = 2.0  # by so many sd
    fit_ball: float = 0.9  # first ball over the distance found; tuned
    fit_noise: float = 0.5  # of the noise's sd, added to it
    fit_rounds: int = 3  # tuned
    fit_last: float = 1.3  # last ball over the last round's; tuned


TUNING = Tuning()


@dataclass(frozen=True)
class PureTuning:
    """Of a search with Laplace noise; resolutions are n·ε/√(d(d + 1)), shares are of ε.

    Tuned on synthetic Gaussian data of d = 3 and 6 at ε = 1; lengths of noise are
    scales of the Laplace law.
    """

    count_share: float = 0.02  # of a private number of records
    edge_most: float = 0.01  # for the edge query, which steers nothing
    rounds_from: float = 20.0  # tuned: below, one mean over the domain errs less
    rounds: int = 5  # each may halve the radius; more cost more than they gain
    round_factor: float = 12.0  # share of a centre: factor/resolution; tuned
    round_least: float = 0.03
    round_most: float = 0.14
    distance_factor: float = 25.0  # share of a distance: factor/(n·ε); tuned
    distance_least: float = 0.01
    distance_most: float = 0.06
    rounds_most: float = 0.45  # of ε, for all rounds together; tuned
    ball: float = 0.8  # next radius over the typical distance; as with Gaussian noise
    shrunk: float = 0.85  # a ball above this share of the last one has stopped shrinking
    full: float = 0.4  # and one whose records lie so far out, over its radius, is filled
    settled: float = 0.12  # squared error of the centre over squared distance
    clear: float = 2.0  # scales of its noise by which a distance counts
    pays: float = 0.75  # noise over one shot's, from which a ball does not pay; tuned
    pays_last: float = 0.65  # the same after the rounds: clipping adds its bias; tuned
    beyond: float = 2.0  # records left outside, over those that the last noise is worth
    freedom: int = 6  # most degrees of the chi law that distances are taken to follow
    near_share: float = 0.04  # for a look at the bias within twice the radius; tuned
    near_from: float = 8.0  # n·ε·share from which it says anything
    near_clear: float = 2.0  # scales by which that bias counts; tuned
    near_looks: int = 4  # at growing radii
    grow: float = 1.5  # of the radius where that bias counts
    bias_share: float = 0.10  # study of bounds: more narrows the bound and widens the error
    guard: float = 0.9  # bias over one shot's error from which to look again or retreat
    doubt: float = 2.0  # scales from which a bias is looked at again
    alarm: float = 5.0  # and from which it is believed; tuned
    again_share: float = 0.12  # for the second look, at twice the radius if that pays
    again_doubt: float = 3.0  # scales from which the second look sends back; tuned


PURE_TUNING = PureTuning()


@dataclass(frozen=True)
class MovingTuning:
    """Numbers of a search in a curved metric, whose chart moves to released points.

    Chosen on covariances of MNIST 3, HAPT, PathMNIST 0, CIFAR-10 0, EEG and ABIDE and
    on synthetic sets; checked on sets that were left out (benchmarks/affine.py).
    """

    near: float = 1.0  # likely error of a centre up to which it is looked from, in few dimensions
    wider: float = 1.25  # affine-invariant distances are at least the log-Euclidean ones
    again_from: float = 8.0  # resolution from which another round, seen from the centre, pays
    again_from_few: float = 40.0  # the same in few dimensions
    again_from_pure: float = 200.0  # and with Laplace noise, whose shares add up
    again_cap: float = 2.0  # of its distance, over the radius
    newton_from: float = 18.0  # resolution from which the released distance is the data's own
    stand_ins: int = 64  # normal records of the released shape, for the Hessian
    part: float = 0.25  # of what is left: a mean over the domain, for where to look from
    clear: float = 0.15  # noise over radius up to which such a point is worth looking from
    first_pure: float = 0.2  # of ε, for the first of two means over the domain
    first: float = 0.15  # the same, of μ²
    first_most: float = 1.0  # rms noise of the first up to which two are asked: curvature's scale


MOVING_TUNING = MovingTuning()
