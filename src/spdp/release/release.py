"""What may be published: a value, the law of its error, and its certificate."""

import json
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import inf, nextafter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from spdp.error.bound import POPULATION_FROM, Bound
from spdp.error.laws import law_of
from spdp.errors import DataError, NotReleased, ParameterError, need
from spdp.privacy.budget import pure_mu
from spdp.release import files
from spdp.release.certificate import Certificate
from spdp.release.declaration import NEVER, Check, functions
from spdp.release.files import sign as sign_seal

if TYPE_CHECKING:
    from spdp.release.disclosure import Disclosure

MEAN = "mean"  # default name of a single value

Array = NDArray[Any]  # of float64 numbers, or complex128 where matrices are Hermitian
Values = Mapping[str, Array]


def _array_files(folder: Path) -> list[str]:
    """Array files of a complete release in a folder; other files are left alone."""
    try:
        return [f"{name}.npy" for name in Release.load(folder).values]
    except DataError:
        return []


def _frozen(value: Array) -> Array:
    """A read-only copy: an array over bytes, unlike others, cannot be made writable."""
    own = np.asarray(value, np.complex128 if np.iscomplexobj(value) else np.float64)
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
        The first array released, read-only: a matrix (k, k), several of them (p, k, k),
        or coordinates in the metric's chart, as the statistic's function says; complex
        where matrices are Hermitian. ``numpy.asarray(release)`` is a copy of it.
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
        certificate: Certificate | dict[str, Any],
        signature: dict[str, str] | None = None,
    ) -> None:
        plain = msgspec.to_builtins(certificate)
        if not isinstance(value, Mapping):
            value = {next(iter(plain.get("arrays") or [MEAN])): value}
        self.__dict__["_values"] = {name: _frozen(array) for name, array in value.items()}
        self.__dict__["_plain"] = plain
        self.__dict__["_signature"] = signature
        self.__dict__["_rows"] = None

    @property
    def row_names(self) -> tuple[str, ...] | None:
        """Names of the matrices' rows, where the records had them.

        *Assumed.* They are public, as the shape of matrices is. Pictures and pages show
        them; neither the certificate nor a saved release holds them.
        """
        names: tuple[str, ...] | None = self.__dict__["_rows"]
        return names

    def with_row_names(self, names: Sequence[str] | None) -> "Release":
        """The same release, with names of its matrices' rows."""
        if names is None:
            return self
        named = Release(self.values, self.certificate, self.__dict__["_signature"])
        named.__dict__["_rows"] = tuple(map(str, names))
        return named

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

    @cached_property
    def _text(self) -> str:
        """JSON: it cannot be changed through a reference to a part, nor hold a NaN."""
        return json.dumps(self.__dict__.pop("_plain"), allow_nan=False)

    @property
    def certificate(self) -> dict[str, Any]:
        return dict(json.loads(self._text))

    @cached_property
    def squared_error(self) -> Any:
        law = self.certificate["squared_error_law"]
        if law is None:
            raise NotReleased("the law of this error is not known; see error_bound(confidence)")
        return law_of(law).distribution()

    def error_bound(self, confidence: float = 0.95) -> float:
        """A distance that the error stays below with at least this probability.

        The probability is over the noise, whatever the data; the error is the distance
        from the value to the certificate's ``estimand``.
        """
        level, c = _checked(confidence), self.certificate
        if c["error_bound"] is None:
            raise NotReleased(f"error_bound is not available: {c['error_statement']}")
        if c["error_bound_parts"] is not None:
            return Bound.read(c["error_bound_parts"]).at(level)
        return float(np.sqrt(self.squared_error.ppf(level)))

    def population_bound(self, confidence: float = 0.95) -> float:
        """An approximate bound on the distance to the population's mean.

        It adds sampling error to noise and clipping, and needs a release with a
        variance. Assumed: records (or persons) are drawn independently, and are enough
        for the normal limit. Confidences below
        :data:`spdp.error.bound.POPULATION_FROM` are refused: there the bound need
        not cover (:mod:`spdp.error.bound` says why).
        """
        stated = self.certificate["error_bound_population"]
        if stated is None:
            names = functions(lambda statistic: statistic.population != NEVER)
            raise NotReleased(f"this release has no variance; use {names}")
        if _checked(confidence) < POPULATION_FROM:
            raise ParameterError(
                f"confidence must be at least {POPULATION_FROM} for the population's mean, got "
                f"{confidence!r}: where only the total variance of sampling is known, the bound "
                "is not known to cover below that"
            )
        return Bound.read(stated["parts"]).at(confidence)

    def sample(
        self, size: int, random_state: int | np.random.Generator | None = None, classes: Any = None
    ) -> Any:
        """Synthetic records (size, k, k) of the released mean and covariance.

        They follow a log Gaussian law in the metric's chart. They are computed from
        released numbers alone: they cost no privacy budget, and hold no further
        information on the data (:mod:`spdp.release.synthetic`). For class means,
        records and their classes are returned: those of ``classes``, one for all or one
        each, or else in proportion to the released counts.
        """
        from spdp.release.synthetic import draw

        return draw(self.values, self.certificate, size, random_state, classes)

    def dp_event(self) -> Any:
        """What this release cost, as a ``DpEvent`` of dp-accounting.

        A release of cost μ is dominated by one Gaussian of noise multiplier 1/μ
        (Gaussian differential privacy), a pure ε release by its Gaussian equivalent
        μ = 2Φ⁻¹(e^ε/(1 + e^ε)), as in a ledger. Both are valid; only the latter is
        loose. The noise multiplier is for the release's OWN adjacency. Accountants of
        dp-accounting take it as it is for ADD_OR_REMOVE_ONE and REPLACE_SPECIAL; for
        REPLACE_ONE its accountant of privacy loss distributions doubles the
        sensitivity, since it expects multipliers stated for added records: still valid,
        at twice the cost.
        """
        dp_accounting = need("dp_accounting", "accounting", "an event", "dp-accounting")
        c = self.certificate
        if not c["private"]:
            return dp_accounting.NonPrivateDpEvent()
        cost = pure_mu(c["epsilon"]) if c["mu"] is None else c["mu"]
        return dp_accounting.GaussianDpEvent(nextafter(1.0 / cost, -inf))

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        force: bool = False,
        sign: str | os.PathLike[str] | None = None,
    ) -> Path:
        """Write every value, as NAME.npy, and ``certificate.json`` into a directory.

        Parameters
        ----------
        path : path
            A directory, created if it is missing. A release in it is replaced only with
            ``force``, with all of its arrays and its page; other files stay.
        force : bool
        sign : path, optional
            PEM file of an Ed25519 private key to sign the release with.
        """
        target = Path(path)
        contents = {f"{name}.npy": files.npy_of(value) for name, value in self.values.items()}
        if not force and any((target / name).exists() for name in (*contents, files.CERTIFICATE)):
            raise DataError(f"{target}: holds a release already", ask="force")
        seal = files.seal_of(self.values, self.certificate)
        signature = None if sign is None else sign_seal(seal, Path(sign))
        sealed = {**self.certificate, "sha256": seal, "signature": signature}
        # the certificate last: the arrays that it names exist when it does
        contents[files.CERTIFICATE] = json.dumps(sealed, indent=2, allow_nan=False).encode()
        files.write_all(target, contents, force, _array_files(target) if force else ())
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Release":
        """Read back what :meth:`save` wrote; an edited file is refused."""
        source = Path(path)
        try:
            content = files.strict_json((source / files.CERTIFICATE).read_text(encoding="utf-8"))
        except Exception as error:  # a damaged file may cause any error
            raise DataError(f"{source} does not hold a release: {error}") from None
        if not isinstance(content, dict):
            raise DataError(f"{source}: {files.CERTIFICATE} is not a certificate")
        seal, signature = content.pop("sha256", None), content.pop("signature", None)
        try:
            certificate = Certificate.read(content)
            missing = certificate.declaration.missing
        except DataError as error:
            raise DataError(f"{source}: {error.message}") from None
        values = {
            name: files.read_array(source, name, shape, name in missing)
            for name, shape in certificate.arrays.items()
        }
        if seal != files.seal_of(values, content):
            raise DataError(f"{source}: edited or damaged; the files are not what was sealed")
        return cls(values, content, signature if isinstance(signature, dict) else None)

    def verify(self, public_key: str | os.PathLike[str] | None = None) -> list[Check]:
        """Recompute what the certificate states, and check its signature.

        A release that is not signed has no check of a signature. With ``public_key``,
        the PEM file of an Ed25519 key, it must be signed by the key's owner.
        :mod:`spdp.release.verify` says what this does not prove.
        """
        from spdp.release.verify import checks

        seal = files.seal_of(self.values, self.certificate)
        key = None if public_key is None else Path(public_key)
        signed = files.check_signature(seal, self.__dict__["_signature"], key)
        return [*checks(self.certificate, self.values), *([] if signed is None else [signed])]

    def disclosure(
        self, *, title: str = "", study: str = "", contact: str = "", date: str = ""
    ) -> "Disclosure":
        """What registries, boards and data repositories ask about the release.

        A record of the public registry of deployments, a table of the hazards of NIST
        SP 800-226, and metadata (schema.org, CITATION.cff). What only people can know
        is left to fill in: ``to_fill`` names it, and ``save(path)`` writes the files.

        Parameters
        ----------
        title, study, contact, date : str, optional
            What it is called, whose study it is, whom to ask, and the day it is
            published (``2026-03-31``); taken as stated.
        """
        from spdp.release.board import About
        from spdp.release.disclosure import disclosure_of

        return disclosure_of(self, About.of(title=title, study=study, contact=contact, date=date))

    @property
    def signed(self) -> bool:
        """Whether somebody signed the release; :meth:`verify` checks who."""
        return self.__dict__["_signature"] is not None

    def __repr__(self) -> str:
        c = self.certificate
        kind = "private" if c["private"] else "NOT private (simulation)"
        size = "x".join(map(str, self.value.shape))
        budget = f"epsilon={c['epsilon']}, delta={c['delta']}"
        clipped = Certificate.read(c).clipped
        edge = "" if clipped is None else f"; domain: {clipped}"
        weak = "".join(f"; caution: {caution.rstrip('.')}" for caution in self.cautions)
        what = f"{c['statistic']}, {size}, {kind}, {c['mechanism']}, {budget}"
        return f"<Release of {what}{edge}{weak}>"

    @property
    def cautions(self) -> list[str]:
        """What is weak about the guarantee: ε above 10, or δ above 1/n."""
        from spdp.release.summary import Summary

        return Summary(self.certificate).cautions

    def _repr_html_(self) -> str:
        from spdp.release.report import card_of

        return card_of(self)

    def plot(self, axes: Any = None, *, names: Sequence[str] | None = None) -> Any:
        """Draw what was released: matrices on one colour scale, and their shapes.

        Matrices are heat maps; up to four 2×2 or 3×3 matrices are also drawn as
        ellipses or ellipsoids. Principal directions and trends are drawn as changes of
        the mean. Needs matplotlib.

        Parameters
        ----------
        axes : matplotlib axes, or a sequence of them, optional
            Where to draw: as many as there are pictures, or one, for the main picture.
            By default a new figure.
        names : sequence of str, optional
            Names of the rows; by default those that the records had.

        Returns
        -------
        matplotlib axes, or an array of them where there are several pictures
        """
        from spdp.release.report import plot

        return plot(self, axes, names)
