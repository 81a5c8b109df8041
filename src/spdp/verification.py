"""Checks that a certificate agrees with itself: what can be recomputed is recomputed.

Verification proves that value and certificate are those that were sealed (and, with a
signature, by whom), and that the numbers follow from each other. It does NOT prove that
the noise was drawn, that the records were those of the dataset, that the domain was
chosen without looking at them, that each person owned one record, or that a ledger was
kept.
"""

from collections.abc import Iterator
from fractions import Fraction
from math import isclose
from pathlib import Path
from typing import Any, NamedTuple

from spdp.charts import CHARTS
from spdp.choices import Adjacency
from spdp.domain import domain_of
from spdp.errors import DataError, ParameterError
from spdp.privacy.account import laplace_scale_exact, price
from spdp.privacy.costs import Budget
from spdp.privacy.laws import mean_of, quantiles
from spdp.queries import RECORD_NORM

__all__ = ["NOT_PROVEN", "Check", "checks"]

NOT_PROVEN = (
    "Not proven: that the noise was drawn, that the records were the dataset's, that the "
    "domain was chosen without looking at them, that each person owned one record, and that "
    "every release of the dataset was accounted for."
)
CLOSE = 1e-9


class Check(NamedTuple):
    """One thing that was verified."""

    name: str
    ok: bool
    detail: str


def checks(certificate: dict[str, Any]) -> list[Check]:
    """Recompute what a certificate states from its other fields."""
    results: list[Check] = []
    for check in (_budget, _steps, _sensitivity, _law):
        try:
            results.extend(check(certificate))
        except (DataError, ParameterError, ValueError, KeyError, TypeError, ArithmeticError) as e:
            results.append(Check(check.__name__.strip("_"), False, f"cannot be recomputed: {e}"))
    return results


def _same(name: str, stated: float | None, found: float | None, what: str) -> Check:
    if stated is None or found is None:
        return Check(name, stated is found, what)
    ok = isclose(stated, found, rel_tol=CLOSE)
    return Check(name, ok, f"{what}: stated {stated:.9g}, recomputed {found:.9g}")


def _budget_of(c: dict[str, Any]) -> Budget:
    if c["calibration"] == "laplace":
        return Budget.pure(c["epsilon"])
    return Budget.gaussian(c["epsilon"], c["delta"], c["calibration"])


def _budget(c: dict[str, Any]) -> Iterator[Check]:
    budget = _budget_of(c)
    yield Check("delta", c["delta"] == budget.delta, f"δ = {c['delta']:g}")
    if budget.mu is None:
        yield Check("mu", c["mu"] is None, "pure differential privacy has no μ")
    else:
        spent = f"μ spent {c['mu']:.9g}, of {budget.mu:.9g} that ε and δ allow"
        ok = isclose(c["mu"], budget.mu, rel_tol=CLOSE) and c["mu"] <= budget.mu
        yield Check("mu", ok, spent)


def _steps(c: dict[str, Any]) -> Iterator[Check]:
    """Each step's price follows from its sensitivity and scale, and all add up to μ."""
    budget = _budget_of(c)
    if budget.mu is None:
        (step,) = c["steps"]
        scale = float(laplace_scale_exact(step["sensitivity"], c["epsilon"]))
        yield _same("scale", step["scale"], scale, "scale Δ/ε of the noise")
        return
    for i, step in enumerate(c["steps"]):
        cost = price(step["sensitivity"], step["scale"])
        what = f"μ of step {i + 1}, {step['step']}"
        yield Check("step", step["mu"] == cost, f"{what}: {step['mu']:.9g} for {cost:.9g}")
    total = sum((Fraction(step["mu"]) ** 2 for step in c["steps"]), Fraction(0))
    ok = 0 < total <= Fraction(c["mu"]) ** 2 and isclose(float(total), c["mu"] ** 2, rel_tol=CLOSE)
    yield Check("sum of steps", ok, f"√Σμᵢ² = {float(total) ** 0.5:.9g} of μ = {c['mu']:.9g}")


def _sensitivity(c: dict[str, Any]) -> Iterator[Check]:
    """Sensitivity and σ of a one-shot mean, from domain, n and the one step."""
    if c["method"] != "oneshot":
        return
    (step,) = c["steps"]
    count = c["n"] if c["n"] is not None else c["n_estimate"]
    radius = domain_of(c["domain"]).region(c["k"], CHARTS[c["metric"]]).radius
    unit = radius / RECORD_NORM
    yield _same("lattice step", c["lattice_step"], unit, "radius/2³⁰")
    if c["adjacency"] == Adjacency.REPLACE_ONE:
        bound = 2 * RECORD_NORM * unit / count
        yield _same("sensitivity", c["sensitivity"], bound, "2·radius/n")
    else:
        yield _same("sensitivity", c["sensitivity"], step["sensitivity"] * unit / count, "Δ/n̂")
    yield _same("sigma", c["sigma"], step["scale"] * unit / count, "σ of the noise")
    law = c["squared_error_law"]
    if law["family"] in ("chi2", "gamma-square", "stretched-laplace"):
        yield _same("scale of the law", law["scale"], c["sigma"] ** 2, "σ²")


def _law(c: dict[str, Any]) -> Iterator[Check]:
    law = c["squared_error_law"]
    yield _same("expected error", c["expected_squared_error"], mean_of(law), "mean of the law")
    for level, value in quantiles(law).items():
        yield _same("quantile", c["squared_error_quantiles"].get(level), value, level)


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
        raise DataError(f"{path}: cannot be read as a PEM key ({error})") from None
    if not isinstance(key, wanted):
        raise DataError(f"{path}: not an Ed25519 {'private' if private else 'public'} key")
    return key
