"""Exact sums of records that travel: to the next call, or to a trusted curator.

A sum is NOT private: whoever holds it and all records but one can compute that one. It
becomes private when noise is added to it, once.

*Enforced.* A sum carries a random identity for each reading of records that went into
it, and merging two sums that share one is refused: the same people would count twice,
and the sensitivity would be twice what is claimed. A file is checked in every respect
when it is loaded, before anything is paid. *Assumed.* Different readings hold different
people: a person who is at two sites counts as two.
"""

import hashlib
import json
import os
import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.certificate import strict_json
from spdp.charts import Chart, chart_of
from spdp.choices import OnInvalid, Unit, choose
from spdp.data.columns import beside
from spdp.data.source import as_source
from spdp.domain import Domain, check_domain, domain_of
from spdp.engines import Engine, engine_for
from spdp.errors import DataError, ParameterError, reason
from spdp.lattice import MAX_RECORDS, RECORD_NORM
from spdp.queries import whole_domain_sum

__all__ = ["LatticeSum"]

VERSION = 3
WARNING = (
    "NOT PRIVATE: exact sum of records. Share it with a trusted curator only; "
    "it is private only after noise is added."
)
BODY = ("k", "parts", "n", "unit", "metric", "reference_point", "domain", "readings", "total")


def _new_identity() -> frozenset[str]:
    return frozenset([secrets.token_hex(16)])


