"""Instruments: what is asked of each, and the public domain and metric that follow.

Whoever knows where the matrices come from need not know metrics and domains. The page
of the wizard and ``spdp start`` ask the questions of this table; no records are read.

*Enforced.* A domain is made of the numbers that are entered here, and of the public
size k, by the functions that :mod:`spdp.domain.sets` and :mod:`spdp.descriptors` prove.
*Assumed.* These numbers are public knowledge (a data sheet, physics, a protocol).
*Therefore* the domain is public.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, get_args

from msgspec import Struct

from spdp.errors import ParameterError, named

if TYPE_CHECKING:
    from spdp.domain.base import Domain

CHANNELS = 8  # more rows than channels: the size of a covariance descriptor


class Question(NamedTuple):
    """What is asked for a field: a number, or one of a few choices, value by word."""

    name: str
    text: str
    choices: Mapping[str, Any] = {}

    def word(self, value: Any) -> Any:
        """A value as it is shown."""
        return next((word for word, found in self.choices.items() if found == value), value)

    def value(self, word: Any) -> Any:
        """The value of what was entered."""
        return self.choices[word] if self.choices else float(word)


def _words(*words: str) -> dict[str, str]:
    return {word: word for word in words}


# Names of spdp.domain.sets, which the first page does not wait for.
DIFFUSIVITIES = _words("mm2/s", "um2/ms", "um2/s", "cm2/s", "m2/s")
VOLTAGES = _words("V", "mV", "uV", "nV")
WHY_METRIC = {
    "logeuclid": "The log-Euclidean metric compares eigenvalues by their ratios.",
    "offlog": (
        "In the off-log metric the mean of correlation matrices is again one, with ones on its "
        "diagonal."
    ),
}


class Instrument(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """What measured the matrices; the subclasses are the kinds.

    Attributes
    ----------
    title : str
        What it is called where one is chosen.
    why : str
        Why its domain holds.
    before : str
        What must have been done to the matrices, or where the numbers come from.
    rows : str
        The question for the number of rows, where it does not follow.
    questions : tuple of Question
    terms : tuple of str
        The terms in which its users state an error (:mod:`spdp.wizard.accuracy`).
    """

    title: ClassVar[str] = ""
    why: ClassVar[str] = ""
    before: ClassVar[str] = ""
    rows: ClassVar[str] = "How many rows has a matrix?"
    questions: ClassVar[tuple[Question, ...]] = ()
    terms: ClassVar[tuple[str, ...]] = ("eigenvalues", "distance")

    @classmethod
    def answered(cls, answers: Mapping[str, Any]) -> Self:
        """The instrument, by the answers to its questions."""
        return cls(**answers)

    @property
    def metric(self) -> str:
        """The metric that fits these matrices."""
        return "logeuclid"

    @property
    def unit_of_entries(self) -> str:
        """The unit of a matrix's entries; empty where they have none."""
        return ""

    @property
    def reason(self) -> str:
        """Why this domain holds, and why this metric."""
        return f"{self.why} {WHY_METRIC.get(self.metric, '')}".strip()

    @property
    def size(self) -> int | None:
        """The number of rows, where it follows."""
        return None

    def domain(self, k: int) -> "Domain":
        """The public domain of k×k matrices of this instrument."""
        raise NotImplementedError

    def _check_size(self, k: int, what: str) -> None:
        if k != self.size:
            raise ParameterError(f"{what} are {self.size}×{self.size}, these matrices are {k}×{k}")


class Diffusion(Instrument, frozen=True, forbid_unknown_fields=True, tag="diffusion"):
    """Diffusion tensors: 3×3, in a stated unit."""

    title: ClassVar = "Diffusion MRI: tensors, 3×3"
    why: ClassVar = (
        "Eigenvalues of a diffusion tensor are diffusivities. Water in tissue moves no faster "
        "than free water, and fits below 1e-5 mm²/s are noise: the limits are physics."
    )
    questions: ClassVar = (Question("unit", "Unit of the tensors’ entries", DIFFUSIVITIES),)
    terms: ClassVar = ("diffusivity", "eigenvalues", "anisotropy", "distance")

    unit: str = "mm2/s"
    low: float | None = None
    high: float | None = None

    @property
    def unit_of_entries(self) -> str:
        return self.unit.replace("2", "²").replace("um", "µm")

    @property
    def size(self) -> int:
        return 3

    def domain(self, k: int) -> "Domain":
        from spdp.domain.sets import tensor_bounds

        self._check_size(k, "diffusion tensors")
        return tensor_bounds(self.unit, self.low, self.high)


