"""The published JSON Schema is that of the types, and every kind of release fits."""

import json
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from replay import columns, covered

from spdp import EigenvalueBounds, Release
from spdp.datasets import synthetic_spd
from spdp.release import schema
from spdp.release.certificate import Certificate
from spdp.statistics import STATISTICS

jsonschema = pytest.importorskip("jsonschema")
GOLDEN = Path(__file__).with_name("golden")
KEPT = sorted(GOLDEN.glob("*/*/certificate.json"))
VALID = jsonschema.Draft202012Validator(schema.published())


def problems(certificate):
    return [error.message for error in VALID.iter_errors(certificate)]


@pytest.fixture
def plain():
    return json.loads((GOLDEN / "0.3" / "mean" / "certificate.json").read_text("utf-8"))


def test_what_is_published_is_made_of_the_types():
    """If not: python -m spdp.release.schema."""
    published = Path(schema.__file__).with_name(schema.FILE).read_text("utf-8")
    assert published == schema.text()
    jsonschema.Draft202012Validator.check_schema(schema.published())


def test_every_kept_release_fits():
    assert len(KEPT) > 40
    for file in KEPT:
        assert problems(json.loads(file.read_text("utf-8"))) == [], file.parent.name


def test_a_new_release_of_every_statistic_fits():
    X = synthetic_spd(300, 2, random_state=0)
    beside = columns(np.random.default_rng(1), 300)
    options = {"epsilon": 4.0, "delta": 1e-4, "domain": EigenvalueBounds(0.1, 10.0)}
    asked = covered()
    assert set(asked) == set(STATISTICS)
    for name, ask in asked.items():
        assert problems(ask(X, beside, **options).certificate) == [], name


def test_a_study_over_sites_fits(plain):
    trust = {"model": "distributed", "study": "0" * 64, "sites": 3, "colluding": 1}
    trust |= {"computational": "X25519", "noise_per_site": 1.0, "noise_factor": 1.2}
    assert problems(plain | {"trust": trust | {"epsilon_if_all_others_collude": 2.0}}) == []
    assert problems(plain | {"trust": trust | {"sites": 1}})


@pytest.mark.parametrize(
    "edit",
    [
        {"extra": 1},
        {"k": 0},
        {"k": "two"},
        {"schema": 3},
        {"statistic": "mode"},
        {"unit": "family"},
        {"steps": []},
        {"domain": {"type": "Cube"}},
        {"squared_error_law": {"family": "cauchy"}},
        {"sha256": "short"},
    ],
    ids=lambda edit: next(iter(edit)),
)
def test_what_no_release_states_does_not_fit(plain, edit):
    assert problems(plain) == []
    assert problems(plain | edit)


def test_a_missing_field_does_not_fit(plain):
    names = set(plain) - {"trust", "sha256", "signature"}
    assert names == {*Certificate.__struct_encode_fields__} - {"trust"}
    for name in names:
        assert problems({key: value for key, value in plain.items() if key != name}), name


def test_steps_are_those_of_the_statistic(plain):
    other = deepcopy(plain)
    other["steps"][-1]["step"] = "direction"  # of a median
    assert problems(other)
    other = deepcopy(plain)
    del other["steps"][-1]["scale"]
    assert problems(other)
    assert problems(plain | {"statistic": "median"})


def test_the_schema_is_in_the_package():
    assert schema.published()["title"].endswith("schema 4")
    release = Release.load(GOLDEN / "0.3" / "median")
    assert problems(release.certificate) == []
