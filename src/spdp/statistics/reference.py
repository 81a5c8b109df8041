r"""A reference: centre and principal axes of public data that may resemble the private.

A reference is public: another study, a template, an open data set. It is never computed
from the data to be protected. The search checks privately that it fits before it relies
on it.
"""

import hashlib
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.charts import Chart, chart_of
from spdp.data.progress import track
from spdp.data.source import Source, as_source
from spdp.engines import engine_for
from spdp.engines.base import invalid_record
from spdp.engines.store import Task, vectors_of
from spdp.errors import DataError, ParameterError, named, reason
from spdp.kernels.arrays import Array
from spdp.queries.sums import Frame
from spdp.release.files import whole_file

NARROWEST = 0.02  # least width over the widest: records may be fewer than dimensions
ANYWHERE = 1e100  # radius of a ball that holds all matrices
FORMAT = "spdp-reference-1"
ARRAYS = ("center", "width", "axes", "sample", "spread", "n")
FIELDS = (*ARRAYS, "format", "metric", "digest")
SQUARE = 1e-8  # by how much axes may fail to be orthonormal
SAMPLE = 2000  # at least so many records, if there are, are kept for plans


@dataclass(frozen=True, eq=False, repr=False)
class Reference:
    """Centre and shape of public data; ``frame`` has units w_j = √(s_j/mean s).

    Attributes
    ----------
    frame : Frame
        Centre, principal axes and units; s_j is the standard deviation along axis j.
    sample : array (m, d)
        Vectors of some of the public records, on which plans are simulated: centre and
        axes alone do not describe heavy tails and skewness.
    spread : float
        Root mean square distance from the centre, √Σ s_j².
    n : int
        Number of public records.
    metric : str
        The metric whose chart holds frame and sample.

    Examples
    --------
    >>> from spdp import Reference
    >>> from spdp.datasets import synthetic_spd
    >>> public = synthetic_spd(500, 3, random_state=0)
    >>> reference = Reference.from_public(public)
    >>> reference.n, reference.metric
    (500, 'logeuclid')
    """

    frame: Frame
    sample: Array
    spread: float
    n: int
    metric: str = "logeuclid"

    @staticmethod
    def from_public(X_public: Any, metric: str = "logeuclid") -> "Reference":
        """The reference of public SPD matrices.

        ``X_public`` is an array (n, k, k), or anything
        :func:`spdp.data.source.as_source` takes. It must not hold data to be protected.
        """
        source, chart = as_source(X_public, "X_public"), chart_of(metric)
        return Reference._of(*_moments(source, chart), chart.name)

    @staticmethod
    def from_vectors(Y: Array, metric: str = "logeuclid") -> "Reference":
        """The same from their vectors (n, d) in the metric's chart."""
        covariance = np.atleast_2d(np.cov(Y.T, bias=True))
        return Reference._of(Y.mean(axis=0), covariance, len(Y), _thinned(Y)[0], metric)

    @staticmethod
    def _of(
        center: Array, covariance: Array, n: int, sample: Array, metric: str = "logeuclid"
    ) -> "Reference":
        if n < 2:
            raise DataError("a reference needs at least 2 public records")
        values, V = np.linalg.eigh(covariance)
        along = np.sqrt(np.maximum(values, 0.0))
        along = np.maximum(along, max(NARROWEST * float(along[-1]), 1e-12))
        width = np.sqrt(along / along.mean())
        spread = float(np.sqrt(max(values.sum(), 0.0)))
        return Reference(Frame(center, width, V), sample, spread, n, metric)

    def __repr__(self) -> str:
        return (
            f"<Reference k={self.k}, n={self.n}, metric={self.metric!r}, "
            f"sha256 {self.digest[:12]}…>"
        )

    @property
    def k(self) -> int:
        """Size of the public matrices."""
        return chart_of(self.metric).size(len(self.frame.center))

    @property
    def digest(self) -> str:
        """SHA-256 of centre, units and axes, for the certificate."""
        parts = (self.frame.center, self.frame.width, self.frame.axes)
        data = b"".join(np.ascontiguousarray(part, "<f8").tobytes() for part in parts)
        return hashlib.sha256(data).hexdigest()

    def check(self, k: int, metric: str = "logeuclid") -> None:
        """Refuse to be used for records of another size or metric."""
        if self.k != k:
            raise ParameterError(f"the reference is {self.k}×{self.k}, records are {k}×{k}")
        if self.metric != metric:
            raise ParameterError(f"the reference is of metric {self.metric!r}, not {metric!r}")

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write an .npz file; an existing one is replaced only with ``force``."""
        content = {
            "format": FORMAT,
            "metric": self.metric,
            "center": self.frame.center,
            "width": self.frame.width,
            "axes": self.frame.axes,
            "sample": self.sample,
            "spread": self.spread,
            "n": self.n,
            "digest": self.digest,
        }
        with whole_file(file := Path(path), force) as draft, draft.open("wb") as stream:
            np.savez(stream, **content)  # type: ignore[arg-type]
        return file

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Reference":
        """Read back what :meth:`save` wrote, or say what is wrong with it."""
        file = Path(path)
        try:
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                if not set(FIELDS) <= set(archive):
                    raise DataError("not a reference; spdp reference makes one")
                content = {name: archive[name] for name in FIELDS}
            return _checked(content)
        except (DataError, ParameterError) as error:
            raise DataError(f"{file}: {error.message}") from None
        except (OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile) as error:
            raise DataError(f"{file}: cannot be read as a reference ({reason(error)})") from None


def _checked(content: dict[str, NDArray[Any]]) -> Reference:
    """The reference that a file holds, or an error that names what is impossible."""
    if str(content["format"]) != FORMAT:
        raise DataError(f"has format {str(content['format'])!r}, this spdp reads {FORMAT!r}")
    numbers = {name: np.asarray(content[name], np.float64) for name in ARRAYS}
    for name, value in numbers.items():
        if not np.isfinite(value).all():
            raise DataError(f"its {name} is not finite")
    center, width, axes, sample, spread, n = (numbers[name] for name in ARRAYS)
    metric = str(content["metric"])
    d = center.size
    if center.ndim != 1 or chart_of(metric).size(d) < 1:
        raise DataError(f"its centre of shape {center.shape} fits no size of matrices")
    if width.shape != (d,) or not (width > 0).all():
        raise DataError(f"its width is not {d} positive numbers")
    if axes.shape != (d, d) or np.abs(axes.T @ axes - np.eye(d)).max() > SQUARE:
        raise DataError(f"its axes are not {d} orthonormal vectors")
    if sample.ndim != 2 or sample.shape[1] != d or len(sample) < 2:
        raise DataError(f"its sample of shape {sample.shape} does not hold vectors of length {d}")
    if spread.ndim or spread < 0 or n.ndim or n < 2 or n != int(n):
        raise DataError("its spread or number of records is not possible")
    reference = Reference(Frame(center, width, axes), sample, float(spread), int(n), metric)
    if str(content["digest"]) != reference.digest:
        raise DataError("damaged, its digest does not agree")
    return reference


def check_reference(reference: Any, k: int, metric: str) -> None:
    """Refuse what is not a reference, or has another size or metric."""
    if not isinstance(reference, Reference):
        raise ParameterError(
            f"{named('reference')} must be a Reference, as Reference.from_public and "
            f"Reference.load give it, got {reference!r}"
        )
    reference.check(k, metric)


def _moments(source: Source, chart: Chart) -> tuple[Array, Array, int, Array]:
    """Mean and covariance of the records' vectors, their number, and a sample."""
    d = chart.dimension(source.k)
    region = chart.ball(None, ANYWHERE, source.k)
    task = Task(chart, region, source.shape, source.name)
    mean, scatter, n = np.zeros(d), np.zeros((d, d)), 0
    sample, stride = np.empty((0, d)), 1
    with track("reading public records", source.n) as advance:
        for rows, m, fault in engine_for(source).each(source, vectors_of, task):
            Y = rows.Y
            if fault is not None:
                raise invalid_record(source, n + fault.place, fault, remedy="")
            if m == 0:
                continue
            center = Y.mean(axis=0)
            inner, step = Y - center, center - mean
            scatter += inner.T @ inner + np.outer(step, step) * (n * m / (n + m))
            mean += step * (m / (n + m))
            n += m
            sample, times = _thinned(np.concatenate([sample, Y[::stride]]))
            stride *= times
            advance(m)
    return mean, scatter / max(n, 1), n, sample


def _thinned(Y: Array) -> tuple[Array, int]:
    """Every t-th row, and t: the least power of 2 that leaves at most 2·SAMPLE."""
    times = 1
    while len(Y) > 2 * SAMPLE * times:
        times *= 2
    return Y[::times], times
