"""Code on pages: the README's runs here; the site's, while it is built (test_site)."""

import re
from pathlib import Path

import numpy as np
import pytest
from blocks import blocks
from page import PageError, argv, command, run, wrapped

from spdp.datasets import synthetic_spd

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SLOW = {"reproduce"}  # commands that tests of their own run


def test_the_readmes_code_and_commands_run(tmp_path, monkeypatch):
    """In an empty folder and in order: what it reads, it makes."""
    monkeypatch.chdir(tmp_path)
    results = run(ROOT / "README.md", tmp_path)
    printed = [part["text"] for result in results for part in result["parts"]]
    assert any("<Release of mean, 3x3, private" in text for text in printed)
    assert (tmp_path / "published" / "mean.npy").exists()
    assert "Verified" in printed[-1]


@pytest.fixture
def files_of_a_shell(tmp_path, monkeypatch):
    """The files that the lines to copy speak of."""
    nibabel = pytest.importorskip("nibabel")
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    np.save("site.npy", synthetic_spd(800, 3, random_state=2))
    rng = np.random.default_rng(0)
    np.savez("images.npz", images=rng.random((20, 12, 12)))
    series = rng.standard_normal((400, 6, 60))
    C = 0.95 * np.stack([np.corrcoef(s) for s in series]) + 0.05 * np.eye(6)
    np.save("connectomes.npy", C)
    Path("subjects").mkdir()
    for i in range(40):
        six = 1e-3 * synthetic_spd(8, 3, random_state=i)[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
        image = nibabel.Nifti1Image(six.reshape(2, 2, 2, 6), np.eye(4))
        nibabel.save(image, f"subjects/{i:02}.nii.gz")
    X = synthetic_spd(300, 2, random_state=0)
    columns = {f"c{i}{j}": X[:, i, j] for i in range(2) for j in range(i, 2)}
    pq.write_table(pa.table({"subject": np.arange(300) % 100, **columns}), "windows.parquet")


def test_lines_to_copy_run(files_of_a_shell, capsys):
    page = (DOCS / "howto" / "shell.md").read_text("utf-8")
    (block,) = (block for block in blocks(page) if not block.language)
    lines = [part for line in block.code.splitlines() for part in line.split("; ")]
    assert len(lines) >= 7
    for line in lines:
        words = argv(line)
        if not SLOW & set(words):
            command(words)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("```console\n$ spdp verify nothing\n```\n", "spdp verify nothing"),
        ("```python\nassert False\n```\n", "line 1: AssertionError"),
        ("```python\nimport matplotlib.pyplot as plt\nplt.plot([1])\n```\n", "1 figures"),
        ("<!-- picture: Nothing. -->\n```python\n1 + 1\n```\n", "0 figures"),
    ],
)
def test_a_block_that_fails_is_noticed(text, fault, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(PageError, match=fault):
        run(page, tmp_path)


def test_results_are_what_a_notebook_would_show(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nx = 41\nprint('printed')\nx + 1\n```\n"
        "<!-- not run: it would fail -->\n```python\n1 / 0\n```\n"
        "```{table}\n```\n"
        "<!-- picture: A line. -->\n```python\n"
        "import matplotlib.pyplot as plt\nplt.plot([x])\n```\n"
    )
    first, second = run(page, tmp_path)
    assert first["parts"][0]["text"] == "printed\n42"
    assert second["parts"][0]["text"] == ""
    (figure,) = second["parts"][0]["figures"]
    assert (tmp_path / figure).stat().st_size > 1000


def test_long_lines_are_broken_and_tables_are_not():
    table = "│" + 100 * "x" + "│"
    lines = list(wrapped(f"{table}\n{20 * 'words '}"))
    assert lines[0] == table
    assert len(lines) == 3


def test_what_is_not_run_says_why():
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        text = page.read_text("utf-8")
        assert text.count("<!-- not run") == len(re.findall(r"<!-- not run: \w{4,}[^>]*-->", text))


@pytest.mark.parametrize("name", ["README", "CONTRIBUTING", "CHANGELOG", "SECURITY"])
def test_links_between_files_resolve(name):
    text = (ROOT / f"{name}.md").read_text("utf-8")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (ROOT / target).exists(), target
    for target in re.findall(r'(?:src|srcset)="([^":]+)"', text):
        assert (ROOT / target).exists(), target
