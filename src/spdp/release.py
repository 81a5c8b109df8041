"""What may be published: a value, the law of its error, and its certificate."""

import json
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.certificate import Certificate, seal_of, strict_json
from spdp.errors import DataError, ParameterError
from spdp.plain import numbers
from spdp.privacy.bounds import POPULATION_FROM, Bound
from spdp.privacy.events import event_of
from spdp.privacy.laws import law_of
from spdp.release_files import CERTIFICATE, REPORT, MissingArray, npy_of, read_array, write_all
from spdp.signature import check_signature
from spdp.signature import sign as sign_seal
from spdp.synthesis import draw
from spdp.verification import Check, checks
from spdp.words import check_names

__all__ = ["CERTIFICATE", "REPORT", "MissingArray", "Release", "by_name"]

PLAIN = json.JSONEncoder(allow_nan=False)
MEAN = "mean"  # name of the value of a mean

Array = NDArray[Any]  # of float64 numbers, or complex128 where matrices are Hermitian
Values = Mapping[str, Array]


def by_name(value: Array | Values, certificate: Mapping[str, Any]) -> Values:
    """Values by name: an only one has the name that its certificate gives it."""
    name = next(iter(certificate.get("arrays") or [MEAN]))
    return value if isinstance(value, Mapping) else {name: value}


def _array_files(folder: Path) -> list[str]:
    """Files of the release in a folder, if it is whole: others may be anyone's."""
    try:
        return [f"{name}.npy" for name in Release.load(folder).values]
    except DataError:
        return []


def _frozen(value: Array) -> Array:
    """A copy for good: bytes, unlike an array's own memory, stay read-only."""
    own = numbers(value)
    return np.frombuffer(own.tobytes(), own.dtype).reshape(own.shape)


