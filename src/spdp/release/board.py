"""What a page tells those who decide about a release: a board, a data steward.

What is promised, as a table of suspicions; the error in the field's own units; what
happened to one record. All of it follows from the certificate and the released values.
What a page is called, whose study it is, whom to ask and its date are stated by whoever
writes it (:class:`About`) and checked by nobody.
"""

from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any, NamedTuple

import numpy as np

from spdp.error import field_units as units
from spdp.errors import ParameterError, named
from spdp.kernels.arrays import Array
from spdp.options import counted
from spdp.privacy import odds
from spdp.release.certificate import Certificate
from spdp.release.declaration import Values
from spdp.release.summary import Summary

LONGEST = 200  # letters of a title, a study or a contact
DIGITS, ROUGH = 4, 3  # of a number that is rounded outward, and of a share
TENSOR = 3  # rows of a diffusion tensor
SUSPICIONS = {
    ("replace-one", "record"): "of what one record is",
    ("replace-one", "voxel"): "of what one voxel is",
    ("replace-one", "person"): "of what one person's records are",
    ("add-remove", "record"): "that one record is in the data",
    ("add-remove", "voxel"): "that one voxel is in the data",
    ("add-remove", "person"): "that one person's records are in the data",
}


class About(NamedTuple):
    """What a page is about, as its writer states it; empty where nothing is stated."""

    title: str = ""
    study: str = ""
    contact: str = ""
    date: str = ""

    @classmethod
    def of(cls, **stated: Any) -> "About":
        """Texts of one line each, and a date, or an error."""
        return cls(**{name: _line(name, text) for name, text in stated.items() if text})

    def stated(self) -> dict[str, str]:
        """What is stated, by name."""
        return {name: text for name, text in self._asdict().items() if text}


def _line(name: str, text: Any) -> str:
    if not isinstance(text, str) or not text.isprintable() or len(text) > LONGEST:
        raise ParameterError(
            f"{named(name)} must be one line of at most {LONGEST} letters, got {text!r:.60}"
        )
    if name == "date":
        try:
            return date.fromisoformat(text).isoformat()
        except ValueError:
            raise ParameterError(
                f"{named(name)} must be a day such as 2026-03-31, got {text!r:.60}"
            ) from None
    return text


# --- what is promised


class Promise(NamedTuple):
    """A guarantee as suspicions before and after, and the words around them."""

    before: str
    rows: list[tuple[str, str, str]]
    after: str


def promise(c: Certificate) -> Promise | None:
    """What somebody may learn of one record, at worst; None if nothing is promised."""
    if not c.private:
        return None
    what = SUSPICIONS.get((c.adjacency, c.unit or ""))
    if what is None:
        knows = "knows two datasets with summaries as close as stated, of which one was used"
        what = "that it was the first"
    else:
        knows = f"knows all other {counted(c.unit)}"
    before = (
        f"In numbers: somebody {knows}, and has a suspicion {what}. The first column says how sure "
        "they are before, the others how sure they can be after seeing this release."
    )
    sure = "Each limit holds without exception."
    if c.delta:
        sure = f"Each limit holds but for a probability of at most δ = {c.delta:g} over the noise."
    if c.trust:
        sure += (
            f" This is so while at most {c.trust.colluding} of the {c.trust.sites} sites collude, "
            "and the cryptography between them is not broken."
        )
    return Promise(before, odds.table(c.epsilon, c.delta, c.mu), sure)


# --- the error in the field's units


def up(x: float, digits: int = DIGITS) -> str:
    """A positive number, rounded up."""
    return _rounded(x, ROUND_CEILING, digits)


def down(x: float, digits: int = DIGITS) -> str:
    """A positive number, rounded down."""
    return _rounded(x, ROUND_FLOOR, digits)


def _rounded(x: float, how: str, digits: int) -> str:
    return f"{float(Context(prec=digits, rounding=how).create_decimal(x)):.{digits}g}"


