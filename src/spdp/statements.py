"""What certificates say of an error in words: one text for each kind of release.

They stand here, below the statistics that state them, so that verification knows them
too: a certificate says one of these, with the numbers of its own steps, or is refused.
"""

__all__ = [
    "ASSUMED",
    "CLIPPED",
    "DIFFERENCE",
    "DISTANCES",
    "EXACT_LAW",
    "JOINT",
    "MEDIAN",
    "MOVED",
    "PCA",
    "PULLED",
    "PULLED_MEANS",
    "REGRESSION",
    "SPREAD",
    "SUMMARY",
    "TAKEN",
    "TOO_FEW",
    "UNSEEN",
    "UPPER_LAW",
    "WHOLE_ERROR",
    "WITHIN",
]

EXACT_LAW = "the whole error; its law is exact"
MOVED = (
    "the noise, and how far the value was moved to be a positive definite matrix of float64 numbers"
)

# --- a stated summary

SUMMARY = "the stated summary"
ASSUMED = "as assumed by the stated sensitivity"  # its adjacency

# --- a mean

UPPER_LAW = (
    "the whole error; the stated law is that of the noise, an upper bound, since bringing the "
    "value back into the domain only brings it closer"
)
WHOLE_ERROR = (
    "the whole error (noise, clipping and shrinkage), with at least the stated probability "
    "over the noise, whatever the records are"
)
WITHIN = "the mean of the records pulled to within {reach:.4g} of a released centre"

# --- means of classes

JOINT = (
    "the whole error of all class means together, the root of the sum of their squared "
    "distances, with at least the stated probability over the noise, whatever the records are; "
    "a class too small to be seen under the noise was given the overall mean, and adds the "
    "largest distance there is in the domain. It does not cover the covariance"
)
PULLED = (
    "nothing of the whole error: records were pulled to a released ellipsoid about their class's "
    "centre, and how far that moved the mean of a class was not measured. For the means of the "
    "pulled records there is a bound (error_bound_within): all class means together, with at least "
    "the stated probability over the noise, whatever the records are"
)
TOO_FEW = (
    "nothing: records were pulled to a released ellipsoid, and a class is so small beside the "
    "noise of its count that no bound is left"
)
UNSEEN = (
    "nothing: a class too small to be seen under the noise was given the overall mean, whose "
    "distance to its own is not known"
)
PULLED_MEANS = (
    "the means of the classes' {unit}s pulled to the released ellipsoid about the released centre "
    "of each class: all classes together, the root of the sum of their squared distances"
)

# --- a mean with its spread, or its principal components

SPREAD = (
    "the mean: the whole error (noise and clipping), with at least the stated probability over "
    "the noise, whatever the records are. The variance and the deviations are lower estimates, "
    "for the {unit}s were pulled to within {radius:.4g} of a released centre; the noise of the "
    "variance has a standard deviation of {sd:.3g}"
)
TAKEN = (
    ", and pulling {unit}s from within {reach:.4g} lowered it by an estimated {taken:.3g}, whose "
    "own noise has a standard deviation of {taken_sd:.2g} (below zero it is noise)"
)
DISTANCES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95)  # levels of those released with a spread
PCA = (
    "the mean: the whole error (noise and clipping), with at least the stated probability over "
    "the noise, whatever the records are. Covariance and explained variances are lower "
    "estimates, for the {unit}s were pulled to an ellipsoid; the components hold at least "
    "{trusted:.0%} of the variance that as many best directions would hold there (95 %)"
)

# --- others

MEDIAN = (
    "no bound on the whole error: none exists that holds whatever the records are, since the mean "
    "distance may be flat around its minimum (for records along one line the median need not be "
    "unique). The noise of the last steps alone has a root mean square of {rms:.3g}; how far from "
    "the median the steps had come when they ended is not measured"
)
REGRESSION = (
    "the last noise in a prediction at x: each of its {d} coordinates has variance (1, x − at)"
    "·noise·(1, x − at)ᵀ, given the released Gram matrix of the covariates. It does not cover "
    "shrinkage of slopes, noise in the Gram matrix, nor clipping of residuals to the released "
    "ball, which leaves a part of the first fit's error: up to about as much again was seen"
)
DIFFERENCE = (
    "the whole error of the difference (noise, clipping to the ball, noisy counts), with at "
    "least the stated probability over the noise, whatever the records are. The level of the "
    "test is approximate"
)
CLIPPED = "the difference of the means of the classes' records clipped to the released ball"
