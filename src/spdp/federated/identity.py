"""Who a site is: an Ed25519 key for years, its words, and the pins of others.

What people compare by telephone is the *identity's* fingerprint, 128 bits as eight
words. Of a study nothing shortened is compared: who makes two studies finds two that
agree in half the bits' work. Every text that is signed begins with a label of its own,
so that a signature of one thing is never one of another.

*Enforced*, of the coordinator's identity and those of cards: it is not of small order,
as signatures of such a one can be made up without a key, and not a second text of a
point.
"""

import os
import re
from pathlib import Path
from typing import Any

from spdp.errors import DataError, ParameterError, need, reason
from spdp.federated.canonical import Refused, digest_of, read, write

CARD, SEAL, ROUND, ANSWER, CLOSE = (
    f"spdp {what} 1".encode() for what in ("card", "seal", "round", "answer", "close")
)
SIGNATURE = 64  # bytes, before a message or an answer
# An Ed25519 key is y, little-endian, and the sign of x in the highest bit. The 8 points
# of small order have these y: 1 (order 1), -1 (order 2), 0 (order 4), ±y of order 8.
# Second texts of points have y >= p, or a sign of x = 0, which is at y = ±1 alone.
P = 2**255 - 19
Y8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
SMALL = (0, 1, P - 1, Y8, P - Y8)
PASSPHRASE = "SPDP_IDENTITY_PASSPHRASE"
# Five letters for 16 bits, consonants and vowels in turn: words that can be read out.
CONSONANTS, VOWELS = "bdfghjklmnprstvz", "aiou"
WORDS = 8
PIN = re.compile(r"([a-z0-9-]{1,32}) ([a-z]{5}(?:-[a-z]{5}){7})")
MOST = 1 << 16  # bytes of a file of pins, or of a key


def library(name: str) -> Any:
    """A module of cryptography, or an error that says how to install it."""
    place = f"cryptography.hazmat.primitives.{name}"
    return need(place, "federated", "a study over sites", "cryptography 47")


def words_of(identity: str) -> str:
    """The words of an identity, from 128 bits of its SHA-256."""
    mark = digest_of(bytes.fromhex(identity))
    numbers = [int.from_bytes(mark[2 * i : 2 * i + 2], "big") for i in range(WORDS)]
    return "-".join(map(_word, numbers))


def _word(number: int) -> str:
    first, a, middle, b, last = (
        number >> shift & mask for shift, mask in ((12, 15), (10, 3), (6, 15), (4, 3), (0, 15))
    )
    c, v = CONSONANTS, VOWELS
    return c[first] + v[a] + c[middle] + v[b] + c[last]


# --- keys


class Identity:
    """An Ed25519 private key."""

    def __init__(self, key: Any) -> None:
        self._key = key
        self.public = str(key.public_key().public_bytes_raw().hex())

    def sign(self, label: bytes, *parts: bytes) -> str:
        """Signature of a label and the digests that follow it."""
        return str(self._key.sign(label + b"".join(parts)).hex())

    @classmethod
    def open(cls, path: Path) -> "Identity":
        """The key in a PEM file; its passphrase, if any, is in the environment."""
        library("asymmetric.ed25519")
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(read(path, MOST), _passphrase())
        except (ValueError, TypeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"{path}: cannot be read as an Ed25519 private key ({reason(error)}); its "
                f"passphrase is taken from {PASSPHRASE}"
            ) from None
        if not isinstance(key, Ed25519PrivateKey):
            raise DataError(f"{path}: not an Ed25519 private key")
        return cls(key)

    @classmethod
    def opened_or_made(cls, path: Path) -> tuple["Identity", bool]:
        """The key in a file, or a new one that is written there; and whether it is."""
        if os.path.lexists(path):
            return cls.open(path), False
        library("asymmetric.ed25519")
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        secret, kept = Ed25519PrivateKey.generate(), _passphrase()
        locked: Any = form.NoEncryption() if kept is None else form.BestAvailableEncryption(kept)
        data = secret.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, locked)
        write(path, data, secret=True)
        return cls(secret), True


def _passphrase() -> bytes | None:
    text = os.environ.get(PASSPHRASE, "")
    return os.fsencode(text) if text else None


def check_point(identity: str) -> None:
    """Refuse an identity of small order, and any but the one text of a point."""
    y = int.from_bytes(bytes.fromhex(identity), "little") & (1 << 255) - 1
    if y >= P or y in SMALL:
        raise Refused("an identity whose signatures anybody could make up")


def check(identity: str, signature: str, label: bytes, *parts: bytes) -> None:
    """Refuse a signature that is not the identity's, of this label and these parts."""
    check_point(identity)
    ed25519 = library("asymmetric.ed25519")
    from cryptography.exceptions import InvalidSignature

    try:
        key = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(identity))
        key.verify(bytes.fromhex(signature), label + b"".join(parts))
    except (InvalidSignature, ValueError):
        raise Refused(f"not signed by its identity: {label.decode()}") from None


# --- pins


def read_pins(path: Path, needed: bool = False) -> dict[str, str]:
    """Words of the sites that were confirmed before, by name.

    Without a file there are none, or, if it is ``needed``, an error.
    """
    if not needed and not os.path.lexists(path):
        return {}
    pins: dict[str, str] = {}
    for number, line in enumerate(read(path, MOST).decode("ascii", "replace").splitlines(), 1):
        found = PIN.fullmatch(line.strip())
        if found is None:
            raise ParameterError(
                f"{path}: line {number} is not a site's name and its {WORDS} words, as spdp site "
                "join prints them"
            )
        if pins.setdefault(found[1], found[2]) != found[2]:
            raise ParameterError(f"{path}: line {number} pins {found[1]} a second time, otherwise")
    return pins


def write_pins(path: Path, pins: dict[str, str]) -> None:
    """Keep what was confirmed."""
    text = "".join(f"{name} {words}\n" for name, words in sorted(pins.items()))
    write(path, text.encode("ascii"), force=True)
