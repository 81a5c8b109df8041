"""Messages on the page: no options of a terminal, and fields by their labels."""

import pytest

from spdp.errors import DataError, ParameterError, Uninformative
from spdp.wizard.instruments import Connectomes, Signals
from spdp.wizard.messages import on_the_page
from spdp.wizard.recipe import explained


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("out: exists already (pass --force)", "out: exists already: choose another folder"),
        ("--names: 3 names, but matrices have 4 rows", "names of the rows: 3 names, but"),
        ("uninformative … useful result (spdp plan) (pass --anyway)", "result: choose a larger ε"),
        ("t.csv: say which (pass --entries or --groups-column)", "or state the column of the"),
        ("no such option (see spdp mean --help)", "no such option"),
        ("t.csv: columns a not used. If so, name it as groups; else", "say so at the first step"),
        ("eeg.csv: record 7 is invalid", "eeg.csv: record 7 is invalid"),
    ],
)
def test_a_message_of_the_command_says_what_can_be_done_on_the_page(message, said):
    text = on_the_page(message)
    assert said in text
    for word in ("--", "spdp ", "pass "):
        assert word not in text


def test_an_error_of_the_library_says_what_can_be_done_on_the_page():
    assert "larger ε" in explained(Uninformative("too few", 9, None))
    assert "another folder" in explained(DataError("out: holds a release", ask="force"))
    assert explained(ParameterError("n must be 1")) == "n must be 1"


def test_what_is_to_be_done_before_is_said_and_that_nobody_checks_it():
    for kind in (Signals, Connectomes):
        assert "np.eye(len(C))" in kind.before
        assert "assumed, not checked" in kind.before
    assert "noise floor to the diagonal of every covariance" in Signals.before


def test_an_empty_number_is_named_by_its_field():
    pytest.importorskip("shiny", reason="the extra wizard is not installed")
    from spdp.wizard.entries import unchosen, unfilled

    held = {"signals_low": 0.5, "signals_high": None}
    assert unfilled("signals", held.get) == "“Largest amplitude (rms)” is empty: enter a number"
    held["signals_high"] = 50.0
    assert unfilled("signals", held.get) is None
    other = {"other_bound": "radius", "other_high": 2.0}
    assert unfilled("other", other.get) is None
    assert "Lower limit" in unfilled("other", {**other, "other_bound": "trace"}.get)
    assert "“Within”" in unchosen("accuracy", {"delta": 1e-6}.get)
    assert "Privacy loss ε" in unchosen("epsilon", {"delta": 1e-6}.get)
    assert "“δ" in unchosen("epsilon", {"epsilon": 1.0}.get)
    assert unchosen("epsilon", {"epsilon": 1.0, "delta": 0.0}.get) is None
