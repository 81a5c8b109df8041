"""What is disclosed: the fields of the registry, hazards and metadata; all true."""

import json
import re
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from spdp import EigenvalueBounds, Release, TangentGaussian, private_mean, private_median
from spdp.datasets import synthetic_spd
from spdp.errors import DataError, ParameterError
from spdp.release.disclosure import CITATION, DATASET, FILL, HAZARDS, RECORD, yaml
from spdp.release.files import seal_of

yaml_of = pytest.importorskip("yaml").safe_load
GOLDEN = sorted((Path(__file__).with_name("golden") / "0.3").iterdir())
DOMAIN = EigenvalueBounds(0.1, 10.0)
X = synthetic_spd(600, 2, random_state=0)
# The registry's fields and those that it requires; names and choices as of 2026.
TOP = {"approved", "registry_author", "deployment"}
PLAIN = {
    *("short_name", "data_curator", "intended_use", "data_product_type"),
    *("data_product_description", "publication_date"),
}
NESTED = {
    "dp_flavor": {"name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {
        *("privacy_unit", "privacy_unit_description", "privacy_parameters"),
        "privacy_parameters_description",
    },
    "model": {
        *("model_type", "actors", "model_type_description", "release_type"),
        *("release_type_description", "interactivity", "interactivity_description"),
    },
    "additional_dp_information": {"post_processing", "composition"},
    "implementation": {
        *("pre_processing_eda_hyperparameter_tuning", "mechanisms", "justification"),
    },
}
CHOICES = {
    ("dp_flavor", "name"): {"Pure DP", "Approximate DP", "Zero Concentrated DP", "other"},
    ("model", "model_type"): {"Local", "Central", "Shuffle", "Federated"},
    ("model", "release_type"): {"One-shot", "Continual"},
    ("model", "interactivity"): {"Interactive", "Non-interactive"},
}


def mean(**options):
    return private_mean(X, **{"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN} | options)


@pytest.fixture(scope="module")
def gaussian():
    return mean(mechanism="gaussian", method="adaptive", groups=np.arange(600) // 2)


@pytest.fixture(scope="module")
def pure():
    return mean(delta=0.0, adjacency="add-remove")


def answers(made):
    return {hazard.name: hazard.answer for hazard in made.hazards}


def private(folder):
    release = Release.load(folder)
    return release if release.certificate["private"] else None


@pytest.mark.parametrize("folder", GOLDEN, ids=lambda folder: folder.name)
def test_every_kind_of_release_fills_the_registrys_fields(folder):
    release = private(folder)
    if release is None:
        with pytest.raises(DataError, match="not private"):
            Release.load(folder).disclosure()
        return
    made = release.disclosure()
    record = yaml_of(made.texts[RECORD])
    assert record == made.record
    assert set(record) == TOP
    deployment = record["deployment"]
    assert set(deployment) == PLAIN | set(NESTED)
    for part, names in NESTED.items():
        assert set(deployment[part]) == names
        assert all(deployment[part].values())
    for (part, name), choices in CHOICES.items():
        assert deployment[part][name] in choices
    c = release.certificate
    stated = deployment["privacy_loss"]["privacy_parameters"]
    assert stated == {"epsilon": c["epsilon"], "delta": c["delta"]}
    assert (deployment["dp_flavor"]["name"] == "Pure DP") == (c["delta"] == 0)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", deployment["publication_date"])
    assert deployment["implementation"]["mechanisms"].lower().startswith(c["mechanism"])
    assert len(made.hazards) == 19
    assert all(hazard.answer.endswith((".", ")")) for hazard in made.hazards)


def test_fields_for_people_are_named_and_hold_no_guess(gaussian):
    made = gaussian.disclosure()
    assert "deployment.data_curator" in made.to_fill
    assert "deployment.implementation.justification" in made.to_fill
    text = made.texts[RECORD]
    assert " ".join(text.split()).count(FILL.strip()) == len(made.to_fill)
    for name in made.to_fill:
        assert f"#   {name}\n" in text
    assert "deployment.privacy_loss.privacy_unit" not in made.to_fill


def test_what_the_writer_states_is_filled_in(gaussian):
    made = gaussian.disclosure(
        title='A "quoted" pilot: 50 %', study="Cohort", contact="office", date="2026-03-31"
    )
    deployment = yaml_of(made.texts[RECORD])["deployment"]
    assert deployment["short_name"] == 'A "quoted" pilot: 50 %'
    assert deployment["publication_date"] == "2026-03-31"
    assert "deployment.short_name" not in made.to_fill
    cited = yaml_of(made.texts[CITATION])
    assert (cited["title"], cited["date-released"]) == ('A "quoted" pilot: 50 %', "2026-03-31")
    assert cited["contact"] == [{"name": "office"}]
    data = json.loads(made.texts[DATASET])
    assert data["isPartOf"]["name"] == "Cohort"
    assert data["creator"]["contactPoint"]["name"] == "office"


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"title": "two\nlines"}, "one line"),
        ({"study": "x" * 201}, "200 letters"),
        ({"contact": "a\u202eb"}, "one line"),
        ({"contact": 3}, "one line"),
        ({"date": "31.3.2026"}, "a day such as 2026-03-31"),
    ],
)
def test_what_cannot_be_stated_is_refused(gaussian, stated, message):
    with pytest.raises(ParameterError, match=message):
        gaussian.disclosure(**stated)


