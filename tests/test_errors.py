"""One message, spelt for Python and for the command line."""

import pickle
import re
from pathlib import Path

import pytest
import typer

from spdp import cli
from spdp.cli.errors import OPTIONS, in_words
from spdp.errors import CLOSE, OPEN, DataError, ParameterError, named

SOURCES = Path(cli.__file__).parents[1]
PYTHON_ONLY = {"names", "weights"}  # options whose errors the command line words itself


def test_options_are_spelt_where_they_are_read():
    message = f"{named('groups_column')} and {named('method', 'adaptive')}: `a` <b>"
    error = DataError(message, ask=("max_records", "y"))
    assert str(error) == (
        "groups_column and method='adaptive': `a` <b> (pass max_records=... or y=...)"
    )
    assert error.args[0] == "groups_column and method='adaptive': `a` <b>"
    spelt = "--groups-column and --method adaptive: `a` <b> (pass --max-records or pass --labels)"
    assert in_words(error) == spelt
    assert str(pickle.loads(pickle.dumps(ParameterError(named("k"))))) == "k"
    assert not {OPEN, CLOSE} & set(str(error) + in_words(error))


def option_names(command):
    below = getattr(command, "commands", {}).values()
    own = {spelling for option in command.params for spelling in option.opts}
    return own.union(*map(option_names, below))


def test_every_option_that_a_message_names_exists_on_the_command_line():
    """From the sources: a name that no command has would send people astray."""
    texts = [file.read_text("utf-8") for file in SOURCES.rglob("*.py") if file.name != "errors.py"]
    found = {name for text in texts for name in re.findall(r"named\(['\"](\w+)['\"]", text)}
    assert {"epsilon", "groups_column", "low"} <= found
    whole = typer.main.get_command(cli.app)
    for name in whole.late:
        whole.load(name)
    spelt = option_names(whole)
    for name in found - PYTHON_ONLY:
        option = OPTIONS.get(name, f"--{name.replace('_', '-')}")
        assert option in spelt | {"LOW", "HIGH"}, name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--epsilon", "-1", "--delta", "1e-6", "--radius", "1"), "--epsilon must be finite"),
        (("--epsilon", "1", "--delta", "2", "--radius", "1"), "--delta must lie between 0 and 1"),
        (("--epsilon", "1", "--delta", "0", "--radius", "-1"), "--radius must be a positive"),
        (("--epsilon", "1", "--delta", "0", "--correlation", "2"), "--correlation must be smaller"),
        (("--epsilon", "1", "--delta", "0", "--eigenvalues", "2", "1"), "LOW must be smaller than"),
        (
            ("--epsilon", "1", "--delta", "0", "--radius", "1", "--mechanism", "gaussian"),
            "--delta 0 asks for pure DP",
        ),
        (("--epsilon", "1", "--delta", "0", "--radius", "1", "--order", "fsl"), "--order is for"),
    ],
)
def test_the_command_line_speaks_of_its_options(monkeypatch, capsys, tmp_path, words, message):
    import numpy as np

    np.save(tmp_path / "x.npy", np.stack([np.eye(2)] * 9))
    monkeypatch.setattr("sys.argv", ["spdp", "mean", str(tmp_path / "x.npy"), *words])
    with pytest.raises(SystemExit):
        cli.main()
    assert message in capsys.readouterr().err
