"""What registries, boards and data repositories ask about a release, as files.

- ``deployment.yaml``: the fields of the public registry of deployments of
  differential privacy (opendp/deployments-registry-data), tiers 1 to 3;
- ``hazards.md``: the hazards of NIST SP 800-226, one by one (:mod:`.hazards`);
- ``dataset.jsonld`` (schema.org) and ``CITATION.cff``: for data repositories.

*Enforced.* All of it is computed from the certificate, the released arrays and what the
writer states: it costs no budget. *Therefore* what only people know (who, why, for
whom) cannot be filled in; such fields begin with :data:`FILL`, and
:attr:`Disclosure.to_fill` names them.
"""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

from spdp.errors import DataError
from spdp.options import counted
from spdp.release import hazards
from spdp.release.board import About
from spdp.release.files import CERTIFICATE, npy_of, seal_of, whole_file
from spdp.release.release import Release
from spdp.release.summary import Summary

FILL = "TO FILL IN: "
RECORD, HAZARDS, DATASET, CITATION = (
    "deployment.yaml",
    "hazards.md",
    "dataset.jsonld",
    "CITATION.cff",
)
WIDTH = 88  # of a line of YAML
PURE, APPROXIMATE = "Pure DP", "Approximate DP"  # as the registry calls them
KEYWORDS = ["differential privacy", "symmetric positive definite matrices"]


class Disclosure(NamedTuple):
    """What is disclosed of a release, and the files it is written to."""

    record: dict[str, Any]
    hazards: list[hazards.Hazard]
    dataset: dict[str, Any]
    citation: dict[str, Any]
    page: str

    @property
    def to_fill(self) -> list[str]:
        """Names of the fields that only people can fill in."""
        return list(_to_fill(self.record))

    @property
    def texts(self) -> dict[str, str]:
        """Each file's text, by its name."""
        left = "".join(f"#   {name}\n" for name in self.to_fill)
        head = (
            "# Schema: opendp/deployments-registry-data, schemas/deployments-schema.yaml\n"
            f"# Only people can fill in:\n{left}"
        )
        return {
            RECORD: head + yaml(self.record),
            HAZARDS: self.page,
            DATASET: json.dumps(self.dataset, indent=2, ensure_ascii=False) + "\n",
            CITATION: yaml(self.citation),
        }

    def save(self, path: str | Path, *, force: bool = False) -> list[Path]:
        """Write the files into a directory; existing ones only with ``force``."""
        folder = Path(path)
        taken = [folder / name for name in self.texts if (folder / name).exists()]
        if taken and not force:
            raise DataError(f"{taken[0]}: exists already", ask="force")
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in self.texts.items():
            with whole_file(folder / name, force) as draft:
                draft.write_text(text, encoding="utf-8")
        return [folder / name for name in self.texts]


def disclosure_of(release: Release, about: About | None = None) -> Disclosure:
    """The disclosure of a release; a simulation has none."""
    told, stated = Summary(release.certificate), about or About()
    if not told.c.private:
        raise DataError("a seeded simulation is not private: there is no guarantee to disclose")
    seal = seal_of(release.values, release.certificate)
    return Disclosure(
        {"approved": False, "registry_author": fill("who writes this record")}
        | {"deployment": deployment(told, stated)},
        hazards.hazards(told),
        dataset(release, told, stated, seal),
        citation(told, stated, seal),
        hazards.markdown(told, seal),
    )


def fill(what: str) -> str:
    """The value of a field that only people can fill in."""
    return f"{FILL}{what}"


def _to_fill(content: Any, path: str = "") -> Iterator[str]:
    if isinstance(content, dict):
        for name, value in content.items():
            yield from _to_fill(value, f"{path}.{name}" if path else name)
    elif isinstance(content, str) and FILL in content:
        yield path


# --- the registry of deployments


def deployment(told: Summary, about: About) -> dict[str, Any]:
    """A deployment as the registry asks for it."""
    c = told.c
    return {
        "short_name": about.title or fill("a name for the data product"),
        "data_curator": fill("who publishes the data product"),
        "intended_use": fill("what the data product is for"),
        "data_product_type": "summary statistics",
        "data_product_description": f"{told.heading}. {told.subject}",
        "publication_date": about.date or c.created[:10],
        "dp_flavor": {
            "name": PURE if c.mu is None else APPROXIMATE,
            "data_domain": _data_domain(told),
            "unprotected_quantities": hazards.unprotected(c),
        },
        "privacy_loss": {
            "privacy_unit": _unit(told),
            "privacy_unit_description": f"{hazards.neighbours(c)} {hazards.unit(c)}",
            "privacy_parameters": {"epsilon": c.epsilon, "delta": c.delta},
            "privacy_parameters_description": (f"{hazards.parameters(told)} {hazards.variant(c)}"),
        },
        "model": {
            "model_type": "Federated" if c.trust else "Central",
            "actors": fill("who sees what, and who trusts whom, by name"),
            "model_type_description": hazards.trust(c),
            "release_type": "One-shot",
            "release_type_description": (
                f"The arrays are published once. {FILL}further uses of the records"
            ),
            "interactivity": "Non-interactive",
            "interactivity_description": "Nobody can ask this release further questions.",
        },
        "additional_dp_information": {
            "post_processing": hazards.post_processing(c),
            "composition": _to_people(f"{hazards.composition(c)} {hazards.other_releases()}"),
        },
        "implementation": {
            "pre_processing_eda_hyperparameter_tuning": _to_people(hazards.choices(c)),
            "mechanisms": _mechanisms(told),
            "justification": fill("why these choices were made, and by whom"),
        },
    }


