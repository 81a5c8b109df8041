import io
import sys

import pytest

from spdp.data import progress


class Terminal(io.StringIO):
    """Standard error as a terminal that remembers what was written."""

    encoding = "utf-8"

    def isatty(self):
        return True

    @property
    def text(self):
        return self.getvalue()


@pytest.fixture
def terminal(monkeypatch):
    """A function to call inside the test.

    Between fixture and test, pytest puts its own standard error back.
    """

    def open_terminal():
        screen = Terminal()
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "120")
        return screen

    return open_terminal


def test_quick_work_shows_nothing(terminal):
    screen = terminal()
    with progress.track("reading", 10) as advance:
        for _ in range(10):
            advance(1)
    assert screen.text == ""


def test_long_work_shows_one_bar_with_its_rate(terminal, monkeypatch):
    screen = terminal()
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    with progress.track("outer", 2) as advance:
        for _ in range(2):
            with progress.track("inner", 5) as inner:
                inner(5)
            advance(1)
    assert "outer" in screen.text
    assert "/s" in screen.text
    assert "inner" not in screen.text
    with progress.track("again", 1) as advance:
        advance(1)
    assert "again" in screen.text


def test_nothing_is_shown_where_nobody_looks(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    with progress.track("reading", 1) as advance:
        advance(1)
    assert capsys.readouterr() == ("", "")
