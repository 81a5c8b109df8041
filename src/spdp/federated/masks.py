r"""Pairwise masks, which cancel in the sum over all sites, and the file of their keys.

Two sites share a *root* per study: X25519 and ML-KEM-768 secrets through HKDF-SHA256,
salted with ``sealed`` and bound to the two places in the roster. From it a *chain* of
keys, one per round; a key goes *onward* when its round was answered, and cannot go
back. A mask is ChaCha20 under a key of the chain and of ``said``, the digest of all
that the round's description says. An answer is total + share of the noise + masks with
later sites − masks with earlier ones, modulo 2⁶⁴.

*Enforced.* A root names the pair: without it, a card that holds another's key in
another encoding, or with a part of small order, would make two masks of one site equal.
A mask names the description: sites that were told different things do not cancel, in no
group of them. A chain's key is used for one description, so that ChaCha20's nonce may
be zero. Private keys are deleted when roots are made, keys of a chain when they went
onward; the file of keys is replaced whole and is readable by its owner alone.

*Assumed.* SHA-256, HKDF and ChaCha20 are what they are thought to be, and X25519 *or*
ML-KEM-768 is; at most the stated number of sites collude.

*Therefore* (computationally) masks of honest sites that were all told the same are
uniform among those of sum zero, and in every other case uniform and independent: let j
be an honest site that was told something else, or nothing. Each other honest site's
mask with j occurs in its own answer and nowhere else. So whoever asks learns the sum
over all honest sites of total and noise, or nothing.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from struct import pack
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError
from spdp.federated.canonical import Count, Hex32, Refused, decode, dumps, read_as
from spdp.federated.identity import library
from spdp.federated.study import KEM_TEXT, Card, Form, Seal, Study, agreed, sealed_by
from spdp.system import SAFELY, lock_at_once, sync_folder

Words = NDArray[np.uint64]
MOST_BYTES = 1 << 20  # of a key file
LITTLE = np.dtype("<u8")


def root(secret: bytes, sealed: bytes, i: int, j: int) -> bytes:
    """First key of the chain of a pair; i < j are their places in the roster."""
    if not i < j:
        raise ValueError("the places of a pair ascend")
    hkdf, hashes = library("kdf.hkdf"), library("hashes")
    info = b"spdp pair 1" + pack(">HH", i, j)
    return bytes(hkdf.HKDF(hashes.SHA256(), 32, salt=sealed, info=info).derive(secret))


def onward(chain: bytes) -> bytes:
    """The next key of a chain."""
    return _expanded(chain, b"spdp next 1")


def pair_mask(chain: bytes, said: bytes, d: int) -> Words:
    """Uniform numbers that two sites share for one description, and nobody else has."""
    ciphers = library("ciphers")
    key = _expanded(chain, b"spdp mask 1" + said)
    stream = ciphers.Cipher(ciphers.algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    return np.frombuffer(stream.update(bytes(8 * d)), LITTLE)


def _expanded(chain: bytes, info: bytes) -> bytes:
    hkdf, hashes = library("kdf.hkdf"), library("hashes")
    return bytes(hkdf.HKDFExpand(hashes.SHA256(), 32, info=info).derive(chain))


def masked(total: Words, me: str, chains: Mapping[str, bytes], said: bytes) -> bytes:
    """A site's answer: its noisy total with the masks of all pairs it is in.

    Names ascend as places in the roster do.
    """
    answer = total.astype(LITTLE)
    for name, chain in chains.items():
        mask = pair_mask(chain, said, len(answer))
        answer = answer + mask if me < name else answer - mask  # wraps: modulo 2⁶⁴
    return answer.tobytes()


def unmasked(answers: Sequence[bytes]) -> NDArray[np.int64]:
    """The sum of all answers: exact as long as it is below 2⁶³."""
    total = np.zeros(len(answers[0]) // 8, LITTLE)
    for answer in answers:
        total = total + np.frombuffer(answer, LITTLE)
    return total.astype(np.uint64).view(np.int64)


# --- the file of keys


class Keys(Form, frozen=True, forbid_unknown_fields=True, dict=True, kw_only=True):
    """A site's secrets of one study.

    After joining: private keys. After signing: also the study, the seal, and secrets
    shared with later sites. Once sealed: the chains and the next round, nothing else.
    """

    format: Literal["spdp-keys"] = "spdp-keys"
    version: Literal[1] = 1
    card: Card
    x25519: Hex32 | None = None
    mlkem: str | None = None
    study: Hex32 | None = None
    seal: Seal | None = None
    shared: dict[str, Hex32] | None = None
    sealed: Hex32 | None = None
    round: Count = 0
    chains: dict[str, Hex32] | None = None

    def moved_on(self) -> "Keys":
        """The keys of the next round, in place of these."""
        assert self.chains is not None
        chains = {name: onward(bytes.fromhex(key)).hex() for name, key in self.chains.items()}
        return msgspec.structs.replace(self, chains=chains, round=self.round + 1)


def rooted(keys: Keys, study: Study, seals: Mapping[str, Seal]) -> Keys:
    """The chains of a sealed study; private keys and shared secrets are left out."""
    if keys.x25519 is None or keys.mlkem is None or keys.seal is None or keys.shared is None:
        raise Refused("this site has not signed the study")
    sealed, me = sealed_by(study, seals), study.place(keys.card.name)
    if seals[keys.card.name].data != keys.seal.data:
        raise Refused("the seal of this site is not the one it made")
    x25519, mlkem = library("asymmetric.x25519"), library("asymmetric.mlkem")
    mine = x25519.X25519PrivateKey.from_private_bytes(bytes.fromhex(keys.x25519))
    kem = mlkem.MLKEM768PrivateKey.from_seed_bytes(bytes.fromhex(keys.mlkem))
    chains = {}
    for place, card in enumerate(study.cards):
        if place == me:
            continue
        secret = agreed(mine, card)
        if place > me:
            secret += bytes.fromhex(keys.shared[card.name])
        else:
            secret += kem.decapsulate(decode(seals[card.name].secrets[keys.card.name], KEM_TEXT))
        chains[card.name] = root(secret, sealed, min(place, me), max(place, me)).hex()
    return Keys(card=keys.card, study=keys.study, sealed=sealed.hex(), chains=chains)


class KeyFile:
    """The file of a site's keys: beside the ledger, kept out of backups.

    One process uses it at a time (:meth:`locked`).
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def beside(cls, ledger: Path, terms: bytes) -> "KeyFile":
        """The key file of a study with these terms, for a ledger's data."""
        return cls(ledger.with_name(f"{ledger.name}.{terms.hex()[:16]}.keys"))

    def exists(self) -> bool:
        """Whether there are keys."""
        return os.path.lexists(self.path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only process that uses the keys; another is an error, not a wait."""
        lock = self.path.with_name(f"{self.path.name}.lock")
        where = os.open(lock, os.O_RDWR | os.O_CREAT | SAFELY, 0o600)
        try:
            if not lock_at_once(where):
                raise DataError(f"{self.path}: another process uses these keys")
            yield
        finally:
            os.close(where)

    def read(self) -> Keys:
        """The keys."""
        return read_as(self.path, Keys, MOST_BYTES)

    def replace(self, keys: Keys) -> None:
        """Write the keys, whole and on disk, in place of the former ones."""
        draft = self.path.with_name(f".{self.path.name}.draft")
        draft.unlink(missing_ok=True)
        where = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFELY, 0o600)
        with os.fdopen(where, "wb") as file:
            file.write(dumps(keys))
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.path)
        sync_folder(self.path.absolute().parent)

    def delete(self) -> None:
        """Overwrite and remove the keys."""
        for path in (self.path, self.path.with_name(f".{self.path.name}.draft")):
            with suppress(FileNotFoundError):
                size = path.stat().st_size
                with path.open("r+b") as file:
                    file.write(bytes(size))
                    file.flush()
                    os.fsync(file.fileno())
                path.unlink()
        sync_folder(self.path.absolute().parent)


def fresh_keys() -> tuple[Any, Any]:
    """New private keys: X25519 and ML-KEM-768."""
    x25519, mlkem = library("asymmetric.x25519"), library("asymmetric.mlkem")
    return x25519.X25519PrivateKey.generate(), mlkem.MLKEM768PrivateKey.generate()
