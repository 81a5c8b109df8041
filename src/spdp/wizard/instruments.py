"""Instruments, and the public domain and metric that follow from each.

*Enforced.* A domain is made of the numbers that are entered here, and of the public
size k, by the functions that :mod:`spdp.domain.sets` and :mod:`spdp.descriptors` prove.
*Assumed.* These numbers are public knowledge (a data sheet, physics, a protocol).
"""

from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from spdp.errors import ParameterError, named

if TYPE_CHECKING:
    from spdp.domain.base import Domain

CHANNELS = 8  # more rows than channels: the size of a covariance descriptor


class Instrument(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """What measured the matrices; the subclasses are the kinds.

    Attributes
    ----------
    title : str
        What a page calls it.
    terms : tuple of str
        The terms in which its users state an error (:mod:`spdp.wizard.accuracy`).
    """

    title: ClassVar[str] = ""
    terms: ClassVar[tuple[str, ...]] = ("eigenvalues", "distance")

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
        """Why this domain holds, and why this metric, in one or two sentences."""
        raise NotImplementedError

    def domain(self, k: int) -> "Domain":
        """The public domain of k×k matrices of this instrument."""
        raise NotImplementedError


class Diffusion(Instrument, frozen=True, forbid_unknown_fields=True, tag="diffusion"):
    """Diffusion tensors: 3×3, in a stated unit."""

    title: ClassVar = "Diffusion MRI: tensors, 3×3"
    terms: ClassVar = ("diffusivity", "eigenvalues", "anisotropy", "distance")

    unit: str = "mm2/s"
    low: float | None = None
    high: float | None = None

    @property
    def unit_of_entries(self) -> str:
        return self.unit.replace("2", "²").replace("um", "µm")

    @property
    def reason(self) -> str:
        return (
            "Eigenvalues of a diffusion tensor are diffusivities. Water in tissue moves no faster "
            "than free water, and fits below 1e-5 mm²/s are noise: the limits are physics."
        )

    def domain(self, k: int) -> "Domain":
        from spdp.domain.sets import tensor_bounds

        if k != 3:
            raise ParameterError(f"diffusion tensors are 3×3, these matrices are {k}×{k}")
        return tensor_bounds(self.unit, self.low, self.high)


class Signals(Instrument, frozen=True, forbid_unknown_fields=True, tag="signals"):
    """Covariances of signals: EEG, EMG, MEG."""

    title: ClassVar = "EEG, EMG: covariances of channels"
    terms: ClassVar = ("power", "eigenvalues", "correlations", "distance")

    low: float = 0.5
    high: float = 50.0
    unit: str = "uV"
    data_unit: str = "uV"

    @property
    def unit_of_entries(self) -> str:
        return self.data_unit.replace("u", "µ") + "²"

    @property
    def reason(self) -> str:
        return (
            "No channel is louder than the largest amplitude, which the amplifier and the "
            "artefact threshold limit, and the noise floor was added to every covariance "
            "(C + floor²·I): the two bound the trace and the smallest eigenvalue."
        )

    def domain(self, k: int) -> "Domain":
        from spdp.domain.sets import amplitude_bounds

        return amplitude_bounds(k, self.low, self.high, unit=self.unit, data_unit=self.data_unit)


class Connectomes(Instrument, frozen=True, forbid_unknown_fields=True, tag="connectomes"):
    """Correlation matrices that were shrunk by a public number."""

    title: ClassVar = "Connectomes: correlations of brain regions"
    terms: ClassVar = ("correlations", "distance")

    shrinkage: float = 0.2

    @property
    def metric(self) -> str:
        return "offlog"

    @property
    def reason(self) -> str:
        return (
            "A correlation matrix that was shrunk to (1 − s)·C + s·I has eigenvalues of at least "
            "s, and its trace is the number of regions. In the off-log metric the mean is again "
            "a correlation matrix, with ones on its diagonal."
        )

    def domain(self, k: int) -> "Domain":
        from spdp.domain.sets import CorrelationBounds

        if k < 2:
            raise ParameterError("a connectome has at least two regions")
        return CorrelationBounds(self.shrinkage)


class Images(Instrument, frozen=True, forbid_unknown_fields=True, tag="images"):
    """Covariance descriptors of images, as ``spdp describe`` makes them."""

    title: ClassVar = "Images: covariance descriptors"

    channels: int = 1
    eta: float = 1e-6

    @property
    def reason(self) -> str:
        return (
            "Features of an image lie between known limits, so that the trace of their covariance "
            "is bounded for every image: nothing has to be assumed."
        )

    def domain(self, k: int) -> "Domain":
        from spdp.descriptors import descriptor_bounds

        bounds = descriptor_bounds(self.channels, self.eta)
        if k != CHANNELS + self.channels:
            what = "gray" if self.channels == 1 else "colour"
            raise ParameterError(
                f"descriptors of {what} images are {CHANNELS + self.channels}×"
                f"{CHANNELS + self.channels}, these matrices are {k}×{k}"
            )
        return bounds


class Other(Instrument, frozen=True, forbid_unknown_fields=True, tag="other"):
    """Anything else: one public bound, and a metric."""

    title: ClassVar = "Something else"

    eigenvalues: tuple[float, float] | None = None
    trace: tuple[float, float] | None = None
    correlation: float | None = None
    radius: float | None = None
    distance: str = "logeuclid"

    @property
    def metric(self) -> str:
        return self.distance

    @property
    def reason(self) -> str:
        return (
            "The limits that you state must be public knowledge, never read off the data. Too "
            "wide costs little, too narrow moves the records."
        )

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
KINDS: dict[str, type[Instrument]] = {
    kind.__struct_config__.tag: kind  # type: ignore[misc]
    for kind in (Diffusion, Signals, Connectomes, Images, Other)
}
