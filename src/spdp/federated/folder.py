"""A shared folder as the transport: SFTP, WebDAV, a mounted share.

The coordinator writes ``ask-000``, each site ``answer-000-NAME`` (or the one text of a
refusal, ``refusal-000-NAME``), and so on; at the end there is a folder ``draft``, and
each site writes ``close-NAME``.

*Enforced.* Names of files are made of checked names of sites and of numbers. A file
gets its name when it is complete. What is read is a regular file, of limited size, and
no link is followed. In place of the study's folder or of the draft a link is refused
whenever a file in it is named; one that is put there between that look and the use of
the file leads to a file of the same name elsewhere, and to nothing more. Answers leave
at whole multiples of two seconds. *Assumed*: nothing of the folder: whoever can write
in it can stop a study, and learns nothing by it.
"""

import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from spdp.errors import DataError, ParameterError, reason
from spdp.federated.canonical import Refused, digest_of, loads, read
from spdp.federated.checks import check_published
from spdp.federated.identity import SIGNATURE
from spdp.federated.messages import most_bytes
from spdp.federated.rounds import Asker, released
from spdp.federated.site import REFUSAL, Site
from spdp.federated.study import MOST_NUMBERS, Seal, Study
from spdp.federated.transcript import (
    ANSWERS,
    MOST_BYTES,
    ROUNDS,
    Close,
    Rounds,
    check_close,
    read_rounds,
    rounds_of,
    write_draft,
)
from spdp.release import Release
from spdp.release.files import CERTIFICATE

POLL = 0.1  # seconds between two looks
PACE = 2.0  # seconds: answers leave at whole multiples of it
DRAFT = "draft"
Say = Callable[[str], None]


def put(path: Path, data: bytes) -> None:
    """Write a file that gets its name when it is complete."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with draft.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({reason(error)})") from None
    finally:
        draft.unlink(missing_ok=True)


def wait(seconds: float, ready: Callable[[], bool], what: str) -> None:
    """Look until something is there, for so many seconds."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise DataError(f"{what}: nothing for {seconds:g} seconds", ask="patience")
        time.sleep(POLL)


def at_pace() -> None:
    """Wait for the next whole multiple of the pace."""
    time.sleep(PACE - time.time() % PACE)


