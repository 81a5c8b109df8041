import io
import re
import sys
import time

import numpy as np
import pytest

from spdp import EigenvalueBounds, private_dispersion
from spdp.data import progress
from spdp.datasets import synthetic_spd
from spdp.privacy import noise
from spdp.statistics.pca import _trusted


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


# --- work whose amount is not known


def _wait_for(condition):
    """Until another thread has made it so, or something is stuck."""
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("nothing was written")


def test_work_that_lasts_says_what_it_does_until_it_ends(terminal, monkeypatch):
    screen = terminal()
    monkeypatch.setattr(progress, "PATIENCE", 0.02)
    monkeypatch.setattr(progress, "TICK", 0.005)
    monkeypatch.setattr(progress, "_ticker", None)
    done = []
    with progress.working(lambda: f"{len(done)} answers"):
        _wait_for(lambda: "0 answers (0 s)" in screen.text)
        done.append(1)
        _wait_for(lambda: "1 answers" in screen.text)
    assert screen.text.endswith("\r\x1b[K")  # nothing is left of it


def test_it_gives_way_to_a_bar(terminal, monkeypatch):
    screen = terminal()
    monkeypatch.setattr(progress, "PATIENCE", 0.02)
    monkeypatch.setattr(progress, "TICK", 0.005)
    monkeypatch.setattr(progress, "_ticker", None)
    with progress.working(lambda: "working"):
        _wait_for(lambda: "working" in screen.text)
        with progress.track("reading", 3) as advance:
            time.sleep(0.1)  # what the thread was writing is written
            start = len(screen.text)
            for _ in range(3):
                advance(1)
                time.sleep(0.1)
            assert "working" not in screen.text[start:]
        _wait_for(lambda: "working" in screen.text[start:])


def test_without_a_terminal_nothing_is_written_and_no_thread_started(monkeypatch, capsys):
    monkeypatch.setattr(progress, "TICK", 0.005)
    monkeypatch.setattr(progress, "_ticker", None)
    with progress.working(lambda: "working"):
        assert progress._ticker is None
    assert capsys.readouterr().err == ""


def test_a_release_shows_how_far_it_is(terminal, monkeypatch):
    """After reading, while queries are answered and noise is drawn."""
    screen = terminal()
    monkeypatch.setattr(progress, "PATIENCE", 0.005)
    monkeypatch.setattr(progress, "TICK", 0.005)
    monkeypatch.setattr(progress, "_ticker", None)
    draw = noise.gaussian

    def patient(*args):
        """Noise as ever, once the line says that one answer was given."""
        answers = len(drawn)
        drawn.append(1)
        if answers == 1:
            _wait_for(lambda: "dispersion: 1 noisy answers so far" in screen.text)
        return draw(*args)

    drawn = []
    monkeypatch.setattr(noise, "gaussian", patient)
    X = synthetic_spd(300, 2, random_state=0)
    private_dispersion(X, epsilon=1.0, delta=1e-6, domain=EigenvalueBounds(0.1, 10.0))
    assert len(drawn) > 1


def test_judging_components_has_a_bar(terminal, monkeypatch):
    """Two hundred eigenvalue problems, a minute of work for 40×40 matrices."""
    screen = terminal()
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    assert 0.5 < _trusted(np.diag([5.0, 1.0]), np.eye(2)[:, :1], 0.01, np.ones(2), 0.0) <= 1.0
    assert re.search(r"judging the components: .*/200", screen.text)
