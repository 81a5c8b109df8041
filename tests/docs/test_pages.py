"""Every block of code on the site and in the README runs, in order, page by page.

Python blocks of a page share one namespace, ``console`` blocks the folder; of their
lines those that call spdp are run. A block after ``<!-- not run: REASON -->`` is not.
"""

import re
import shlex
import sys
from glob import glob
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import numpy as np
import pytest

from spdp.cli import main
from spdp.datasets import synthetic_spd

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Pages whose code the tests beside this one run.
ELSEWHERE = {DOCS / f"{name}.md" for name in ("domains", "metrics", "people", "statistics")}
FENCE = re.compile(r"(<!-- not run: \w[^>]*-->\n+)?^( *)```(\w*)\n(.*?)^ *```", re.DOTALL | re.M)
SLOW = {"reproduce"}  # commands that tests of their own run


class Block(NamedTuple):
    language: str
    code: str
    line: int


def blocks(page):
    text = page.read_text("utf-8")
    return [
        Block(m[3], dedent(m[4]), text.count("\n", 0, m.start(4)))
        for m in FENCE.finditer(text)
        if not m[1]
    ]


def commands(code):
    """The commands of a console block; in a block without a language, of its lines."""
    code = code.replace("\\\n", " ")
    prompts = re.findall(r"^\$ (.*)$", code, re.M)
    for line in prompts or code.splitlines():
        for part in re.split(r"; ", line):
            words = shlex.split(part, comments=True)
            if words[:1] == ["spdp"] and not SLOW & set(words):
                yield [word for w in words[1:] for word in (sorted(glob(w)) or [w])]


def call(words, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["spdp", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code, f"spdp {shlex.join(words)}"


def run(page, monkeypatch, languages=("python", "console")):
    """Run a page's blocks of some languages; how many there were."""
    namespace = {"__name__": "__main__"}
    done = 0
    for block in blocks(page):
        if block.language not in languages:
            continue
        if block.language == "python":
            exec(compile("\n" * block.line + block.code, str(page), "exec"), namespace)
            done += 1
        else:
            for words in commands(block.code):
                call(words, monkeypatch)
                done += 1
    return done


def has_code(page):
    return any(block.language in ("python", "console") for block in blocks(page))


OURS = [
    page
    for page in sorted(DOCS.rglob("*.md"))
    if page not in ELSEWHERE and page.parent != DOCS / "studies" and has_code(page)
]


@pytest.mark.parametrize("page", OURS, ids=[str(page.relative_to(DOCS)) for page in OURS])
def test_code_runs(page, tmp_path, monkeypatch, capsys):
    """In an empty folder: what a page reads, it makes."""
    monkeypatch.chdir(tmp_path)
    assert run(page, monkeypatch)


@pytest.fixture
def files_of_readme(tmp_path, monkeypatch):
    """The files that the README's commands speak of."""
    nibabel = pytest.importorskip("nibabel")
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("data", "public", "site")):
        np.save(f"{name}.npy", synthetic_spd(800, 3, random_state=seed))
    np.save("subjects.npy", 1e-3 * synthetic_spd(800, 3, random_state=9))
    np.save("y.npy", np.arange(800) % 2)
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


def test_the_readmes_code_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(ROOT / "README.md", monkeypatch, ("python",))


def test_the_readmes_commands_run(files_of_readme, monkeypatch, capsys):
    assert run(ROOT / "README.md", monkeypatch, ("", "console"))


def test_a_block_that_fails_is_noticed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```console\n$ spdp verify nothing\n```\n")
    with pytest.raises(AssertionError, match="spdp verify nothing"):
        run(page, monkeypatch)
    page.write_text("```python\nassert False\n```\n")
    with pytest.raises(AssertionError):
        run(page, monkeypatch)


def test_what_is_not_run_says_why():
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        text = page.read_text("utf-8")
        assert text.count("<!-- not run") == len(re.findall(r"<!-- not run: \w{4,}[^>]*-->", text))


@pytest.mark.parametrize("name", ["README", "CONTRIBUTING", "CHANGELOG", "SECURITY"])
def test_links_between_files_resolve(name):
    text = (ROOT / f"{name}.md").read_text("utf-8")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (ROOT / target).exists(), target