def test_hazards_are_answered_for_this_release(gaussian, pure):
    told, other = answers(gaussian.disclosure()), answers(pure.disclosure())
    c = gaussian.certificate
    assert told["Privacy parameters"].startswith(f"ε = 1, δ = 1e-06, from μ = {c['mu']:.6g}.")
    assert told["Unit of privacy"].startswith("A person with all their records.")
    assert "number of persons is public" in told["Neighbouring datasets"]
    steps = len(c["steps"])
    assert told["Composition within the release"].startswith(f"{steps} noisy answers. Each")
    assert "μᵢ²" in told["Composition within the release"]
    assert "(n = 300)" in told["Quantities without protection"]
    assert c["versions"]["sampler"] in told["Random numbers"]
    assert other["Variant of differential privacy"].startswith("Pure")
    assert "number of records is protected" in other["Neighbouring datasets"]
    assert "n = " not in other["Quantities without protection"]
    assert "600" not in json.dumps(pure.disclosure().record)  # n is private
    assert "spdp verify" in told["Errors in the implementation"]


def test_weak_parameters_are_told():
    weak = mean(epsilon=12.0).disclosure()
    assert "limits hardly anything" in answers(weak)["Privacy parameters"]
    risky = mean(delta=0.01, mechanism="gaussian").disclosure()
    assert "δ = 0.01 is above 1/n" in answers(risky)["Privacy parameters"]


def test_a_stated_summary_claims_nothing_that_was_not_checked():
    told = answers(TangentGaussian(0.1, 1.0, 1e-6).release(np.eye(2)).disclosure())
    assert "Nobody checked" in told["Unit of privacy"]
    assert "not checked" in told["Sensitivity and clipping"]
    assert "clipped" not in told["Sensitivity and clipping"]


def test_the_metadata_name_the_files_that_are_saved(tmp_path):
    release = private_median(X, epsilon=1.0, delta=1e-6, domain=DOMAIN)
    release.save(tmp_path)
    data = release.disclosure().dataset
    seal = seal_of(release.values, release.certificate)
    assert (data["@context"], data["@type"]) == ("https://schema.org/", "Dataset")
    assert data["identifier"] == f"sha256:{seal}"
    for file in data["distribution"]:
        content = (tmp_path / file["contentUrl"]).read_bytes()
        assert file.get("sha256", sha256(content).hexdigest()) == sha256(content).hexdigest()
    assert "sha256" in data["distribution"][0]
    cited = release.disclosure().citation
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert cited["type"] == "dataset"
    assert cited["identifiers"][0]["value"] == f"sha256:{seal}"


def test_files_are_written_once(gaussian, tmp_path):
    made = gaussian.disclosure()
    files = made.save(tmp_path / "new")
    assert [file.name for file in files] == [RECORD, HAZARDS, DATASET, CITATION]
    files[1].unlink()
    with pytest.raises(DataError, match="exists already"):
        made.save(tmp_path / "new")
    assert not files[1].exists()
    made.save(tmp_path / "new", force=True)
    assert files[1].read_text("utf-8").count("\n| ") == 20


@pytest.mark.parametrize(
    "content",
    [
        {"a": {"b": ["one", {"c": 1, "d": None}], "e": True}, "f": 1e-6, "g": -3},
        {"long": "word " * 60 + 'and "quotes", back\\slashes \\ # and: colons - end'},
        {"spaces": "two  spaces " * 20, "lines": "a\nb\tc" * 30, "µ": "ε ≤ δ² " * 30 + "."},
        {"traps": ["no", "1.0", "~", "", "- x", "# y", "'", "2026-03-31", "null"]},
    ],
)
def test_yaml_is_read_back_as_it_was(content):
    assert yaml_of(yaml(content)) == content
