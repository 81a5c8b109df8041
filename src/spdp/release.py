"""What may be published: a value, the law of its error, and a certificate of the guarantee it was made under."""

import hashlib
import html
import json
import os
import platform
import tempfile
from copy import deepcopy
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError, ParameterError
from spdp.laws import law_of, mean_of, quantiles
from spdp.ledger import Ledger
from spdp.records import Records

__all__ = ["Purse", "Release", "certify"]

CERTIFICATE, MEAN = "certificate.json", "mean.npy"


def certify(*, law: dict[str, Any], random_state: Any, float_safe: bool, **facts: Any) -> dict[str, Any]:
    """A certificate: public parameters, the error law they imply, and nothing computed from the data.

    Enforced: only callers in :mod:`spdp` that pass public numbers and already released values fill it; no function of the records
    is an argument here. A seeded result is a simulation and is certified as not private.
    """
    seeded = random_state is not None
    certificate = {
        "private": not seeded,
        "float_safe": bool(float_safe and not seeded),
        "mechanism": None,
        "calibration": None,
        "epsilon": None,
        "delta": None,
        "mu": None,
        "adjacency": None,
        "n": None,
        "k": None,
        "domain": None,
        "sensitivity": None,
        "sigma": None,
        "lattice_step": None,
        **facts,
        "expected_squared_error": mean_of(law),
        "squared_error_quantiles": quantiles(law),
        "squared_error_law": law,
        "seed": (random_state if isinstance(random_state, int) else "generator") if seeded else None,
        "versions": dict(_versions()),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    json.dumps(certificate, allow_nan=False)  # plain and finite, or it is no certificate
    return certificate


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    return {"spdp": version("spdp"), "numpy": np.__version__, "opendp": version("opendp"), "python": platform.python_version()}


class Purse:
    """Pays for one release out of a ledger: check the data, commit the cost, draw noise, keep the result, in this order.

    Without a ledger it does nothing; a seeded simulation is not private, costs nothing and is refused a ledger.
    """

    def __init__(self, ledger: Ledger | None, label: str | None, random_state: Any) -> None:
        if ledger is not None and random_state is not None:
            raise ParameterError("a seeded simulation is not private and spends no budget: leave out the ledger or the seed")
        self._ledger, self._label = ledger, label
        self._entry: int | None = None

    def check(self, records: Records) -> None:
        if self._ledger is not None:
            self._ledger.check_data(records)

    def pay(self, mechanism: str, mu: float | None = None, pure: float | None = None) -> None:
        if self._ledger is not None:
            self._entry = self._ledger.spend(mechanism=mechanism, label=self._label, mu=mu, pure=pure)

    def keep(self, release: "Release") -> "Release":
        if self._ledger is not None and self._entry is not None:
            self._ledger.store(self._entry, release.value, release.certificate)
        return release


class Release:
    """An immutable released matrix with its certificate.

    Attributes
    ----------
    value : array (k, k)
        The released matrix, read-only.
    certificate : dict
        JSON-ready statement of the guarantee (a fresh copy at each access).
    squared_error : frozen SciPy distribution
        Law of the squared distance between the value and what it estimates; ``squared_error.ppf(0.95)`` is a
        95 % confidence bound.
    """

    def __init__(self, value: NDArray[np.float64], certificate: dict[str, Any]) -> None:
        frozen = np.array(value, dtype=np.float64)
        frozen.setflags(write=False)
        self.__dict__["_value"] = frozen
        self.__dict__["_certificate"] = deepcopy(certificate)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a Release cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Release cannot be changed")

    @property
    def value(self) -> NDArray[np.float64]:
        return np.asarray(self.__dict__["_value"])

    @property
    def certificate(self) -> dict[str, Any]:
        return deepcopy(dict(self.__dict__["_certificate"]))

    @cached_property
    def squared_error(self) -> Any:
        return law_of(self.certificate["squared_error_law"])

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write ``mean.npy`` and ``certificate.json`` into the directory ``path``; each appears whole or not at all."""
        target = Path(path)
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target, prefix=".partial-") as scratch:
            mean, certificate = Path(scratch) / MEAN, Path(scratch) / CERTIFICATE
            with mean.open("wb") as file:
                np.save(file, self.value)
                os.fsync(file.fileno())
            digest = hashlib.sha256(mean.read_bytes()).hexdigest()
            with certificate.open("w", encoding="utf-8") as file:
                json.dump({**self.certificate, "value_sha256": digest}, file, indent=2, allow_nan=False)
                os.fsync(file.fileno())
            os.replace(mean, target / MEAN)
            os.replace(certificate, target / CERTIFICATE)
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Release":
        """Read back what :meth:`save` wrote, and check that value and certificate belong together."""
        source = Path(path)
        try:
            certificate = json.loads((source / CERTIFICATE).read_text(encoding="utf-8"))
            data = (source / MEAN).read_bytes()
            value = np.load(source / MEAN, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{source} does not hold a release: {error}") from None
        if certificate.pop("value_sha256", None) != hashlib.sha256(data).hexdigest():
            raise DataError(f"{source}: {MEAN} is not the matrix that {CERTIFICATE} was issued for")
        return cls(value, certificate)

    def __repr__(self) -> str:
        c = self.__dict__["_certificate"]
        kind = "private" if c["private"] else "NOT private (simulation)"
        size = self.value.shape[0]
        return f"<Release {size}x{size}, {kind}, {c['mechanism']}, epsilon={c['epsilon']}, delta={c['delta']}>"

    def _repr_html_(self) -> str:
        c = self.__dict__["_certificate"]
        error = c["squared_error_quantiles"]["95%"]
        rows = {
            "private": "yes" if c["private"] else "<b>no: seeded simulation</b>",
            "guarantee": f"ε = {c['epsilon']}, δ = {c['delta']}, {html.escape(str(c['adjacency']))}",
            "mechanism": html.escape(f"{c['mechanism']} ({c['calibration']})"),
            "records": c["n"],
            "distance to the true mean, 95 %": f"≤ {error**0.5:.4g}",
        }
        body = "".join(f"<tr><th style='text-align:left'>{name}</th><td>{value}</td></tr>" for name, value in rows.items())
        return f"<table><caption>Private mean, {self.value.shape[0]}×{self.value.shape[0]}</caption>{body}</table>"
