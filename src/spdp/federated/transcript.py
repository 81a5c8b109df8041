r"""What is published of a study's rounds, and what sites sign at its end.

Beside a release lie the study with its seals, the descriptions of all rounds, the sums
and the digests of the answers (``rounds.json``), and the sites' closing signatures
(``closes.json``). The masked answers themselves (``answers.json``) go to the sites
alone: they hide only as long as the masks do.

*Checked* by a site before it signs: what anybody can check (:mod:`.checks`), and that
the sums are those of the answers, its own among them.
"""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from spdp.federated import identity
from spdp.federated.canonical import (
    Base64,
    Hex32,
    Hex64,
    Packed,
    Refused,
    decode,
    digest_of,
    dumps,
    encode,
    packed,
    read_as,
    unpacked,
    write,
)
from spdp.federated.identity import Identity
from spdp.federated.messages import Description, transcript
from spdp.federated.rounds import Asker, sum_of
from spdp.federated.study import MOST_ROUNDS, Form, Name, Seal, Study, sealed_by
from spdp.release import Release
from spdp.release.files import seal_of as release_seal

ROUNDS, CLOSES, ANSWERS = "rounds.json", "closes.json", "answers.json"
MOST_BYTES = 1 << 30


class Rounds(Form, frozen=True, forbid_unknown_fields=True, dict=True, kw_only=True):
    """All that was said in a study, and the sums."""

    format: Literal["spdp-rounds"] = "spdp-rounds"
    version: Literal[1] = 1
    study: Study
    seals: list[Seal]
    descriptions: Annotated[list[Description], msgspec.Meta(min_length=1, max_length=MOST_ROUNDS)]
    sums: list[Packed]
    last: list[Hex32]  # digests of the answers of the last round
    release: Hex32  # the release's seal

    @property
    def sealed(self) -> bytes:
        """The name of the sealed study; an error if a seal does not fit."""
        sealed = sealed_by(self.study, {seal.site: seal for seal in self.seals})
        if [seal.site for seal in self.seals] != self.study.names:
            raise Refused("not one seal of each site, in the study's order")
        return sealed

    @property
    def end(self) -> bytes:
        """The transcript of all rounds."""
        last = self.descriptions[-1]
        return transcript(bytes.fromhex(last.before), last.digest, self.last)

    @property
    def totals(self) -> list[NDArray[np.int64]]:
        """The sums as arrays."""
        pairs = zip(self.sums, self.descriptions, strict=True)
        return [unpacked(total, (said.d,), "<i8") for total, said in pairs]


class Close(Form, frozen=True, forbid_unknown_fields=True, dict=True, kw_only=True):
    """A site's word that its own answers are among those added up."""

    format: Literal["spdp-close"] = "spdp-close"
    version: Literal[1] = 1
    site: Name
    sealed: Hex32
    transcript: Hex32
    sums: Hex32
    release: Hex32
    signature: Hex64

    @property
    def signed(self) -> tuple[bytes, ...]:
        """What is signed."""
        names = (self.sealed, self.transcript, self.sums, self.release)
        return tuple(map(bytes.fromhex, names))


class Closes(Form, frozen=True, forbid_unknown_fields=True, dict=True, kw_only=True):
    """Closing signatures of a study."""

    format: Literal["spdp-closes"] = "spdp-closes"
    version: Literal[1] = 1
    closes: list[Close]


class Answers(Form, frozen=True, forbid_unknown_fields=True, dict=True, kw_only=True):
    """The masked answers, by round and in the roster's order: for the sites alone."""

    format: Literal["spdp-answers"] = "spdp-answers"
    version: Literal[1] = 1
    answers: list[list[Base64]]


class Masked(Form, frozen=True, forbid_unknown_fields=True, dict=True, kw_only=True):
    """A site's answer of a one-shot study, in a file."""

    format: Literal["spdp-masked"] = "spdp-masked"
    version: Literal[1] = 1
    site: Name
    sealed: Hex32
    answer: Base64


# --- writing


def rounds_of(asker: Asker, seals: dict[str, Seal], release: Release) -> Rounds:
    """What is published of the rounds that led to a release."""
    return Rounds(
        study=asker.study,
        seals=[seals[name] for name in asker.study.names],
        descriptions=asker.descriptions,
        sums=[packed(total) for total in asker.sums],
        last=asker.digests[-1],
        release=release_seal(release.values, release.certificate),
    )


def write_draft(folder: Path, asker: Asker, rounds: Rounds, release: Release) -> None:
    """A release that no site has signed yet, with all that sites check."""
    release.save(folder)
    write(folder / ROUNDS, rounds.data)
    answers = [[encode(one) for one in answers] for answers in asker.answers]
    write(folder / ANSWERS, Answers(answers=answers).data)


def write_published(folder: Path, rounds: Rounds, closes: list[Close], release: Release) -> None:
    """A release with its rounds and signatures; masked answers stay with the sites."""
    release.save(folder)
    write(folder / ROUNDS, rounds.data)
    write(folder / CLOSES, Closes(closes=sorted(closes, key=lambda close: close.site)).data)


def read_rounds(folder: Path) -> Rounds:
    """The rounds that lie beside a release."""
    return read_as(folder / ROUNDS, Rounds, MOST_BYTES)


def read_answers(folder: Path) -> list[list[bytes]]:
    """The masked answers of a draft."""
    found = read_as(folder / ANSWERS, Answers, MOST_BYTES)
    return [[decode(one) for one in answers] for answers in found.answers]


# --- closing


def closed(rounds: Rounds, name: str, who: Identity) -> Close:
    """A site's closing signature."""
    close = Close(
        site=name,
        sealed=rounds.sealed.hex(),
        transcript=rounds.end.hex(),
        sums=digest_of(dumps(rounds.sums)).hex(),
        release=rounds.release,
        signature="0" * 128,
    )
    return msgspec.structs.replace(close, signature=who.sign(identity.CLOSE, *close.signed))


def check_close(close: Close, rounds: Rounds) -> None:
    """Refuse a closing signature that is not of these rounds, or not of its site."""
    unsigned = msgspec.structs.replace(close, signature="0" * 128)
    found = (close.sealed, close.transcript, close.sums, close.release)
    wanted = (
        rounds.sealed.hex(),
        rounds.end.hex(),
        digest_of(dumps(rounds.sums)).hex(),
        rounds.release,
    )
    card = rounds.study.cards[rounds.study.place(close.site)]
    if found != wanted:
        raise Refused(f"{close.site} has signed something else")
    identity.check(card.identity, close.signature, identity.CLOSE, *unsigned.signed)


def check_answers(rounds: Rounds, answers: list[list[bytes]], name: str, own: list[bytes]) -> None:
    """Refuse sums that are not those of the answers, a site's own among them.

    ``own`` are the answers in the site's journal.
    """
    study, sealed, place = rounds.study, rounds.sealed, rounds.study.place(name)
    if not len(answers) == len(own) == len(rounds.descriptions):
        raise Refused("not the rounds that this site answered")
    digests = [*(said.digests for said in rounds.descriptions[1:]), rounds.last]
    for number, said in enumerate(rounds.descriptions):
        given, total = answers[number], rounds.totals[number]
        if len(given) != study.sites or given[place] != own[number]:
            raise Refused(f"this site's answer of round {number + 1} is not among those added up")
        if not np.array_equal(sum_of(study, sealed, said, given), total):
            raise Refused(f"the sum of round {number + 1} is not that of the answers")
        if [digest_of(one[identity.SIGNATURE :]).hex() for one in given] != digests[number]:
            raise Refused(f"other digests than those of the answers of round {number + 1}")