def _to_people(answer: str) -> str:
    """An answer to a hazard, with what people must add marked as in other fields."""
    return answer.replace(hazards.CURATOR, FILL)


def _data_domain(told: Summary) -> str:
    c, domain = told.c, told.rows().get("domain")
    if domain is None:
        return f"Any data with a {c.k}×{c.k} summary of the stated sensitivity."
    size = f"{c.n:,} " if c.public and c.n else ""
    each = f"{c.k}×{c.k} matrices" if c.parts is None else f"{c.parts} {c.k}×{c.k} matrices each"
    return (
        f"Datasets of {size}{counted(c.unit)}: {each}, symmetric (or Hermitian) positive definite, "
        f"clipped to a public set ({domain}; metric {c.metric})."
    )


def _unit(told: Summary) -> str:
    units = {"person": "person, with all their records", "voxel": "voxel (not a person)"}
    unit = told.c.unit
    return "not known: as stated for a summary" if unit is None else units.get(unit, unit)


def _mechanisms(told: Summary) -> str:
    c = told.c
    made = ", ".join(f"{name} {version}" for name, version in c.versions.items())
    return (
        f"{c.mechanism.capitalize()} noise ({c.calibration} calibration), scale {c.sigma:.4g} in "
        f"the {c.distance} distance. {hazards.floating_point(c)} {hazards.randomness(c)} "
        f"{hazards.side_channels(c)} Made with {made}."
    )


# --- schema.org and the Citation File Format


def dataset(release: Release, told: Summary, about: About, seal: str) -> dict[str, Any]:
    """A schema.org Dataset."""
    c = told.c
    arrays = {f"{name}.npy": npy_of(array) for name, array in release.values.items()}
    files = [
        {
            "@type": "DataDownload",
            "name": name,
            "contentUrl": name,
            "encodingFormat": "application/octet-stream",
            "description": "NumPy array file, format 1.0",
            "sha256": sha256(data).hexdigest(),
        }
        for name, data in arrays.items()
    ]
    certificate = {
        "@type": "DataDownload",
        "name": CERTIFICATE,
        "contentUrl": CERTIFICATE,
        "encodingFormat": "application/json",
        "description": "Certificate: guarantee, error, and how both were reached",
    }
    named = {"isPartOf": {"@type": "ResearchProject", "name": about.study}} if about.study else {}
    asked = {"contactPoint": {"@type": "ContactPoint", "name": about.contact}}
    return {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": about.title or told.heading,
        "description": f"{told.subject} {told.verdict.brief} {told.accuracy}",
        "identifier": f"sha256:{seal}",
        "dateCreated": c.created,
        **({"datePublished": about.date} if about.date else {}),
        "creator": {
            "@type": "Organization",
            "name": fill("who publishes it"),
            **(asked if about.contact else {}),
        },
        "license": fill("address of the licence"),
        "keywords": [*KEYWORDS, c.statistic, c.metric],
        "measurementTechnique": f"{c.mechanism} noise, ({c.epsilon:g}, {c.delta:g})-differential "
        f"privacy, {c.adjacency}",
        "variableMeasured": [
            {
                "@type": "PropertyValue",
                "name": name,
                "description": f"array of shape {'×'.join(map(str, array.shape)) or 'one number'}",
            }
            for name, array in release.values.items()
        ],
        **named,
        "distribution": [*files, certificate],
    }


def citation(told: Summary, about: About, seal: str) -> dict[str, Any]:
    """A CITATION.cff of a dataset."""
    return {
        "cff-version": "1.2.0",
        "message": "If you use this release, please cite it.",
        "type": "dataset",
        "title": about.title or told.heading,
        "abstract": f"{told.subject} {told.verdict.brief}",
        "authors": [{"name": fill("who publishes it")}],
        **({"contact": [{"name": about.contact}]} if about.contact else {}),
        "date-released": about.date or told.c.created[:10],
        "keywords": [*KEYWORDS, told.c.statistic],
        "identifiers": [
            {"type": "other", "value": f"sha256:{seal}", "description": "Seal of the release"}
        ],
    }


def yaml(content: Any, indent: int = 0) -> str:
    """Plain data as YAML: names, and JSON's texts and numbers, folded to lines.

    A text in double quotes is the same in YAML and JSON; YAML reads a line's end inside
    as a space.
    """
    space = " " * indent
    if isinstance(content, list):
        items = [yaml(item, indent + 2).removeprefix(f"{space}  ") for item in content]
        return "".join(f"{space}- {item}" for item in items)
    if isinstance(content, dict):
        return "".join(f"{space}{name}:{_value(value, indent)}" for name, value in content.items())
    return f"{space}{_scalar(content, indent)}\n"


def _value(value: Any, indent: int) -> str:
    if isinstance(value, dict | list):
        return "\n" + yaml(value, indent + 2)
    return f" {_scalar(value, indent)}\n"


def _scalar(value: Any, indent: int) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, float):  # YAML 1.1 reads 1e-06 as a text
        return text if "." in text else text.replace("e", ".0e")
    if not isinstance(value, str) or len(text) + indent <= WIDTH or "  " in text:
        return text
    lines = wrap(text, WIDTH - indent - 2, break_long_words=False, break_on_hyphens=False)
    return ("\n" + " " * (indent + 2)).join(lines)
