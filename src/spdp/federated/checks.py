r"""Whether a published release follows from its rounds: the statistic, run again.

*Checked* by anybody: the study and its seals; that each description follows from the
one before and asks what it states, within the budget; that the statistic, run again on
the sums, asks the same questions and releases the same numbers; and that every site
vouches for it.

*Not proven*: that a site's answer is a true sum with noise. A site can lie about its
own data, and be named for it: every answer is signed. Nor that there are such sites:
their identities stand in the same file as what they signed, and whoever publishes could
have invented all of it. That they are those of the sites is checked against pins, which
come from elsewhere.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError
from spdp.federated.canonical import Packed, read_as, undouble, unpacked
from spdp.federated.identity import words_of
from spdp.federated.messages import Asked, Description, only_round, transcript, understood
from spdp.federated.rounds import Asker, FarStore, check_norm, released
from spdp.federated.study import checked
from spdp.federated.transcript import CLOSES, MOST_BYTES, Closes, Rounds, check_close, read_rounds
from spdp.kernels.arrays import Array
from spdp.options import Adjacency
from spdp.privacy.account import Account
from spdp.queries import Query
from spdp.release import Release
from spdp.release.declaration import Check
from spdp.release.files import seal_of as release_seal

CLOSE = 1e-6  # relative rounding between two machines
AFRESH = ("created", "versions", "seed")  # fields of certificates that two runs differ in


def check_published(
    folder: Path, release: Release, signed: bool = True, pins: Mapping[str, str] | None = None
) -> list[Check]:
    """Whether a release follows from its rounds, and its sites vouch for it.

    ``pins`` are the words of the sites by name; without them nobody knows whose the
    signatures are.
    """
    try:
        rounds = read_rounds(folder)
    except DataError as error:
        return [Check("rounds", False, error.message)]
    results: list[Check] = []
    parts: list[Callable[..., Iterator[Check]]] = [_study, _rounds, _replay]
    for part in parts:
        results += _tried(part, rounds, release)
    if signed:
        results += _tried(_closes, folder, rounds)
    if pins is not None:
        results += _tried(_identities, rounds, pins)
    return results


def stated_words(folder: Path) -> dict[str, str]:
    """Words that a published study states of its sites, for people to compare."""
    return {card.name: words_of(card.identity) for card in read_rounds(folder).study.cards}


def _tried(part: Callable[..., Iterator[Check]], *args: Any) -> list[Check]:
    name = part.__name__.strip("_")
    try:
        with np.errstate(all="ignore"):
            return list(part(*args))
    except Exception as error:  # edited files may cause any error
        return [Check(name, False, f"{error}")]


def _study(rounds: Rounds, release: Release) -> Iterator[Check]:
    """The certificate states what the study says, and all sites sealed it."""
    study, c = checked(rounds.study), release.certificate
    yield Check("seals", bool(rounds.sealed), f"of {study.sites} sites")
    terms, trust = study.terms, c.get("trust") or {}
    stated = {name: c[name] for name in ("statistic", "method", "metric", "k", "n", "unit")}
    wanted = {name: getattr(terms, name) for name in ("statistic", "metric", "k", "unit")}
    yield Check("terms", stated == wanted | {"n": study.n, "method": terms.method}, f"{stated}")
    budget = (c["epsilon"], c["delta"], c["adjacency"], c["domain"], c["reference_point"])
    space = terms.space
    point = space.chart.reference_point
    ours = (terms.budget.epsilon, terms.budget.delta, terms.adjacency, space.domain.describe())
    yield Check("budget of the study", budget == (*ours, point), "as all sites signed it")
    told = (trust.get("study"), trust.get("sites"), trust.get("colluding"))
    ok = told == (study.digest.hex(), study.sites, terms.colluding)
    yield Check("trust", ok, f"{study.sites} sites, of which {terms.colluding} may collude")
    seal = release_seal(release.values, release.certificate)
    yield Check("release of the rounds", seal == rounds.release, "the one that sites sign")


def _rounds(rounds: Rounds, release: Release) -> Iterator[Check]:
    """Each description follows from the one before, within the budget."""
    study, before = rounds.study, rounds.sealed
    account = Account(study.terms.budget, Adjacency.REPLACE_ONE)
    center: Array = np.asarray(study.terms.space.region.center)
    totals = rounds.totals
    for number, said in enumerate(rounds.descriptions):
        where = f"round {number + 1}"
        digests = said.digests if number else []
        if number:
            last = rounds.descriptions[number - 1]
            before = transcript(before, last.digest, digests)
        ok = len(digests) == (study.sites if number else 0) and said.round == number
        ok = ok and said.sealed == rounds.sealed.hex() and said.before == before.hex()
        yield Check("transcript", ok and len(rounds.last) == study.sites, where)
        asked = understood(said, study, center)
        center = asked.center
        yield Check("price", account.affords(asked.mu), f"{where}: within the budget")
        account.charge(asked.mu)
        check_norm(study, asked.query, said, totals[number])
    if study.terms.method == "oneshot":
        only = only_round(study, rounds.sealed)
        yield Check("question", [only] == rounds.descriptions, "the only one of the study")


def _closes(folder: Path, rounds: Rounds) -> Iterator[Check]:
    """Every site has signed the end."""
    closes = read_as(folder / CLOSES, Closes, MOST_BYTES).closes
    names = [close.site for close in closes]
    for close in closes:
        check_close(close, rounds)
    missing = sorted(set(rounds.study.names) - set(names))
    if missing:
        yield Check("closing signatures", False, f"missing: {', '.join(missing)}")
    elif names != rounds.study.names:
        yield Check("closing signatures", False, "not one of each site, in the study's order")
    else:
        detail = f"of {len(names)} sites, by the identities that the study states"
        yield Check("closing signatures", True, detail)


def _identities(rounds: Rounds, pins: Mapping[str, str]) -> Iterator[Check]:
    """Every site has the identity that is pinned."""
    stated = {card.name: words_of(card.identity) for card in checked(rounds.study).cards}
    others = {name: words for name, words in stated.items() if pins.get(name) != words}
    for name, words in others.items():
        why = "pinned with other words" if name in pins else "not pinned"
        yield Check(f"identity of {name}", False, f"{why}; the study states {words}")
    if not others:
        yield Check("identities", True, f"of {len(stated)} sites, as they are pinned")


# --- the statistic once more, on the sums


@dataclass
class Replay(Asker):
    """Answers with the published sums, if the questions are the published ones."""

    rounds: Rounds | None = None
    own: list[Array] = field(default_factory=list)  # axes that this machine would take

    def store(self, n: int, d: int) -> FarStore:
        return ReplayStore(n, d, (), self)

    def put(self, description: Description, query: Query[Any]) -> NDArray[np.int64]:
        assert self.rounds is not None
        number = len(self.descriptions)
        if number >= len(self.rounds.descriptions):
            raise DataError("asks more rounds than there were")
        said = self.rounds.descriptions[number]
        if not _alike(description, said):
            raise DataError(f"asks something else in round {number + 1}")
        if said.turn is not None:
            self._check_turn(said)
        self.descriptions.append(said)
        last = number + 1 == len(self.rounds.descriptions)
        self.digests.append(
            self.rounds.last if last else self.rounds.descriptions[number + 1].digests
        )
        return self.rounds.totals[number]

    def _check_turn(self, said: Description) -> None:
        """Axes may differ in signs, and where units are equal; ellipsoids may not."""
        d = self.study.terms.d
        assert said.turn is not None
        assert said.query.width is not None
        V, W, width = unpacked(said.turn, (d, d)), self.own[-1], unpacked(said.query.width, (d,))
        if not np.allclose((V * width) @ V.T, (W * width) @ W.T, rtol=CLOSE, atol=CLOSE):
            raise DataError("turns to other axes")


class ReplayStore(FarStore):
    """Takes the axes that were published."""

    def __init__(self, n: int, d: int, turns: tuple[Array, ...], replay: Replay) -> None:
        super().__init__(n, d, turns)
        self.replay = replay

    def axes_for(self, axes: Array) -> Array:
        assert self.replay.rounds is not None
        number = len(self.replay.descriptions)
        said = self.replay.rounds.descriptions[number:][:1]
        self.replay.own.append(axes)
        if not said or said[0].turn is None:
            raise DataError(f"turns its axes in round {number + 1}")
        return unpacked(said[0].turn, (self.d, self.d))

    def rotated(self, axes: Array) -> "ReplayStore":
        return ReplayStore(self.n, self.d, (*self.turns, axes), self.replay)


def _replay(rounds: Rounds, release: Release) -> Iterator[Check]:
    """The statistic, run again on the sums, releases the stated numbers."""
    asker = Replay(rounds.study, rounds.sealed, rounds=rounds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = released(asker)
    ok = len(asker.descriptions) == len(rounds.descriptions)
    yield Check("questions", ok, f"{len(asker.descriptions)} rounds, asked again as published")
    for name, value in release.values.items():
        found = again.values[name]
        yield Check(
            f"replay of {name}", _same(found, value, name in UNSIGNED), "follows from the sums"
        )
    mine, stated = (
        {name: value for name, value in c.items() if name not in AFRESH}
        for c in (again.certificate, release.certificate)
    )
    yield Check("replay of the certificate", _close(mine, stated), "follows from the sums")


UNSIGNED = ("components",)  # arrays whose rows are axes: either sign is the same one


def _same(a: NDArray[Any], b: NDArray[Any], unsigned: bool = False) -> bool:
    """Whether arrays agree up to rounding; with ``unsigned``, rows up to their sign."""
    size = CLOSE * max(float(np.abs(b).max(initial=0.0)), 1e-300)
    if a.shape != b.shape:
        return False
    if np.allclose(a, b, rtol=CLOSE, atol=size, equal_nan=True):
        return True
    return unsigned and all(
        np.allclose(x, y, rtol=CLOSE, atol=size) or np.allclose(-x, y, rtol=CLOSE, atol=size)
        for x, y in zip(a, b, strict=True)
    )


def _close(a: Any, b: Any) -> bool:
    """Whether plain data agree up to rounding."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_close(a[name], b[name]) for name in a)
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return False
        if a and all(isinstance(x, float | int) for x in [*a, *b]):
            return _same(np.array(a, float), np.array(b, float))
        return all(map(_close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.isclose(a, b, rtol=10 * CLOSE, atol=1e-12))
    return bool(a == b)


def _alike(mine: Description, said: Description) -> bool:
    """Whether two descriptions ask the same, up to rounding."""
    exact = ("sealed", "round", "before", "digests", "sensitivity", "d")
    if any(getattr(mine, name) != getattr(said, name) for name in exact):
        return False
    near = all(
        np.isclose(undouble(getattr(mine, name)), undouble(getattr(said, name)), rtol=CLOSE)
        for name in ("mu", "scale")
    )
    return near and (mine.turn is None) == (said.turn is None) and _asks(mine.query, said.query)


def _asks(a: Asked, b: Asked) -> bool:
    for name in Asked.__struct_fields__:
        x, y = getattr(a, name), getattr(b, name)
        if isinstance(x, Packed) and isinstance(y, Packed):
            shape = tuple(y.shape)
            if tuple(x.shape) != shape or not _same(unpacked(x, shape), unpacked(y, shape)):
                return False
        elif name == "number" and None not in (x, y):
            if not np.isclose(undouble(x), undouble(y), rtol=CLOSE):
                return False
        elif name == "reaches" and None not in (x, y):
            if not np.allclose([*map(undouble, x)], [*map(undouble, y)], rtol=CLOSE):
                return False
        elif x != y:
            return False
    return True
