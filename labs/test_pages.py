"""The how-tos about other libraries run as they stand, and print what they say."""

import re
from pathlib import Path

import pytest

pytest.importorskip("dipy")
pytest.importorskip("mne")
pytest.importorskip("nilearn")

HOWTO = Path(__file__).parents[1] / "docs" / "howto"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```", re.DOTALL | re.M)


@pytest.mark.parametrize("page", ["dipy", "mne", "nilearn"])
def test_a_page_prints_what_it_says(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace, printed = {"__name__": "__main__"}, ""
    blocks = BLOCK.findall((HOWTO / f"{page}.md").read_text("utf-8"))
    assert len(blocks) > 2
    for language, text in blocks:
        if language == "python":
            exec(compile(text, page, "exec"), namespace)
            printed = capsys.readouterr().out
        else:
            assert printed == text
