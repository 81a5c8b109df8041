"""The files of a release: written completely, sealed, signed, read back."""

import io
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError, need, reason
from spdp.release.declaration import Check
from spdp.system import give_name, sync

CERTIFICATE, REPORT = "certificate.json", "report.html"
LONGEST_NAME = 100  # of an array: file systems have a limit

Array = NDArray[Any]


class MissingArray(DataError):
    """A certificate names an array whose file is missing."""


def npy_of(value: Array) -> bytes:
    """The bytes of an array's file; equal arrays have equal bytes."""
    file = io.BytesIO()
    np.save(file, value)
    return file.getvalue()


def read_array(folder: Path, name: str, shape: list[int], may_miss: bool = False) -> Array:
    """An array of a release, or an error that says what is wrong with its file.

    One that ``may_miss`` is NaN where nothing can be said.
    """
    if not name.isidentifier() or len(name) > LONGEST_NAME:
        raise DataError(f"{folder}: {CERTIFICATE} names an array {name!r}")
    file = folder / f"{name}.npy"
    if not file.is_file():
        raise MissingArray(f"{folder}: does not hold a release, {file.name} is missing")
    try:
        data = file.read_bytes()
        value = np.load(io.BytesIO(data), allow_pickle=False)
    except Exception as error:  # a damaged file may cause any error
        raise DataError(f"{folder} does not hold a release: {error}") from None
    right = isinstance(value, np.ndarray) and value.dtype in (np.float64, np.complex128)
    finite = right and (np.isfinite(value) | (may_miss and np.isnan(value))).all()
    if not finite or list(value.shape) != shape:
        size = "×".join(map(str, shape))
        raise DataError(f"{folder}: {file.name} does not hold {size} float64 or complex128 numbers")
    if data != npy_of(value):
        raise DataError(f"{folder}: edited or damaged; {file.name} is not what was sealed")
    return np.asarray(value)


def _link(draft: Path, file: Path) -> None:
    """Give a draft its name, unless a file of that name exists."""
    try:
        give_name(draft, file)
    except FileExistsError:
        raise DataError(f"{file.parent}: holds a release already", ask="force") from None


@contextmanager
def whole_file(file: Path, force: bool) -> Iterator[Path]:
    """A place to write a file, which gets its name when it is complete and on disk.

    Until then it is in a directory that only its owner can enter. Without ``force``, a
    file of that name, even one that appears meanwhile, is an error.
    """
    if not force and os.path.lexists(file):
        raise DataError(f"{file}: exists already", ask="force")
    with tempfile.TemporaryDirectory(dir=file.absolute().parent, prefix=".partial-") as scratch:
        draft = Path(scratch) / file.name
        yield draft
        sync(draft)
        try:
            (os.replace if force else give_name)(draft, file)
        except FileExistsError:
            raise DataError(f"{file}: exists already", ask="force") from None


def write_all(
    target: Path, files: Mapping[str, bytes], force: bool, former: Iterable[str] = ()
) -> None:
    """Write files into a directory, in their order, each of them completely.

    Existing files are replaced only with ``force``. Then the page about the former
    release is removed, and so are those of its files (``former``) without a successor.
    """
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target, prefix=".partial-") as scratch:
        for name, data in files.items():
            (Path(scratch) / name).write_bytes(data)
            sync(Path(scratch) / name)
        if force:
            (target / REPORT).unlink(missing_ok=True)  # it is about the former release
        for name in files:
            put = os.replace if force else _link
            put(Path(scratch) / name, target / name)
        for name in former:
            if name not in files:
                (target / name).unlink(missing_ok=True)


# --- seal


def strict_json(text: str) -> Any:
    """JSON as everyone reads it: no name twice, no NaN, no infinity."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError("a name occurs twice")
        return dict(pairs)

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is not a number")

    def finite(digits: str) -> float:
        return float(digits) if isfinite(float(digits)) else refuse(digits)

    rules: Any = {"object_pairs_hook": unique, "parse_constant": refuse, "parse_float": finite}
    return json.loads(text, **rules)


def seal_of(values: Mapping[str, NDArray[Any]], certificate: dict[str, Any]) -> str:
    """SHA-256 over all values and the certificate, in one canonical form.

    Of each array its name, its shape and its float64 numbers (little-endian, row by
    row), then the certificate as JSON with sorted keys and no spaces. A complex array
    says so after its shape, and has real and imaginary parts in turn.
    """
    mark = sha256(b"spdp release\n")
    for name, value in values.items():
        paired = np.iscomplexobj(value)
        head = [name, *value.shape, *(["complex"] if paired else [])]
        mark.update(json.dumps(head).encode())
        mark.update(np.ascontiguousarray(value, dtype="<c16" if paired else "<f8").tobytes())
    plain = json.dumps(certificate, sort_keys=True, separators=(",", ":"), allow_nan=False)
    mark.update(plain.encode())
    return mark.hexdigest()


# --- Ed25519 signatures of a seal (extra ``sign``)


def sign(seal: str, key: str | Path) -> dict[str, str]:
    """An Ed25519 signature of a seal by the private key in a PEM file."""
    private = _ed25519(key, private=True)
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return {
        "algorithm": "ed25519",
        "public_key": public.hex(),
        "signature": private.sign(seal.encode()).hex(),
    }


def check_signature(
    seal: str, signature: dict[str, str] | None, key: str | Path | None
) -> Check | None:
    """Whether a seal was signed by the owner of a public key (PEM file)."""
    if signature is None:
        return None if key is None else Check("signature", False, "not signed")
    public = None if key is None else _ed25519(key, private=False)
    ed25519 = _library()
    from cryptography.exceptions import InvalidSignature

    try:
        stated = bytes.fromhex(signature["public_key"])
        owner = ed25519.Ed25519PublicKey.from_public_bytes(stated)
        if public is not None and public != owner:
            return Check("signature", False, "states another key than yours")
        owner.verify(bytes.fromhex(signature["signature"]), seal.encode())
    except (InvalidSignature, ValueError, KeyError, TypeError, AttributeError):
        return Check("signature", False, "does not fit the release and the key")
    whose = "by your key" if key is not None else f"by {signature['public_key'][:16]}…, unknown"
    return Check("signature", True, f"signed {whose}")


def _library() -> Any:
    return need("cryptography.hazmat.primitives.asymmetric.ed25519", "sign", "a signature")


def _ed25519(path: str | Path, *, private: bool) -> Any:
    ed25519 = _library()
    from cryptography.hazmat.primitives.serialization import (
        load_pem_private_key,
        load_pem_public_key,
    )

    wanted = ed25519.Ed25519PrivateKey if private else ed25519.Ed25519PublicKey
    try:
        data = Path(path).read_bytes()
        key = load_pem_private_key(data, None) if private else load_pem_public_key(data)
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path}: cannot be read as a PEM key ({reason(error)})") from None
    if not isinstance(key, wanted):
        raise DataError(f"{path}: not an Ed25519 {'private' if private else 'public'} key")
    return key