def _checked(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence must lie between 0 and 1, got {confidence!r}")
    return confidence


class Release:
    """Immutable released numbers with their certificate.

    Attributes
    ----------
    value : array
        What was released, read-only: a matrix (k, k), or several (p, k, k), complex
        where they are Hermitian; ``numpy.asarray(release)`` is a copy of it.
    values : dict of arrays
        All that was released, by name; ``value`` is the first of them.
    certificate : dict
        JSON-ready statement of the guarantee (a fresh copy at each access).
    squared_error : frozen SciPy distribution
        Law of the squared distance between value and estimand, where it is known: not
        for adaptive releases, whose error has a bound instead.

    Examples
    --------
    >>> from spdp import EigenvalueBounds, Release, private_mean
    >>> from spdp.datasets import synthetic_spd
    >>> X = synthetic_spd(500, 2, random_state=0)
    >>> domain = EigenvalueBounds(0.5, 2.0)
    >>> release = private_mean(X, epsilon=1.0, delta=1e-6, domain=domain)
    >>> release.value.shape, release.certificate["private"]
    ((2, 2), True)
    >>> 0 < release.error_bound(0.95) < release.error_bound(0.99)
    True
    >>> all(check.ok for check in release.verify())
    True
    """

    def __init__(
        self,
        value: Array | Values,
        certificate: dict[str, Any],
        signature: dict[str, str] | None = None,
    ) -> None:
        self.__dict__["_values"] = {
            name: _frozen(array) for name, array in by_name(value, certificate).items()
        }
        # text cannot be changed by whoever holds a part of it; nor can it hold a NaN
        self.__dict__["_certificate"] = PLAIN.encode(certificate)
        self.__dict__["_signature"] = signature

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a Release cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Release cannot be changed")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.value, dtype=dtype)

    @property
    def value(self) -> Array:
        return next(iter(self.values.values()))

    @property
    def values(self) -> dict[str, Array]:
        return dict(self.__dict__["_values"])

    @property
    def certificate(self) -> dict[str, Any]:
        return dict(json.loads(self.__dict__["_certificate"]))

    @cached_property
    def squared_error(self) -> Any:
        law = self.certificate["squared_error_law"]
        if law is None:
            raise AttributeError(
                "the law of this release's error is not known; error_bound(confidence) bounds it"
            )
        return law_of(law)

    def error_bound(self, confidence: float = 0.95) -> float:
        """A distance that the error stays below with at least this probability.

        The probability is over the noise, whatever the data; the error is the distance
        from the value to the certificate's ``estimand``.
        """
        level, c = _checked(confidence), self.certificate
        if c["error_bound"] is None:
            raise AttributeError(f"the error has no bound: {c['error_statement']}")
        if c["error_bound_parts"] is not None:
            return Bound(**c["error_bound_parts"]).at(level)
        return float(np.sqrt(self.squared_error.ppf(level)))

    def population_bound(self, confidence: float = 0.95) -> float:
        """A distance to the population's mean that is not exceeded: approximately.

        It adds the error of sampling to noise and clipping. Assumed: records (or
        persons) drawn independently, and enough of them for the normal limit. Where a
        spread was released with the mean. Confidences below
        :data:`spdp.privacy.bounds.POPULATION_FROM` are refused: there the bound need
        not cover (:mod:`spdp.statistics.population` says why).
        """
        stated = self.certificate["error_bound_population"]
        if stated is None:
            raise AttributeError(
                "no spread was released with this mean: private_dispersion or private_pca "
                "release both"
            )
        if _checked(confidence) < POPULATION_FROM:
            raise ParameterError(
                f"confidence must be at least {POPULATION_FROM} for the population's mean, got "
                f"{confidence!r}: where only the total variance of sampling is known, the bound "
                "is not known to cover below that"
            )
        return Bound(**stated["parts"]).at(confidence)

    def sample(
        self,
        size: int,
        random_state: int | np.random.Generator | None = None,
        classes: Any = None,
    ) -> Any:
        """Made-up records (size, k, k) of the released mean and covariance.

        A log Gaussian law in the metric's chart. It is made of released numbers alone:
        it costs nothing and holds nothing that they do not (:mod:`spdp.synthesis`).
        For means of classes, records and their classes: ``classes`` names one for all
        or one each; else they are in proportion to the released counts.
        """
        return draw(self.values, self.certificate, size, random_state, classes)

    def dp_event(self) -> Any:
        """What this release cost, as a ``DpEvent`` of dp-accounting.

        For accounting beside other releases; :mod:`spdp.privacy.events` says how.
        """
        c = self.certificate
        return event_of(c["mu"], c["epsilon"], c["private"])

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        force: bool = False,
        sign: str | os.PathLike[str] | None = None,
    ) -> Path:
        """Write every value, ``mean.npy``, and ``certificate.json`` into a directory.

        Parameters
        ----------
        path : path
            A directory, made if need be. A release in it is replaced with ``force``
            only, all of its arrays; other files stay.
        force : bool
        sign : path, optional
            PEM file of an Ed25519 private key to sign the release with.
        """
        target = Path(path)
        files = {f"{name}.npy": npy_of(value) for name, value in self.values.items()}
        if not force and any((target / name).exists() for name in (*files, CERTIFICATE)):
            raise DataError(f"{target}: holds a release already", ask="force")
        seal = seal_of(self.values, self.certificate)
        signature = None if sign is None else sign_seal(seal, Path(sign))
        content = {**self.certificate, "sha256": seal, "signature": signature}
        # the certificate last: what it speaks of is there when it is
        files[CERTIFICATE] = json.dumps(content, indent=2, allow_nan=False).encode()
        write_all(target, files, force, _array_files(target) if force else ())
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Release":
        """Read back what :meth:`save` wrote; an edited file is refused."""
        source = Path(path)
        try:
            content = strict_json((source / CERTIFICATE).read_text(encoding="utf-8"))
        except Exception as error:  # the many ways in which a damaged file shows
            raise DataError(f"{source} does not hold a release: {error}") from None
        if not isinstance(content, dict):
            raise DataError(f"{source}: {CERTIFICATE} is not a certificate")
        seal, signature = content.pop("sha256", None), content.pop("signature", None)
        try:
            certificate = Certificate.from_dict(content)
        except DataError as error:
            raise DataError(f"{source}: {error.message}") from None
        values = {
            name: read_array(source, name, shape) for name, shape in certificate.arrays.items()
        }
        if seal != seal_of(values, content):
            raise DataError(
                f"{source}: edited or damaged; its values and {CERTIFICATE} are not what was sealed"
            )
        return cls(values, content, signature if isinstance(signature, dict) else None)

    def verify(self, public_key: str | os.PathLike[str] | None = None) -> list[Check]:
        """Recompute what the certificate states, and check its signature.

        With ``public_key``, the PEM file of an Ed25519 key, the release must be signed
        by its owner. :mod:`spdp.verification` says what this does not prove.
        """
        seal = seal_of(self.values, self.certificate)
        key = None if public_key is None else Path(public_key)
        signed = check_signature(seal, self.__dict__["_signature"], key)
        return [*checks(self.certificate, self.values), signed]

    def __repr__(self) -> str:
        c = self.certificate
        kind = "private" if c["private"] else "NOT private (simulation)"
        size = "x".join(map(str, self.value.shape))
        budget = f"epsilon={c['epsilon']}, delta={c['delta']}"
        return f"<Release {size}, {kind}, {c['mechanism']}, {budget}>"

    def _repr_html_(self) -> str:
        from spdp.pictures import html_of

        return html_of(self.values, self.certificate)

    def plot(self, axes: Any = None, *, names: Sequence[str] | None = None) -> Any:
        """Draw what was released: matrices on one colour scale, and their shapes.

        Of 2×2 and 3×3 matrices the ellipses or ellipsoids, of principal directions and
        of trends how they change the mean; the means of all classes. Needs matplotlib.

        Parameters
        ----------
        axes : matplotlib axes, or a sequence of them, optional
            Where to draw: as many as there are pictures, or one, for the main picture.
            By default a new figure.
        names : sequence of str, optional
            Names of the rows.

        Returns
        -------
        matplotlib axes, or an array of them where there are several pictures
        """
        from spdp.pictures import plot

        return plot(self.values, self.certificate, axes, check_names(names, self.certificate["k"]))
