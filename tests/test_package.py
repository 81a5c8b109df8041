"""What the package says of itself is the same everywhere."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml

import spdp
from spdp import errors, kernels

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT, BUILD = PYPROJECT["project"], PYPROJECT["build-system"]
EXTRAS = PROJECT["optional-dependencies"]
INSTALL = (ROOT / "docs" / "install.md").read_text("utf-8")


def test_versions_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == PROJECT["version"] == spdp.__version__
    assert citation["license"] == PROJECT["license"]


def test_every_extra_is_on_the_page_of_installation():
    table = INSTALL[INSTALL.index("| extra |") : INSTALL.index("## Which build")]
    named = set(re.findall(r"`(\w+)`", table))
    assert named == EXTRAS.keys() - {"dev", "docs"}
    whole = re.search(r"spdp\[([\w,]+)\]", EXTRAS["all"][0])
    row = next(line for line in table.splitlines() if line.startswith("| `all`"))
    assert set(re.findall(r"`(\w+)`", row)) == {"all", *whole[1].split(",")}


def test_workflows_call_targets_that_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    called = set()
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        jobs = yaml.safe_load(file.read_text("utf-8"))["jobs"].values()
        steps = [step.get("run", "") for job in jobs for step in job["steps"]]
        called |= {target for step in steps for target in re.findall(r"make ([a-z-]+)", step)}
    assert called == {"test", "docs", "wheels"}
    assert called <= targets


def test_only_a_tag_publishes_and_no_password_does():
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text("utf-8"))
    job = flow["jobs"]["publish"]
    assert job["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert job["needs"] == ["build", "try"]
    assert job["permissions"] == {"id-token": "write"}
    assert flow["permissions"] == {"contents": "read"}
    assert not any("password" in step.get("with", {}) for step in job["steps"])
    names = {step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step}
    assert "pypa/gh-action-pypi-publish" in names


def test_a_tag_must_be_the_version():
    command = [sys.executable, str(ROOT / ".ci" / "version.py")]
    assert subprocess.run([*command, f"v{PROJECT['version']}"]).returncode == 0
    done = subprocess.run([*command, "v0.0.1"], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"must be v{PROJECT['version']}" in done.stderr


def test_the_recipe_asks_for_what_the_package_asks_for():
    recipe = yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text("utf-8"))
    assert PROJECT["version"].startswith(recipe["context"]["version"])
    wanted = set()
    for one in recipe["requirements"]["run"]:
        asked, where = (one["then"], one["if"]) if isinstance(one, dict) else (one, "")
        marker = {"": "", "not linux": "; sys_platform != 'linux'"}[where]
        wanted.add(asked.replace(" ", "") + marker)
    assert wanted == {"python", *PROJECT["dependencies"]}
    built = set(recipe["requirements"]["host"])
    assert {one.replace(">=", " >=") for one in BUILD["requires"]} == built - {"python", "pip"}
    assert recipe["about"]["license"] == PROJECT["license"]


def test_containers_are_made_by_the_same_steps():
    oci = (ROOT / "packaging" / "Containerfile").read_text("utf-8")
    apptainer = (ROOT / "packaging" / "spdp.def").read_text("utf-8")
    stages = oci.split("FROM ")[1:]
    steps = re.findall(r"^RUN (.*)$", stages[0], re.M)
    assert len(steps) == 3
    post = apptainer[apptainer.index("%post") : apptainer.index("%runscript")]
    assert [line.strip() for line in post.splitlines()[1:4]] == steps
    extras = re.search(r'"/source\[([\w,]+)\]"', steps[1])[1].split(",")
    assert EXTRAS.keys() >= set(extras)
    images = {stage.split()[0].removeprefix("docker.io/library/") for stage in stages}
    assert images == {re.search(r"From: (\S+)", apptainer)[1]}


def test_forms_and_hooks_are_readable():
    files = [*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml"]
    assert len(files) == 7
    for file in files:
        assert yaml.safe_load(file.read_text("utf-8"))


def test_the_page_says_how_slow_numpy_is():
    for times, size in re.findall(r"(\d+) times \w+ (?:\w+ )?(\d+×\d+)", kernels.SLOWER):
        assert re.search(rf"{times} times \w+ (?:\w+ )?{size}", INSTALL)
    assert issubclass(errors.SlowBuild, UserWarning)


def test_every_public_name_has_an_example():
    from importlib import import_module

    homes = {"geometry", "learn", "privacy", "distributions"}
    names = {(spdp, name) for name in set(spdp.__all__) - {"__version__"}}
    for module in (import_module(f"spdp.{home}") for home in homes):
        names |= {(module, name) for name in module.__all__}
    found = {name: getattr(module, name).__doc__ for module, name in names}
    assert {name for name, text in found.items() if ">>>" not in text} == {"BudgetExceeded"}


def test_dir_shows_what_is_offered():
    assert set(spdp.__all__) <= set(dir(spdp))
    assert not {"Any", "import_module"} & set(dir(spdp))


def test_domains_are_found_in_their_room_too():
    import spdp.domain

    for name in spdp.domain.__all__:
        assert getattr(spdp.domain, name) is getattr(spdp, name)
    with pytest.raises(AttributeError, match=r"spdp\.domain.*Bell"):
        spdp.domain.Bell  # noqa: B018


WITHOUT_SCIKIT_LEARN = """
import sys
sys.modules["sklearn"] = None  # as if it were not installed
from spdp import *
import spdp
from spdp.datasets import load_images
from spdp.descriptors import covariance_descriptors, descriptor_bounds
assert "PrivateMDM" not in dir(spdp) and "private_mean" in dir(spdp)
X = covariance_descriptors(load_images("digits").images)
print(private_mean(X, epsilon=1.0, delta=1e-6, domain=descriptor_bounds(1)).value.shape)
for module, name in ((spdp, "PrivateMDM"), (spdp.descriptors, "CovarianceDescriptors")):
    try:
        getattr(module, name)
    except ImportError as error:
        print(error)
"""


def test_only_estimators_need_scikit_learn():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SCIKIT_LEARN], capture_output=True, text=True, check=True
    )
    shape, *errors = done.stdout.splitlines()
    assert shape == "(9, 9)"
    asked = "estimators need scikit-learn; install it with: pip install 'spdp[learn]'"
    assert errors == [asked, asked]


def test_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    from spdp.datasets import load_images

    ours, theirs = load_images("digits"), load_digits()
    np.testing.assert_array_equal(np.rint(ours.images * (16.0 / 255.0)), theirs.images)
    np.testing.assert_array_equal(ours.labels, theirs.target)
