"""Groups of options: what Typer sees of a command, and what the command is given."""

import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from spdp.cli.expanding import expanded

Width = Annotated[float, typer.Option(help="How wide.")]
Colour = Annotated[str, typer.Option("--paint", help="Which colour.")]
Loud = Annotated[bool, typer.Option("--loud", help="Whether it rings.")]


@dataclass(frozen=True)
class Looks:
    width: Width
    colour: Colour = "red"
    made: tuple[str, ...] = ("here",)  # no option


@dataclass(frozen=True)
class Bell:
    looks: Looks
    loud: Loud = False


def ring(bell: Bell, times: Annotated[int, typer.Option(help="How often.")] = 1) -> None:
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
    assert parameters["width"].default is inspect.Parameter.empty
    assert parameters["colour"].default == "red"
    assert parameters["colour"].annotation == Colour


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
    def twice(looks: Looks, width: Width) -> None: ...

    with pytest.raises(ValueError, match="width"):
        expanded(twice)