class Folder:
    """A study's part of a shared folder."""

    def __init__(self, path: Path, study: Study, patience: float, say: Say = lambda _: None):
        self.path, self.study = path / study.digest.hex(), study
        self.patience, self.say = patience, say
        if study.terms.method != "adaptive":
            raise ParameterError(
                "a one-shot study has no rounds, and needs no folder: a site runs spdp site sum, "
                "the coordinator spdp study merge, and each site spdp site close"
            )
        if not path.is_dir():
            raise DataError(f"{path}: no such folder")

    def _at(self, name: str) -> Path:
        """A place in the study's folder, if neither that nor the draft is a link."""
        for folder in (self.path, self.path / DRAFT):
            if folder.is_symlink():
                raise DataError(f"{folder}: a link, which is not followed")
        return self.path / name

    def _ask(self, number: int) -> Path:
        return self._at(f"ask-{number:03d}")

    def _of(self, what: str, number: int, name: str) -> Path:
        return self._at(f"{what}-{number:03d}-{name}")

    # --- the coordinator's side

    def ask(self, number: int, message: bytes) -> Mapping[str, bytes]:
        """Put a message to all sites and wait for their answers.

        After an interruption the same message finds the answers that are there.
        """
        file = self._ask(number)
        self.path.mkdir(exist_ok=True)
        if file.exists() and read(file, len(message)) != message:
            raise DataError(f"{file}: something else was asked in this round before")
        if not file.exists():
            put(file, message)
        wait(self.patience, lambda: self._all_in(number), f"round {number + 1}")
        self.say(f"round {number + 1}: {self.study.sites} answers")
        most = SIGNATURE + 8 * MOST_NUMBERS
        return {name: read(self._of("answer", number, name), most) for name in self.study.names}

    def _all_in(self, number: int) -> bool:
        for name in self.study.names:
            if self._of("answer", number, name).exists():
                continue
            if self._of("refusal", number, name).exists():
                raise DataError(f"{name} refused round {number + 1}; its own log says why")
            return False
        return True

    def drafted(self, asker: Asker, seals: dict[str, Seal]) -> tuple[Rounds, Release]:
        """Run the study, and give its draft to all sites.

        A draft that is there already must be of these rounds, and follow from them.
        """
        release = released(asker)
        rounds, place = rounds_of(asker, seals, release), self._at(DRAFT)
        if not place.exists():
            with TemporaryDirectory(dir=self.path, prefix=".draft-") as scratch:
                write_draft(Path(scratch) / DRAFT, asker, rounds, release)
                os.replace(Path(scratch) / DRAFT, place)
            return rounds, release
        with TemporaryDirectory() as scratch:
            release = Release.load(self._copied(Path(scratch)))
            earlier = read_rounds(Path(scratch))
            found = [*release.verify(), *check_published(Path(scratch), release, signed=False)]
        same = msgspec.structs.replace(rounds, release=earlier.release).data == earlier.data
        if not (same and all(check.ok for check in found)):
            raise DataError(f"{place}: not the draft of this study's rounds; remove it")
        return earlier, release

    def closes(self, rounds: Rounds) -> list[Close]:
        """The closing signatures of all sites, when they are there."""
        files = [self._at(f"close-{name}") for name in self.study.names]
        wait(self.patience, lambda: all(file.exists() for file in files), "closing signatures")
        closes = [loads(read(file, 1 << 16), Close) for file in files]
        for close, name in zip(closes, self.study.names, strict=True):
            if close.site != name:
                raise Refused(f"close-{name} is the signature of {close.site}")
            check_close(close, rounds)
        return closes

    def _copied(self, target: Path) -> Path:
        """A copy of the draft, of files that are known by name, and of no links."""
        arrays = [f"{array}.npy" for array in self.study.terms.asked().arrays()]
        for file in (*arrays, CERTIFICATE, ROUNDS, ANSWERS):
            place = self._at(DRAFT) / file
            if os.path.lexists(place):
                (target / file).write_bytes(read(place, MOST_BYTES))
        return target

    # --- with FLARE, which carries the files of a folder on each machine

    def forget_refusals(self) -> None:
        """Ask again those that refused before."""
        for file in self.path.glob("refusal-*"):
            file.unlink()

    def ended(self, names: Sequence[str], seconds: float) -> bool:
        """Wait until FLARE has told sites that all have signed; whether it has."""
        files = [self._at(f"end-{name}") for name in names]
        try:
            wait(seconds, lambda: all(file.exists() for file in files), "the end")
        except DataError:
            return False
        return True

    # --- a site's side

    def serve(self, site: Site) -> None:
        """Answer rounds until the draft is there.

        Rounds that were answered before are answered again if their answer is missing.
        """
        number, refused = 0, set[bytes]()
        while True:
            self._await(number, refused)
            if not self._ask(number).exists():
                break
            message = self._message(number)
            if message is None or digest_of(message) in refused:
                time.sleep(POLL)
                continue
            if not self._of("answer", number, site.name).exists():
                reply = site.reply(message)
                at_pace()
                if reply == REFUSAL or reply is None:
                    refused.add(digest_of(message))
                    put(self._of("refusal", number, site.name), REFUSAL)
                    self.say(f"round {number + 1}: refused; the log says why")
                    continue
                put(self._of("answer", number, site.name), reply)
                self._of("refusal", number, site.name).unlink(missing_ok=True)
            self.say(f"round {number + 1}: answered")
            number += 1

    def _await(self, number: int, refused: set[bytes]) -> None:
        """Until a question is there, or the draft."""

        def ready() -> bool:
            if self._at(DRAFT).is_dir() and not self._ask(number).exists():
                return True
            message = self._message(number) if self._ask(number).exists() else None
            return message is not None and digest_of(message) not in refused

        wait(self.patience, ready, f"round {number + 1}")

    def _message(self, number: int) -> bytes | None:
        """A question; None where there is no file that could be one."""
        try:
            return read(self._ask(number), SIGNATURE + most_bytes(self.study.terms.d))
        except Refused:
            return None

    def sign(self, name: str, close: Callable[[Path], Close]) -> None:
        """Copy the draft, check the copy, and sign."""
        with TemporaryDirectory() as scratch:
            put(self._at(f"close-{name}"), close(self._copied(Path(scratch))).data)
        self.say("closed: checked and signed; the keys of this study are deleted")
