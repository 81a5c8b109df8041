"""The page on people and the studies: their commands and pictures exist."""

import re
from pathlib import Path

import pytest

from spdp import amplitude_bounds
from spdp.cli import app

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "people.md", *sorted((DOCS / "studies").glob("*.md"))]


def blocks(page, language):
    text = page.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_commands_have_the_options_that_are_named(page):
    from typer.main import get_command

    program = get_command(app)
    commands = program.commands
    command_line = r"^(?:\$ )?spdp (\w+)(?: (create|show|class-means))? (.*)$"
    lines = re.findall(command_line, "\n".join(blocks(page, "")), re.M)
    assert lines or page.stem == "people"
    for name, sub, rest in lines:
        program.load(name)  # commands load when they are called
        command = commands[name].commands[sub] if sub else commands[name]
        known = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"(?<!\S)--[a-z-]+", rest)) <= known


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_links_and_pictures_are_there(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target
    for picture in page.parent.glob("*.png"):
        assert picture.stat().st_size <= 60_000


def test_the_domain_of_the_eeg_page():
    domain = amplitude_bounds(19, 0.25, 50.0, unit="uV", data_unit="uV")
    text = (DOCS / "studies" / "eeg.md").read_text("utf-8")
    assert f"--trace {domain.low:g} {domain.trace:g}" in text
