"""The JSON Schema of ``certificate.json``, for programs that do not have spdp.

It is made of the typed certificate and of the steps that each statistic declares, and
kept beside this file, so that others can read it without running anything; a test
compares the two. ``python -m spdp.release.schema`` writes it again.

*What it says.* Which fields there are, their types, and which steps belong to which
statistic. *What it does not say*: that numbers follow from each other, which is what
``spdp verify`` checks.
"""

import json
from importlib.resources import files
from typing import Any

import msgspec

from spdp.domain.sets import KINDS
from spdp.release.certificate import SCHEMA, Certificate, registry

FILE = "certificate.schema.json"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
TITLE = "Certificate of a differentially private release of spdp"
OPTIONAL = {"trust", "sha256", "signature"}
HEX = {"type": "string", "pattern": "^[0-9a-f]+$"}
# What a directory's certificate.json has beside the certificate.
SEALED = {
    "sha256": {
        "type": "string",
        "pattern": "^[0-9a-f]{64}$",
        "description": "Seal: SHA-256 over all arrays and the certificate.",
    },
    "signature": {
        "description": "Ed25519 signature of the seal, or null.",
        "anyOf": [
            {"type": "null"},
            {
                "type": "object",
                "properties": {
                    "algorithm": {"const": "ed25519"},
                    "public_key": HEX,
                    "signature": HEX,
                },
                "required": ["algorithm", "public_key", "signature"],
                "additionalProperties": False,
            },
        ],
    },
}


def certificate_schema() -> dict[str, Any]:
    """The schema, made of the types."""
    found = [*registry().every(), registry().find(registry().SUMMARY)]
    kinds = {statistic.name: _kinds(statistic) for statistic in found}
    every = list({kind: None for of in kinds.values() for _, kind in of})
    (root, *of_steps), parts = msgspec.json.schema_components(
        [Certificate, *every], ref_template="#/$defs/{name}"
    )
    refs = dict(zip(every, of_steps, strict=True))
    whole = parts.pop(root["$ref"].rpartition("/")[2])
    fields = whole["properties"]
    fields["steps"] = {"type": "array", "minItems": 1, "items": {"type": "object"}}
    fields["statistic"] = {"enum": sorted(kinds)}
    domain = {
        "type": "object",
        "properties": {"type": {"enum": sorted(KINDS)}},
        "required": ["type"],
    }
    fields["domain"] = {"anyOf": [domain, {"type": "null"}]}
    return {
        "$schema": DIALECT,
        "title": f"{TITLE}, schema {SCHEMA}",
        "type": "object",
        "properties": fields | SEALED,
        "required": sorted(set(fields) - OPTIONAL),
        "additionalProperties": False,
        "allOf": [_rule(name, of, refs) for name, of in sorted(kinds.items())],
        "$defs": dict(sorted(parts.items())),
    }


def _kinds(statistic: Any) -> list[tuple[str, Any]]:
    """Names and classes of the steps that any method of a statistic has."""
    methods = ("oneshot", "adaptive", *statistic.forms)
    pairs = [pair for method in methods for pair in statistic.kinds(method).items()]
    return sorted(dict.fromkeys(pairs), key=lambda pair: (pair[0], pair[1].__qualname__))


def _rule(statistic: str, kinds: list[tuple[str, Any]], refs: dict[Any, Any]) -> dict[str, Any]:
    """Which steps the certificates of a statistic have."""
    steps = [
        {"allOf": [refs[kind], {"properties": {"step": {"const": name}}}]} for name, kind in kinds
    ]
    return {
        "if": {"properties": {"statistic": {"const": statistic}}},
        "then": {"properties": {"steps": {"items": {"anyOf": steps}}}},
    }


def published() -> dict[str, Any]:
    """The schema that the package holds."""
    return dict(json.loads(files(__package__).joinpath(FILE).read_text("utf-8")))


def text() -> str:
    """The schema as its file has it."""
    return json.dumps(certificate_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    from pathlib import Path

    Path(__file__).with_name(FILE).write_text(text(), encoding="utf-8")
