"""Groups of options: what Typer sees of a command, and what the command is given."""

import inspect
from dataclasses import dataclass

import pytest
import typer
from typer.testing import CliRunner

from spdp.cli.commands import expanded
from spdp.cli.options import Group, option

WIDTH = option("How wide.", default=...)


@dataclass(frozen=True)
class Looks(Group):
    width: float = WIDTH
    colour: str = option("Which colour.", "--paint", default="red")
    made: tuple[str, ...] = ("here",)  # no option


@dataclass(frozen=True)
class Bell(Group):
    looks: Looks
    loud: bool = option("Whether it rings.", "--loud", default=False)


def ring(bell: Bell, times: int = option("How often.", default=1)) -> None:
    """Ring a bell."""
    print(bell, times)


@pytest.fixture
def call():
    app = typer.Typer()
    app.command()(expanded(ring))
    return lambda *words: CliRunner().invoke(app, words)


def test_a_group_stands_for_its_fields_in_their_order():
    parameters = inspect.signature(expanded(ring)).parameters
    assert list(parameters) == ["width", "colour", "loud", "times"]
    assert parameters["width"].default.default is ...
    assert parameters["colour"].default.default == "red"
    assert parameters["colour"].annotation is str


def test_the_command_keeps_its_name_and_its_words():
    assert (expanded(ring).__name__, expanded(ring).__doc__) == ("ring", "Ring a bell.")


def test_groups_are_made_of_what_the_line_says(call):
    done = call("--width", "2", "--paint", "blue", "--loud", "--times", "3")
    assert done.output == f"{Bell(Looks(2.0, 'blue'), True)} 3\n"
    assert call("--width", "2").output == f"{Bell(Looks(2.0))} 1\n"


def test_what_has_no_default_is_required(call):
    done = call("--loud")
    assert (done.exit_code, "--width" in done.output) == (2, True)


def test_two_options_of_one_name_are_an_error():
    def twice(looks: Looks, width: float = WIDTH) -> None: ...

    with pytest.raises(ValueError, match="width"):
        expanded(twice)


def test_a_group_that_is_made_in_python_has_its_defaults():
    assert Bell(Looks(2.0)) == Bell(Looks(2.0, "red"), False)
    assert Looks(2.0).colour == "red"
