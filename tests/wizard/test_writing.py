"""The command, the script and the notebook of a recipe make the same release."""

import json
import subprocess
import sys
import types

import msgspec
import numpy as np
import pytest

from spdp import Ledger, Release
from spdp.cli import main
from spdp.release.report import says_the_same
from spdp.wizard.instruments import Connectomes, Diffusion, Other, Signals
from spdp.wizard.recipe import Recipe, Whose
from spdp.wizard.writing import cells, command, notebook, script, shell

RECIPES = {
    "voxels": Recipe(files=("tensors.npy",), instrument=Diffusion(), n=1728),
    "eeg": Recipe(
        files=("eeg.csv",),
        whose=Whose.COLUMN,
        groups_column="subject",
        k=4,
        n=600,
        instrument=Signals(),
        ledger="eeg.ledger",
        label="a mean",
    ),
    "connectomes": Recipe(files=("connectomes.npy",), k=6, n=800, instrument=Connectomes()),
    "classes": Recipe(
        files=("groups.npy",),
        n=2000,
        instrument=Other(eigenvalues=(0.5, 2.0)),
        statistic="class-means",
        options={"classes": ["a", "b"], "covariance": "diagonal"},
        labels="labels.txt",
    ),
    "numbers": Recipe(
        files=("groups.npy",),
        n=2000,
        instrument=Other(radius=3.0),
        statistic="difference",
        options={"classes": ["0", "1"]},
        labels="numbers.npy",
    ),
    "pure": Recipe(
        files=("groups.npy",),
        n=2000,
        delta=0.0,
        instrument=Other(trace=(0.1, 9.0), distance="logchol"),
        options={"method": "oneshot"},
        adjacency="add-remove",
        on_invalid="center",
    ),
}
TIME_AND_IDENTITY = {"created", "versions", "hostname"}
# What a search finds, by noisy answers, and what follows from it.
NOISE = {"sensitivity", "lattice_step", "sigma", "scale", "steps", "squared_error_law"}
NOISE |= {"n_estimate", "expected_squared_error", "squared_error_quantiles", "outside"}
NOISE |= {"error_bound", "error_bound_parts", "error_bound_within", "error_bound_population"}


def settled(folder):
    """What a certificate states, all but noise, time and identity."""
    c = Release.load(folder).certificate
    kept = {name: value for name, value in c.items() if name not in TIME_AND_IDENTITY | NOISE}
    first = c["steps"][0]
    return kept | {"first step": {name: first.get(name) for name in ("step", "sensitivity")}}


@pytest.fixture
def run(monkeypatch):
    def call(*words):
        monkeypatch.setattr(sys, "argv", ["spdp", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code

    return call


@pytest.fixture
def here(studies, tmp_path, monkeypatch):
    for file in studies.iterdir():
        if file.is_file():
            (tmp_path / file.name).symlink_to(file)
    np.save(tmp_path / "numbers.npy", np.arange(2000) % 2)
    monkeypatch.chdir(tmp_path)
    Ledger("eeg.ledger", epsilon=10.0, delta=1e-4)
    return tmp_path


def at(recipe, output):
    return msgspec.structs.replace(recipe, output=output)


SLOWER = ("voxels", "connectomes", "numbers")  # they walk the same way


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.audit] * (n in SLOWER)) for n in RECIPES]
)
def test_command_plan_script_and_notebook_have_one_certificate(name, here, run, capsys):
    recipe = RECIPES[name]
    assert run(*command(at(recipe, "by-command"))) in (0, None)
    (here / "plan.yaml").write_text(at(recipe, "by-plan").yaml(), "utf-8")
    assert run("run", "plan.yaml") in (0, None)
    exec(compile(script(at(recipe, "by-script")), "script", "exec"), {"__name__": "__main__"})
    whole = json.loads(notebook(at(recipe, "by-notebook")))
    space = {}
    for cell in whole["cells"]:
        if cell["cell_type"] == "code":
            exec(compile(cell["source"], "cell", "exec"), space)
    wanted = settled("by-command")
    assert wanted["unit"] == recipe.unit
    assert wanted["epsilon"] == recipe.epsilon
    assert len(wanted) > 20
    for way in ("plan", "script", "notebook"):
        assert settled(f"by-{way}") == wanted, way
    if recipe.ledger:
        assert {entry["label"] for entry in Ledger(recipe.ledger).history()} == {"a mean"}