def in_field_units(told: Summary, values: Values) -> dict[str, str]:
    """What the 95 % bound says of eigenvalues, diffusivity, anisotropy, correlations.

    :mod:`spdp.error.field_units` proves each. Empty where the bound is not a distance
    between matrices, or the distance is seen from a reference point.
    """
    c, declaration = told.c, told.declaration
    if c.error_bound is None or not declaration.bounds_means:
        return {}
    matrices = values.get(declaration.matrices)
    if matrices is None or matrices.shape[-2:] != (c.k, c.k):
        return {}
    stack, u = matrices.reshape(-1, c.k, c.k), c.error_bound["95%"]
    rows: dict[str, str] = {}
    curved = c.metric == "riemann"  # its distance is the same from everywhere
    if c.metric in units.SPECTRAL and (c.reference_point is None or curved):
        rows["each eigenvalue"] = f"within a factor of {up(units.eigenvalue_factor(u))}"
        rows |= _means(stack, u)
        if c.k == TENSOR and not np.iscomplexobj(stack):
            rows["fractional anisotropy"] = _anisotropy(stack, u)
    if c.k > 1 and c.reference_point is None and c.metric == "offlog":
        shift = max(units.correlation_shift(C, u) for C in stack)
        rows["each correlation"] = f"within ±{up(shift, ROUGH)}"
    if c.k > 1 and curved:
        rows["each correlation"] = f"within ±{up(_shift(stack, u), ROUGH)}"
    return rows


def _means(stack: Array, u: float) -> dict[str, str]:
    of_tensors = "; of a diffusion tensor, the mean diffusivity" * (stack.shape[-1] == TENSOR)
    found = [(float(np.linalg.eigvalsh(A).mean()), units.mean_eigenvalue(A, u)) for A in stack]
    off = max(max(1 - low / mean, high / mean - 1) for mean, (low, high) in found)
    text = f"within {up(100 * off, ROUGH)} %"
    if len(stack) == 1:
        ((mean, (low, high)),) = found
        text = f"released {mean:.4g}, exact {down(low)} to {up(high)} ({text})"
    return {"mean eigenvalue": text + of_tensors}


def _anisotropy(stack: Array, u: float) -> str:
    found = [units.anisotropy(A, u) for A in stack]
    if len(stack) == 1:
        ((fa, (low, high)),) = found
        return f"released {fa:.3f}, exact {down(low)} to {up(high)}"
    off = max(max(fa - low, high - fa) for fa, (low, high) in found)
    return f"within ±{up(off, ROUGH)}"


def _shift(stack: Array, u: float) -> float:
    """The largest change of a correlation, for an affine-invariant distance of u."""
    scale = np.sqrt(np.diagonal(stack, axis1=-2, axis2=-1))
    found = stack / scale[:, :, None] / scale[:, None, :]
    above = np.clip(found[:, *np.triu_indices(stack.shape[-1], 1)], -1.0, 1.0).ravel()
    ranges = [(r, units.correlation_range(r, u)) for r in above]
    return max(max(r - low, high - r) for r, (low, high) in ranges)


# --- what happened to one record


class Stage(NamedTuple):
    """A step of a record's way; ``picture`` names its drawing."""

    picture: str
    title: str
    text: str


def stages(told: Summary) -> list[Stage]:
    """From one record to the release."""
    c = told.c
    if c.unit is None:
        return [
            Stage("record", "Summary", "A matrix that somebody computed elsewhere."),
            Stage("sum", "Noise", f"{c.mechanism.capitalize()} noise is added."),
            Stage("release", "Release", "The noisy matrix, and nothing else."),
        ]
    return [
        Stage("record", f"One {c.unit}", _record(told)),
        Stage("domain", "Public domain", "Clipped to a set that was chosen without the data."),
        Stage("sum", "Sum and noise", _sum(c)),
        Stage("release", "Release", "Computed from noisy sums alone."),
    ]


def _record(told: Summary) -> str:
    c = told.c
    matrices = f"{c.k}×{c.k} matrix" if c.parts is None else f"{c.parts} {c.k}×{c.k} matrices"
    if c.unit != "person":
        return f"One {matrices}." if c.parts is None else f"{matrices} together."
    if c.max_records is not None:
        return f"At most {c.max_records} records of a person count."
    if told.declaration.by_class:
        return "A person's records become their mean in each class, and count as one together."
    return "A person's records become one: their mean."


def _sum(c: Certificate) -> str:
    answers = len(c.steps)
    each = "the sum" if answers == 1 else f"each of the {answers} sums that were asked for"
    if c.trust:
        return f"All {c.trust.sites} sites add noise to {each}, and hide what they add."
    return f"Added to all others. Noise is added to {each}."
