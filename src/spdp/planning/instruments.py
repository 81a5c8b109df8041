"""What is publicly known of instruments: which metric, which domain, and why.

Whoever knows where the matrices come from need not know metrics and domains. This table
says them for each instrument, from physics and data sheets, never from the records.
Programs that ask questions (``spdp start``) share it; it has no questions of its own to
print, and reads no data.

*Assumed.* What is answered (units, amplitudes, shrinkage) comes from public knowledge.
*Therefore* the domain it gives is public.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from spdp.descriptors import descriptor_bounds
from spdp.domain.base import Domain
from spdp.domain.sets import (
    DIFFUSIVITY,
    VOLTAGE,
    CorrelationBounds,
    EigenvalueBounds,
    amplitude_bounds,
    tensor_bounds,
)

Answers = Mapping[str, Any]


class Question(NamedTuple):
    """What must be known to fix a domain; ``choices`` where there are only a few."""

    name: str
    text: str
    default: Any = None
    choices: tuple[str, ...] = ()
    kind: type = float


@dataclass(frozen=True)
class Instrument:
    """Where matrices come from.

    Attributes
    ----------
    name, title : str
    metric : str
    reason : str
        Why this metric and this domain.
    before : str
        What must have been done to the matrices before; empty if nothing.
    questions : tuple of Question
    k : callable
        The size of the matrices, by the answers; None if it must be asked.
    domain : callable
        The public domain, by the answers.
    """

    name: str
    title: str
    metric: str
    reason: str
    before: str
    questions: tuple[Question, ...]
    k: Callable[[Answers], int | None]
    domain: Callable[[Answers], Domain]


def _unknown(answers: Answers) -> None:
    return None


UNIT_OF_DATA = "Unit of the signals that the covariances were computed from?"
GRAY = "gray"

INSTRUMENTS = (
    Instrument(
        "tensors",
        "diffusion MRI: one diffusion tensor per record",
        "logeuclid",
        "Water in tissue diffuses no faster than free water, and fits below 1e-5 mm²/s are noise: "
        "all eigenvalues lie between two numbers that physics knows. The log-Euclidean metric "
        "compares diffusivities by their ratios.",
        "",
        (Question("unit", "Unit of the tensors' entries?", "mm2/s", tuple(DIFFUSIVITY), kind=str),),
        lambda answers: 3,
        lambda answers: tensor_bounds(answers["unit"]),
    ),
    Instrument(
        "signals",
        "EEG, MEG or EMG: one covariance of channels per record",
        "logeuclid",
        "The amplifier's noise and its artefact threshold say how small and how large a channel "
        "can be. The log-Euclidean metric compares powers by their ratios.",
        "The noise floor, squared, must have been added to the diagonal: C + a²·I.",
        (
            Question("channels", "How many channels?", kind=int),
            Question("low", "Noise floor of a channel, in µV rms?", 0.5),
            Question("high", "Largest amplitude of a channel, in µV rms?", 50.0),
            Question("data_unit", UNIT_OF_DATA, "V", tuple(VOLTAGE), kind=str),
        ),
        lambda answers: int(answers["channels"]),
        lambda answers: amplitude_bounds(
            int(answers["channels"]), answers["low"], answers["high"], "uV", answers["data_unit"]
        ),
    ),
    Instrument(
        "connectomes",
        "connectomes: one correlation matrix of regions per record",
        "offlog",
        "Correlations are compared as correlations: in the off-log metric the mean of correlation "
        "matrices is one, with ones on its diagonal. A shrunk correlation matrix has eigenvalues "
        "of at least the shrinkage, and trace k.",
        "Each matrix must have been shrunk: (1 − s)·C + s·I, with this public s.",
        (Question("shrinkage", "By how much were the correlations shrunk (s)?", 0.05),),
        _unknown,
        lambda answers: CorrelationBounds(answers["shrinkage"]),
    ),
    Instrument(
        "images",
        "images: one covariance descriptor per image, from spdp describe",
        "logeuclid",
        "Pixels lie between 0 and 1, which bounds the descriptor of every image.",
        "",
        (Question("colours", "Gray or RGB images?", GRAY, (GRAY, "rgb"), kind=str),),
        lambda answers: 8 + _channels(answers),
        lambda answers: descriptor_bounds(_channels(answers)),
    ),
    Instrument(
        "other",
        "something else, with eigenvalues between two public numbers",
        "logeuclid",
        "Bounds on eigenvalues are the simplest public domain. The log-Euclidean metric compares "
        "eigenvalues by their ratios.",
        "",
        (
            Question("low", "Smallest eigenvalue, from public knowledge?"),
            Question("high", "Largest eigenvalue, from public knowledge?"),
        ),
        _unknown,
        lambda answers: EigenvalueBounds(answers["low"], answers["high"]),
    ),
)


def _channels(answers: Answers) -> int:
    return 1 if answers["colours"] == GRAY else 3


def instrument(name: str) -> Instrument:
    """An instrument by its name."""
    return next(found for found in INSTRUMENTS if found.name == name)