def test_the_comparison_tells_certificates_apart(here, run):
    """Else the test above could not fail."""
    recipe = RECIPES["voxels"]
    assert run(*command(at(recipe, "one"))) in (0, None)
    other = msgspec.structs.replace(recipe, epsilon=1.1, output="other")
    assert run(*command(other)) in (0, None)
    assert settled("one") != settled("other")


def test_the_shell_line_is_the_command(here):
    import shlex

    recipe = msgspec.structs.replace(RECIPES["eeg"], label="it's 5 $HOME", output="a b")
    assert shlex.split(shell(recipe).replace("\\\n", " ")) == ["spdp", *command(recipe)]


def test_no_file_is_taken_for_an_option():
    words = command(Recipe(files=("--force",), instrument=Diffusion()))
    assert "./--force" in words
    assert "--force" not in words


def test_texts_cannot_leave_their_place_in_a_script():
    """What was entered becomes a string of Python, whatever it holds."""
    evil = "x'); raise SystemExit('out') #"
    recipe = Recipe(files=(evil,), instrument=Diffusion(), label=evil, output=evil, ledger=evil)
    for code in cells(recipe):
        compile(code, "cell", "exec")
    tree = compile(script(recipe), "script", "exec")
    names = {name for part in _codes(tree) for name in part.co_names}
    assert "SystemExit" not in names


def _codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


@pytest.mark.parametrize("names", ["x,y,z", "rows.txt"])
def test_the_script_names_rows_and_writes_the_page_as_the_command_does(here, run, names):
    (here / "rows.txt").write_text("x\ny\n\nz\n")
    recipe = msgspec.structs.replace(RECIPES["voxels"], names=names)
    assert run(*command(at(recipe, "by-command"))) in (0, None)
    exec(compile(script(at(recipe, "by-script")), "script", "exec"), {"__name__": "__main__"})
    for way in ("command", "script"):
        page = (here / f"by-{way}" / "report.html").read_text("utf-8")
        assert ">x<" in page
        assert ">z<" in page
        assert says_the_same(page, Release.load(f"by-{way}"))


def test_a_notebook_is_a_notebook(here):
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(nbformat.reads(notebook(RECIPES["classes"]), 4))


@pytest.mark.audit
def test_script_and_notebook_run_as_they_are_in_processes_of_their_own(here):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    recipe = RECIPES["eeg"]
    (here / "release.py").write_text(script(at(recipe, "by-script")), "utf-8")
    subprocess.run([sys.executable, "release.py"], cwd=here, check=True)
    whole = nbformat.reads(notebook(at(recipe, "by-notebook")), 4)
    resources = {"metadata": {"path": str(here)}}
    done = nbclient.NotebookClient(whole, resources=resources, timeout=120).execute()
    assert "Private mean" in str(done.cells[-1].outputs)
    assert settled(here / "by-script") == settled(here / "by-notebook")


def test_a_plan_is_shown_rehearsed_or_run(here, run, capsys):
    (here / "plan.yaml").write_text(RECIPES["eeg"].yaml(), "utf-8")
    assert run("run", "plan.yaml", "--show") in (0, None)
    assert capsys.readouterr().out.strip() == shell(RECIPES["eeg"])
    assert run("run", "plan.yaml", "--rehearse", "-o", "rehearsal") in (0, None)
    assert not Release.load("rehearsal").certificate["private"]
    assert Ledger("eeg.ledger").history() == []
    assert not (here / "published").exists()


def test_public_records_are_for_rehearsals(here, run, capsys):
    (here / "plan.yaml").write_text(RECIPES["voxels"].yaml(), "utf-8")
    assert run("run", "plan.yaml", "--public", "tensors.npy") == 2
    assert "--public is for a rehearsal" in capsys.readouterr().err
    words = ("run", "plan.yaml", "--rehearse", "--public", "groups.npy", "-o", "on-public")
    assert run(*words) in (0, None)
    assert Release.load("on-public").certificate["n"] == 2000


def test_a_plan_that_cannot_be_used_is_one_line_of_error(here, run, capsys):
    (here / "plan.yaml").write_text("epsilon: much\n", "utf-8")
    assert run("run", "plan.yaml") == 3
    err = capsys.readouterr().err
    assert err.startswith("spdp: plan.yaml: is no recipe")
    assert err.count("\n") == 1
    (here / "plan.yaml").write_text("files: [x.npy]\nepsilon: -1\n", "utf-8")
    assert run("run", "plan.yaml") == 2
    assert "privacy: ε must be" in capsys.readouterr().err