@dataclass(frozen=True)
class LatticeSum:
    """Exact sum of encoded records, with the domain that fixes the encoding.

    Sums of the same domain and metric add up exactly: the same total, to the bit, as
    over all records at once. ``readings`` are the identities of what went in.

    Examples
    --------
    >>> from spdp import EigenvalueBounds
    >>> from spdp.datasets import synthetic_spd
    >>> from spdp.statistics.sums import LatticeSum
    >>> X, domain = synthetic_spd(300, 2, random_state=0), EigenvalueBounds(0.5, 2.0)
    >>> both = LatticeSum.of(X[:100], domain) + LatticeSum.of(X[100:], domain)
    >>> bool((both.total == LatticeSum.of(X, domain).total).all())
    True
    """

    domain: Domain
    k: int
    n: int
    total: NDArray[np.int64]
    metric: str = "logeuclid"
    readings: frozenset[str] = field(default_factory=_new_identity)
    unit: str = Unit.RECORD.value
    parts: int | None = None
    reference_point: Any = None  # nested lists, as in certificates

    @property
    def chart(self) -> Chart:
        """The chart of its metric, seen from its reference point."""
        return chart_of(self.metric, self.reference_point, self.parts)

    @classmethod
    def of(
        cls,
        X: Any,
        domain: Domain,
        on_invalid: str = "raise",
        metric: str = "logeuclid",
        engine: Engine | None = None,
        groups: Any = None,
        reference_point: Any = None,
    ) -> "LatticeSum":
        """Sum of the records of a source, or of the persons that ``groups`` names."""
        policy = choose(OnInvalid, on_invalid, "on_invalid")
        source = beside(as_source(X), person=groups)
        chart = chart_of(metric, reference_point, source.parts)
        region = check_domain(domain).region(source.k, chart)
        query = whole_domain_sum(region)
        chosen = engine or engine_for(source)
        if "person" in source.columns:
            people = chosen.people(source, chosen.task(source, chart, region, policy))
            total, n = people.total(query), people.n
        else:
            (total,), n = chosen.total(source, chart, region, [query], policy)
        return cls(
            domain,
            source.k,
            n,
            total,
            metric,
            unit=source.unit.value,
            parts=source.parts,
            reference_point=chart.describe().get("reference_point"),
        )

    def __add__(self, other: "LatticeSum") -> "LatticeSum":
        for what, mine, its in (
            ("sizes", _size(self), _size(other)),
            ("units", f"per {self.unit}", f"per {other.unit}"),
            ("domains", self.domain.describe(), other.domain.describe()),
            ("metrics", self.metric, other.metric),
            ("reference points", self.reference_point, other.reference_point),
        ):
            if mine != its:
                raise ParameterError(f"sums of different {what} cannot be merged: {mine} and {its}")
        if self.readings & other.readings:
            raise ParameterError(
                "sums that hold the same records cannot be merged: they would count twice"
            )
        if self.n + other.n > MAX_RECORDS:
            raise DataError("more than 2**32 records; sums would no longer be exact")
        return replace(
            self,
            n=self.n + other.n,
            total=self.total + other.total,
            readings=self.readings | other.readings,
        )

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write a sum file: versioned, checksummed, whole or not at all.

        Only its owner may read it (mode 0600). An existing file is replaced with
        ``force`` only.
        """
        file = Path(path)
        if not force and (file.exists() or file.is_symlink()):
            raise DataError(f"{file}: exists already", ask="force")
        body = {
            "k": self.k,
            "parts": self.parts,
            "n": self.n,
            "unit": self.unit,
            "metric": self.metric,
            "reference_point": self.reference_point,
            "domain": self.domain.describe(),
            "readings": sorted(self.readings),
            "total": [int(v) for v in self.total],
        }
        head = {"format": "spdp-sum", "version": VERSION, "warning": WARNING}
        content = json.dumps({**head, **body, "sha256": _digest(body)})
        draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as text:
                text.write(content)
                text.flush()
                os.fsync(text.fileno())
            _put(draft, file, force)
        finally:
            draft.unlink(missing_ok=True)
        return file

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "LatticeSum":
        """Read a sum file back, or say what is wrong with it."""
        file = Path(path)
        try:
            content = strict_json(file.read_text(encoding="utf-8"))
            if not isinstance(content, dict) or content.get("format") != "spdp-sum":
                raise DataError("not a sum file")
            if content["version"] != VERSION:
                raise DataError(f"has format {content['version']!r}, this spdp reads {VERSION}")
            body = {name: content[name] for name in BODY}
            if content["sha256"] != _digest(body):
                raise DataError("damaged, its checksum does not agree")
            return _checked(body)
        except (DataError, ParameterError) as error:
            raise DataError(f"{file}: {error.message}") from None
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise DataError(f"{file}: cannot be read as a sum file ({reason(error)})") from None


def _size(sum_: LatticeSum) -> str:
    parts = "" if sum_.parts is None else f"{sum_.parts} of "
    return f"{parts}{sum_.k}×{sum_.k}"


def _put(draft: Path, file: Path, force: bool) -> None:
    """Give a draft its name; without ``force``, only if nobody has it yet."""
    if force:
        os.replace(draft, file)
        return
    try:
        os.link(draft, file)
    except FileExistsError:
        raise DataError(f"{file}: exists already", ask="force") from None


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _checked(body: dict[str, Any]) -> LatticeSum:
    """A sum whose every number is possible, or what is not."""
    k, n, total, readings = body["k"], body["n"], body["total"], body["readings"]
    parts, unit = body["parts"], body["unit"]
    if not _whole(k) or k < 1:
        raise DataError(f"k is {k!r}")
    if parts is not None and (not _whole(parts) or parts < 1):
        raise DataError(f"parts is {parts!r}")
    if unit not in set(Unit):
        raise DataError(f"unit is {unit!r}; expected record, voxel or person")
    if not _whole(n) or not 1 <= n <= MAX_RECORDS:
        raise DataError(f"n is {n!r}; expected 1 to 2**32 records")
    point = body["reference_point"]
    chart = chart_of(body["metric"], point, parts)
    if not isinstance(total, list) or len(total) != chart.dimension(k):
        raise DataError(f"its total does not have the {chart.dimension(k)} coordinates of k = {k}")
    if not all(_whole(v) and abs(v) <= n * RECORD_NORM for v in total):
        raise DataError(f"its total is not one of {n} records")
    marks = readings if isinstance(readings, list) else []
    if not marks or not all(isinstance(mark, str) and len(mark) == 32 for mark in marks):
        raise DataError("it does not say what went into it")
    domain = domain_of(body["domain"])
    domain.region(k, chart)
    exact = np.array(total, np.int64)
    holds = frozenset(readings)
    return LatticeSum(domain, k, n, exact, body["metric"], holds, unit, parts, point)


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
