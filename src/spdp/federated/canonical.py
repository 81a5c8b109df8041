"""Plain values as bytes, in one way only, and how they are read back.

*Enforced.* ASCII JSON with sorted keys and no spaces. There are no floats: a double is
16 hexadecimal digits, big-endian, and an array is the base64 of little-endian doubles
or integers with a shape. Integers are below 2⁵³ in size and no booleans, texts are
printable ASCII, no key occurs twice, nothing is nested deeper than 8. What is read is
written again, and other bytes than those read are refused. *Therefore* a digest of
bytes is a digest of what they say, and no two readers understand them differently.
"""

import base64
import json
import os
import stat
import struct
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError, reason
from spdp.release.files import whole_file
from spdp.system import AT_ONCE, SAFELY, sync_folder

S = TypeVar("S", bound=msgspec.Struct)

DEEPEST = 8
LARGEST = 1 << 53
Hex32 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
Hex64 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{128}\Z")]
Double = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}\Z")]
Count = Annotated[int, msgspec.Meta(ge=0, lt=LARGEST)]
Base64 = str


class Refused(DataError):
    """What was received is not answered; the message is for the own log alone."""


class Packed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An array: its shape, and the base64 of its numbers, little-endian, row by row."""

    shape: list[Count]
    base64: Base64


def digest_of(*parts: bytes) -> bytes:
    """SHA-256 of parts, one after the other."""
    mark = sha256()
    for part in parts:
        mark.update(part)
    return mark.digest()


# --- values


def dumps(value: Any) -> bytes:
    """The bytes of plain values, or of a struct."""
    plain = msgspec.to_builtins(value)
    _check(plain, 0)
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def loads(data: bytes, kind: type[S]) -> S:
    """The struct that bytes stand for; other bytes for the same struct are refused."""
    try:
        plain = json.loads(data.decode("ascii"), object_pairs_hook=_unique, parse_float=_refuse)
        value = msgspec.convert(plain, kind)
        if dumps(value) != data:
            raise Refused("not the bytes that spdp writes")
    except (ValueError, TypeError, RecursionError, OverflowError, msgspec.MsgspecError) as error:
        raise Refused(f"cannot be read: {error}") from None
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name occurs twice")
    return dict(pairs)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word:.20} is a float")


def _check(value: Any, depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        for name, one in value.items():
            _check(name, depth + 1)
            _check(one, depth + 1)
    elif isinstance(value, list):
        for one in value:
            _check(one, depth + 1)
    elif isinstance(value, str):
        if not (value.isascii() and (value.isprintable() or not value)):
            raise ValueError("a text is not printable ASCII")
    elif value is not None and not (type(value) is int and abs(value) < LARGEST):
        raise ValueError(f"a value of type {type(value).__name__} cannot be written")


def double(number: float) -> str:
    """The 16 digits of a finite double."""
    if not isfinite(number):
        raise ValueError(f"{number!r} is not a finite number")
    return struct.pack(">d", number).hex()


def undouble(digits: str) -> float:
    """The double of 16 digits, if it is finite."""
    number: float = struct.unpack(">d", bytes.fromhex(digits))[0]
    if not isfinite(number):
        raise Refused("a number is not finite")
    return number


def encode(data: bytes) -> Base64:
    """Bytes as base64."""
    return base64.b64encode(data).decode("ascii")


def decode(text: Base64, size: int | None = None) -> bytes:
    """The bytes of base64, if there is no other text for them."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except ValueError:
        raise Refused("not base64") from None
    if encode(data) != text or (size is not None and len(data) != size):
        raise Refused("base64 of another size")
    return data


def packed(array: NDArray[Any]) -> Packed:
    """An array of doubles or of 64-bit integers."""
    kind = "<f8" if array.dtype.kind == "f" else "<i8"
    return Packed(list(array.shape), encode(np.ascontiguousarray(array, kind).tobytes()))


def unpacked(value: Packed, shape: tuple[int, ...], kind: str = "<f8") -> NDArray[Any]:
    """The array of a shape; doubles must be finite."""
    if tuple(value.shape) != shape:
        raise Refused("an array of another shape")
    size = 8 * int(np.prod(shape, dtype=object)) if shape else 8
    array = np.frombuffer(decode(value.base64, size), kind).reshape(shape)
    if kind == "<f8" and not np.isfinite(array).all():
        raise Refused("an array with numbers that are not finite")
    return array


# --- files


def read(path: Path, most: int) -> bytes:
    """The bytes of a regular file, of at most so many; no link is followed.

    A file that is longer is refused, and read no further.
    """
    try:
        where = os.open(path, os.O_RDONLY | SAFELY | AT_ONCE)
        with os.fdopen(where, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Refused(f"{path}: not a file")
            data = file.read(most + 1)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except OSError as error:
        raise Refused(f"{path}: cannot be read ({reason(error)})") from None
    if len(data) > most:
        raise Refused(f"{path}: longer than {most:,} bytes")
    return data


def read_as(path: Path, kind: type[S], most: int) -> S:
    """The struct in a file, or an error that names the file."""
    try:
        return loads(read(path, most), kind)
    except Refused as error:
        what = error.message if str(path) in error.message else f"{path}: {error.message}"
        raise Refused(what) from None


def write(path: Path, data: bytes, force: bool = False, secret: bool = False) -> None:
    """Write a file whole or not at all; ``secret`` for its owner alone."""
    with whole_file(path, force) as draft:
        draft.touch(0o600 if secret else 0o644)
        draft.write_bytes(data)
    sync_folder(path.absolute().parent)
