"""``spdp demo`` and ``spdp reproduce``."""

import pytest

from spdp import Release


def test_demo_shows_a_release_and_its_realised_error(run, refused, tmp_path):
    code, out, err = run("demo")
    assert (code, err) == (0, "")
    assert "realised error" in out
    assert "\\n" not in out
    assert Release.load(tmp_path / "spdp-demo").certificate["private"] is True
    refused(2, "(pass --force)", "demo")
    assert run("demo", "--force")[0] == 0


def test_reproduce_writes_tables_pictures_and_a_page(run, refused, tmp_path):
    pytest.importorskip("matplotlib")
    code, out, err = run("reproduce", "figure-4c", "--quick", "-o", "out")
    assert (code, err) == (0, "")
    assert "wrote out/paper.md" in out
    page = (tmp_path / "out" / "paper.md").read_text()
    assert "theorem 5" in page
    assert "Misprints" in page
    refused(2, "unknown figure 'figure9'; expected all, figure-1", "reproduce", "figure9")
