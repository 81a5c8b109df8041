r"""Queries as plain values, and what a site makes of a round's description.

*Enforced*, before any record is touched: a query is one of a list, its numbers have the
right shapes and lie in ranges in which no arithmetic overflows, whatever the record;
its integer weights are those of our own classes. Sensitivity, noise and length of the
answer are computed here and must be the stated ones: a coordinator with other code, or
another opinion, is refused. Nothing is unpickled, and no name is looked up but in the
table.

A change of coordinates (``turn``) is sent once. Sites that answer a round agree on all
rounds before it, so that later descriptions need not repeat it.
"""

from collections.abc import Callable
from dataclasses import fields
from math import sqrt
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np

from spdp.federated.canonical import (
    Count,
    Double,
    Hex32,
    Packed,
    Refused,
    digest_of,
    double,
    packed,
    undouble,
    unpacked,
)
from spdp.federated.study import MOST_NUMBERS, MOST_ROUNDS, Form, Study
from spdp.kernels.arrays import Array
from spdp.kernels.base import RECORD_NORM
from spdp.options import Adjacency
from spdp.privacy.account import LARGEST_SCALE, share_scale
from spdp.queries import Query, moments, sums
from spdp.queries.sums import Frame

FAR = 2.0**10  # radii of the domain that a centre may lie from the domain's
SPAN = 2.0**50  # how far widths, radii and caps may be from the domain's radius
ORTHONORMAL = 1e-9
MOST_EDGES = 1 << 12
StepName = Annotated[str, msgspec.Meta(pattern=r"^[a-z ]{1,40}\Z")]


class Asked(Form, frozen=True, forbid_unknown_fields=True, dict=True, kw_only=True):
    """A query: its kind, and those of the fields below that the kind has."""

    kind: str
    name: StepName
    center: Packed | None = None
    width: Packed | None = None
    number: Double | None = None  # radius, cap or near
    edges: Packed | None = None
    reaches: list[Double] | None = None
    weights: list[Count] | None = None
    powers: list[Count] | None = None
    second: Literal["none", "diagonal", "full"] | None = None


class Description(Form, frozen=True, forbid_unknown_fields=True, dict=True, kw_only=True):
    """All that is said in a round."""

    sealed: Hex32
    round: Annotated[int, msgspec.Meta(ge=0, lt=MOST_ROUNDS)]
    before: Hex32  # the transcript so far
    digests: list[Hex32]  # of the answers of the round before, in the roster's order
    turn: Packed | None  # new axes, in the coordinates so far
    query: Asked
    mu: Double
    sensitivity: Count
    scale: Double
    d: Count


def transcript(before: bytes, said: bytes, digests: list[str]) -> bytes:
    """The transcript after a round, by which the next one is bound to all before."""
    return digest_of(b"spdp transcript 1", before, said, *map(bytes.fromhex, digests))


def most_bytes(d: int) -> int:
    """Bytes that a description of records of d numbers may have, with its signature."""
    return (1 << 20) + 16 * d * d


# --- queries to and from plain values


class Kind(NamedTuple):
    """How a query is said: its fields besides name, and the length of its answer."""

    make: type[Query[Any]]
    fields: dict[str, str]  # names of the query's fields, by those of Asked
    size: Callable[[Any, int], int]