class Signals(Instrument, frozen=True, forbid_unknown_fields=True, tag="signals"):
    """Covariances of signals: EEG, EMG."""

    title: ClassVar = "EEG, EMG: covariances of channels"
    why: ClassVar = (
        "No channel is louder than the largest amplitude, which the amplifier and the artefact "
        "threshold limit, and the noise floor was added to every covariance: the two bound the "
        "trace and the smallest eigenvalue."
    )
    before: ClassVar = (
        "Before: add the square of the noise floor to the diagonal of every covariance (in NumPy: "
        "C + floor**2 * np.eye(len(C)), the floor in the unit of the signals). This is assumed, "
        "not checked: a matrix to which it was not added is moved into the public set. Floor and "
        "amplitude are from the data sheet and the artefact threshold, not from the data. MNE "
        "keeps signals in V."
    )
    rows: ClassVar = "How many channels?"
    questions: ClassVar = (
        Question("low", "Noise floor (rms)"),
        Question("high", "Largest amplitude (rms)"),
        Question("unit", "Unit of these two", VOLTAGES),
        Question("data_unit", "Unit of the signals", VOLTAGES),
    )
    terms: ClassVar = ("power", "eigenvalues", "correlations", "distance")

    low: float = 0.5
    high: float = 50.0
    unit: str = "uV"
    data_unit: str = "uV"

    @property
    def unit_of_entries(self) -> str:
        return self.data_unit.replace("u", "µ") + "²"

    def domain(self, k: int) -> "Domain":
        from spdp.domain.sets import amplitude_bounds

        return amplitude_bounds(k, self.low, self.high, unit=self.unit, data_unit=self.data_unit)


class Connectomes(Instrument, frozen=True, forbid_unknown_fields=True, tag="connectomes"):
    """Correlation matrices that were shrunk by a public number."""

    title: ClassVar = "Connectomes: correlations of brain regions"
    why: ClassVar = (
        "A correlation matrix that was shrunk to (1 − s)·C + s·I has eigenvalues of at least s, "
        "and its trace is the number of regions."
    )
    before: ClassVar = (
        "Before: shrink every matrix to (1 − s)·C + s·I with this public s (in NumPy: "
        "(1 - s) * C + s * np.eye(len(C))). This is assumed, not checked: a matrix that was not "
        "shrunk is moved into the public set."
    )
    rows: ClassVar = "How many regions?"
    questions: ClassVar = (Question("shrinkage", "Shrinkage s"),)
    terms: ClassVar = ("correlations", "distance")

    shrinkage: float = 0.2

    @property
    def metric(self) -> str:
        return "offlog"

    def domain(self, k: int) -> "Domain":
        from spdp.domain.sets import CorrelationBounds

        if k < 2:
            raise ParameterError("a connectome has at least two regions")
        return CorrelationBounds(self.shrinkage)


class Images(Instrument, frozen=True, forbid_unknown_fields=True, tag="images"):
    """Covariance descriptors of images, as ``spdp describe`` makes them."""

    title: ClassVar = "Images: covariance descriptors, from spdp describe"
    why: ClassVar = (
        "Pixels lie between 0 and 1, and features of an image between known limits, so that the "
        "trace of their covariance is bounded for every image: nothing has to be assumed."
    )
    questions: ClassVar = (
        Question("channels", "Images", {"gray": 1, "colour": 3}),
        Question("eta", "Number added to the diagonal"),
    )

    channels: int = 1
    eta: float = 1e-6

    @property
    def size(self) -> int:
        return CHANNELS + self.channels

    def domain(self, k: int) -> "Domain":
        from spdp.descriptors import descriptor_bounds

        bounds = descriptor_bounds(self.channels, self.eta)
        self._check_size(k, f"descriptors of {self.questions[0].word(self.channels)} images")
        return bounds


class Other(Instrument, frozen=True, forbid_unknown_fields=True, tag="other"):
    """Anything else: one public bound, and a metric."""

    title: ClassVar = "Something else"
    why: ClassVar = (
        "The limits that you state must be public knowledge, never read off the data. Too wide "
        "costs little, too narrow moves the records."
    )
    questions: ClassVar = (
        Question("low", "Smallest eigenvalue"),
        Question("high", "Largest eigenvalue"),
    )

    eigenvalues: tuple[float, float] | None = None
    trace: tuple[float, float] | None = None
    correlation: float | None = None
    radius: float | None = None
    distance: str = "logeuclid"

    @classmethod
    def answered(cls, answers: Mapping[str, Any]) -> Self:
        return cls(eigenvalues=(answers["low"], answers["high"]))

    @property
    def metric(self) -> str:
        return self.distance

    def domain(self, k: int) -> "Domain":
        from spdp.domain.sets import Ball, CorrelationBounds, EigenvalueBounds, TraceBounds

        made: list[Domain] = []
        if self.eigenvalues is not None:
            made.append(EigenvalueBounds(*self.eigenvalues))
        if self.trace is not None:
            made.append(TraceBounds(*self.trace))
        if self.correlation is not None:
            made.append(CorrelationBounds(self.correlation))
        if self.radius is not None:
            made.append(Ball(self.radius))
        if len(made) != 1:
            names = map(named, ("eigenvalues", "trace", "correlation", "radius"))
            raise ParameterError(f"state one public bound: one of {', '.join(names)}")
        return made[0]


Kind = Diffusion | Signals | Connectomes | Images | Other
KINDS: dict[str, type[Kind]] = {kind.__struct_config__.tag: kind for kind in get_args(Kind)}
