"""What a step of a release says of its answer: known names, numbers, and nothing else.

Of each statistic a line for each of its steps: what is noted beside name, price,
sensitivity and scale. A name that ends in "?" may be missing.
"""

import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

from spdp.choices import Adjacency, Method
from spdp.queries.directions import AVERAGED
from spdp.verification.base import Check, Fields, equal, is_public

__all__ = ["free_words", "notes"]

Lines = dict[str, str]

BALL = {
    "count": "n_estimate",
    "edge": "share sd",
    "centre": "center radius",
    "distance": "distance",
}
SHAPE = {"spread": "spread", "correlation": "width", "tail": "edges beyond"}
TAKEN = {"excess": "excess reach excess_sd"}
FIT = "radius at gram"
NOTES: dict[tuple[str, str | None], Lines] = {
    ("mean", None): {"summary": ""},
    ("mean", "oneshot"): {"mean": ""},
    ("mean", "adaptive"): BALL | SHAPE | {"excess": "excess reach", "mean": "center radius"},
    ("class-means", "oneshot"): {"moments": "radius classes unseen counts"},
    ("class-means", "adaptive"): BALL
    | SHAPE
    | {
        "classes": "radius counts",
        "within": "distance",
        "shape": "radius counts",
        "moments": "radius classes unseen counts width?",
    },
    ("dispersion", "adaptive"): BALL
    | SHAPE
    | TAKEN
    | {"spread": "", "spread moments": "radius variance_sd"},
    ("pca", "adaptive"): BALL | SHAPE | TAKEN | {"moments": "radius second_sd trusted"},
    ("median", "adaptive"): BALL | {"direction": "center near size averaged?"},
    ("regression", "adaptive"): BALL
    | {
        "covariates": "middle",
        "deviations": "low high",
        "first fit": FIT,
        "residual": "distance",
        "cross moments": f"{FIT} ranges",
    },
    ("difference", "adaptive"): BALL
    | {"class excess": "excess cap", "class moments": "center radius test classes"},
}
PRICED = {"step", "sensitivity", "scale"}
TEST = {"statistic", "scale", "freedom", "p_value"}
LABELS = ("classes", "unseen")
# What else is written in words: each with the form it has.
DIGEST, VERSION, WHEN = (
    re.compile(r"[0-9a-f]{64}"),
    re.compile(r"[0-9][0-9A-Za-z.+-]{0,39}"),
    re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"),
)
MADE_WITH = ["numpy", "opendp", "python", "spdp"]


def notes(c: Fields) -> Iterator[Check]:
    """Each step says what its statistic says there, in numbers."""
    lines = NOTES[c["statistic"], c["method"]]
    for i, step in enumerate(c["steps"]):
        names = lines[step["step"]].split()
        last = i == len(c["steps"]) - 1
        if last and c["statistic"] in ("dispersion", "pca") and not is_public(c):
            names += ["n_estimate", "count_sd"]
        needed = PRICED | {"epsilon" if c["mu"] is None else "mu"}
        needed |= {name for name in names if not name.endswith("?")}
        allowed = needed | {name.rstrip("?") for name in names}
        wrong = sorted((needed - step.keys()) | (step.keys() - allowed))
        yield Check("notes", not wrong, f"step {i + 1}, {step['step']}: {wrong or 'as they are'}")
        plain = all(_plain(name, value) for name, value in step.items() if name != "step")
        yield Check("notes", plain, f"step {i + 1}, {step['step']}: numbers")
        if c["statistic"] == "median":
            found = step.get("averaged")
            yield equal("averaged", found, AVERAGED if last else None)


def _plain(name: str, value: Any) -> bool:
    """Whether a note is numbers; labels of classes may be texts."""
    if name in LABELS:
        return all(isinstance(label, str | int | float) for label in value)
    if name == "test":
        return value.keys() == TEST and all(map(_number, value.values()))
    return _numbers(value)


def _numbers(value: Any) -> bool:
    return all(map(_numbers, value)) if isinstance(value, list) else _number(value)


def _number(value: Any) -> bool:
    return type(value) in (int, float) and isfinite(value)


def free_words(c: Fields) -> Iterator[Check]:
    """Texts that follow from nothing have their form, and stand where they belong."""
    versions = c["versions"]
    ok = sorted(versions) == MADE_WITH and all(map(_is_version, versions.values()))
    yield Check("versions", ok, "of what made the release")
    yield Check("created", WHEN.fullmatch(c["created"]) is not None, "a time, UTC")
    digest, searched = c["reference"], c["method"] == Method.ADAPTIVE
    offered = c["statistic"] == "mean" and c["method"] is not None and c["max_records"] is None
    offered &= c["adjacency"] == Adjacency.REPLACE_ONE  # a search could have run
    ok = digest is None or (offered and DIGEST.fullmatch(digest) is not None)
    yield Check("reference", ok, "the digest of one, where a search could start from it")
    yield Check("outside", c["outside"] is None or searched, "where a search asked for it")
    yield Check("seed", c["seed"] in (None, "generator") or type(c["seed"]) is int, "or none")
    if c["method"] is not None:
        yield Check("adjacency", c["adjacency"] in set(Adjacency), c["adjacency"])


def _is_version(text: Any) -> bool:
    return isinstance(text, str) and VERSION.fullmatch(text) is not None
