"""Ed25519 signatures of a release's seal (extra ``sign``)."""

from pathlib import Path
from typing import Any

from spdp.errors import DataError, reason
from spdp.verification import Check

__all__ = ["check_signature", "sign"]


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


def check_signature(seal: str, signature: dict[str, str] | None, key: str | Path | None) -> Check:
    """Whether a seal was signed by the owner of a public key (PEM file)."""
    if signature is None:
        return Check("signature", key is None, "not signed")
    public = None if key is None else _ed25519(key, private=False)
    ed25519 = _library()
    from cryptography.exceptions import InvalidSignature

    try:
        stated = bytes.fromhex(signature["public_key"])
        public = public or ed25519.Ed25519PublicKey.from_public_bytes(stated)
        public.verify(bytes.fromhex(signature["signature"]), seal.encode())
    except (InvalidSignature, ValueError, KeyError, TypeError, AttributeError):
        return Check("signature", False, "does not fit the release and the key")
    whose = (
        "by the key given" if key is not None else f"by {signature['public_key'][:16]}…, unknown"
    )
    return Check("signature", True, f"signed {whose}")


def _library() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise DataError(
            "signatures need cryptography; install it with: pip install 'spdp[sign]'"
        ) from None
    return ed25519


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
