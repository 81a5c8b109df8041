"""Exact sums of records, kept for a later call or sent to a trusted curator.

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
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from spdp.charts import Chart, chart_of
from spdp.domain.base import Domain, Space
from spdp.domain.sets import domain_of
from spdp.engines import Engine
from spdp.engines.store import MAX_RECORDS, SumStore
from spdp.errors import DataError, ParameterError, reason
from spdp.kernels.base import RECORD_NORM
from spdp.ledger import Ledger, check_ledger
from spdp.options import Method, OnInvalid, Unit, choose
from spdp.privacy.account import Seed
from spdp.queries.sums import whole_domain_sum
from spdp.release import Release
from spdp.release.files import strict_json, whole_file
from spdp.statistics.base import Records
from spdp.statistics.mean import Mean
from spdp.statistics.options import DEFAULTS, Options
from spdp.system import make_private

VERSION = 3
WARNING = (
    "NOT PRIVATE: exact sum of records. Share it with a trusted curator only; "
    "it is private only after noise is added."
)
Identity = Annotated[str, msgspec.Meta(min_length=32, max_length=32)]
Positive = Annotated[int, msgspec.Meta(ge=1)]


class _Body(msgspec.Struct, frozen=True, kw_only=True):
    """What a sum file holds."""

    k: Positive
    parts: Positive | None
    n: Annotated[int, msgspec.Meta(ge=1, le=MAX_RECORDS)]
    unit: Unit
    metric: str
    reference_point: Any
    domain: dict[str, Any]
    readings: Annotated[list[Identity], msgspec.Meta(min_length=1)]
    total: list[int]


@dataclass(frozen=True)
class LatticeSum:
    """Exact sum of encoded records, with the domain that fixes the encoding.

    Sums of the same domain and metric add up exactly: the same total, to the bit, as
    over all records at once. ``readings`` are the identities of what went in.

    Examples
    --------
    >>> from spdp import EigenvalueBounds
    >>> from spdp.datasets import synthetic_spd
    >>> from spdp.statistics.partial_sums import LatticeSum
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
    readings: frozenset[str] = field(default_factory=lambda: frozenset([secrets.token_hex(16)]))
    unit: Unit = Unit.RECORD
    parts: int | None = None
    reference_point: Any = None  # nested lists, as in certificates

    @property
    def rereadable(self) -> bool:
        """The records themselves are not at hand."""
        return False

    @property
    def chart(self) -> Chart:
        """The chart of its metric and reference point."""
        return chart_of(self.metric, self.reference_point, self.parts)

    @property
    def space(self) -> Space:
        """Chart and domain of its records."""
        return Space.of(self.chart, self.domain, self.k)

    def stream(self) -> SumStore:
        """The store that answers the one query of a release."""
        return SumStore(self.total, self.n)

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
        choose(OnInvalid, on_invalid, "on_invalid")
        options = {"domain": domain, "metric": metric, "engine": engine, "groups": groups}
        options |= {"on_invalid": on_invalid, "reference_point": reference_point}
        records = Records(X, DEFAULTS | options)  # type: ignore[arg-type]
        store, space, unit = records.stream(), records.space, records.unit
        total = store.total(whole_domain_sum(space.region))
        given: Any = {"unit": unit, "parts": space.chart.parts}
        point = space.chart.reference_point
        return cls(domain, space.k, store.n, total, metric, reference_point=point, **given)

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
            raise ParameterError("sums of the same records are not merged: they would count twice")
        if self.n + other.n > MAX_RECORDS:
            raise DataError("more than 2**32 records; sums would no longer be exact")
        n, readings = self.n + other.n, self.readings | other.readings
        return replace(self, n=n, total=self.total + other.total, readings=readings)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write a sum file: versioned, checksummed, whole or not at all.

        Only its owner may read it (mode 0600; on Windows whoever may read the folder).
        An existing file is replaced only with ``force``.
        """
        own = {
            name: getattr(self, name) for name in ("k", "parts", "n", "metric", "reference_point")
        }
        body = msgspec.to_builtins(
            _Body(
                **own,
                unit=self.unit,
                domain=self.domain.describe(),
                readings=sorted(self.readings),
                total=self.total.tolist(),
            )
        )
        head = {"format": "spdp-sum", "version": VERSION, "warning": WARNING}
        content = json.dumps({**head, **body, "sha256": _digest(body)})
        with whole_file(file := Path(path), force) as draft:
            make_private(draft)
            draft.write_text(content, encoding="utf-8")
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
            body = {name: content[name] for name in _Body.__struct_fields__}
            if content["sha256"] != _digest(body):
                raise DataError("damaged, its checksum does not agree")
            return _checked(msgspec.convert(body, _Body))
        except (DataError, ParameterError) as error:
            raise DataError(f"{file}: {error.message}") from None
        except msgspec.ValidationError as error:
            raise DataError(f"{file}: {error}") from None
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise DataError(f"{file}: cannot be read as a sum file ({reason(error)})") from None


def _size(sum_: LatticeSum) -> str:
    parts = "" if sum_.parts is None else f"{sum_.parts} of "
    return f"{parts}{sum_.k}×{sum_.k}"


def _checked(body: _Body) -> LatticeSum:
    """The sum that a file holds, or an error that names what is impossible in it."""
    chart, domain = chart_of(body.metric, body.reference_point, body.parts), domain_of(body.domain)
    d = chart.dimension(body.k)
    if len(body.total) != d:  # before anything of that size is made
        raise DataError(f"its total does not have the {d} coordinates of k = {body.k}")
    domain.region(body.k, chart)  # an error where it does not fit
    if sum(v * v for v in body.total) > (body.n * RECORD_NORM) ** 2:
        raise DataError(f"its total is too large for {body.n} records")
    given = msgspec.structs.asdict(body) | {"domain": domain}
    exact, readings = np.array(body.total, np.int64), frozenset(body.readings)
    return LatticeSum(**given | {"total": exact, "readings": readings})


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def release_sum(
    total: LatticeSum,
    *,
    epsilon: float,
    delta: float,
    mechanism: str = "auto",
    adjacency: str = "replace-one",
    ledger: Ledger | None = None,
    label: str | None = None,
    random_state: Seed = None,
    anyway: bool = False,
) -> Release:
    """Release the mean of records in one shot, from their exact sum.

    The options are those of :func:`spdp.private_mean`.
    """
    mean = Mean(mechanism, Method.ONESHOT)
    options: Options = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency}
    options |= {"ledger": check_ledger(ledger), "label": label, "random_state": random_state}
    options |= {"anyway": anyway}
    mean.check_options(options)
    return mean.answer(total, options)
