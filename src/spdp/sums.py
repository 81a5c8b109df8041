"""Exact sums of records that travel: from one call to the next, or from one site to a trusted curator.

A sum is NOT private: whoever holds it and all records but one can compute that one. It becomes private when noise is added to it, once.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp import lattice
from spdp.domain import Domain, domain_of
from spdp.errors import DataError, ParameterError

__all__ = ["LatticeSum"]

VERSION = 1
WARNING = "NOT PRIVATE: exact sum of records. Share it with a trusted curator only; it is private only after noise is added."


@dataclass(frozen=True)
class LatticeSum:
    """Exact sum of the encoded records of some data, with their number and the domain that fixes the encoding.

    Sums of the same domain add up exactly: the same total, to the bit, as over all records at once.
    """

    domain: Domain
    k: int
    n: int
    total: NDArray[np.int64]

    @classmethod
    def of(cls, X: Any, domain: Domain, on_invalid: str = "raise") -> "LatticeSum":
        """Sum of the records of a source."""
        total, n = lattice.sum_records(X, domain, on_invalid)
        return cls(domain, (int(np.sqrt(8 * len(total) + 1)) - 1) // 2, n, total)

    def __add__(self, other: "LatticeSum") -> "LatticeSum":
        if self.k != other.k:
            raise ParameterError(f"sums of {self.k}×{self.k} and {other.k}×{other.k} matrices cannot be merged")
        if self.domain.describe() != other.domain.describe():
            raise ParameterError(f"sums of different domains cannot be merged: {self.domain.describe()} and {other.domain.describe()}")
        if self.n + other.n > lattice.MAX_RECORDS:
            raise DataError("more than 2**32 records; sums would no longer be exact")
        return LatticeSum(self.domain, self.k, self.n + other.n, self.total + other.total)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a sum file: versioned, checksummed, whole or not at all."""
        file = Path(path)
        body = {"k": self.k, "n": self.n, "domain": self.domain.describe(), "total": [int(v) for v in self.total]}
        content = {"format": "spdp-sum", "version": VERSION, "warning": WARNING, **body, "sha256": _digest(body)}
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        draft.write_text(json.dumps(content), encoding="utf-8")
        os.replace(draft, file)
        return file

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "LatticeSum":
        """Read a sum file back, or say what is wrong with it."""
        file = Path(path)
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            if content["format"] != "spdp-sum":
                raise DataError(f"{file}: not a sum file")
            if content["version"] > VERSION:
                raise DataError(f"{file}: written by a newer version of spdp (format {content['version']}, this one reads {VERSION})")
            body = {name: content[name] for name in ("k", "n", "domain", "total")}
            if content["sha256"] != _digest(body):
                raise DataError(f"{file}: damaged, its checksum does not agree")
            total = np.array(body["total"], np.int64)
        except DataError:
            raise
        except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
            raise DataError(f"{file}: cannot be read as a sum file ({error})") from None
        return cls(domain_of(body["domain"]), int(body["k"]), int(body["n"]), total)


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
