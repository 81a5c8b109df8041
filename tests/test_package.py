"""What the package says of itself is the same everywhere."""

import re
import tomllib
from pathlib import Path

import yaml

import spdp
from spdp import errors, kernels

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
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
    assert called == {"test", "docs", "dist"}
    assert called <= targets


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
