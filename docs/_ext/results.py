"""Pages with results: their code runs while the site is built (:mod:`page`).

A page stays plain Markdown. While it is read, its blocks are run in an empty folder, in
a process of its own, and what they print and draw is put below them. A block that fails
ends the build.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from blocks import FENCE
from sphinx.errors import ExtensionError

RUNNER = Path(__file__).parents[1] / "_pages" / "page.py"
FIGURES = "_results"  # folder in docs


def _run(page, figures):
    figures.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, RUNNER, page, figures],
            cwd=folder,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise ExtensionError(f"{page} fails:\n{done.stderr}")
    return json.loads(done.stdout)


def _fenced(language, text, options=""):
    return f"```{language}\n{options}{text.rstrip()}\n```\n"


def _shown(result, where, words):
    """A part of a block, with what it printed and drew."""
    yield _fenced(where["language"], result["code"])
    if result["text"].strip():
        yield _fenced("{code-block} text", result["text"], ":class: result\n\n")
    for figure in result["figures"]:
        options = f":alt: {words}\n:class: result-figure\n"
        yield _fenced(f"{{image}} /{where['figures']}/{figure}", "", options)


def _read(app, docname, source):
    page = Path(os.fspath(app.env.doc2path(docname)))
    if page.suffix != ".md" or not _is_run(source[0]):
        return
    folder = f"{FIGURES}/{docname.replace('/', '-')}"
    results = iter(_run(page, Path(app.srcdir, folder)))

    def replaced(found):
        mark, words, indent, language, _ = found.groups()
        if mark == "not run" or language not in ("python", "console"):
            return found[0]
        where = {"language": language, "figures": folder}
        parts = (_shown(part, where, words) for part in next(results)["parts"])
        text = "\n".join(line for part in parts for line in part)
        return "\n".join(f"{indent}{line}" for line in text.splitlines())

    source[0] = FENCE.sub(replaced, source[0])


def _is_run(text):
    fences = FENCE.findall(text)
    return any(
        mark != "not run" and kind in ("python", "console") for mark, _, _, kind, _ in fences
    )


def setup(app):
    app.connect("source-read", _read, priority=900)  # after links were led to pages
    return {"parallel_read_safe": True, "parallel_write_safe": True}