BALL = {"frame": "center", "radius": "number"}
KINDS: dict[str, Kind] = {
    kind.make.__name__: kind
    for kind in (
        Kind(sums.WholeSum, BALL, lambda q, d: d),
        Kind(sums.VectorSum, BALL, lambda q, d: d),
        Kind(sums.AbsoluteSum, BALL, lambda q, d: d),
        Kind(sums.DistanceSum, {"frame": "center", "cap": "number"}, lambda q, d: 1),
        Kind(sums.Histogram, {"frame": "center", "edges": "edges"}, lambda q, d: len(q.edges) + 1),
        Kind(sums.EdgeCount, {}, lambda q, d: 1),
        Kind(sums.DirectionSum, {"center": "center", "near": "number"}, lambda q, d: d + 1),
        Kind(
            sums.ClippingBias,
            BALL | {"reaches": "reaches", "weights": "weights", "powers": "powers"},
            lambda q, d: len(q.weights),
        ),
        Kind(moments.CorrelationSum, BALL, lambda q, d: d * (d + 1) // 2),
        Kind(moments.SquaredNormSum, BALL, lambda q, d: d + 1),
        Kind(moments.MomentSum, BALL | {"second": "second"}, lambda q, d: q.size),
    )
}
# Fields that have one value in studies: sums over all records, of one class, no counts.
FIXED = {"weight": 0, "classes": 1, "pooled": True, "centers": None}
PLAIN = (sums.WholeSum, moments.SquaredNormSum)  # whose frames have units of 1
REQUIRED = ("center", "number", "edges", "reaches", "weights", "second")


def spoken(query: Query[Any]) -> Asked:
    """A query as plain values."""
    kind = KINDS.get(type(query).__name__)
    if kind is None or type(query) is not kind.make:
        raise TypeError(f"{type(query).__name__} is not among the queries of a study")
    for name in {field.name for field in fields(query)} & FIXED.keys():
        if getattr(query, name) != FIXED[name]:
            raise TypeError(f"a study asks no {type(query).__name__} with {name}")
    said: dict[str, Any] = {}
    for name, field in kind.fields.items():
        value = getattr(query, name)
        if isinstance(value, Frame):
            if value.axes is not None:
                raise TypeError("axes of a study are turned to, not asked along")
            said |= {"center": packed(value.center), "width": packed(value.width)}
        elif name in ("center", "edges"):
            said[field] = packed(np.asarray(value))
        elif name == "reaches":
            said[field] = [double(reach) for reach in value]
        elif isinstance(value, tuple):
            said[field] = list(value)
        else:
            said[field] = double(value) if field == "number" else value
    return Asked(kind=type(query).__name__, name=query.name, **said)


def heard(asked: Asked, study: Study, center: Array) -> Query[Any]:
    """The query that plain values ask, or a refusal.

    ``center`` is the domain's in the coordinates of the round.
    """
    kind, space = KINDS.get(asked.kind), study.terms.space
    if kind is None:
        raise Refused(f"no query of this version: {asked.kind:.40}")
    wanted = set(kind.fields.values()) | ({"width"} if "frame" in kind.fields else set())
    for field in (*REQUIRED, "width", "powers"):
        given = getattr(asked, field) is not None
        if (given and field not in wanted) or (not given and field in wanted - {"powers"}):
            raise Refused(f"{field} is said where it is not asked, or not said where it is")
    made: dict[str, Any] = {}
    for name, field in kind.fields.items():
        made[name] = READ[field](asked, study, center)
    if "frame" in kind.fields:
        made["frame"] = Frame(made["frame"], _widths(asked, study))
        if kind.make in PLAIN and not (made["frame"].width == 1.0).all():
            raise Refused(f"{asked.kind} is asked in units of the metric")
    if kind.make is sums.EdgeCount:
        made |= {"chart": space.chart, "region": space.region}
    if kind.make is sums.WholeSum:
        whole = made["radius"] == float(space.region.radius)
        if not (whole and np.array_equal(made["frame"].center, space.region.center)):
            raise Refused("a sum over the whole domain is over the study's")
    try:
        return kind.make(asked.name, **made)
    except (TypeError, ValueError) as error:
        raise Refused(f"not a query: {error}") from None


def _center(asked: Asked, study: Study, center: Array) -> Array:
    assert asked.center is not None
    found = unpacked(asked.center, center.shape)
    if not np.abs(found - center).max() <= FAR * study.terms.space.region.radius:
        raise Refused("a centre far from the domain's")
    return found


def _widths(asked: Asked, study: Study) -> Array:
    assert asked.width is not None
    found = unpacked(asked.width, (study.terms.d,))
    _in_range(found, study)
    return found


def _in_range(found: Any, study: Study) -> None:
    radius = float(study.terms.space.region.radius)
    numbers = np.asarray(found)
    if not ((numbers >= radius / SPAN) & (numbers <= radius * SPAN)).all():
        raise Refused("a width, radius or cap far from the domain's radius")


def _number(asked: Asked, study: Study, center: Array) -> float:
    assert asked.number is not None
    found = undouble(asked.number)
    _in_range(found, study)
    return found


def _edges(asked: Asked, study: Study, center: Array) -> Array:
    assert asked.edges is not None
    if len(asked.edges.shape) != 1 or not 1 <= asked.edges.shape[0] <= MOST_EDGES:
        raise Refused("not a list of edges")
    found = unpacked(asked.edges, (asked.edges.shape[0],))
    _in_range(found, study)
    return found  # that they ascend, the histogram checks


def _reaches(asked: Asked, study: Study, center: Array) -> tuple[float, ...]:
    found = tuple(map(undouble, asked.reaches or ()))
    _in_range(found, study)
    return found


def _weights(asked: Asked, study: Study, center: Array) -> tuple[int, ...]:
    found = tuple(asked.weights or ())
    same = len(found) == len(asked.reaches or ()) == 2
    if not same or sum(w * w for w in found) > RECORD_NORM**2 or min(found) < 1:
        raise Refused("weights that are not those of a clipping bias")
    return found


def _powers(asked: Asked, study: Study, center: Array) -> tuple[int, ...] | None:
    if asked.powers is None:
        return None
    if asked.powers != [1, 2]:
        raise Refused("powers that are not those of a clipping bias")
    return tuple(asked.powers)


def _second(asked: Asked, study: Study, center: Array) -> str:
    assert asked.second is not None
    return asked.second


READ: dict[str, Callable[[Asked, Study, Array], Any]] = {
    "center": _center,
    "number": _number,
    "edges": _edges,
    "reaches": _reaches,
    "weights": _weights,
    "powers": _powers,
    "second": _second,
}


# --- a round


class Round(NamedTuple):
    """A description that was understood."""

    query: Query[Any]
    mu: float
    scale: float
    d: int
    turn: Array | None
    center: Array  # the domain's, in the coordinates of the round


def priced(query: Query[Any], mu: float, study: Study) -> tuple[int, float, int]:
    """Sensitivity, scale of a site's noise, and length of the answer to a query."""
    sensitivity = int(query.sensitivity(Adjacency.REPLACE_ONE))
    size = KINDS[type(query).__name__].size(query, study.terms.d)
    return sensitivity, share_scale(sensitivity, mu, study.honest), int(size)


def understood(description: Description, study: Study, center: Array) -> Round:
    """What a description asks, or a refusal, which depends on the message alone.

    ``center`` is the domain's in the coordinates of the round before.
    """
    mu = undouble(description.mu)
    if not 0 < mu <= study.terms.mu:
        raise Refused("a price that is not positive, or above the study's")
    turn = None
    if description.turn is not None:
        turn = unpacked(description.turn, (study.terms.d,) * 2)
        with np.errstate(all="ignore"):  # what overflows is not within reach of 1
            off = np.abs(turn.T @ turn - np.eye(len(turn))).max()
        if not off <= ORTHONORMAL:
            raise Refused("axes that are not orthonormal")
        center = np.asarray(turn.T @ center)
    query = heard(description.query, study, center)
    try:
        sensitivity, scale, d = priced(query, mu, study)
    except ValueError:
        raise Refused("a price too small for any noise") from None
    stated = description.sensitivity, undouble(description.scale), description.d
    if stated != (sensitivity, scale, d):
        raise Refused("sensitivity, noise or length are not those of the query")
    if d > MOST_NUMBERS:
        raise Refused("an answer that is too long")
    if not sqrt(study.sites) * scale <= LARGEST_SCALE:
        raise Refused("noise beyond the integer range")
    return Round(query, mu, scale, d, turn, center)


def described(
    query: Query[Any],
    mu: float,
    study: Study,
    *,
    sealed: bytes,
    number: int,
    before: bytes,
    digests: list[str],
    turn: Array | None,
) -> Description:
    """The description of a round."""
    sensitivity, scale, d = priced(query, mu, study)
    return Description(
        sealed=sealed.hex(),
        round=number,
        before=before.hex(),
        digests=digests,
        turn=None if turn is None else packed(turn),
        query=spoken(query),
        mu=double(mu),
        sensitivity=sensitivity,
        scale=double(scale),
        d=d,
    )


def only_round(study: Study, sealed: bytes) -> Description:
    """The description of a one-shot study, which follows from what was sealed."""
    region = study.terms.space.region
    query = sums.whole_domain_sum(region)
    return described(
        query, study.terms.mu, study, sealed=sealed, number=0, before=sealed, digests=[], turn=None
    )
