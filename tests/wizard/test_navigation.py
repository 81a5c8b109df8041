"""Which step is shown, what is told of earlier releases, and what messages say."""

from pathlib import Path

import msgspec
import pytest

pytest.importorskip("shiny", reason="the extra wizard is not installed")

from spdp.wizard.jobs import Job
from spdp.wizard.markup import Asked, ended, news, page_again
from spdp.wizard.navigation import always_open, destination, done, is_released, sentence
from spdp.wizard.page import STEPS
from spdp.wizard.recipe import Recipe

RECIPE = Recipe(files=("x.npy",), ledger="study.ledger", epsilon=0.5, output="published")


def job(code, *messages):
    return Job(["--version"], Path(), code=code, messages=list(messages))


def test_a_problem_bars_the_way_to_later_steps_only():
    found = {"privacy": "no ε"}
    assert destination("release", "records", found, ()) == ("privacy", "privacy")
    assert destination("statistic", "records", found, ()) == ("statistic", None)
    assert destination("records", "release", found, ()) == ("records", None)


def test_a_release_that_used_up_its_ledger_can_be_reached_from_every_step():
    found = {"ledger": "study.ledger has not enough left"}
    opened = always_open(job(0))
    for here in STEPS:
        assert destination("results", here, found, opened) == ("results", None)
        assert destination("release", here, found, opened) == ("release", None)
    assert destination("results", "ledger", found, always_open(job(4))) == ("ledger", "ledger")
    assert always_open(job(None)) == ("release",)  # it runs
    assert always_open(None) == ()


def test_only_the_recipe_that_was_released_is_paid():
    assert is_released(RECIPE, RECIPE, job(0))
    assert not is_released(msgspec.structs.replace(RECIPE, epsilon=0.6), RECIPE, job(0))
    assert not is_released(RECIPE, RECIPE, job(4))
    assert not is_released(RECIPE, None, None)


def test_only_steps_that_were_seen_are_ticked():
    assert done({"records", "release"}, "release", {}, None) == ["records"]
    assert done({"records", "release"}, "records", {"records": "no file"}, None) == []
    assert done(set(STEPS), "results", {}, job(0)) == list(STEPS)[:-1]


def test_a_release_that_ended_while_the_page_was_closed_is_told():
    text = news(Asked(RECIPE, job(0)))
    for part in ("finished while the page was closed", "published", "ε = 0.5", "study.ledger"):
        assert part in text
    assert "before this page was opened" in news(Asked(RECIPE, job(0), told=True))
    assert "still running" in news(Asked(RECIPE, job(None)))
    assert "nothing was released (budget exceeded)" in news(
        Asked(RECIPE, job(4, "budget exceeded"))
    )
    assert "record 7" not in news(Asked(RECIPE, job(3, "record 7 is invalid")))


def test_a_folder_without_a_page_says_how_one_is_made(tmp_path):
    assert "spdp report published" in page_again(tmp_path, "published")
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "report.html").write_text("<p>it</p>")
    assert page_again(tmp_path, "published") == "<p>it</p>"


def test_the_end_of_a_release_is_told_without_the_terminals_options():
    text = str(ended(Asked(RECIPE, job(2, "published: exists already (pass --force)"))))
    assert "--force" not in text
    assert "another folder" in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("eeg.csv: holds no voxels", "eeg.csv: holds no voxels"),
        ("tensors: is no list of files", "tensors: is no list of files"),
        ("ε must be positive", "ε must be positive"),
        ("name the folder for the release", "Name the folder for the release"),
        ("“How many persons?” is empty", "“How many persons?” is empty"),
        ("", ""),
    ],
)
def test_a_message_begins_with_a_file_as_it_is_written(text, said):
    assert sentence(text) == said
