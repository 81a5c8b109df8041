"""A release runs beside the page: progress, end, and what a cancelled one cost."""

import asyncio
import time

import msgspec
import numpy as np
import pytest

from spdp import Ledger, Release
from spdp.datasets import synthetic_spd
from spdp.wizard.bundle import bundle
from spdp.wizard.instruments import Other
from spdp.wizard.jobs import Job
from spdp.wizard.recipe import Recipe
from spdp.wizard.rehearsal import NUMBERS, rehearse, synthetic
from spdp.wizard.writing import asked, command

RECIPE = Recipe(
    files=("x.npy",), n=900, instrument=Other(eigenvalues=(0.5, 2.0)), ledger="a.ledger"
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", synthetic_spd(900, 3, random_state=0))
    Ledger("a.ledger", epsilon=3.0, delta=1e-5)
    return tmp_path


def test_a_command_that_succeeds_and_its_bundle(here):
    import io
    import zipfile

    job = Job(command(RECIPE), here)
    assert job.running
    assert asyncio.run(job.run()) == 0
    assert not job.running
    assert Release.load("published").certificate["private"]
    with zipfile.ZipFile(io.BytesIO(bundle(here / "published", RECIPE))) as packed:
        names = set(packed.namelist())
        wanted = {"mean.npy", "certificate.json", "report.html", "plan.yaml", "command.txt"}
        assert names == wanted | {
            *("release.py", "release.ipynb", "README.txt"),
            *("deployment.yaml", "hazards.md", "dataset.jsonld", "CITATION.cff"),
        }
        for name in ("mean.npy", "certificate.json", "report.html"):
            assert packed.read(name) == (here / "published" / name).read_bytes()
        assert "Each of the four" in packed.read("README.txt").decode()
        plan = Recipe.read(packed.read("plan.yaml"))
        assert plan == msgspec.structs.replace(RECIPE, output="published-plan")
        assert "x.npy" in packed.read("command.txt").decode()


def test_a_job_is_held_until_it_ends(here):
    """Closing the page must not end a release that was paid for."""
    from spdp.wizard.jobs import unfinished
    from spdp.wizard.server import charged

    job = Job(["--version"], here)

    async def begin():
        task = job.start()
        await asyncio.sleep(0)
        held = unfinished()
        return held, await task

    assert asyncio.run(begin()) == ([job], 0)
    assert unfinished() == []
    assert charged(job) == "nothing was released."
    assert "spdp ledger history a.ledger" in charged(Job(command(RECIPE), here))


@pytest.mark.audit
def test_an_error_is_told_in_words_and_nothing_is_charged(here):
    job = Job(command(msgspec.structs.replace(RECIPE, epsilon=40.0)), here)
    assert asyncio.run(job.run()) == 4
    assert "budget exceeded" in job.messages[-1]
    assert Ledger("a.ledger").history() == []


@pytest.mark.audit
def test_a_hopeless_release_is_refused_at_no_cost(here):
    np.save("x.npy", synthetic_spd(4, 3, random_state=0))
    job = Job(command(msgspec.structs.replace(RECIPE, epsilon=0.05)), here)
    assert asyncio.run(job.run()) == 7
    assert "refused before any budget is spent" in job.messages[-1]
    assert Ledger("a.ledger").history() == []


def test_a_cancelled_release_says_what_was_charged(here):
    """Lines with a text among them are read one by one: long enough to be stopped."""
    (here / "x.csv").write_text("c11,c12,c22\n" + "x,0,1\n" * 1_500_000)
    recipe = msgspec.structs.replace(
        RECIPE, files=("x.csv",), k=2, entries="upper", on_invalid="center"
    )
    job = Job(command(recipe), here)

    async def stop():
        work = asyncio.create_task(job.run())
        start = time.monotonic()
        while not job.doing and job.running and time.monotonic() - start < 60:
            await asyncio.sleep(0.02)
        seen = job.doing
        job.cancel()
        job.cancel()  # twice is once
        return seen, await work

    seen, code = asyncio.run(stop())
    assert seen  # progress was shown
    assert code == 130
    said = job.messages[-1]
    charged = Ledger("a.ledger").history()
    assert said.startswith("interrupted; ")
    assert ("nothing was charged" in said) == (not charged)


def test_a_rehearsal_opens_no_file_and_is_marked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # neither the records nor the ledger exist
    release = rehearse(RECIPE)
    c = release.certificate
    assert (c["private"], c["n"], c["epsilon"], c["mechanism"]) == (
        False,
        900,
        1.0,
        "tangent-gaussian",
    )
    assert list(tmp_path.iterdir()) == []


def test_a_rehearsal_has_classes_and_persons_where_the_release_has(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"classes": ["a", "b"]}
    given = {"labels": "y.txt", "whose": "column", "groups_column": "s"}
    recipe = msgspec.structs.replace(RECIPE, statistic="class-means", options=options, **given)
    c = rehearse(recipe).certificate
    assert (c["unit"], c["private"], c["steps"][-1]["classes"]) == ("person", False, ["a", "b"])


def test_a_rehearsal_of_too_many_records_has_fewer():
    recipe = msgspec.structs.replace(RECIPE, n=10**9)
    X, *_ = synthetic(recipe, asked(recipe))
    assert X.size <= NUMBERS
    assert X.shape[0] == NUMBERS // 9
